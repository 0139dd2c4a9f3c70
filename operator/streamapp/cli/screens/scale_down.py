"""Scale-downs on the status screen: the present one, and the last finished steps."""

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from streamapp.api.v1alpha1.status import EstimateSource, ForcedStatus, ScaleDownStatus
from streamapp.cli.model.app_view import AppState, AppView
from streamapp.cli.model.phrases import LABELS, about_left, counted, downtime_text
from streamapp.cli.text import durations

_WIDE = 100


def scale_down(view: AppView) -> RenderableType | None:
    """The present scale-down; None if there is none."""
    going = view.status.scale_down
    if going is None:
        return None
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", width=LABELS, no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("scale-down", Text(_course(view, going)))
    if going.since is not None:
        word = "held for" if view.state is AppState.HELD else "for"
        hold = f", hold {going.hold_id}" if going.hold_id else ""
        table.add_row(
            word, Text(f"{durations.short(view.now - going.since)}, since {durations.clock(going.since)}{hold}")
        )
    if going.waiting_for:
        tasks = counted(going.waiting_for, "task")
        table.add_row("waits for", Text(f"{tasks} without a caught-up copy on a remaining pod", style="yellow"))
        table.add_row("time left", Text(about_left(view.left(going)) + _source(going) + _range(going)))
    if going.waiting_for and going.last_progress is not None and view.state in {AppState.HELD, AppState.STALLED}:
        table.add_row("progress", Text(f"the lag last decreased {durations.ago(going.last_progress, view.now)}"))
    if view.main_condition is None or view.main_condition.reason != going.reason:
        table.add_row("reason", Text(going.reason))
    if going.forced is not None:
        table.add_row("overridden", Text(_forced(going.forced), style="yellow"))
    return table


def _source(going: ScaleDownStatus) -> str:
    return " by restore rates of earlier days" if going.estimate_source is EstimateSource.LEARNED else ""


def _range(going: ScaleDownStatus) -> str:
    earliest, latest = going.earliest_completion_time, going.latest_completion_time
    if earliest is None or latest is None:
        return ""
    return f", in 9 of 10 cases between {durations.clock(earliest)} and {durations.clock(latest)}"


def _course(view: AppView, going: ScaleDownStatus) -> str:
    current = view.status.stateful_set_replicas
    course = f"to {going.target}" if current is None else f"{current} to {going.target}"
    return course if going.next_ordinal is None else f"{course}, pod {going.next_ordinal} leaves next"


def last_steps(view: AppView, width: int) -> RenderableType | None:
    """The finished steps, newest first; None if there are none."""
    if not view.status.last_steps:
        return None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("last steps", no_wrap=True)
    table.add_column("at", no_wrap=True)
    for title in ("held for", "took", "downtime"):
        table.add_column(title, no_wrap=True, justify="right")
    table.add_column("", overflow="fold")
    for step in view.status.last_steps:
        when = durations.ago(step.at, view.now)
        table.add_row(
            f"{step.from_} to {step.to}",
            f"{when}, {durations.clock(step.at)}" if width >= _WIDE else when,
            "unknown" if step.held_duration is None else durations.fine(step.held_duration),
            durations.fine(step.duration),
            downtime_text(step),
            Text("" if step.forced is None else f"overridden by {_forced(step.forced)}", style="yellow"),
        )
    return table


def _forced(forced: ForcedStatus) -> str:
    return f"{forced.by.value}: {forced.reason}"
