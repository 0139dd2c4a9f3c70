"""A TCP server of a test that leaves no connection behind, whatever its clients and handlers do.

`asyncio.start_server` alone does not do that. A connection whose handler is cancelled before its first line stays open
until Python's garbage collector meets it, and then some later test fails for it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from ssl import SSLContext

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]
"""Serves one connection; it is closed when this returns, and cancelled when the server stops."""

_TURNS = 5
"""Turns of the event loop after which every connection that was accepted has its handler."""

_EXPECTED = (asyncio.IncompleteReadError, OSError)
"""What a handler may end with: its client went away."""


@asynccontextmanager
async def listening(serve: Serve, port: int = 0, tls: SSLContext | None = None) -> AsyncIterator[int]:
    """Listen on this machine, and give the port; raise what a handler failed with."""
    handlers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.create_task(serve(reader, writer))
        handlers[handler] = writer
        handler.add_done_callback(lambda _: writer.close())

    server = await asyncio.start_server(connect, "127.0.0.1", port, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        for handler, writer in handlers.items():
            handler.cancel()
            writer.transport.abort()
        ends = await asyncio.gather(*handlers, return_exceptions=True)
        for writer in handlers.values():
            with contextlib.suppress(OSError):
                await writer.wait_closed()
    for end in ends:
        if isinstance(end, Exception) and not isinstance(end, _EXPECTED):
            raise end
