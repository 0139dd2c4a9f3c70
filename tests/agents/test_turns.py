"""Turns: agents that do not answer take none from those that do."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from streamapp.agents.turns import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    ApplicationTurns,
    NoTurnError,
    Turns,
)


@dataclass
class Watch:
    """A monotonic clock that only a test moves."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


async def held(turns: ApplicationTurns, pod: str, until: asyncio.Event) -> None:
    async with turns.turn(pod):
        await until.wait()


async def is_free(turns: ApplicationTurns, pod: str) -> bool:
    try:
        async with turns.turn(pod):
            return True
    except NoTurnError:
        return False


def play(story: Callable[[Turns, asyncio.Event], object]) -> None:
    async def main() -> None:
        end = asyncio.Event()
        await story(Turns(at_once=4, doubtful_at_once=2, of_one_application=2), end)  # type: ignore[misc]

    asyncio.run(main())


def test_silent_agents_of_one_application_leave_turns_for_the_proven_agents_of_all() -> None:
    async def story(turns: Turns, end: asyncio.Event) -> None:
        turns.answered("good")
        stuck = [asyncio.create_task(held(turns.begin(0.05), f"bad-{number}", end)) for number in range(20)]
        await asyncio.sleep(0.01)
        assert await is_free(turns.begin(0.01), "good")
        assert not await is_free(turns.begin(0.01), "new")
        end.set()
        outcomes = await asyncio.gather(*stuck, return_exceptions=True)
        assert {type(each) for each in outcomes} <= {type(None), NoTurnError}
        assert await is_free(turns.begin(0.01), "new")

    play(story)


def test_one_application_has_few_turns_at_once() -> None:
    async def story(turns: Turns, end: asyncio.Event) -> None:
        for number in range(4):
            turns.answered(f"pod-{number}")
        own, other = turns.begin(0.05), turns.begin(0.05)
        stuck = [asyncio.create_task(held(own, f"pod-{number}", end)) for number in range(2)]
        await asyncio.sleep(0.01)
        assert not await is_free(own, "pod-2")
        assert await is_free(other, "pod-3")
        end.set()
        await asyncio.gather(*stuck)
        assert await is_free(own, "pod-2")

    play(story)


def test_a_silent_agent_is_left_alone_ever_longer_and_an_answer_ends_that() -> None:
    watch = Watch()
    turns = Turns(monotonic=watch)
    turns.silent("pod", "it slept")
    turns.check("pod")  # one missed answer costs nothing
    pauses = []
    for _ in range(6):
        turns.silent("pod", "it slept")
        began = watch.now
        with pytest.raises(NoTurnError, match="it slept"):
            turns.check("pod")
        while True:
            watch.now += 0.5
            try:
                turns.check("pod")
            except NoTurnError:
                continue
            break
        pauses.append(watch.now - began)
    assert pauses == [FIRST_PAUSE_SECONDS, 8, 16, *[LONGEST_PAUSE_SECONDS] * 3]
    turns.answered("pod")
    turns.silent("pod", "it slept")
    turns.check("pod")


def test_a_pod_that_was_replaced_is_asked_at_once() -> None:
    turns = Turns(monotonic=Watch())
    for _ in range(5):
        turns.silent("uid-1", "it slept")
    turns.check("uid-2")
