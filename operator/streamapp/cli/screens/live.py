"""The state of a watch and its layout: `WatchState`, `frame` and `whole`.

Pure; `watch` keeps the state up to date.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from streamapp.cli.model.app_view import view_of
from streamapp.cli.screens.overview import overview_screen
from streamapp.cli.screens.status import status_screen
from streamapp.cli.text import durations
from streamapp.cli.text.sanitize import plain
from streamapp.kube.client.kinds import Key
from streamapp.kube.client.watch import ChangeEvent, DeleteEvent, ListEvent, WatchEvent, WatchInterrupted

_LEAST_PODS = 3

Json = dict[str, Any]


@dataclass(slots=True)
class WatchState:
    """The objects of a watch, and its connection."""

    key: Key | None
    """The one StreamApp of the watch; None: several."""
    with_namespace: bool = False
    objects: dict[Key, Json] = field(default_factory=dict)
    is_listed: bool = False
    received_at: datetime | None = None
    interrupted: WatchInterrupted | None = None
    interrupted_at: datetime | None = None
    """When the connection was lost."""
    tries_at: datetime | None = None
    """When the next connection starts."""
    is_reached: Callable[[Json], bool] = lambda _: False
    """Whether the StreamApp has reached the end of the watch."""

    def update(self, news: WatchEvent, now: datetime) -> None:
        """Apply news of the watch."""
        match news:
            case WatchInterrupted():
                self.interrupted, self.tries_at = news, now + timedelta(seconds=news.again_in_seconds)
                self.interrupted_at = self.interrupted_at or now
                return
            case ListEvent(objects):
                self.objects, self.is_listed = dict(objects), True
            case ChangeEvent(key, resource):
                self.objects[key] = resource
            case DeleteEvent(key):
                self.objects.pop(key, None)
        self.received_at, self.interrupted, self.interrupted_at = now, None, None

    @property
    def is_over(self) -> bool:
        """Whether the StreamApp is deleted, or has reached the end of the watch."""
        if not self.is_listed or self.key is None:
            return False
        return self.key not in self.objects or self.is_reached(self.objects[self.key])


@dataclass(frozen=True, slots=True)
class _Frame:
    """A layout that fits into the height of the terminal, with a line about the watch at its end."""

    state: WatchState
    now: datetime

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the first layout that fits, or the last one, cut and with the number of missing lines."""
        footer = _footer(self.state, self.now)
        room = console.height - 1 - _height(footer, console, options)
        lines: list[list[Segment]] = []
        for way in self._ways(console, options, room):
            lines = console.render_lines(way, options.update(height=None), pad=False)
            if len(lines) <= room:
                break
        cut = lines if len(lines) <= room else lines[: max(0, room - 1)]
        for line in cut:
            yield from (*line, Segment.line())
        if len(cut) < len(lines):
            yield Text(f"{len(lines) - len(cut)} more lines do not fit into this terminal", style="dim")
        yield Text("")
        yield footer

    def _ways(self, console: Console, options: ConsoleOptions, room: int) -> Iterator[RenderableType]:
        yield whole(self.state, self.now)
        if self.state.key is None:
            return
        resource = self.state.objects[self.state.key]
        yield status_screen(resource, self.now, spaced=False)
        without = _height(status_screen(resource, self.now, spaced=False, most_pods=0), console, options)
        most = max(_LEAST_PODS, room - without)
        yield status_screen(resource, self.now, spaced=False, most_pods=most)


def whole(state: WatchState, now: datetime) -> RenderableType:
    """The whole state, without the line about the watch."""
    if not state.is_listed:
        return Text("waiting for the API server")
    if state.key is not None:
        resource = state.objects.get(state.key)
        return Text(f"{state.key} was deleted.") if resource is None else status_screen(resource, now)
    if not state.objects:
        return Text("There are no StreamApps here.")
    views = [view_of(resource, now) for resource in state.objects.values()]
    return overview_screen(views, with_namespace=state.with_namespace)


def frame(state: WatchState, now: datetime) -> RenderableType:
    """The state, within the height of the terminal."""
    return whole(state, now) if not state.is_listed or state.is_over else _Frame(state, now)


def _height(part: RenderableType, console: Console, options: ConsoleOptions) -> int:
    return len(console.render_lines(part, options.update(height=None), pad=False))


def _footer(state: WatchState, now: datetime) -> Text:
    received = "" if state.received_at is None else f"last update {durations.ago(state.received_at, now)}"
    lost = state.interrupted
    if lost is None:
        return Text(f"watching, {received}; Ctrl-C ends", style="dim")
    again = "now" if state.tries_at is None else f"in {durations.short(state.tries_at - now)}"
    since = durations.short(now - (state.interrupted_at or now))
    why = plain(lost.error.why)
    return Text(f"connection lost for {since}: {why}; trying again {again}; {received}", style="bold red")
