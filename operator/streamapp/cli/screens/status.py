"""The status of one StreamApp: `status_screen(resource, now)`, a renderable for any rich console.

Pure: the same object and time always give the same screen. `kubectl streamapp status` shows it once or as a live
display. It fits into 80 columns and shows more in a wider terminal. Colours only repeat what the words say.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from streamapp.api.v1alpha1.status import ConvergenceState, ConvergenceStatus, SlowTask
from streamapp.cli.model.app_view import AppState, AppView, view_of
from streamapp.cli.model.migration_record import sentence_of
from streamapp.cli.model.phrases import LABELS, about_left, downtime_range
from streamapp.cli.screens.pods import pods
from streamapp.cli.screens.scale_down import last_steps, scale_down
from streamapp.cli.text import durations
from streamapp.cli.text.bars import Bar
from streamapp.core.actions.decision import Answer
from streamapp.core.facts.policy import LearnerSource

STYLES: Mapping[AppState, str] = {
    AppState.SETTLED: "green",
    AppState.CONVERGING: "cyan",
    AppState.CHANGING: "cyan",
    AppState.HELD: "yellow",
    AppState.PAUSED: "yellow",
    AppState.DELETING: "yellow",
    AppState.UNKNOWN: "magenta",
    AppState.NOT_READY: "red",
    AppState.STALLED: "red",
    AppState.UNANSWERED: "magenta",
}
_ANSWER_STYLES = {Answer.TRUE: "green", Answer.FALSE: "red", Answer.UNKNOWN: "magenta"}
_CONVERGENCE_STYLES = {
    ConvergenceState.CONVERGED: "green",
    ConvergenceState.CONVERGING: "cyan",
    ConvergenceState.UNKNOWN: "magenta",
}
_BAR = 30
_LEAST_BAR = 8


def status_screen(
    resource: Mapping[str, Any], now: datetime, *, most_pods: int | None = None, spaced: bool = True
) -> RenderableType:
    """Show the whole status of one StreamApp.

    Args:
        resource: The whole object, as the API server gives it in JSON.
        now: The time, aware of its zone, for ages and the time left.
        most_pods: Show at most this many pods, the leaving ones first, and sum up the others. None: all of them.
        spaced: Leave an empty line between the parts.

    Raises:
        pydantic.ValidationError: The object lacks the metadata that every API server sets.
    """
    return _Screen(view_of(resource, now), most_pods, spaced)


@dataclass(frozen=True, slots=True)
class _Screen:
    """The layout for one width."""

    view: AppView
    most_pods: int | None
    spaced: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the parts."""
        for number, part in enumerate(self._parts(options.max_width)):
            if number and self.spaced:
                yield Text("")
            yield part

    def _parts(self, width: int) -> Iterator[RenderableType]:
        yield heading(self.view)
        parts = (
            scale_down(self.view),
            _convergence(self.view, width),
            pods(self.view, width, self.most_pods),
            _conditions(self.view),
            last_steps(self.view, width),
            _downtime(self.view),
        )
        yield from (part for part in parts if part is not None)


def heading(view: AppView) -> RenderableType:
    """The name, the state with its reason, the replicas, and why the status may be wrong."""
    main = view.main_condition
    first = Text.assemble((view.name, "bold"), "  ", (view.state.value.upper(), f"bold {STYLES[view.state]}"))
    lines = [first, _replicas(view), _application(view)]
    if main is not None:
        first.append(f"  {main.reason}", style=STYLES[view.state])
        lines.insert(1, Text(main.message))
        cause = view.root_cause
        if cause is not None and cause.reason != main.reason:
            lines.insert(1, Text(cause.message))
    if view.is_dry_run:
        dry_run = "This is a dry run: the operator decides everything and changes nothing."
        lines.insert(1, Text(dry_run, style="yellow"))
    if view.migration is not None:
        lines.insert(1, Text(" ".join(sentence_of(view.migration, view.streamapp.metadata.name)), style="yellow"))
    if view.doubt is not None:
        lines.insert(1, Text(f"{view.doubt.what} {view.doubt.next_step}", style="bold magenta"))
    lines += [Text(f"invalid: {fault}", style="red") for fault in view.faults]
    return Group(*lines)


def _replicas(view: AppView) -> Text:
    status = view.status
    current = "none yet" if status.stateful_set_replicas is None else str(status.stateful_set_replicas)
    line = Text()
    figures = [("desired", str(view.streamapp.replicas)), ("current", current)]
    if view.is_answered:
        figures += [("actual", str(status.replicas)), ("ready", str(status.ready_replicas))]
    for label, figure in (*figures, ("age", durations.short(view.age))):
        line.append(f"{label} ", style="dim").append(f"{figure}   ", style="bold")
    line.rstrip()
    return line


def _application(view: AppView) -> Text:
    status = view.status
    facts = [
        ("application", view.application_id),
        ("group", None if status.group_protocol is None else status.group_protocol.value),
        ("copies", None if status.learner_source is None else _source(status.learner_source)),
    ]
    line = Text()
    for label, fact in facts:
        if fact is not None:
            line.append(f"{label} ", style="dim").append(f"{fact}   ")
    line.rstrip()
    return line


def _downtime(view: AppView) -> RenderableType | None:
    """The downtime of the month and what of its budget it used; None if the operator saw none."""
    month = view.status.downtime
    if month is None:
        return None
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", width=LABELS, no_wrap=True)
    table.add_column(overflow="fold")
    used = "" if month.budget_used is None else f", {month.budget_used} of the budget"
    times = "1 time" if month.count == 1 else f"{month.count:,} times"
    table.add_row("downtime", f"{downtime_range(month.at_least, month.at_most)} in {times} in {month.month}{used}")
    table.add_row("longest", f"{durations.fine(month.longest)} at most, task {month.longest_task}")
    causes = (f"{one.cause} {durations.fine(one.at_most)}" for one in month.by_cause)
    table.add_row("by cause", ", ".join(causes))
    return table


def _source(source: LearnerSource) -> str:
    return "on demand" if source is LearnerSource.ON_DEMAND else source.value.lower()


def _conditions(view: AppView) -> RenderableType | None:
    """The conditions that need attention, each reason once, without the message of the heading; None if all is well."""
    if not view.problem_conditions:
        return None
    shown = {condition.reason for condition in (view.main_condition, view.root_cause) if condition is not None}
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("condition", "status", "since"):
        table.add_column(title, no_wrap=True)
    table.add_column("reason", overflow="fold")
    ordered = sorted(view.problem_conditions, key=lambda condition: (condition.reason, condition.status.value))
    for (reason, status), group in groupby(ordered, key=lambda condition: (condition.reason, condition.status)):
        alike = list(group)
        message = max((condition.message for condition in alike), key=len)
        table.add_row(
            "\n".join(condition.type for condition in alike),
            Text(status.value, style=_ANSWER_STYLES[status]),
            "\n".join(durations.short(view.now - condition.last_transition_time) for condition in alike),
            Text(reason if reason in shown else f"{reason}: {message}"),
        )
    return table


def _convergence(view: AppView, width: int) -> RenderableType | None:
    """The progress, and the tasks that are furthest behind; None if the status has none."""
    status = view.status.convergence
    if status is None:
        return None
    bar = min(_BAR, max(_LEAST_BAR, width - 64))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", width=LABELS, no_wrap=True)
    table.add_column()
    table.add_row("convergence", _progress(view, status, bar))
    if status.tasks is not None:
        table.add_row("tasks", _share(status.running, status.tasks, "running"))
    if status.learners is not None:
        table.add_row("copies", _share(status.caught_up, status.learners, "caught up"))
    if status.remaining_lag is not None:
        table.add_row("lag", f"{status.remaining_lag:,} records remaining")
    elif status.state is not ConvergenceState.CONVERGED:
        table.add_row("lag", "unknown")
    if status.slowest:
        table.add_row("slowest", _slowest(status.slowest, min(_BAR, max(_LEAST_BAR, width - 48))))
    return table


def _progress(view: AppView, status: ConvergenceStatus, width: int) -> RenderableType:
    style = _CONVERGENCE_STYLES[status.state]
    line = Table.grid(padding=(0, 2, 0, 0))
    cells: list[RenderableType] = [Text(status.state.value, style=style)]
    if status.progress is not None:
        bar = Bar(status.progress / 100, width, style)
        cells += [bar, Text(f"{status.progress} %")]
    if status.state is ConvergenceState.CONVERGING:
        cells.append(Text(f"time left: {about_left(view.left(status))}"))
    for _ in cells:
        line.add_column(no_wrap=True)
    line.add_row(*cells)
    return line


def _share(part: int | None, whole: int, word: str) -> Text:
    if part is None:
        return Text(f"{whole:,}; how many are {word} is unknown")
    return Text(f"{part:,} of {whole:,} {word}", style="" if part == whole else "yellow")


def _slowest(tasks: tuple[SlowTask, ...], width: int) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, width=width)
    most = max((task.lag or 0 for task in tasks), default=0)
    for task in tasks:
        place = "no copy" if task.ordinal is None else f"on pod {task.ordinal}"
        lag = "lag unknown" if task.lag is None else f"{task.lag:,}"
        bar: RenderableType = ""
        if task.lag is not None and most:
            bar = Bar(task.lag / most, width, "yellow")
        table.add_row(task.task, place, lag if task.ordinal is not None else "", bar)
    return table
