"""The part of the screen about convergence: how far, what is missing, and the tasks that are furthest behind."""

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from streamapp.api.v1alpha1.status import ConvergenceState, ConvergenceStatus, SlowTask
from streamapp.cli.model.app_view import View
from streamapp.cli.model.phrases import LABELS, about_left
from streamapp.cli.text.bars import Bar

_BAR = 30
_LEAST_BAR = 8
_STYLES = {
    ConvergenceState.CONVERGED: "green",
    ConvergenceState.CONVERGING: "cyan",
    ConvergenceState.UNKNOWN: "magenta",
}


def convergence(view: View, width: int) -> RenderableType | None:
    """Show how far it is; None where the operator has said nothing about it."""
    told = view.status.convergence
    if told is None:
        return None
    bar = min(_BAR, max(_LEAST_BAR, width - 64))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", width=LABELS, no_wrap=True)
    table.add_column()
    table.add_row("convergence", _progress(view, told, bar))
    if told.tasks is not None:
        table.add_row("tasks", _share(told.running, told.tasks, "running"))
    if told.learners is not None:
        table.add_row("copies", _share(told.caught_up, told.learners, "caught up"))
    if told.remaining_lag is not None:
        table.add_row("lag", f"{told.remaining_lag:,} records to go")
    elif told.state is not ConvergenceState.CONVERGED:
        table.add_row("lag", "not known")
    if told.slowest:
        table.add_row("slowest", _slowest(told.slowest, min(_BAR, max(_LEAST_BAR, width - 48))))
    return table


def _progress(view: View, told: ConvergenceStatus, width: int) -> RenderableType:
    style = _STYLES[told.state]
    line = Table.grid(padding=(0, 2, 0, 0))
    cells: list[RenderableType] = [Text(told.state.value, style=style)]
    if told.progress is not None:
        bar = Bar(told.progress / 100, width, style)
        cells += [bar, Text(f"{told.progress} %")]
    if told.state is ConvergenceState.CONVERGING:
        cells.append(Text(f"time left: {about_left(view.left(told))}"))
    for _ in cells:
        line.add_column(no_wrap=True)
    line.add_row(*cells)
    return line


def _share(part: int | None, whole: int, word: str) -> Text:
    if part is None:
        return Text(f"{whole:,}, not known how many are {word}")
    return Text(f"{part:,} of {whole:,} {word}", style="" if part == whole else "yellow")


def _slowest(tasks: tuple[SlowTask, ...], width: int) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, width=width)
    most = max((task.lag or 0 for task in tasks), default=0)
    for task in tasks:
        where = "no copy" if task.ordinal is None else f"on pod {task.ordinal}"
        lag = "lag not known" if task.lag is None else f"{task.lag:,}"
        bar: RenderableType = ""
        if task.lag is not None and most:
            bar = Bar(task.lag / most, width, "yellow")
        table.add_row(task.task, where, lag if task.ordinal is not None else "", bar)
    return table
