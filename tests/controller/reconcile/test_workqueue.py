"""The queue: one pass per key at a time, none lost, none in the way of another."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from streamapp.controller.reconcile.workqueue import KeyQueue, Pauses
from tests.prove.virtual_time import VirtualLoop, run

GAP = 0.02


@dataclass(slots=True)
class Told:
    """Keeps what the queue tells."""

    adds: int = 0
    results: Counter[str] = field(default_factory=Counter)
    pauses: list[float] = field(default_factory=list)

    def added(self) -> None:
        self.adds += 1

    def failed(self, key: str, error: Exception, again_in_seconds: float) -> None:
        assert (key, str(error)) == ("a", "no")
        self.pauses.append(again_in_seconds)

    def finished(self, seconds: float, result: str) -> None:
        assert seconds >= 0
        self.results[result] += 1


def with_queue(
    work: Callable[[str], Awaitable[float | None]], play: Callable[[KeyQueue[str]], Coroutine[Any, Any, None]]
) -> Told:
    """Play something on a queue, in virtual time, then close it."""
    told = Told()

    async def main() -> None:
        queue: KeyQueue[str] = KeyQueue(work, Pauses(GAP, first_seconds=0.01, longest_seconds=0.05), told)
        try:
            await play(queue)
        finally:
            await queue.close()

    run(VirtualLoop(), main())
    return told


def test_many_events_of_a_key_are_few_passes_and_the_last_event_is_seen() -> None:
    seen: list[int] = []
    events = 0

    async def work(_: str) -> None:
        seen.append(events)
        await asyncio.sleep(0.01)

    async def play(queue: KeyQueue[str]) -> None:
        nonlocal events
        for number in range(1, 51):
            events = number
            queue.add("a")
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.1)

    told = with_queue(work, play)
    assert (told.adds, seen[-1]) == (50, 50)
    assert len(seen) < 12


def test_a_key_is_never_in_two_passes() -> None:
    inside = most = 0

    async def work(_: str) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.005)
        inside -= 1

    async def play(queue: KeyQueue[str]) -> None:
        for _ in range(30):
            queue.add("a")
            await asyncio.sleep(0.003)

    with_queue(work, play)
    assert most == 1


def test_a_key_whose_pass_hangs_delays_no_other() -> None:
    passed: list[str] = []

    async def work(key: str) -> None:
        if key == "hangs":
            await asyncio.sleep(3600)
        passed.append(key)

    async def play(queue: KeyQueue[str]) -> None:
        queue.add("hangs")
        for number in range(100):
            queue.add(str(number))
        await asyncio.sleep(0.05)
        assert queue.oldest_seconds() > 0.04
        assert len(queue) == 1

    with_queue(work, play)
    assert len(passed) == 100


def test_a_pass_that_fails_is_tried_again_ever_more_rarely_and_begins_anew_after_a_success() -> None:
    times = 0

    async def work(_: str) -> float | None:
        nonlocal times
        times += 1
        if times in {1, 2, 3, 5}:
            raise ValueError("no")
        return GAP if times == 4 else None

    async def play(queue: KeyQueue[str]) -> None:
        queue.add("a")
        await asyncio.sleep(0.5)

    told = with_queue(work, play)
    assert told.results == Counter(error=4, success=2)
    assert [round(pause, 2) for pause in told.pauses] == [0.01, 0.02, 0.04, 0.01]


def test_a_key_asked_for_again_while_it_runs_gets_one_more_pass() -> None:
    times = 0

    async def work(_: str) -> None:
        nonlocal times
        times += 1
        await asyncio.sleep(0.03)

    async def play(queue: KeyQueue[str]) -> None:
        queue.add("a")
        await asyncio.sleep(0.01)
        queue.add("a")
        queue.add("a")
        await asyncio.sleep(0.15)
        assert len(queue) == 0

    with_queue(work, play)
    assert times == 2


def test_a_later_wish_does_not_put_off_an_earlier_one() -> None:
    passed: list[float] = []

    async def work(_: str) -> None:
        passed.append(asyncio.get_running_loop().time())

    async def play(queue: KeyQueue[str]) -> None:
        began = asyncio.get_running_loop().time()
        queue.add("a", 0.03)
        queue.add("a", 30)
        await asyncio.sleep(0.1)
        assert 0.02 < passed[0] - began < 0.09

    with_queue(work, play)
    assert len(passed) == 1


def test_a_key_that_must_not_wait_long_is_tried_again_before_the_pause_has_grown() -> None:
    told = Told()

    async def work(_: str) -> None:
        raise ValueError("no")

    async def main() -> None:
        pauses = Pauses(GAP, first_seconds=1, longest_seconds=300)
        queue: KeyQueue[str] = KeyQueue(work, pauses, told, lambda _: 15.0)
        queue.add("a")
        await asyncio.sleep(120)
        await queue.close()

    run(VirtualLoop(), main())
    assert 13.5 <= told.pauses[-1] <= max(told.pauses) <= 15


@pytest.mark.parametrize(("longest", "asked", "pause"), [(300.0, 40.0, 40.0), (15.0, 40.0, 15.0), (300.0, 0.0, 1.0)])
def test_an_api_server_that_wants_to_be_left_alone_is_unless_the_key_must_not_wait(
    longest: float, asked: float, pause: float
) -> None:
    told = Told()

    class BusyError(Exception):
        retry_after_seconds = asked

    async def work(_: str) -> None:
        raise BusyError("no")

    async def main() -> None:
        pauses = Pauses(GAP, first_seconds=1, longest_seconds=300)
        queue: KeyQueue[str] = KeyQueue(work, pauses, told, lambda _: longest)
        queue.add("a")
        await asyncio.sleep(0.5)
        await queue.close()

    run(VirtualLoop(), main())
    assert told.pauses == [pytest.approx(pause, rel=0.2)]


def test_no_event_shortens_the_time_for_which_the_api_server_wants_to_be_left_alone() -> None:
    passed: list[float] = []

    class BusyError(Exception):
        retry_after_seconds = 7.0

    async def work(key: str) -> None:
        passed.append(asyncio.get_running_loop().time())
        if len(passed) < 3:
            raise BusyError("no") from ValueError(key)

    async def main() -> None:
        pauses = Pauses(GAP, first_seconds=1, longest_seconds=300)
        queue: KeyQueue[str] = KeyQueue(work, pauses, Told())
        for _ in range(400):
            queue.add("a")
            await asyncio.sleep(0.05)
        await queue.close()

    run(VirtualLoop(), main())
    assert passed[:3] == [pytest.approx(0), pytest.approx(7), pytest.approx(14)]
    assert len(passed) > 50, "after a success its events begin passes again"


def test_a_key_that_begins_to_scale_waits_no_longer_than_a_key_that_scales_may() -> None:
    passed: list[float] = []
    longest = 300.0

    async def work(_: str) -> None:
        passed.append(asyncio.get_running_loop().time())

    async def main() -> None:
        nonlocal longest
        pauses = Pauses(GAP, first_seconds=1, longest_seconds=300)
        queue: KeyQueue[str] = KeyQueue(work, pauses, Told(), lambda _: longest)
        queue.leave_alone("a", 60)
        queue.add("a")
        await asyncio.sleep(5)
        longest = 15
        queue.add("a")
        await asyncio.sleep(30)
        await queue.close()

    run(VirtualLoop(), main())
    assert passed == [pytest.approx(15)]
