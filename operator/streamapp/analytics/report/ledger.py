"""The downtime ledger: task-seconds without processing by cause, and what of the month's budget they used. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamapp.analytics.report.rows import Row
from streamapp.api.objective import budget_seconds


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
    """One month beside the objective of the StreamApp."""

    month: str
    days: int
    downtime: Downtime
    availability: float | None
    """The newest objective of the month, as a percentage; None if the record does not tell it."""
    budget_s: float | None
    """Task-seconds that can be lost in the whole month; None without an objective, or if the tasks are unknown."""

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


def months(rows: Sequence[Row]) -> list[Month]:
    """Each month of which there are days, oldest first.

    Args:
        rows: of `g_downtime_daily`, of one application.
    """
    by_month: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_month[row["dt"][:7]].append(row)
    found = []
    for month, days in sorted(by_month.items()):
        tasks, availability = _newest(days, "tasks"), _newest(days, "availability")
        budget = None if availability is None or not tasks else budget_seconds(availability, tasks, month)
        found.append(Month(month, len(days), downtime(days), availability, budget))
    return found


def _newest(days: Sequence[Row], name: str) -> Any:
    """The value of the last day that has one; None without such a day."""
    return max((row for row in days if row[name] is not None), key=lambda row: row["dt"], default={name: None})[name]
