"""The operator's clock as its answers show it, so that a migration compares dates of one clock alone.

The record has dates, and so have the operator's answers. A machine whose clock is ahead would wait for a reading of the
group that is newer than its own date; one whose clock is behind would take an old reading for a new one.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from streamapp.cli.screens import watch


@dataclass(slots=True)
class OperatorClock:
    """Of one run of the command; until the operator has answered, this machine's clock."""

    ahead: timedelta = timedelta(0)
    """Of this machine's clock; negative if the operator's is behind."""

    def learn(self, told_at: datetime | None) -> None:
        """Note an answer that has just come; None changes nothing."""
        if told_at is not None:
            self.ahead = told_at - watch.now()

    def now(self) -> datetime:
        """The present time by the operator's clock."""
        return watch.now() + self.ahead
