"""Several StreamApps, one line each: `overview_screen(views)`. Pure."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from streamapp.api.v1alpha1.status import ConvergenceState
from streamapp.cli.model.app_view import AppState, AppView, Never
from streamapp.cli.screens.status import STYLES
from streamapp.cli.text import durations

_WIDE = 100
_TITLES = ("name", "desired", "current", "ready", "converged", "state", "eta", "age")
_SHORT_TITLES = ("name", "want", "cur", "ready", "conv", "state", "eta", "age")
"""The titles for a narrow terminal."""
_LEAST = {"state": 18, "name": 8, "namespace": 9}
"""The columns that can become narrower, the most important first, and widths that fit most reasons and names."""


class _Overview:
    """The layout for one width."""

    def __init__(self, views: tuple[AppView, ...], *, with_namespace: bool) -> None:
        self._with_namespace = with_namespace
        self._rows = [self._cells(view) for view in views]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the table."""
        gap = 2 if options.max_width >= _WIDE else 1
        titles, widths = self._columns(options.max_width, gap)
        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
        for title, width in zip(titles, widths, strict=True):
            left = title in _LEAST
            table.add_column(title, width=width, justify="left" if left else "right", overflow="fold")
        for row in self._rows:
            table.add_row(*row)
        yield table

    def _columns(self, width: int, gap: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Choose titles and widths that never cut a number."""
        for titles in (_TITLES, _SHORT_TITLES):
            named = (("namespace",) if self._with_namespace else ()) + titles
            wanted = [max(len(title), *column) for title, column in zip(named, self._lengths(), strict=True)]
            if sum(wanted) + gap * (len(named) - 1) <= width:
                return named, tuple(wanted)
        narrow = {title: min(want, _LEAST[title]) for title, want in zip(named, wanted, strict=True) if title in _LEAST}
        fixed = sum(want for title, want in zip(named, wanted, strict=True) if title not in _LEAST)
        left = width - gap * (len(named) - 1) - fixed - sum(narrow.values())
        for title in _LEAST:
            if title in narrow:
                more = max(0, min(left, wanted[named.index(title)] - narrow[title]))
                narrow[title], left = narrow[title] + more, left - more
        return named, tuple(narrow.get(title, want) for title, want in zip(named, wanted, strict=True))

    def _lengths(self) -> list[list[int]]:
        """The lengths of the cells, by column."""
        return [[len(cell) for cell in column] for column in zip(*self._rows, strict=True)]

    def _cells(self, view: AppView) -> list[Text]:
        status, metadata = view.status, view.streamapp.metadata
        answered = view.is_answered
        cells: list[str | Text] = [
            *([metadata.namespace] if self._with_namespace else []),
            metadata.name,
            str(view.streamapp.replicas),
            "none" if status.stateful_set_replicas is None else str(status.stateful_set_replicas),
            str(status.ready_replicas) if answered else "?",
            _converged(view),
            _state(view),
            _eta(view),
            durations.short(view.age),
        ]
        return [cell if isinstance(cell, Text) else Text(cell) for cell in cells]


def overview_screen(views: Iterable[AppView], *, with_namespace: bool) -> RenderableType:
    """The StreamApps by namespace and name.

    Args:
        views: At least one.
        with_namespace: Show the namespaces.
    """
    ordered = sorted(views, key=lambda view: (view.streamapp.metadata.namespace, view.streamapp.metadata.name))
    return _Overview(tuple(ordered), with_namespace=with_namespace)


def _converged(view: AppView) -> str:
    status = view.status.convergence
    if status is None or status.state is ConvergenceState.UNKNOWN:
        return "?"
    if status.state is ConvergenceState.CONVERGED:
        return "yes"
    return "no" if status.progress is None else f"{status.progress} %"


def _state(view: AppView) -> Text:
    main = view.main_condition
    why = "" if main is None or view.state is AppState.SETTLED else f" {main.reason}"
    return Text.assemble((view.state.value, STYLES[view.state]), why)


def _eta(view: AppView) -> str:
    going, convergence = view.status.scale_down, view.status.convergence
    part = going if going is not None and going.waiting_for else convergence
    if view.state in {AppState.SETTLED, AppState.UNANSWERED, AppState.DELETING}:
        return ""
    match view.left(part):
        case None:
            return ""
        case Never():
            return "never"
        case left:
            return durations.short(left)
