"""Answers that nobody reads: a real server and real sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession, web

from streamapp.controller.http import routes
from streamapp.controller.http.routes import LOOPBACK, ResponseLimiter, serve_people

LARGE = b"x" * 32 * 1024 * 1024
"""More than the sockets of both sides take."""
GET = b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n"
Reader = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def a_server() -> AsyncIterator[int]:
    """Give its port."""
    way = ResponseLimiter()

    async def large(request: web.Request) -> web.Response:
        return await way.send(request, web.Response(body=LARGE))

    runner = await serve_people([web.get("/large", large)], 0)
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def hanging(port: int) -> Reader:
    """Ask, and read nothing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
    writer.write(GET)
    await writer.drain()
    await reader.readexactly(1)
    return reader, writer


async def status(port: int) -> int:
    async with ClientSession() as session, session.get(f"http://127.0.0.1:{port}/large") as answer:
        await answer.read()
        return answer.status


def test_no_more_than_a_few_answers_wait_for_their_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MOST_AT_ONCE", 2)

    async def play() -> None:
        async with a_server() as port:
            readers = [await hanging(port), await hanging(port)]
            assert await status(port) == 503
            for _, writer in readers:
                writer.transport.abort()
            await asyncio.sleep(0.2)
            assert await status(port) == 200

    asyncio.run(play())


def test_who_does_not_read_loses_the_connection_and_the_next_one_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MOST_AT_ONCE", 1)
    monkeypatch.setattr(routes, "LONGEST_SECONDS", 0.3)

    async def play() -> None:
        async with a_server() as port:
            reader, writer = await hanging(port)
            await asyncio.sleep(0.6)
            monkeypatch.setattr(routes, "LONGEST_SECONDS", 30)
            assert await status(port) == 200
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(len(LARGE))
            writer.close()

    asyncio.run(play())


def test_a_port_that_is_taken_ends_nothing_and_the_one_who_has_it_goes_on() -> None:
    async def play() -> None:
        async with a_server() as port:
            second = await serve_people([web.get("/large", _unasked)], port)
            await second.cleanup()
            async with ClientSession() as session, session.get(f"http://{LOOPBACK}:{port}/large") as answer:
                assert len(await answer.read()) == len(LARGE)

    asyncio.run(play())


async def _unasked(_: web.Request) -> web.Response:
    raise AssertionError
