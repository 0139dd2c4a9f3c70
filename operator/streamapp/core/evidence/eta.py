"""How long still: from two readings, when the slowest copy will be near enough, or that it never will at this speed.

Used for the next triggered rebalance of a hold and for the ETA on the resource.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from streamapp.core.evidence.coverage import TaskWait


@dataclass(frozen=True, slots=True)
class EtaAt:
    """By then, if it goes on like this."""

    time: datetime


@dataclass(frozen=True, slots=True)
class NeverAtThisSpeed:
    """It does not come nearer. An answer, and a worse one than "unknown"."""


@dataclass(frozen=True, slots=True)
class NotKnown:
    """There are not two readings to compare."""


NOT_KNOWN = NotKnown()

Estimate = EtaAt | NeverAtThisSpeed | NotKnown

LONGEST = timedelta(days=365)
"""Beyond this an estimate is "never"."""


@dataclass(frozen=True, slots=True)
class LagSample:
    """What was waited for at one time; the lags are those of that time."""

    at: datetime
    waits: Sequence[TaskWait]


def when_caught_up(earlier: LagSample, latest: LagSample) -> Estimate:
    """When the slowest of the tasks that are waited for will be caught up.

    A copy that was not waited for before has only begun to fall behind: its speed is not known.
    """
    elapsed = (latest.at - earlier.at).total_seconds()
    before = {wait.copy_key: wait.records_to_go for wait in earlier.waits}
    longest = timedelta(0)
    for wait in latest.waits:
        was = before.get(wait.copy_key)
        if was is None or wait.records_to_go is None or elapsed <= 0:
            return NOT_KNOWN
        left = _time_left(was, wait.records_to_go, elapsed)
        if left is None:
            return NeverAtThisSpeed()
        longest = max(longest, left)
    return EtaAt(latest.at + longest)


def _time_left(was: int, left: int, elapsed: float) -> timedelta | None:
    if left == 0:
        return timedelta(0)
    speed = (was - left) / elapsed
    if speed <= 0 or left / speed > LONGEST.total_seconds():
        return None
    return timedelta(seconds=left / speed)
