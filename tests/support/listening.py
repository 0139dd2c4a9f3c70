"""Servers of tests that leave no connection behind, whatever their clients and handlers do.

A server of asyncio that closes forgets a connection which it has accepted and not begun to serve (seen with Python
3.11), and one whose handler is cancelled before its first line. Such a connection stays open until Python's garbage
collector meets it, and then some later test fails for it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from ssl import SSLContext

from aiohttp import web

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]
"""Serves one connection; it is closed when this returns, and cancelled when the server stops."""

_TURNS = 5
"""Turns of the event loop after which a client's connection is accepted and has its handler."""

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
        await _accept_all()
        server.close()
        for handler, writer in handlers.items():
            handler.cancel()
            with contextlib.suppress(AttributeError):  # Python 3.11.1 to 3.11.3, of one that has ended
                writer.transport.abort()
        ends = await asyncio.gather(*handlers, return_exceptions=True)
        for writer in handlers.values():
            with contextlib.suppress(OSError):
                await writer.wait_closed()
    for end in ends:
        if isinstance(end, Exception) and not isinstance(end, _EXPECTED):
            raise end


@asynccontextmanager
async def serving(
    app: web.Application, address: str = "127.0.0.1", patience: float = 60, tls: SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve an application of aiohttp, and give the port; requests have so many seconds to end when it stops."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=patience)
    await runner.setup()
    await web.TCPSite(runner, address, 0, ssl_context=tls).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await _accept_all()
        await runner.cleanup()


async def _accept_all() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
