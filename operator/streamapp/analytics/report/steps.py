"""What each step cost and why it was held: one value for each change of the wish. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamapp.analytics.report.tables import Row


@dataclass(frozen=True, slots=True)
class Waited:
    """What a hold waited for."""

    reason: str
    task: str | None
    ordinal: int | None
    """The pod with that task's best copy."""
    seconds: float


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
    """Tasks that its holds waited for, the longest first; a hold that outlasts a change of the wish is whole in both.
    """
    gap_s: float | None
    """The longest gap of a task, at most; None where none was seen."""
    gap_error_s: float | None
    """By how much it may be shorter."""
    took_s: float
    """Until it converged, or as long as it was seen."""


def step_costs(rows: Mapping[str, list[Row]]) -> list[StepCost]:
    """All steps of an application, oldest first."""
    decisions = [row for row in rows["s_decision_interval"] if row["hold_id"]]
    gaps = [row for row in rows["s_downtime"] if row["source"] != "sample" and row["downtime_s"] is not None]
    episodes = sorted(rows["s_scale_episode"], key=lambda row: row["t_event"])
    return [_cost(row, decisions, rows["s_hold_interval"], gaps) for row in episodes]


def _cost(episode: Row, decisions: Iterable[Row], holds: Iterable[Row], gaps: Iterable[Row]) -> StepCost:
    began, ended = episode["t_event"], episode["t_end"]
    reasons: dict[str, float] = defaultdict(float)
    ids = set()
    for row in decisions:
        seconds = (min(ended, row["t_end"]) - max(began, row["t_start"])).total_seconds()
        if seconds > 0:
            reasons[row["reason"]] += seconds
            ids.add(row["hold_id"])
    worst = max((row for row in gaps if began < row["t_resume"] <= ended), key=_length, default=None)
    return StepCost(
        row=episode,
        held_s=sum(reasons.values()),
        reasons=dict(sorted(reasons.items(), key=lambda one: -one[1])),
        waited=_waited([row for row in holds if row["hold_id"] in ids and row["task"]]),
        gap_s=None if worst is None else worst["downtime_s"],
        gap_error_s=None if worst is None else worst["err_s"],
        took_s=episode["observed_s"],
    )


def _length(row: Row) -> tuple[float, float]:
    return row["downtime_s"], -(row["err_s"] or 0.0)


def _waited(holds: Sequence[Row]) -> tuple[Waited, ...]:
    sums: dict[tuple[str, str | None, int | None], float] = defaultdict(float)
    for row in holds:
        sums[row["reason"], row["task"], row["ordinal"]] += row["share_s"]
    return tuple(Waited(*what, seconds) for what, seconds in sorted(sums.items(), key=lambda one: -one[1]))


def figures(cost: StepCost) -> dict[str, Any]:
    """The same for programs, beside the columns of the episode."""
    return {
        "held_s": cost.held_s,
        "held_by": [{"reason": reason, "seconds": seconds} for reason, seconds in cost.reasons.items()],
        "waited_for": [
            {"reason": one.reason, "task": one.task, "ordinal": one.ordinal, "seconds": one.seconds}
            for one in cost.waited
        ],
        "gap_s": cost.gap_s,
        "gap_err_s": cost.gap_error_s,
    }
