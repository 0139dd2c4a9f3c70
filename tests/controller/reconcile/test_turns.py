"""Decisions that take long: several of them keep nobody else from the event loop for longer than one does."""

import asyncio
import time
from typing import Any

import pytest

from streamapp.core.decide import decide
from tests.controller.doubles.bench import KEY, a_bench

LONG = 0.2


@pytest.mark.slow
def test_decisions_that_take_long_do_not_keep_the_loop_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[float] = []

    def slowly(*facts: Any) -> Any:
        time.sleep(LONG)
        ends.append(time.monotonic())
        return decide(*facts)

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            writer.write(b"yes\n")
        writer.close()

    async def play() -> None:
        async with a_bench(4) as bench:
            server = await asyncio.start_server(answered, "127.0.0.1", 0)
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            monkeypatch.setattr("streamapp.controller.reconcile.reconciler.decide", slowly)
            passes = asyncio.gather(*(bench.reconciler.reconcile(KEY) for _ in range(6)), return_exceptions=True)
            longest = 0.0
            while not passes.done():
                began = time.monotonic()
                writer.write(b"is it mine?\n")
                await reader.readline()
                longest = max(longest, time.monotonic() - began)
            await passes
            writer.close()
            await writer.wait_closed()
            await asyncio.sleep(0.1)
            server.close()
            assert len(ends) == 6
            assert longest < 2.5 * LONG, longest

    asyncio.run(play())
