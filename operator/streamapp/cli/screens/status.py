"""The status of one StreamApp as a picture: `status_screen(resource, now)`, a renderable for any rich console.

Pure: the same object and time always give the same picture, and nothing is read. Used by `kubectl streamapp status`,
once or in a live display, and by whoever else shows an application while it scales. It fits into 80 columns and shows
more where there is room; every fact is in words and figures, and colours only repeat them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from streamapp.cli.model.agents_told import word_for
from streamapp.cli.model.app_view import State, View, view_of
from streamapp.cli.screens.conditions_screen import conditions
from streamapp.cli.screens.convergence_screen import convergence
from streamapp.cli.screens.pods import pods
from streamapp.cli.screens.scale_down import last_steps, scale_down
from streamapp.cli.text import durations

STYLES: Mapping[State, str] = {
    State.SETTLED: "green",
    State.CONVERGING: "cyan",
    State.CHANGING: "cyan",
    State.HELD: "yellow",
    State.PAUSED: "yellow",
    State.DELETING: "yellow",
    State.UNKNOWN: "magenta",
    State.NOT_READY: "red",
    State.STALLED: "red",
    State.UNANSWERED: "magenta",
}


def status_screen(
    resource: Mapping[str, Any], now: datetime, *, most_pods: int | None = None, spaced: bool = True
) -> RenderableType:
    """Show everything that the status of one StreamApp says.

    Args:
        resource: The whole object, as the API server gives it in JSON.
        now: The time, aware of its zone; ages and what is left of an ETA are counted from it.
        most_pods: Show no more pods than this, those that leave first, and sum up the others. None: all of them.
        spaced: Leave an empty line between the parts.

    Raises:
        pydantic.ValidationError: There is no metadata as every API server gives it: this is no Kubernetes object.
    """
    return _Screen(view_of(resource, now), most_pods, spaced)


@dataclass(frozen=True, slots=True)
class _Screen:
    """Laid out for the width that it is shown in."""

    view: View
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
        yield from (part for part in (scale_down(self.view), convergence(self.view, width)) if part is not None)
        yield from (part for part in (pods(self.view, width, self.most_pods),) if part is not None)
        yield from (part for part in (conditions(self.view), last_steps(self.view, width)) if part is not None)


def heading(view: View) -> RenderableType:
    """Say which StreamApp this is, its state with the reason for it, the figures, and what speaks against them."""
    told_by = view.told_by
    first = Text.assemble((view.name, "bold"), "  ", (view.state.value.upper(), f"bold {STYLES[view.state]}"))
    lines = [first, _figures(view), _kind(view)]
    if told_by is not None:
        first.append(f"  {told_by.reason}", style=STYLES[view.state])
        lines.insert(1, Text(told_by.message))
    if view.is_dry_run:
        lines.insert(1, Text("This is a dry run: everything is decided and nothing is done.", style="yellow"))
    if view.doubt is not None:
        lines.insert(1, Text(f"{view.doubt.what} {view.doubt.next_step}", style="bold magenta"))
    lines += [Text(f"invalid: {fault}", style="red") for fault in view.faults]
    return Group(*lines)


def _figures(view: View) -> Text:
    status = view.status
    granted = "none yet" if status.stateful_set_replicas is None else str(status.stateful_set_replicas)
    line = Text()
    figures = [("desired", str(view.found.replicas)), ("granted", granted)]
    if view.is_answered:
        figures += [("actual", str(status.replicas)), ("ready", str(status.ready_replicas))]
    for label, figure in (*figures, ("age", durations.short(view.age))):
        line.append(f"{label} ", style="dim").append(f"{figure}   ", style="bold")
    line.rstrip()
    return line


def _kind(view: View) -> Text:
    status = view.status
    facts = [
        ("application", view.application_id),
        ("group", None if status.group_protocol is None else status.group_protocol.value),
        ("copies", None if status.learner_source is None else word_for(status.learner_source)),
    ]
    line = Text()
    for label, fact in facts:
        if fact is not None:
            line.append(f"{label} ", style="dim").append(f"{fact}   ")
    line.rstrip()
    return line
