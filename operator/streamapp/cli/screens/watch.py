"""Keeps a picture up to date while StreamApps change: a live screen on a terminal, one block or document a change else.

Called by `commands`. Ends when the one StreamApp that is watched is deleted, or with Ctrl-C.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime

from rich.console import Console
from rich.live import Live
from rich.text import Text

from streamapp.cli.model.app_view import view_of
from streamapp.cli.screens.documents import of_status
from streamapp.cli.screens.live import Picture, frame, whole
from streamapp.cli.text.console import Output, show, write
from streamapp.cli.text.sanitize import plain
from streamapp.kube.client.watch import ChangeEvent, DeleteEvent, ListEvent, WatchEvent, WatchInterrupted

TICK_SECONDS = 1.0
"""Between two looks at the clock."""

Tell = Callable[[Picture, WatchEvent | None], None]
"""Shows a picture after news, or, on None, only because time has passed."""


def now() -> datetime:
    """The time."""
    return datetime.now(UTC)


async def watch(news: AsyncGenerator[WatchEvent, None], picture: Picture, tell: Tell) -> None:
    """Follow the news until what is watched is gone; KubeError where it cannot even begin."""
    async with aclosing(news) as told:
        coming = asyncio.ensure_future(anext(told))
        try:
            while not picture.is_over:
                done, _ = await asyncio.wait({coming}, timeout=TICK_SECONDS)
                if not done:
                    tell(picture, None)
                    continue
                one = coming.result()
                picture.hear(one, now())
                coming = asyncio.ensure_future(anext(told))
                tell(picture, one)
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


@contextmanager
def display(console: Console, output: Output, picture: Picture) -> Iterator[Tell]:
    """Give what shows the picture, and leave the terminal as it was, with the last picture on it."""
    if output is not Output.TABLE:
        yield lambda _, one: _write_documents(one, output)
    elif not console.is_terminal:
        yield lambda known, one: _print_block(known, one, console)
    else:
        live = Live(Text("waiting for the API server"), console=console, screen=True, auto_refresh=False)
        try:
            with live:
                yield lambda known, _: live.update(frame(known, now()), refresh=True)
        finally:
            if picture.is_listed:
                show(whole(picture, now()), console)


def _print_block(picture: Picture, one: WatchEvent | None, console: Console) -> None:
    if one is None:
        return
    if isinstance(one, WatchInterrupted):
        _complain(one)
        return
    show(whole(picture, now()), console)
    if not picture.is_over:
        show(Text(""), console)


def _write_documents(one: WatchEvent | None, output: Output) -> None:
    match one:
        case WatchInterrupted():
            _complain(one)
        case ListEvent(objects):
            for resource in objects.values():
                write(of_status(view_of(resource, now())), output, in_one_line=True)
        case ChangeEvent(_, resource):
            write(of_status(view_of(resource, now())), output, in_one_line=True)
        case DeleteEvent(key):
            gone = {"namespace": key.namespace, "name": key.name, "state": "deleted"}
            write(gone, output, in_one_line=True)


def _complain(lost: WatchInterrupted) -> None:
    why = plain(str(lost.error))
    sys.stderr.write(f"connection lost: {why}; trying again in {lost.again_in_seconds:g} s\n")
    sys.stderr.flush()
