"""Seconds of a change as a range: draws over what is not known, the restore rate and the pauses of the operator.

The rounds are played once, at the median rate. What they wait for copies is stretched by the rate of a draw, and the
rest stays. Draws are spread evenly over both distributions, so the same question has the same answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from math import exp, log, sqrt
from statistics import NormalDist, fmean

from streamapp.core.assignors.group import Copy
from streamapp.core.facts.snapshot import Direction
from streamapp.simulator.rounds import Cause, Play
from streamapp.simulator.world import Rates

DRAWS = 1_000
_Z90 = NormalDist().inv_cdf(0.9)
_COUNTS_AS = 2
"""Observations that an estimate is worth beside those of the application itself."""
_GOLDEN = 0.6180339887498949
_FOR_COPIES = {Cause.TRIGGERED, Cause.FOLLOW_UP, Cause.CAUGHT_UP}


@dataclass(frozen=True, slots=True)
class Spread:
    """Of an unknown value: what a tenth, half, and nine tenths of the cases stay below."""

    p10: float
    p50: float
    p90: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of values that were seen; ValueError without any."""
        if not values:
            raise ValueError("a spread of no values is not known")
        ordered = sorted(values)
        return cls(*(_at(ordered, share) for share in (0.1, 0.5, 0.9)))

    @classmethod
    def between(cls, low: float, high: float) -> "Spread":
        """A range whose ends are the tenth and the nine tenths, even on a logarithmic scale."""
        return cls(low, exp((log(low) + log(high)) / 2), high)

    def quantile(self, share: float) -> float:
        """By log-normal halves through the three values; 0 stays 0."""
        if self.p50 <= 0:
            return 0.0
        z = NormalDist().inv_cdf(share) / _Z90
        side = self.p90 / self.p50 if z > 0 else self.p50 / max(self.p10, self.p50 * 1e-6)
        return float(self.p50 * side**z)

    def after(self, values: Sequence[float]) -> "Spread":
        """What the next value may be, when these were seen: this spread counts as two more of them.

        By a log-normal. Few values leave the range wide, also where they happen to lie close together.
        """
        if not values:
            return self
        seen, counts = [log(value) for value in values], _COUNTS_AS + len(values)
        usual, mean = log(self.p50), fmean(seen)
        middle = (_COUNTS_AS * usual + sum(seen)) / counts
        apart = _COUNTS_AS * len(seen) / counts * (mean - usual) ** 2
        squares = _COUNTS_AS * (log(self.p90 / self.p10) / 2 / _Z90) ** 2 + sum((one - mean) ** 2 for one in seen)
        side = _Z90 * sqrt((squares + apart) / counts * (1 + 1 / counts))
        return Spread(exp(middle - side), exp(middle), exp(middle + side))

    def widened(self, factor: float) -> "Spread":
        """At least so wide to each side of the median."""
        return Spread(min(self.p10, self.p50 / factor), self.p50, max(self.p90, self.p50 * factor))


def _at(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """What a change takes beside its rounds, in seconds: an estimate from a few runs, or seen on this application."""

    up: Spread = Spread(7.0, 14.0, 28.0)
    """Replicas that are added: until the pods have started and joined."""
    down: Spread = Spread(6.0, 13.0, 26.0)
    """Replicas that are removed: the announcement, two looks at the group, the end of the pods."""
    window: float = 0.0
    """Seconds for which fewer replicas must be desired before anything begins, once for all steps."""
    seen_up: int = 0
    """Changes of this application that `up` rests on; 0: none, it is the estimate."""
    seen_down: int = 0

    def of(self, direction: Direction) -> Spread:
        """Of a step of a change in this direction."""
        return self.up if direction is Direction.UP else self.down

    def before(self, direction: Direction) -> float:
        """Seconds before the first step of a change in this direction."""
        return 0.0 if direction is Direction.UP else self.window


class HandoverGap(Enum):
    """How a moved task changes its owner."""

    LEARNER = "on demand"
    STANDBY = "standby"
    DEPARTURE = "a pod leaves a streams group"
    DEPARTURE_CAPPED = "a pod leaves a streams group, with shortened heartbeats"
    ARRIVAL = "a pod joins a streams group"
    ARRIVAL_CAPPED = "a pod joins a streams group, with shortened heartbeats"


GAP_SECONDS: Mapping[HandoverGap, Spread] = {
    HandoverGap.LEARNER: Spread(0.3, 0.5, 1.5),
    HandoverGap.STANDBY: Spread(1.0, 2.4, 3.5),
    HandoverGap.DEPARTURE: Spread(1.5, 4.1, 5.5),
    HandoverGap.DEPARTURE_CAPPED: Spread(0.3, 0.7, 1.8),
    HandoverGap.ARRIVAL: Spread(2.5, 4.6, 6.3),
    HandoverGap.ARRIVAL_CAPPED: Spread(1.0, 2.2, 4.6),
}
"""Measured in the lab: with several applications (docs/benchmarks.md), in streams groups on a bare broker 4.2.1
(docs/streams-protocol.md). Of the streams groups, shortest and longest gap stand for a tenth and nine tenths; with
shortened heartbeats no shortest gap is on record, so it is an estimate.
"""


@dataclass(frozen=True, slots=True)
class TimedPlays:
    """Seconds of the plays of one change at one restore rate."""

    fixed: float
    """Handovers and waits for an interval."""
    copying: float
    """Until copies have caught up, and what starts cold has restored."""
    rate: float
    """Records a second of one process."""

    @classmethod
    def of(cls, plays: Sequence[Play], rate: float) -> "TimedPlays":
        """Divide the time of the plays."""
        copying, total = _cold_seconds(plays, rate), 0.0
        for one in plays:
            total += one.rounds[-1].seconds
            for now, then in pairwise(one.rounds):
                is_for_copies = then.cause in _FOR_COPIES and now.wanted.learners
                copying += then.seconds - now.seconds if is_for_copies else 0.0
        return cls(total + _cold_seconds(plays, rate) - copying, copying, rate)

    def seconds(self, restore: Spread, pause: Spread, steps: int, before: float = 0.0, draws: int = DRAWS) -> Spread:
        """The range over so many draws.

        Args:
            restore: Records a second of one process.
            pause: What a step takes beside its rebalances.
            steps: Steps that are made one after the other.
            before: Until the first of them may begin.
            draws: How many.
        """
        return _drawn(self, restore, pause, steps, before, draws)


@lru_cache(maxsize=64)  # several ways of one change mostly take as long
def _drawn(timed: TimedPlays, restore: Spread, pause: Spread, steps: int, before: float, draws: int) -> Spread:
    found = []
    for number in range(draws):
        rate = restore.quantile((number + 0.5) / draws)
        paused = pause.quantile((number * _GOLDEN + 0.5) % 1.0)
        found.append(before + timed.fixed + timed.copying * timed.rate / rate + paused * steps)
    return Spread.of(found)


def _cold_seconds(plays: Sequence[Play], rate: float) -> float:
    """From the last rebalance until every task runs."""
    last = plays[-1].world
    running = [Copy(task, process) for task, process in last.owners().items() if task in last.ends]
    return last.seconds_until_caught_up(running, 0, Rates(restore=rate))
