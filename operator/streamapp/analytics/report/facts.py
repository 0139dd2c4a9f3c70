"""The facts of each application, from its rows, for words, charts and files. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from streamapp.analytics.report.amounts import duration
from streamapp.analytics.report.ledger import Downtime, Month, downtime, months
from streamapp.analytics.report.rows import AppRows, Key, Row
from streamapp.analytics.report.steps import StepCost, step_costs
from streamapp.analytics.report.survival import Point, quantile, survival
from streamapp.analytics.report.tables import Tables


@dataclass(frozen=True, slots=True)
class Direction:
    """The steps up, or the steps down."""

    steps: int = 0
    converged: int = 0
    median_s: float | None = None
    """After Kaplan and Meier; None if fewer than half converged while observed."""


@dataclass(frozen=True, slots=True)
class Blame:
    """The task that holds would gain most without: the only one that blocked for longest, or last most often."""

    task: str | None = None
    ordinal: int | None = None
    sole_s: float = 0.0
    """Seconds in which it was the only one."""
    last: int = 0
    """Holds of which it was the furthest behind at the end."""


@dataclass(frozen=True, slots=True)
class ReportedApp:
    """One application."""

    key: Key
    rows: AppRows
    """Its rows of each table that a report reads."""
    first: datetime
    last: datetime
    up: Direction
    down: Direction
    held_s: float
    held_by_reason: Mapping[str, float]
    worst: Blame
    steps: tuple[StepCost, ...]
    """Oldest first."""
    gap: StepCost | None
    """The step with the longest gap."""
    downtime: Downtime
    months: tuple[Month, ...]
    totals: Mapping[str, int]
    """Sums over days of the counts in `g_autoscaler_daily` and `g_churn_daily`."""
    imbalance: float | None
    """Mean over days, weighted by observed time."""
    grades: Mapping[str, int]
    """Times behind by grade of their samples."""
    unknown: tuple[str, ...] = field(default=())
    """Sentences about unknown figures."""

    @property
    def name(self) -> str:
        """The name of the StreamApp."""
        return self.key[2]

    @property
    def gap_s(self) -> float:
        """The longest gap of a step, in seconds; 0 if none is known."""
        return 0.0 if self.gap is None or self.gap.gap_s is None else self.gap.gap_s

    @property
    def title(self) -> str:
        """Namespace and name."""
        return f"{self.key[1]}/{self.name}"

    @property
    def flaps(self) -> int:
        """Flaps of an autoscaler; a user who scales by hand does not flap."""
        by_machine = any(step.row["actor"] in AUTOSCALERS for step in self.steps)
        return self.totals["flap_pairs"] if by_machine else 0

    @property
    def place(self) -> str:
        """The namespace, and the cluster if it has a name."""
        return f"{self.key[1]} on {self.key[0]}" if self.key[0] else self.key[1]


AUTOSCALERS = frozenset({"HPA", "KEDA"})
SUMMED = {
    "g_autoscaler_daily": ("events", "reversals", "flap_pairs", "wasted_events"),
    "g_churn_daily": ("rebalances", "tasks_moved", "moved_back", "pid_changes", "ghost_members"),
}


def applications(tables: Tables) -> list[ReportedApp]:
    """All applications: those with tasks that do not run now, then by downtime, by holds, and by the longest gap."""
    apps = [_application(key, tables.of(key)) for key in tables.rows["s_seen"].spans]
    return sorted(apps, key=lambda app: (-app.downtime.open, -app.downtime.at_most_s, -app.held_s, -app.gap_s, app.key))


def newest_settings(rows: AppRows) -> Row:
    """The settings that came last; empty if none is known."""
    return max(rows["s_config"], key=lambda row: row["valid_from"], default={})


def _worst(blame: Iterable[Row]) -> Blame:
    sums: dict[tuple[str, int | None], list[float]] = defaultdict(lambda: [0.0, 0])
    for row in blame:
        if row["task"] is not None:
            own = sums[row["task"], row["ordinal"]]
            own[0] += row["sole_s"] or 0.0
            own[1] += row["critical_n"]
    # What is equal otherwise has no worst one: the name then decides nothing that is said.
    found = max(sums.items(), key=lambda item: (item[1], str(item[0])), default=None)
    return Blame() if found is None else Blame(*found[0], found[1][0], int(found[1][1]))


def _application(key: Key, rows: AppRows) -> ReportedApp:
    blame, observed = rows["g_hold_blame"], rows["s_seen"]
    episodes, lost = rows["s_scale_episode"], rows["g_downtime_daily"]
    by_reason: dict[str, float] = defaultdict(float)
    for row in blame:
        by_reason[row["reason"]] += row["blame_s"]
    steps = step_costs(rows)
    seen = [step for step in steps if step.gap_s is not None]
    grades = Counter(row["grade"] for row in rows["s_learner_stint"] if row["grade"])
    return ReportedApp(
        key=key,
        rows=rows,
        first=min(row["t_first"] for row in observed),
        last=max(row["t_last"] for row in observed),
        up=direction(episodes, "up"),
        down=direction(episodes, "down"),
        held_s=sum(by_reason.values()),
        held_by_reason=dict(by_reason),
        worst=_worst(blame),
        steps=tuple(steps),
        gap=max(seen, key=lambda step: step.gap_s or 0.0, default=None),
        downtime=downtime(lost),
        months=tuple(months(lost)),
        totals=totals(rows),
        imbalance=_weighted(rows["g_skew_daily"]),
        grades={grade: grades[grade] for grade in sorted(grades)},
        unknown=_unknown(rows, steps, grades),
    )


def curve(episodes: Iterable[Row], way: str) -> list[Point]:
    """Kaplan and Meier's curve of the steps in one direction."""
    return survival(row for row in episodes if row["direction"] == way)


def direction(episodes: Iterable[Row], way: str) -> Direction:
    """The steps in one direction."""
    steps = [row for row in episodes if row["direction"] == way]
    converged = sum(row["outcome"] == "converged" for row in steps)
    return Direction(len(steps), converged, quantile(survival(steps), 0.5))


def totals(rows: AppRows) -> dict[str, int]:
    """Sums over days."""
    return {name: sum(row[name] or 0 for row in rows[table]) for table, names in SUMMED.items() for name in names}


def _weighted(rows: list[Row]) -> float | None:
    seen = sum(row["seen_s"] for row in rows)
    return float(sum(row["imbalance"] * row["seen_s"] for row in rows) / seen) if seen else None


def _unknown(rows: AppRows, costs: list[StepCost], grades: Mapping[str, int]) -> tuple[str, ...]:
    """The figures of an application that are unknown, and why."""
    steps = rows["s_scale_episode"]
    notes = []
    open_steps = sum(row["outcome"] == "open" for row in steps)
    if open_steps:
        words = "1 step" if open_steps == 1 else f"{open_steps} steps"
        notes.append(f"{words} did not end while observed: the observed time counts.")
    unseen = sum(cost.gap_s is None and bool(cost.row["moved_tasks"]) for cost in costs)
    if unseen:
        words = "1 step" if unseen == 1 else f"{unseen} steps"
        notes.append(
            f"The gap of {words} is unknown: neither agents nor members reported which process ran which task."
        )
    poor = sum(number for grade, number in grades.items() if grade in {"C", "D"})
    if poor:
        notes.append(
            f"{poor} of {sum(grades.values())} times behind have too few samples (grade C or D) "
            "and do not count for restore rates."
        )
    joins = sum(row["grade"] is None for row in rows["s_learner_stint"])
    if joins:
        notes.append(
            f"{joins} of {joins + sum(grades.values())} times behind have one sample, or positions of members at joins "
            "only: the restored amount is known, the rate is not."
        )
    lost = sum(row["lost_lines"] or 0 for row in steps)
    if lost:
        notes.append(f"The recorder lost {lost} lines during steps: the figures of these steps can be too small.")
    away = sum(_unwatched(row) for row in rows["s_seen"])
    if away >= 1:
        notes.append(f"For {duration(away)} no line of the application was written: what happened then is unknown.")
    if lost_days := [row for row in rows["g_downtime_daily"] if row["availability"] is None]:
        notes.append(_without_objective(len(lost_days)))
    notes += _absent(rows)
    return tuple(notes)


def _unwatched(day: Row) -> float:
    """Seconds between the first and the last line of a day in which the application was not watched."""
    whole: float = (day["t_last"] - day["t_first"]).total_seconds()
    return 0.0 if day["watched_s"] is None else whole - day["watched_s"]


def _without_objective(days: int) -> str:
    words = "1 day" if days == 1 else f"{days} days"
    return f"On {words} the objective is not in the record: a month without one has no budget."


def _absent(rows: AppRows) -> list[str]:
    words: dict[str, Any] = {
        "s_config": "The configuration is not in the record: every lag counts as behind.",
        "s_assignment_interval": "Which process ran which task is not in the record.",
        "s_decision_interval": "No decision is in the record: current replicas and holds are unknown.",
    }
    return [text for table, text in words.items() if not rows.has(table)]
