"""Time passes only when nobody has anything to do."""

import asyncio
import time

import pytest

from tests.prove.virtual_time import NothingLeftToDoError, VirtualLoop, run


def test_a_pause_takes_the_loops_time_and_no_other() -> None:
    loop, began = VirtualLoop(), time.monotonic()
    run(loop, asyncio.sleep(3600))
    assert (loop.time(), time.monotonic() - began < 60) == (3600, True)


def test_what_a_thread_does_takes_none_of_it() -> None:
    async def compute() -> float:
        reminder = loop.call_later(5.0, lambda: None)
        await asyncio.to_thread(time.sleep, 0.01)
        reminder.cancel()
        return loop.time()

    loop = VirtualLoop()
    assert run(loop, compute()) == 0.0


def test_an_error_of_a_thread_reaches_who_waits() -> None:
    with pytest.raises(ZeroDivisionError):
        run(VirtualLoop(), asyncio.to_thread(lambda: 1 / 0))


def test_a_timer_that_was_cancelled_never_runs() -> None:
    async def wait() -> list[str]:
        told: list[str] = []
        loop.call_later(1.0, told.append, "cancelled").cancel()
        loop.call_later(2.0, told.append, "in time")
        await asyncio.sleep(3.0)
        return told

    loop = VirtualLoop()
    assert run(loop, wait()) == ["in time"]


def test_waiting_for_nobody_is_an_error() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(NothingLeftToDoError):
        run(VirtualLoop(), wait())
