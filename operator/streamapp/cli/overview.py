"""Many StreamApps, one line each: `overview_screen(views)`. Pure, like `screen`."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from streamapp.api.v1alpha1.status import ConvergenceState
from streamapp.cli import ages
from streamapp.cli.screen import STYLES
from streamapp.cli.view import Never, State, View

_WIDE = 100
_STATE = 18
"""Columns in which most reasons fit."""


class _Overview:
    """Laid out for the width that it is shown in."""

    def __init__(self, views: tuple[View, ...], *, with_namespace: bool) -> None:
        self._views = views
        self._with_namespace = with_namespace

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the table."""
        gap = 2 if options.max_width >= _WIDE else 1
        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
        for title in (["namespace"] if self._with_namespace else []) + ["name"]:
            table.add_column(title, overflow="fold", min_width=len(title))
        for title in ("desired", "granted", "actual", "ready", "converged"):
            table.add_column(title, justify="right", no_wrap=True)
        table.add_column("state", overflow="fold", min_width=_STATE)
        table.add_column("eta", justify="right", no_wrap=True)
        table.add_column("age", justify="right", no_wrap=True)
        for view in self._views:
            table.add_row(*self._cells(view))
        yield table

    def _cells(self, view: View) -> list[RenderableType]:
        status, metadata = view.status, view.found.metadata
        granted = "none" if status.granted is None else str(status.granted)
        answered = view.is_answered
        return [
            *([metadata.namespace] if self._with_namespace else []),
            metadata.name,
            str(view.found.replicas),
            granted,
            str(status.replicas) if answered else "?",
            str(status.ready) if answered else "?",
            _converged(view),
            _state(view),
            _eta(view),
            ages.short(view.age),
        ]


def overview_screen(views: Iterable[View], *, with_namespace: bool) -> RenderableType:
    """Show them by namespace and name.

    Args:
        views: At least one.
        with_namespace: Say of each in which namespace it is.
    """
    ordered = sorted(views, key=lambda view: (view.found.metadata.namespace, view.found.metadata.name))
    return _Overview(tuple(ordered), with_namespace=with_namespace)


def _converged(view: View) -> str:
    told = view.status.convergence
    if told is None or told.state is ConvergenceState.UNKNOWN:
        return "?"
    if told.state is ConvergenceState.CONVERGED:
        return "yes"
    return "no" if told.progress is None else f"{told.progress} %"


def _state(view: View) -> Text:
    told = view.told_by
    why = "" if told is None or view.state is State.SETTLED else f" {told.reason}"
    return Text.assemble((view.state.value, STYLES[view.state]), why)


def _eta(view: View) -> str:
    going, convergence = view.status.scale_down, view.status.convergence
    told = going.eta if going is not None and going.waiting_for else convergence.eta if convergence else None
    if view.state in {State.SETTLED, State.UNANSWERED, State.DELETING}:
        return ""
    match view.left(told):
        case None:
            return ""
        case Never():
            return "never"
        case left:
            return ages.short(left)
