"""Follows StreamApps while they change: a live screen on a terminal, else one block or document for each change.

The watch ends when its one StreamApp is deleted, or with Ctrl-C.
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
from streamapp.cli.screens.live import WatchState, frame, whole
from streamapp.cli.text.console import Output, show, write
from streamapp.cli.text.sanitize import plain
from streamapp.kube.client.watch import ChangeEvent, DeleteEvent, ListEvent, WatchEvent, WatchInterrupted

TICK_SECONDS = 1.0
"""Between two updates of the ages on the screen."""

Show = Callable[[WatchState, WatchEvent | None], None]
"""Shows a state after news, or after a tick if the news is None."""


def now() -> datetime:
    """The time."""
    return datetime.now(UTC)


async def watch(news: AsyncGenerator[WatchEvent, None], state: WatchState, show_state: Show) -> None:
    """Apply the news until the watch is over; KubeError if the watch cannot start."""
    async with aclosing(news) as stream:
        pending = asyncio.ensure_future(anext(stream))
        try:
            while not state.is_over:
                done, _ = await asyncio.wait({pending}, timeout=TICK_SECONDS)
                if not done:
                    show_state(state, None)
                    continue
                update = pending.result()
                state.update(update, now())
                pending = asyncio.ensure_future(anext(stream))
                show_state(state, update)
        finally:
            pending.cancel()
            await asyncio.gather(pending, return_exceptions=True)


@contextmanager
def display(console: Console, output: Output, state: WatchState) -> Iterator[Show]:
    """Give the function that shows the state; at the end restore the terminal, with the last state on it."""
    if output is not Output.TABLE:
        yield lambda _, update: _write_documents(update, output)
    elif not console.is_terminal:
        yield lambda current, update: _print_block(current, update, console)
    else:
        live = Live(Text("waiting for the API server"), console=console, screen=True, auto_refresh=False)
        try:
            with live:
                yield lambda current, _: live.update(frame(current, now()), refresh=True)
        finally:
            if state.is_listed:
                show(whole(state, now()), console)


def _print_block(state: WatchState, update: WatchEvent | None, console: Console) -> None:
    if update is None:
        return
    if isinstance(update, WatchInterrupted):
        _report(update)
        return
    show(whole(state, now()), console)
    if not state.is_over:
        show(Text(""), console)


def _write_documents(update: WatchEvent | None, output: Output) -> None:
    match update:
        case WatchInterrupted():
            _report(update)
        case ListEvent(objects):
            for resource in objects.values():
                write(of_status(view_of(resource, now())), output, in_one_line=True)
        case ChangeEvent(_, resource):
            write(of_status(view_of(resource, now())), output, in_one_line=True)
        case DeleteEvent(key):
            gone = {"namespace": key.namespace, "name": key.name, "state": "deleted"}
            write(gone, output, in_one_line=True)


def _report(lost: WatchInterrupted) -> None:
    why = plain(str(lost.error))
    sys.stderr.write(f"connection lost: {why}; trying again in {lost.again_in_seconds:g} s\n")
    sys.stderr.flush()
