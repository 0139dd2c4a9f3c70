"""The downtime ledger: task-seconds without processing by cause, and what of the month's budget they used. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Final

from streamapp.analytics.report.rows import Row

OBJECTIVE: Final = 0.999
"""Share of task-seconds in which tasks must run."""


@dataclass(frozen=True, slots=True)
class Downtime:
    """What `g_downtime_daily` says of some days; in seconds of single tasks."""

    task_s: float | None = None
    """Tasks times observed seconds; None if the number of tasks is not known on a day with downtime."""
    n: int = 0
    at_least_s: float = 0.0
    at_most_s: float = 0.0
    by_cause: Mapping[str, float] = field(default_factory=dict)
    """At most, the largest first."""
    worst_s: float | None = None
    worst_task: str | None = None
    open: int = 0
    """Tasks that were not seen to run again by the end of the newest day."""


@dataclass(frozen=True, slots=True)
class Month:
    """One month beside its objective."""

    month: str
    days: int
    downtime: Downtime
    budget_s: float | None
    """Task-seconds that may be lost in the whole month, if every day has as many as those observed."""

    @property
    def burn(self) -> float | None:
        """The used part of the month's budget."""
        return self.downtime.at_most_s / self.budget_s if self.budget_s else None


def downtime(rows: Iterable[Row]) -> Downtime:
    """The sum of some days."""
    ordered = sorted(rows, key=lambda row: row["dt"])
    causes: dict[str, float] = defaultdict(float)
    for row in ordered:
        for cause, seconds in dict(row["by_cause"] or {}).items():
            causes[cause] += seconds
    worst: Row = max((row for row in ordered if row["worst_s"] is not None), key=_length, default={})
    is_known = all(row["task_s"] is not None for row in ordered if row["n"])
    known = sum(row["task_s"] or 0.0 for row in ordered)
    return Downtime(
        task_s=known if known and is_known else None,
        n=sum(row["n"] for row in ordered),
        at_least_s=sum(row["at_least_s"] for row in ordered),
        at_most_s=sum(row["at_most_s"] for row in ordered),
        by_cause=dict(sorted(causes.items(), key=lambda item: (-item[1], item[0]))),
        worst_s=worst.get("worst_s"),
        worst_task=worst.get("worst_task"),
        open=ordered[-1]["open"] if ordered else 0,
    )


def _length(row: Row) -> Any:
    return row["worst_s"]


def months(rows: Sequence[Row], objective: float = OBJECTIVE) -> list[Month]:
    """Each month of which there are days, oldest first.

    Args:
        rows: of `g_downtime_daily`, of one application.
        objective: share of task-seconds in which tasks must run, below 1.
    """
    by_month: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_month[row["dt"][:7]].append(row)
    found = []
    for month, days in sorted(by_month.items()):
        lost = downtime(days)
        whole = None if lost.task_s is None else lost.task_s / len(days) * _days_in(month)
        budget = None if whole is None else (1 - objective) * whole
        found.append(Month(month, len(days), lost, budget))
    return found


def _days_in(month: str) -> int:
    first = date.fromisoformat(f"{month}-01")
    return ((first + timedelta(days=32)).replace(day=1) - first).days
