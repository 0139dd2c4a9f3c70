"""Every write of a scenario goes wrong once: lost, made without an answer, refused, or the last one of its operator.

And at every write a user changes his mind. Whatever happens, the end is the same, and no promise is broken on the way.
"""

import asyncio
from collections.abc import Callable
from functools import cache, partial

import pytest

from tests.controller.doubles.bench import Bench, a_bench
from tests.kube.api_server import Write


@cache
def writes_of_a_step() -> int:
    """Count the writes of an undisturbed scale-down from 4 to 3."""

    async def play() -> int:
        async with a_bench(4) as bench:
            before = len(bench.server.writes)
            await scale_down(bench)
            return len(bench.server.writes) - before

    return asyncio.run(play())


async def scale_down(bench: Bench) -> None:
    bench.desired(3)
    await bench.run(lambda: bench.is_settled(3))


def at_write(number: int, bench: Bench, happens: Callable[[], str | None]) -> None:
    """Have something happen at the n-th write from now on, once."""
    target = len(bench.server.writes) + number

    def fault(write: Write) -> str | None:
        return happens() if write.number == target else None

    bench.server.fault = fault


@pytest.mark.parametrize(
    "kind", ["after", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("before", "conflict", "busy"))]
)
def test_a_write_that_fails_changes_nothing_about_the_end(kind: str) -> None:
    async def play(number: int) -> None:
        async with a_bench(4) as bench:
            at_write(number, bench, lambda: kind)
            await scale_down(bench)
            assert (bench.granted(), bench.wrongs, bench.group.wrongs) == (3, [], [])

    for number in range(1, writes_of_a_step() + 1):
        asyncio.run(play(number))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.guarantee(2)
def test_an_operator_that_dies_at_a_write_is_followed_by_one_that_brings_it_to_the_same_end(kind: str) -> None:
    async def play(number: int) -> None:
        async with a_bench(4) as bench:
            died: list[int] = []
            at_write(number, bench, partial(die, died, kind))
            bench.desired(3)
            await bench.run(partial(died_or_settled, died, bench, 3))
            await bench.restart()
            await bench.run(lambda: bench.is_settled(3))
            assert (bench.granted(), bench.wrongs, bench.group.wrongs) == (3, [], [])

    for number in range(1, writes_of_a_step() + 1):
        asyncio.run(play(number))


@pytest.mark.slow
@pytest.mark.guarantee(3)
def test_a_wish_that_rises_again_at_any_write_ends_with_as_many_pods_as_it_says() -> None:
    async def play(number: int) -> None:
        async with a_bench(4) as bench:
            changed: list[int] = []
            at_write(number, bench, partial(raise_wish, changed, bench))
            bench.desired(3)
            await bench.run(lambda: bool(changed))
            await bench.run(lambda: bench.is_settled(4))
            assert (bench.granted(), bench.record(), bench.group.wrongs) == (4, None, [])
            assert [wrong for wrong in bench.wrongs if "wished for" not in wrong] == []

    for number in range(1, writes_of_a_step() + 1):
        asyncio.run(play(number))


def test_a_scale_down_over_two_steps_survives_one_death_after_another() -> None:
    async def play() -> int:
        deaths = 0
        async with a_bench(4) as bench:
            bench.desired(2)
            # A life must be long enough for one step; how many writes that is depends on where the last one ended.
            for life in (5, 9, 14, 6, 11, 17, 23):
                died: list[int] = []
                at_write(life, bench, partial(die, died, "after"))
                await bench.run(partial(died_or_settled, died, bench, 2))
                deaths += len(died)
                await bench.restart()
            bench.server.fault = lambda _: None
            await bench.run(lambda: bench.is_settled(2))
            assert (bench.granted(), bench.wrongs, bench.group.wrongs) == (2, [], [])
        return deaths

    assert asyncio.run(play()) >= 4


def die(died: list[int], kind: str) -> str:
    died.append(1)
    return kind


def raise_wish(changed: list[int], bench: Bench) -> None:
    changed.append(1)
    bench.desired(4)


def died_or_settled(died: list[int], bench: Bench, replicas: int) -> bool:
    return bool(died) or bench.is_settled(replicas)
