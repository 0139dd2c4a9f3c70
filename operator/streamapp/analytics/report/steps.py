"""What each step cost and why it was held: one value for each change of the wish. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamapp.analytics.report.amounts import duration, gap
from streamapp.analytics.report.tables import Row
from streamapp.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class Waited:
    """A task that a hold waited for."""

    reason: str
    task: str
    ordinal: int | None
    """The pod with that task's best copy; None where there was none."""
    seconds: float
    """Its share of the hold."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """One change of the wish: how long it took, how long it was held and by what, and the gap that it cost."""

    row: Row
    """Of `s_scale_episode`."""
    held_s: float
    """Within the step, as the decisions say."""
    reasons: Mapping[str, float]
    """Seconds of it by reason, the longest first."""
    waited: tuple[Waited, ...]
    """The longest first. A hold that outlasts a change of the wish is whole in both."""

    @property
    def change(self) -> str:
        """The replicas before and after."""
        return f"{self.row['from_replicas']} → {self.row['to_replicas']}"

    @property
    def gap_s(self) -> float | None:
        """The longest time without a running copy of a task, at most; None where none was seen."""
        found: float | None = self.row["worst_gap_s"]
        return found

    @property
    def gap_error_s(self) -> float | None:
        """By how much it may have been shorter."""
        found: float | None = self.row["worst_gap_err_s"]
        return found

    @property
    def gap(self) -> str:
        """The same in words."""
        if self.gap_s is None and not self.row["moved_tasks"]:
            return "no task moved"
        return gap(self.gap_s, self.gap_error_s)

    @property
    def why(self) -> str:
        """What held it, in words, the longest first; the shortest of many are summed up."""
        told = [f"{reason} {duration(seconds)}" for reason, seconds in self.reasons.items()][:MOST_REASONS]
        rest = list(self.reasons.values())[MOST_REASONS:]
        more = [f"{len(rest)} more {duration(sum(rest))}"] if rest else []
        return "; ".join([*told, *more])

    @property
    def whom(self) -> str:
        """The tasks that it waited for, the first few of them."""
        texts = (one.task + (f" (pod {one.ordinal})" if one.ordinal is not None else "") for one in self.waited)
        told = list(dict.fromkeys(texts))  # One task may have been waited for by several reasons.
        rest = f" and {len(told) - MOST_TASKS} more" if len(told) > MOST_TASKS else ""
        return ", ".join(told[:MOST_TASKS]) + rest


MOST_TASKS = 3
MOST_REASONS = 4


def step_costs(rows: Mapping[str, list[Row]]) -> list[StepCost]:
    """All steps of an application, oldest first."""
    decisions = [row for row in rows["s_decision_interval"] if row["hold_id"]]
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
        reasons=dict(sorted(reasons.items(), key=lambda one: -one[1])),
        waited=_waited([row for row in holds if row["hold_id"] in ids and row["task"]]),
    )


def _waited(holds: Sequence[Row]) -> tuple[Waited, ...]:
    sums: dict[tuple[str, str, int | None], float] = defaultdict(float)
    for row in holds:
        sums[row["reason"], row["task"], row["ordinal"]] += row["share_s"]
    return tuple(Waited(*what, seconds) for what, seconds in sorted(sums.items(), key=lambda one: -one[1]))


def meanings(costs: Iterable[StepCost]) -> list[tuple[str, str]]:
    """What the reasons of some steps mean, in their order; one that this version does not know is left out."""
    names = dict.fromkeys(reason for cost in costs for reason in cost.reasons)
    return [(name, Reason[name].note) for name in names if name in Reason.__members__]


def figures(cost: StepCost) -> dict[str, Any]:
    """The same for programs, beside the columns of the episode; seconds."""
    return {
        "held_s": cost.held_s,
        "held_by": [{"reason": reason, "seconds": seconds} for reason, seconds in cost.reasons.items()],
        "waited_for": [
            {"reason": one.reason, "task": one.task, "ordinal": one.ordinal, "seconds": one.seconds}
            for one in cost.waited
        ],
    }
