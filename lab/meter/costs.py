"""What each step cost: the gap as the operator's record has it beside the one that the meter measured on the topics.

Neither knows it exactly, and each says how far off it may be. The record: a task was last seen running, and then seen
running again; it stood still for no longer than that, and no shorter than it was seen restoring. So the interruption
lies in [gap - error, gap], with `worst_gap_s` and `worst_gap_err_s` of the pipeline. The meter: users waited for so
long; an application that is never interrupted lets them wait for the quiet spacing, and where nobody waited an
interruption may hide. So it lies in [gap - quiet, gap + idle] (`lab.meter.gaps`). The two agree where these intervals
meet. They are two views of the same thing: the record sees tasks, the meter sees answers.

Called by the demo and the lab's tests. Arrays and values in, values out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lab.meter.gaps import GapReport, PartitionGap, Window

MARGIN = timedelta(seconds=1)
"""Around a step: the operator's clock and the broker's are not the same one."""


@dataclass(frozen=True)
class Interval:
    """Seconds between which an interruption took."""

    least: float
    most: float

    def meets(self, other: "Interval") -> bool:
        """Say whether both can be true."""
        return self.least <= other.most and other.least <= self.most

    def __str__(self) -> str:
        """As a person reads it."""
        if self.most == float("inf"):
            return f"{self.least:.2f} s or more"
        return f"{self.least:.2f} to {self.most:.2f} s"


@dataclass(frozen=True)
class Step:
    """A step as the report's figures have it."""

    before: int
    after: int
    began: datetime
    ended: datetime
    outcome: str
    took_s: float
    held_s: float
    held_by: tuple[tuple[str, float], ...]
    """Reasons with their seconds, the longest first."""
    waited_for: tuple[tuple[str, int | None], ...]
    """Tasks with the pod of their best copy, the longest first."""
    gap: Interval | None
    """None: not seen."""
    moved: frozenset[int]
    """Partitions of the tasks whose gap was seen one by one; empty: only the worst of all is known."""

    @property
    def window(self) -> Window:
        """The time in which the meter must have seen the same."""
        return Window.between(self.began - MARGIN, self.ended + MARGIN)


@dataclass(frozen=True)
class Cost:
    """One step with both figures."""

    title: str
    """Of the application."""
    step: Step
    meter: Interval | None
    """None: unknown."""
    measured: float | None
    """The longest gap itself, as the meter's own tables show it."""

    @property
    def name(self) -> str:
        """The step with its application."""
        return f"{self.title} {self.step.before} -> {self.step.after}"

    @property
    def agree(self) -> bool | None:
        """Whether both can be true; None where one of them is not known."""
        if self.step.gap is None or self.meter is None:
            return None
        return self.step.gap.meets(self.meter)


def steps_of(application: Mapping[str, Any]) -> list[Step]:
    """Read the steps of one application out of the report's figures, oldest first."""
    gaps = [row for row in application["gaps"] if row["source"] == "gap"]
    return [_step(row, gaps) for row in application["steps"]]


def _step(row: Mapping[str, Any], gaps: Iterable[Mapping[str, Any]]) -> Step:
    began, ended = _time(row["t_event"]), _time(row["t_end"])
    most, error = row["worst_gap_s"], row["worst_gap_err_s"]
    return Step(
        before=row["from_replicas"],
        after=row["to_replicas"],
        began=began,
        ended=ended,
        outcome=row["outcome"],
        took_s=row["observed_s"],
        held_s=row["held_s"],
        held_by=tuple((one["reason"], one["seconds"]) for one in row["held_by"]),
        waited_for=tuple((one["task"], one["ordinal"]) for one in row["waited_for"]),
        gap=None if most is None else Interval(0.0 if error is None else max(0.0, most - error), most),
        moved=frozenset(
            int(gap["task"].rpartition("_")[2])
            for gap in gaps
            if _time(gap["t_resume"]) > began and _time(gap["t_stop"]) <= ended
        ),
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def compared(title: str, step: Step, report: GapReport) -> Cost:
    """Put what the meter found in the window of a step beside it: the worst of the partitions that moved, or of all."""
    rows = [row for row in report.partitions if row.seconds is not None]
    among = [row for row in rows if not step.moved or row.partition in step.moved]
    intervals = [_interval(row) for row in among]
    if not intervals:
        return Cost(title, step, None, None)
    worst = Interval(max(one.least for one in intervals), max(one.most for one in intervals))
    return Cost(title, step, worst, max(row.seconds or 0.0 for row in among))


def _interval(row: PartitionGap) -> Interval:
    seconds, quiet = row.seconds or 0.0, (row.quiet_ms or 0) / 1000
    return Interval(max(0.0, seconds - quiet), float("inf") if row.at_least else seconds + row.idle_ms / 1000)


def cost_table(costs: Sequence[Cost]) -> RenderableType:
    """Show the steps of all applications, one row each, and below what held them; 80 columns are enough."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("step", "took", "held for", "gap on record", "gap metered", "agree"):
        table.add_column(name, no_wrap=True)
    for cost in costs:
        table.add_row(*_cells(cost))
    held = [cost for cost in costs if cost.step.held_by]
    why = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_header=bool(held))
    why.add_column("step", no_wrap=True)
    why.add_column("why it was held")
    for cost in held:
        why.add_row(cost.name, because(cost.step))
    return Group(table, Text(), why) if held else table


def _cells(cost: Cost) -> tuple[str, ...]:
    step = cost.step
    agree = {True: "yes", False: "NO", None: "-"}[cost.agree]
    return (
        cost.name,
        f"{step.took_s:.0f} s{'' if step.outcome == 'converged' else '*'}",
        f"{step.held_s:.0f} s" if step.held_s else "not held",
        "not seen" if step.gap is None else str(step.gap),
        "unknown" if cost.meter is None else str(cost.meter),
        agree,
    )


def because(step: Step, most: int = 3) -> str:
    """Say what held it, the longest first, and which tasks it waited for."""
    reasons = ", ".join(f"{reason} {seconds:.0f} s" for reason, seconds in step.held_by[:most])
    if rest_of := step.held_by[most:]:
        reasons += f", {len(rest_of)} more {sum(seconds for _, seconds in rest_of):.0f} s"
    waited = list(dict.fromkeys(step.waited_for))
    tasks = ", ".join(f"{task}" + (f" on pod {pod}" if pod is not None else "") for task, pod in waited[:most])
    more = len(waited) - most
    rest = f" and {more} more" if more > 0 else ""
    return f"{reasons} (tasks {tasks}{rest})" if tasks else reasons
