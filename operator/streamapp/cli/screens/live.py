"""What a watch has told so far, and how it is shown: `Picture`, `frame` and `whole`.

Pure; `watching` keeps it up to date.
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
class Picture:
    """Everything that is known of what is watched."""

    key: Key | None
    """The one StreamApp that is watched; None: several."""
    with_namespace: bool = False
    objects: dict[Key, Json] = field(default_factory=dict)
    is_listed: bool = False
    heard_at: datetime | None = None
    interrupted: WatchInterrupted | None = None
    interrupted_at: datetime | None = None
    """Since when nothing is heard."""
    tries_at: datetime | None = None
    """When the connection is tried again."""
    is_reached: Callable[[Json], bool] = lambda _: False
    """Whether the one that is watched has come to where the watch ends."""

    def hear(self, news: WatchEvent, now: datetime) -> None:
        """Take it in."""
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
        self.heard_at, self.interrupted, self.interrupted_at = now, None, None

    @property
    def is_over(self) -> bool:
        """Whether the one that is watched is gone, or where it was waited for."""
        if not self.is_listed or self.key is None:
            return False
        return self.key not in self.objects or self.is_reached(self.objects[self.key])


@dataclass(frozen=True, slots=True)
class _Frame:
    """A picture that fits into the height of the terminal, with a line about the watch at its end."""

    picture: Picture
    now: datetime

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the first way of showing it that fits; what fits in none is cut, and that is said."""
        footer = _footer(self.picture, self.now)
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
            yield Text(f"{len(lines) - len(cut)} lines more than this terminal is high", style="dim")
        yield Text("")
        yield footer

    def _ways(self, console: Console, options: ConsoleOptions, room: int) -> Iterator[RenderableType]:
        yield whole(self.picture, self.now)
        if self.picture.key is None:
            return
        resource = self.picture.objects[self.picture.key]
        yield status_screen(resource, self.now, spaced=False)
        without = _height(status_screen(resource, self.now, spaced=False, most_pods=0), console, options)
        most = max(_LEAST_PODS, room - without)
        yield status_screen(resource, self.now, spaced=False, most_pods=most)


def whole(picture: Picture, now: datetime) -> RenderableType:
    """Show what is known, in full and without a word about the watch."""
    if not picture.is_listed:
        return Text("waiting for the API server")
    if picture.key is not None:
        resource = picture.objects.get(picture.key)
        return Text(f"{picture.key} was deleted.") if resource is None else status_screen(resource, now)
    if not picture.objects:
        return Text("There is no StreamApp here.")
    views = [view_of(one, now) for one in picture.objects.values()]
    return overview_screen(views, with_namespace=picture.with_namespace)


def frame(picture: Picture, now: datetime) -> RenderableType:
    """Show what is known, as old as it is by now, within the height of the terminal."""
    return whole(picture, now) if not picture.is_listed or picture.is_over else _Frame(picture, now)


def _height(part: RenderableType, console: Console, options: ConsoleOptions) -> int:
    return len(console.render_lines(part, options.update(height=None), pad=False))


def _footer(picture: Picture, now: datetime) -> Text:
    heard = "" if picture.heard_at is None else f"last heard of it {durations.ago(picture.heard_at, now)}"
    lost = picture.interrupted
    if lost is None:
        return Text(f"watching, {heard}; Ctrl-C ends", style="dim")
    again = "now" if picture.tries_at is None else f"in {durations.short(picture.tries_at - now)}"
    since = durations.short(now - (picture.interrupted_at or now))
    why = plain(lost.error.why)
    return Text(f"connection lost for {since}: {why}; trying again {again}; {heard}", style="bold red")
