"""The task table: `tasks_screen(table, tasks)`. Pure.

It fits into 80 columns and shows more in a wider terminal. Ages use the operator's clock, not the local one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from streamapp.api.http.messages import Task, TaskCopy, Tasks
from streamapp.cli.model.phrases import counted
from streamapp.cli.text import durations
from streamapp.cli.text.bars import Bar
from streamapp.cli.text.sanitize import plain

_BAR = 16
_NARROW_BAR = 8
_ROOMY = 100
_TITLES = ("task", "pod", "state", "copy", "on", "behind", "", "covered on")
_RIGHT = frozenset({"pod", "on", "behind"})
_STATES = {"running": "green", "restoring": "cyan", "unassigned": "red", "twice": "red"}


@dataclass(frozen=True, slots=True)
class _Screen:
    """The layout for one width."""

    table: Tasks
    tasks: Sequence[Task]
    wide: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the heading, the table, and the doubt of the operator."""
        yield heading(self.table, self.tasks)
        if self.tasks:
            yield Text("")
            yield self._wide() if self.wide else self._table(options.max_width)
        if self.table.doubt:
            yield Text("")
            yield Text(plain(self.table.doubt), style="magenta")

    def _table(self, width: int) -> RenderableType:
        bar = _BAR if width >= _ROOMY else _NARROW_BAR
        most = max((copy.lag or 0 for task in self.tasks for copy in task.copies), default=0)
        rows: list[tuple[RenderableType, ...]] = []
        for task in self.tasks:
            others: list[TaskCopy | None] = [copy for copy in task.copies if copy.role != "active"]
            for number, copy in enumerate(others or [None]):
                first = number == 0
                head = _cells(task) if first else ("", "", Text())
                rows.append((*head, *_copy(copy, most, bar), _covered(task) if first else Text()))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for number, title in enumerate(_TITLES):
            # Fixed widths: rich would measure thousands of cells. The last column takes the rest.
            lengths = (_length(row[number], bar) for row in rows)
            fixed = max(len(title), *lengths) if title != _TITLES[-1] else None
            table.add_column(title, width=fixed, justify="right" if title in _RIGHT else "left")
        for row in rows:
            table.add_row(*row)
        return table

    def _wide(self) -> RenderableType:
        """One line for each task, whatever its length."""
        rows = [("task", "pod", "state", "copies", "covered on", "member"), *map(_whole, self.tasks)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
        return Text("\n".join(lines), no_wrap=True, overflow="ignore")


def tasks_screen(table: Tasks, tasks: Sequence[Task], *, wide: bool) -> RenderableType:
    """Show some or all tasks of the table.

    Args:
        table: The answer of the operator.
        tasks: The tasks to show.
        wide: Write one line for each task, with the member's ID, whatever its length.
    """
    return _Screen(table, tasks, wide)


def heading(table: Tasks, tasks: Sequence[Task]) -> RenderableType:
    """The name, the age of the facts, and the pod without which the last column holds."""
    first = Text.assemble((f"{table.namespace}/{table.name}", "bold"), "  ", counted(len(table.tasks), "task"))
    if len(tasks) != len(table.tasks):
        first.append(f", {len(tasks):,} shown")
    lines = [first, Text(", ".join(_times(table)), style="dim")]
    stateful = [task for task in table.tasks if task.stateful]
    if table.highest is not None and stateful:
        covered = sum(1 for task in stateful if task.covered_on)
        known = any(task.covered_on is not None for task in stateful)
        share = f"{covered:,} of {counted(len(stateful), 'stateful task')}" if known else "unknown"
        lines.append(Text(f"covered without pod {table.highest}: {share}"))
    return Group(*lines)


def _times(table: Tasks) -> list[str]:
    times = [f"facts from {_age(table.as_of, table)}"]
    if table.positions_as_of is not None:
        times.append(f"positions from {_age(table.positions_as_of, table)}")
    if table.limit is not None:
        times.append(f"caught up: at most {table.limit:,} records behind")
    return times


def _age(time: datetime, table: Tasks) -> str:
    age = (table.told_at or table.as_of) - time
    return durations.ago(time, time + max(timedelta(0), age))


def _whole(task: Task) -> tuple[str, ...]:
    copies = "  ".join(
        f"{copy.role} on {copy.ordinal} {'?' if copy.lag is None else f'{copy.lag:,}'}"
        f"{'' if copy.caught_up else ' behind'}"
        for copy in task.copies
        if copy.role != "active"
    )
    name, pod, state = _cells(task)
    member = "" if task.owner is None else plain(task.owner.member)
    return name, pod, state.plain, copies or "none", _covered(task).plain, member


def _cells(task: Task) -> tuple[str, str, Text]:
    owner = task.owner
    pod = "none" if owner is None else "?" if owner.ordinal is None else str(owner.ordinal)
    state = task.state or "assigned"
    return task.task, pod, Text(state, style=_STATES.get(state, "magenta"))


def _copy(copy: TaskCopy | None, most: int, bar: int) -> tuple[RenderableType, str, str, RenderableType]:
    if copy is None:
        return Text("none", style="dim"), "", "", ""
    style = "green" if copy.caught_up else "yellow"
    if copy.lag is None:
        return copy.role, str(copy.ordinal), "?", Text("unknown", style="magenta")
    return copy.role, str(copy.ordinal), f"{copy.lag:,}", Bar(copy.lag / most if most else 0.0, bar, style)


def _length(cell: RenderableType, bar: int) -> int:
    return bar if isinstance(cell, Bar) else len(cell) if isinstance(cell, str | Text) else 0


def _covered(task: Task) -> Text:
    if not task.stateful:
        return Text("no state", style="dim")
    if task.covered_on is None:
        return Text("?", style="magenta")
    if not task.covered_on:
        return Text("no pod", style="red")
    return Text(f"pod {', '.join(map(str, task.covered_on))}")
