"""What a watch has told so far, and the frame that shows it: `Picture` and `frame`.

Pure; `watching` keeps it up to date.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from streamapp.cli import ages
from streamapp.cli.overview import overview_screen
from streamapp.cli.plain import plain
from streamapp.cli.screen import status_screen
from streamapp.cli.view import view_of
from streamapp.kube.following import Changed, Deleted, Interrupted, Listed, News
from streamapp.kube.places import Key

_LEAST_PODS = 3
_FOOTER = 2

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
    interrupted: Interrupted | None = None
    interrupted_at: datetime | None = None
    """Since when nothing is heard."""
    tries_at: datetime | None = None
    """When the connection is tried again."""

    def hear(self, news: News, now: datetime) -> None:
        """Take it in."""
        match news:
            case Interrupted():
                self.interrupted, self.tries_at = news, now + timedelta(seconds=news.again_in_seconds)
                self.interrupted_at = self.interrupted_at or now
                return
            case Listed(objects):
                self.objects, self.is_listed = dict(objects), True
            case Changed(key, resource):
                self.objects[key] = resource
            case Deleted(key):
                self.objects.pop(key, None)
        self.heard_at, self.interrupted, self.interrupted_at = now, None, None

    @property
    def is_over(self) -> bool:
        """Whether the one that is watched is gone."""
        return self.is_listed and self.key is not None and self.key not in self.objects


@dataclass(frozen=True, slots=True)
class _Frame:
    """A screen that fits into the height of the terminal, with a line about the watch below it."""

    picture: Picture
    now: datetime

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give it; where it is too high, fewer pods are shown."""
        yield self._content(console, options)
        yield Text("")
        yield _footer(self.picture, self.now)

    def _content(self, console: Console, options: ConsoleOptions) -> RenderableType:
        picture = self.picture
        if picture.key is None:
            views = [view_of(one, self.now) for one in picture.objects.values()]
            return overview_screen(views, with_namespace=picture.with_namespace)
        resource = picture.objects[picture.key]
        rest = status_screen(resource, self.now, most_pods=0)
        lines = len(console.render_lines(rest, options.update(height=None), pad=False))
        return status_screen(resource, self.now, most_pods=max(_LEAST_PODS, console.height - lines - _FOOTER))


def frame(picture: Picture, now: datetime) -> RenderableType:
    """Show what is known, as old as it is by now."""
    if not picture.is_listed:
        return Group(Text("waiting for the API server"))
    if picture.key is not None and picture.key not in picture.objects:
        return Text(f"{picture.key} was deleted.")
    if not picture.objects:
        return Group(Text("There is no StreamApp here."), Text(""), _footer(picture, now))
    return _Frame(picture, now)


def _footer(picture: Picture, now: datetime) -> Text:
    heard = "" if picture.heard_at is None else f"last heard of it {ages.ago(picture.heard_at, now)}"
    lost = picture.interrupted
    if lost is None:
        return Text(f"watching, {heard}; Ctrl-C ends", style="dim")
    again = "now" if picture.tries_at is None else f"in {ages.short(picture.tries_at - now)}"
    since = ages.short(now - (picture.interrupted_at or now))
    why = plain(lost.error.why)
    return Text(f"connection lost for {since}: {why}; trying again {again}; {heard}", style="bold red")
