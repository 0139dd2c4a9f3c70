"""How many steps had not converged after a time, after Kaplan and Meier.

Steps that were not seen to their end count as long as they were seen. The same definition
as `g_convergence_daily`, over all days of a report.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from streamapp.analytics.report.rows import Row


@dataclass(frozen=True, slots=True)
class Point:
    """After `seconds`, `share` of the steps had not converged; `censored` of them were not seen any longer."""

    seconds: float
    share: float
    censored: int


def survival(episodes: Iterable[Row]) -> list[Point]:
    """The curve, from the beginning on; empty where there are no steps."""
    ended: Counter[float] = Counter()
    converged: Counter[float] = Counter()
    for row in episodes:
        ended[row["observed_s"]] += 1
        converged[row["observed_s"]] += row["outcome"] == "converged"
    if not ended:
        return []
    at_risk, share, points = ended.total(), 1.0, [Point(0.0, 1.0, 0)]
    for seconds in sorted(ended):
        share *= 1 - converged[seconds] / at_risk
        points.append(Point(seconds, share, ended[seconds] - converged[seconds]))
        at_risk -= ended[seconds]
    return points


def quantile(curve: Iterable[Point], part: float) -> float | None:
    """Seconds within which this part of the steps had converged; None where so many were never seen to."""
    return next((point.seconds for point in curve if point.share <= 1 - part + 1e-9), None)
