"""The cost of each step and the reasons of its hold: one value for each change of the desired replicas. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamapp.analytics.report.amounts import duration, gap
from streamapp.analytics.report.rows import Row
from streamapp.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class Blocked:
    """A task that blocked a scale-down."""

    reason: str
    task: str
    ordinal: int | None
    """The pod with the best copy of the task; None without a copy."""
    seconds: float
    """Its share of the hold."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """One change of the desired replicas: its hold, the reasons and tasks of that hold, and its gap."""

    row: Row
    """Of `s_scale_episode`."""
    held_s: float
    """Seconds within the step, by the decisions."""
    reasons: Mapping[str, float]
    """Seconds of the hold by reason, the longest first."""
    blocked: tuple[Blocked, ...]
    """The longest first. A hold that spans two steps counts fully in both."""

    @property
    def change(self) -> str:
        """The replicas before and after."""
        return f"{self.row['from_replicas']} → {self.row['to_replicas']}"

    @property
    def gap_s(self) -> float | None:
        """The longest time without a running copy of a task, at most; None if unknown."""
        seconds: float | None = self.row["worst_gap_s"]
        return seconds

    @property
    def gap_error_s(self) -> float | None:
        """The seconds by which the gap can have been shorter."""
        seconds: float | None = self.row["worst_gap_err_s"]
        return seconds

    @property
    def gap(self) -> str:
        """The gap as text."""
        if self.gap_s is None and not self.row["moved_tasks"]:
            return "no task moved"
        return gap(self.gap_s, self.gap_error_s)

    @property
    def why(self) -> str:
        """The reasons of the hold as text, the longest first; the last ones of many are summed."""
        texts = [f"{reason} {duration(seconds)}" for reason, seconds in self.reasons.items()][:MOST_REASONS]
        rest = list(self.reasons.values())[MOST_REASONS:]
        more = [f"{len(rest)} more {duration(sum(rest))}"] if rest else []
        return "; ".join([*texts, *more])

    @property
    def tasks(self) -> str:
        """The tasks that blocked the step as text, the first few by name."""
        texts = (task.task + (f" (pod {task.ordinal})" if task.ordinal is not None else "") for task in self.blocked)
        names = list(dict.fromkeys(texts))  # A task can have blocked for several reasons.
        rest = f" and {len(names) - MOST_TASKS} more" if len(names) > MOST_TASKS else ""
        return ", ".join(names[:MOST_TASKS]) + rest


MOST_TASKS = 3
MOST_REASONS = 4


def step_costs(rows: Mapping[str, Sequence[Row]]) -> list[StepCost]:
    """All steps of an application, oldest first."""
    decisions = [row for row in rows["s_decision_interval"] if row["hold_id"] or row["verdict"] == "Hold"]
    episodes = sorted(rows["s_scale_episode"], key=lambda row: row["t_event"])
    return [_cost(row, decisions, rows["s_hold_interval"]) for row in episodes]


def _cost(episode: Row, decisions: Iterable[Row], holds: Iterable[Row]) -> StepCost:
    began, ended = episode["t_event"], episode["t_end"]
    reasons: dict[str, float] = defaultdict(float)
    ids = set()
    for row in decisions:
        seconds = (min(ended, row["t_end"]) - max(began, row["t_start"])).total_seconds()
        if seconds > 0:
            reasons[row["reason"]] += seconds
            ids.add(row["hold_id"])
    return StepCost(
        row=episode,
        held_s=sum(reasons.values()),
        reasons=dict(sorted(reasons.items(), key=lambda item: -item[1])),
        blocked=_blocked([row for row in holds if row["hold_id"] in ids and row["task"]]),
    )


def _blocked(holds: Sequence[Row]) -> tuple[Blocked, ...]:
    sums: dict[tuple[str, str, int | None], float] = defaultdict(float)
    for row in holds:
        sums[row["reason"], row["task"], row["ordinal"]] += row["share_s"]
    return tuple(Blocked(*what, seconds) for what, seconds in sorted(sums.items(), key=lambda item: -item[1]))


def meanings(costs: Iterable[StepCost]) -> list[tuple[str, str]]:
    """The explanations of the reasons of some steps, in order, without reasons that this version does not know."""
    names = dict.fromkeys(reason for cost in costs for reason in cost.reasons)
    return [(name, Reason[name].note) for name in names if name in Reason.__members__]


def step_figures(cost: StepCost) -> dict[str, Any]:
    """The figures for programs, beside the columns of the episode; in seconds."""
    return {
        "held_s": cost.held_s,
        "held_by": [{"reason": reason, "seconds": seconds} for reason, seconds in cost.reasons.items()],
        "waited_for": [
            {"reason": task.reason, "task": task.task, "ordinal": task.ordinal, "seconds": task.seconds}
            for task in cost.blocked
        ],
    }
