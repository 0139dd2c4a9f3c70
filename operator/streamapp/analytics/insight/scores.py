"""Scores the estimated completion times of scale-downs against the times at which pods were released. Pure.

A look is a decision that holds pods and shows an estimate, or for which rates of earlier days give one. Its truth is
the next step of the same hold. Looks of holds without a later step are left out: their truth was not seen.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from typing import Final

import numpy as np

from streamapp.analytics.report.rows import Row
from streamapp.api.insight import LEAST_HOLDS, MOST_RATES, EtaScore, LearnedEta, restore_seconds

LOW: Final = 0.05
HIGH: Final = 0.95
LEAST_SECONDS: Final = 1.0
"""The least time left that counts, for the estimate and for the truth."""
MOST_FACTOR: Final = 1_000.0


@dataclass(frozen=True, slots=True)
class EtaLook:
    """An estimate and its truth, in seconds from the look on."""

    day: str
    hold_id: str
    estimate: float
    truth: float

    @property
    def ratio(self) -> float:
        """How many times the estimate it took."""
        return min(max(self.truth, LEAST_SECONDS) / max(self.estimate, LEAST_SECONDS), MOST_FACTOR)


def looks(decisions: Iterable[Row]) -> list[EtaLook]:
    """The looks of one application at which the operator had an estimate.

    Args:
        decisions: Rows of `s_decision_interval`.
    """
    return _looks(decisions, lambda row: row["eta_seconds"])


def learned_eta(decisions: Iterable[Row], waits: Iterable[Row], stints: Iterable[Row]) -> LearnedEta | None:
    """Rates, and the score of estimates by them at looks without an estimate of the operator.

    The rates of a day are those of the days before it: a look never scores what was learned from it.

    Args:
        decisions: Rows of `s_decision_interval` of one application.
        waits: Of the same table, the rows that hold pods, with `blocking`.
        stints: Rows of `s_learner_stint`.
    """
    history = RestoreHistory(stints)
    blocking = {(row["hold_id"], row["t_start"]): row["blocking"] or () for row in waits}

    def estimate(row: Row) -> float | None:
        waited = blocking.get((row["hold_id"], row["t_start"]), ()) if row["eta_seconds"] is None else ()
        lags = [(subtopology_of(one["task"]), one["lag"]) for one in waited]
        return restore_seconds(history.before(row["t_start"].date().isoformat()), lags) if lags else None

    found, rates = score(_looks(decisions, estimate)), history.rates
    return LearnedEta(rates=rates, score=found) if found and rates and len(rates) <= MOST_RATES else None


def subtopology_of(task: str) -> str:
    """Of a task ID such as `0_31`; of a named topology, the whole name before the partition."""
    return task.rpartition("_")[0]


class RestoreHistory:
    """The restores of one application in the order of their days; of grade A and B only, as in `g_restore_profile`."""

    def __init__(self, stints: Iterable[Row]) -> None:
        self._by_day: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in stints:
            if row["grade"] in {"A", "B"} and row["gross_rate"] is not None:
                self._by_day[str(row["dt"])][subtopology_of(row["task"])].append(row["gross_rate"])
        self._known: dict[str, Mapping[str, float]] = {}

    @property
    def rates(self) -> dict[str, float]:
        """The median of all days, in offsets a second by subtopology; of those that restored at all."""
        return self._medians(self._by_day)

    def before(self, day: str) -> Mapping[str, float]:
        """The median of the days before one."""
        if day not in self._known:
            self._known[day] = self._medians([one for one in self._by_day if one < day])
        return self._known[day]

    def _medians(self, days: Iterable[str]) -> dict[str, float]:
        together: dict[str, list[float]] = defaultdict(list)
        for day in days:
            for subtopology, rates in self._by_day[day].items():
                together[subtopology] += rates
        return {name: float(np.median(rates)) for name, rates in together.items() if np.median(rates) > 0}


def _looks(decisions: Iterable[Row], estimate: Callable[[Row], float | None]) -> list[EtaLook]:
    by_hold: dict[str, list[Row]] = defaultdict(list)
    for row in decisions:
        if row["hold_id"]:
            by_hold[row["hold_id"]].append(row)
    return [look for hold_id, rows in sorted(by_hold.items()) for look in _of_hold(hold_id, rows, estimate)]


def _of_hold(hold_id: str, rows: Sequence[Row], estimate: Callable[[Row], float | None]) -> Iterable[EtaLook]:
    steps: list[datetime] = sorted(row["t_start"] for row in rows if row["verdict"] == "Step")
    for row in rows:
        # A row that begins at midnight carries on what was decided the day before.
        if row["verdict"] != "Hold" or row["t_start"].time() == time():
            continue
        seconds, later = estimate(row), bisect_right(steps, row["t_start"])
        if seconds is not None and later < len(steps):
            truth = (steps[later] - row["t_start"]).total_seconds()
            yield EtaLook(row["t_start"].date().isoformat(), hold_id, seconds, truth)


def score(found: Sequence[EtaLook]) -> EtaScore | None:
    """The score of these looks; None while there are too few holds to learn from and to score.

    The cover of a day uses factors of the days before it: a look never scores what was learned from it.
    """
    by_day: dict[str, list[EtaLook]] = defaultdict(list)
    for look in found:
        by_day[look.day].append(look)
    covered: dict[str, list[bool]] = defaultdict(list)
    before: list[EtaLook] = []
    days = 0
    for _, of_day in sorted(by_day.items()):
        if len({look.hold_id for look in before}) >= LEAST_HOLDS:
            low, high = _factors(before)
            days += 1
            for look in of_day:
                covered[look.hold_id].append(low <= look.ratio <= high)
        before += of_day
    if not covered:
        return None
    low, high = _factors(before)
    return EtaScore(
        cover=_share(covered),
        median_error_seconds=_median_error(found),
        low=low,
        high=high,
        holds=len(covered),
        days=days,
    )


def _share(covered: Mapping[str, Sequence[bool]]) -> float:
    return float(np.mean([np.mean(of_hold) for of_hold in covered.values()]))


def _median_error(found: Sequence[EtaLook]) -> float:
    errors = np.array([look.truth - look.estimate for look in found])
    return float(np.clip(_quantile(errors, _weights(found), 0.5), -1e9, 1e9))


def _factors(found: Sequence[EtaLook]) -> tuple[float, float]:
    ratios, weights = np.array([look.ratio for look in found]), _weights(found)
    return _quantile(ratios, weights, LOW), _quantile(ratios, weights, HIGH)


def _weights(found: Sequence[EtaLook]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Every hold weighs one, however long it was looked at."""
    count: dict[str, int] = defaultdict(int)
    for look in found:
        count[look.hold_id] += 1
    return np.array([1 / count[look.hold_id] for look in found])


def _quantile(
    values: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    weights: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    share: float,
) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    # A little less than the share, lest a sum's rounding takes the next value.
    at = int(np.searchsorted(reached, reached[-1] * share - 1e-9))
    return float(values[order][min(at, len(values) - 1)])
