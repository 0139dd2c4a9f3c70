"""Holds as the flight record has them, each as a whole: from when to when, and what it waited for how long. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import zip_longest

from streamapp.api.http.messages import Recorded
from streamapp.cli.text import durations

MOST_REASONS = 3
"""That are named, the longest first."""


@dataclass(slots=True)
class Held:
    """One hold."""

    hold_id: str
    at: datetime
    """When it began."""
    course: str
    """From how many replicas to how many; empty where that is not known."""
    spent: dict[str, timedelta] = field(default_factory=lambda: defaultdict(timedelta))
    """For how long it stood for each reason, as far as it is on record."""
    ended: datetime | None = None
    """None while it goes on."""
    until: datetime | None = None
    """The last time that it is known to have stood."""

    @property
    def told(self) -> str:
        """The sentence for it."""
        length = durations.fine(max((self.ended or self.until or self.at) - self.at, timedelta(0)))
        what = "held" if not self.course else f"{self.course}: held"
        for_ = f"for {length}" if self.ended is not None else f"for {length} so far"
        return f"{what} {for_}, as hold {self.hold_id}{self._reasons()}"

    def _reasons(self) -> str:
        order = sorted(self.spent.items(), key=lambda one: (-one[1], one[0]))
        named = [f"{name} {durations.fine(spent)}" for name, spent in order[:MOST_REASONS] if spent > timedelta(0)]
        named = named or [name for name, _ in order[:1]]
        more = len(order) - max(len(named), 1)
        return f": {', '.join(named)}{f' and {more} more' if more > 0 and named else ''}" if named else ""


def holds_of(decisions: Sequence[Recorded], now: datetime) -> Iterator[Held]:
    """Give each hold of one StreamApp, from its decisions in the order of time.

    A decision stands until the next one. What is shown is that of all processes of the operator together.
    """
    found: dict[str, Held] = {}
    following = (line.ts for line in decisions[1:])
    for line, next_at in zip_longest(decisions, following):
        for other in found.values():
            if other.ended is None and other.hold_id != line.hold_id:
                other.ended = line.ts
        if not line.hold_id:
            continue
        one = found.get(line.hold_id)
        if one is None:
            course = "" if line.target is None or line.granted is None else f"{line.granted} to {line.target}"
            one = found[line.hold_id] = Held(line.hold_id, line.hold_since or line.ts, course)
        until = max(next_at or now, line.ts)
        one.ended, one.until = None, until
        one.spent[line.reason] += until - line.ts
    yield from found.values()
