"""Scores the estimated completion times of scale-downs against the times at which pods were released. Pure.

A look is a decision that holds pods and shows an estimate. Its truth is the next step of the same hold. Looks of holds
without a later step are left out: their truth was not seen.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from typing import Final

import numpy as np

from streamapp.analytics.report.rows import Row
from streamapp.api.insight import LEAST_HOLDS, EtaScore

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
    """The looks of one application.

    Args:
        decisions: Rows of `s_decision_interval`.
    """
    by_hold: dict[str, list[Row]] = defaultdict(list)
    for row in decisions:
        if row["hold_id"]:
            by_hold[row["hold_id"]].append(row)
    return [look for hold_id, rows in sorted(by_hold.items()) for look in _of_hold(hold_id, rows)]


def _of_hold(hold_id: str, rows: Sequence[Row]) -> Iterable[EtaLook]:
    steps: list[datetime] = sorted(row["t_start"] for row in rows if row["verdict"] == "Step")
    for row in rows:
        # A row that begins at midnight carries on what was decided the day before.
        if row["verdict"] != "Hold" or row["eta_seconds"] is None or row["t_start"].time() == time():
            continue
        later = bisect_right(steps, row["t_start"])
        if later < len(steps):
            truth = (steps[later] - row["t_start"]).total_seconds()
            yield EtaLook(row["t_start"].date().isoformat(), hold_id, row["eta_seconds"], truth)


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
