"""What a what-if starts from: how many pods were desired and there, and how long each pod stayed undesired. Pure.

Pods of a StatefulSet go from the top, so that each number of pods is a *level*: level 3 is desired while three or more
pods are. The operator lets a level go when it was undesired for the whole stabilization window and copies are ready.
Times are seconds since 1970.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import quantiles

from streamapp.analytics.report.rows import AppRows, Row

WAITING = "LearnersCatchingUp"
"""Reason of a hold that another lag limit would change."""
KEPT = frozenset({"HeldByUser", "ZeroNotAllowed"})
"""Reasons that no other setting would have ended."""
NEAR_S = 60.0
"""By which the decision that shows a change of the desired replicas can follow upon the change."""
LEAST_SEEN = 3
"""Scale-downs seen to their end, below which nothing is taken for usual."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What was in force from a time on."""

    since: float
    window_s: float
    """`scaleDown.stabilizationWindow`."""
    lag: int | None
    """Slots at which a copy counts as caught up; None if unknown."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time without a hole in the record of decisions."""

    start: float
    end: float
    desired: tuple[tuple[float, int], ...]
    """Each change, the first at `start`."""
    granted: tuple[tuple[float, int], ...]
    """The same of the StatefulSet's replicas."""


@dataclass(frozen=True, slots=True)
class Absence:
    """A time in which a level was undesired although its pod was there at the beginning."""

    level: int
    began: float
    ended: float
    """Desired again, or the stretch ended."""
    gone: float | None
    """When the operator let it go; None if it did not."""
    setting: Setting
    is_kept: bool = False
    """Whether the pod stayed because a user said so, or as the last one."""
    looks: tuple[tuple[float, int | None], ...] = ()
    """Time and lag of the furthest copy, at each look that waited for copies."""
    looks_end: float = 0.0
    """End of the last of these."""

    @property
    def rest_s(self) -> float | None:
        """Seconds for which the pod stayed beyond the window; None if it did not go."""
        return None if self.gone is None else self.gone - self.began - self.setting.window_s

    @property
    def least_rest_s(self) -> float:
        """Seconds for which it would have stayed beyond the window, at least."""
        return self.ended - self.began - self.setting.window_s

    def within(self, lag: int) -> float | None:
        """The second of two looks in a row at which no copy was further behind; None if there is none."""
        near = [known is not None and known <= lag for _, known in self.looks]
        pairs = (self.looks[nth][0] for nth in range(1, len(near)) if near[nth - 1] and near[nth])
        return next(pairs, None)


@dataclass(frozen=True, slots=True)
class Usual:
    """A tenth, half and nine tenths of what was seen."""

    low: float
    mid: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Usual | None":
        """None if too few were seen."""
        if len(values) < LEAST_SEEN:
            return None
        cuts = quantiles(values, n=10, method="inclusive")
        return cls(cuts[0], cuts[4], cuts[8])


@dataclass(frozen=True, slots=True)
class Stood:
    """Seconds of single tasks without processing, as a range."""

    least: float = 0.0
    most: float = 0.0

    def __add__(self, other: "Stood") -> "Stood":
        return Stood(self.least + other.least, self.most + other.most)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the desired replicas in the record, and what tasks stood for it."""

    at: float
    is_raise: bool
    moved: int
    """Tasks."""
    stood: Stood


class Facts:
    """The facts of one application that a what-if needs."""

    def __init__(self, rows: AppRows) -> None:
        """Take them from the tables of one application."""
        decisions = sorted(rows["s_decision_interval"], key=lambda row: row["t_start"])
        self.stretches: tuple[Stretch, ...] = tuple(_stretches(decisions))
        self._settings = _settings(rows["s_config"])
        self._looks = [
            (row["t_start"].timestamp(), row["t_end"].timestamp(), row["furthest_lag"])
            for row in decisions
            if row["reason"] == WAITING
        ]
        self._kept = [row["t_start"].timestamp() for row in decisions if row["reason"] in KEPT]
        self.absences: tuple[tuple[Absence, ...], ...] = tuple(
            tuple(self._absences(stretch)) for stretch in self.stretches
        )
        self.changes, besides = _changes(rows["s_scale_episode"], rows["s_outage"])
        self.stood = sum((change.stood for change in self.changes), besides)
        """For scaling."""
        rates = [row for row in rows["g_restore_profile"] if row["scope"] == "subtopology"]
        self.slow_rate: float | None = min((row["rate_p10"] for row in rates), default=None)
        self.usual_rate: float | None = min((row["rate_p50"] for row in rates), default=None)
        """Slots a second of the slowest subtopology: a tenth of its stints, and half of them, were slower."""

    @property
    def watched_s(self) -> float:
        """Seconds of all stretches."""
        return sum(stretch.end - stretch.start for stretch in self.stretches)

    @property
    def setting(self) -> Setting:
        """What was in force last."""
        return self._settings[-1]

    @cached_property
    def usual_rest(self) -> Usual | None:
        """For how long pods stayed beyond the window."""
        every = (one for of_stretch in self.absences for one in of_stretch)
        # Levels that went together are one case.
        seen = {(one.began, one.gone): max(0.0, one.rest_s) for one in every if one.rest_s is not None}
        return Usual.of([*seen.values()])

    @cached_property
    def usual_after_s(self) -> float:
        """Median seconds from the end of the wait for copies to the removal."""
        every = (one for of_stretch in self.absences for one in of_stretch)
        seen = {one.gone: one.gone - one.looks_end for one in every if one.gone is not None and one.looks}
        found = Usual.of([*seen.values()])
        return 0.0 if found is None else found.mid

    def change(self, at: float, *, is_raise: bool) -> Change | None:
        """The change in the record that a decision at this time shows."""
        same = [one for one in self.changes if one.is_raise == is_raise and at - NEAR_S <= one.at <= at + 1]
        return same[-1] if same else None

    def usual_stood(self, *, is_raise: bool) -> Stood:
        """What tasks stood for one change that was carried out: a tenth less, nine tenths no more; 0 if unknown."""
        same = [one.stood for one in self.changes if one.is_raise == is_raise and one.moved]
        least, most = Usual.of([one.least for one in same]), Usual.of([one.most for one in same])
        return Stood() if least is None or most is None else Stood(least.low, most.high)

    def _absences(self, stretch: Stretch) -> Iterator[Absence]:
        top = max(number for _, number in (*stretch.desired, *stretch.granted))
        for level in range(1, top + 1):
            for began, ended in _spans(stretch.desired, stretch.end, level, is_there=False):
                if _before(stretch.granted, began) >= level:
                    yield self._absence(stretch, level, began, ended)

    def _absence(self, stretch: Stretch, level: int, began: float, ended: float) -> Absence:
        gone = next((at for at, number in stretch.granted if began <= at <= ended and number < level), None)
        until = ended if gone is None else gone
        looks = [look for look in self._looks if began <= look[0] < until]
        return Absence(
            level=level,
            began=began,
            ended=ended,
            gone=gone,
            setting=self._setting_at(began),
            is_kept=gone is None and any(began <= at < ended for at in self._kept),
            looks=tuple((at, lag) for at, _, lag in looks),
            looks_end=looks[-1][1] if looks else 0.0,
        )

    def _setting_at(self, at: float) -> Setting:
        nth = bisect_right(self._settings, at, key=lambda one: one.since)
        return self._settings[max(0, nth - 1)]


def _settings(configs: Iterable[Row]) -> list[Setting]:
    found = [
        Setting(row["valid_from"].timestamp(), row["stabilization_seconds"] or 0.0, row["lag_limit"])
        for row in sorted(configs, key=lambda row: row["valid_from"])
    ]
    return found or [Setting(0.0, 0.0, None)]


def _stretches(decisions: Iterable[Row]) -> Iterator[Stretch]:
    """Decisions that follow upon each other without a hole, by what they say of replicas."""
    desired: list[tuple[float, int]] = []
    granted: list[tuple[float, int]] = []
    start = end = 0.0
    for row in decisions:
        if row["desired"] is None or row["granted"] is None:
            continue
        at = row["t_start"].timestamp()
        if desired and at != end:
            yield Stretch(start, end, tuple(desired), tuple(granted))
            desired, granted = [], []
        if not desired:
            start = at
        for series, number in ((desired, row["desired"]), (granted, row["granted"])):
            if not series or series[-1][1] != number:
                series.append((at, number))
        end = row["t_end"].timestamp()
    if desired:
        yield Stretch(start, end, tuple(desired), tuple(granted))


def _spans(
    series: Sequence[tuple[float, int]], end: float, level: int, *, is_there: bool
) -> Iterator[tuple[float, float]]:
    """The times in which a series reaches a level, or in which it does not."""
    began: float | None = None
    for at, number in series:
        if (number >= level) == is_there:
            began = at if began is None else began
        elif began is not None:
            yield began, at
            began = None
    if began is not None:
        yield began, end


def spans(series: Sequence[tuple[float, int]], end: float, level: int) -> list[tuple[float, float]]:
    """The times in which a series reaches a level."""
    return [*_spans(series, end, level, is_there=True)]


def _before(series: Sequence[tuple[float, int]], at: float) -> int:
    """The number right before a time: a level can go with the decision that finds it undesired. At first the first."""
    return series[max(0, bisect_left(series, at, key=lambda one: one[0]) - 1)][1]


def _changes(episodes: Iterable[Row], outages: Iterable[Row]) -> tuple[tuple[Change, ...], Stood]:
    """Each change with what tasks stood for it, and what stood for scaling before the first one."""
    ordered = sorted(episodes, key=lambda row: row["t_event"])
    times = [row["t_event"].timestamp() for row in ordered]
    stood = [Stood()] * (len(ordered) + 1)
    for row in outages:
        if row["cause"] == "scale":
            nth = bisect_right(times, row["t_stop"].timestamp() + NEAR_S / 2)
            stood[nth] += Stood(row["at_least_s"] or 0.0, row["at_most_s"] or 0.0)
    changes = (
        Change(at, row["direction"] == "up", row["moved_tasks"] or 0, cost)
        for at, row, cost in zip(times, ordered, stood[1:], strict=True)
    )
    return tuple(changes), stood[0]
