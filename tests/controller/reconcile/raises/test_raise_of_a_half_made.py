"""A process can end, or an answer be lost, between the writes that make a StatefulSet; no raise waits for that."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from streamapp.kube.objects.statefulsets import is_handed_over
from tests.controller.doubles.bench import Bench, Clock
from tests.kube.api_server import ApiServer
from tests.kube.object_store import Request


def after_writes(number: int) -> Callable[[Request], tuple[int, str] | None]:
    """Refuse every write of StatefulSets after so many."""
    seen = 0

    def refuse(request: Request) -> tuple[int, str] | None:
        nonlocal seen
        is_of_one = request.plural == "statefulsets" and request.is_write
        seen += is_of_one
        return (500, "cut off") if is_of_one and seen > number else None

    return refuse


@asynccontextmanager
async def a_half_made(writes: int) -> AsyncIterator[Bench]:
    """Give a bench whose operator ended after so many writes of the StatefulSet; another one has begun."""
    clock = Clock()
    server = ApiServer(clock.now)
    async with server.serving() as url:
        bench = Bench(url, server, clock)
        bench.desired(3)
        await bench.restart()
        try:
            server.refuse_write = after_writes(writes)
            while not bench.statefulset():
                clock.move(2)
                await bench.make_pass()
            server.refuse_write = lambda _: None
            assert not is_handed_over(bench.statefulset())
            await bench.restart()
            yield bench
        finally:
            await bench.stop()


@pytest.mark.guarantee(3)
@pytest.mark.parametrize("writes", [1, 2])
def test_a_raise_is_made_although_the_statefulset_was_not_handed_over(writes: int) -> None:
    async def play() -> None:
        async with a_half_made(writes) as bench:
            half_made = bench.statefulset()
            template, labels = half_made["spec"]["template"], half_made["metadata"]["labels"]
            bench.desired(5)
            bench.clock.move(2)
            await bench.make_pass()
            assert (bench.granted(), bench.statefulset()["spec"]["template"]) == (5, template)
            await bench.run(lambda: is_handed_over(bench.statefulset()))
            made = bench.statefulset()
            assert (bench.granted(), made["spec"]["template"], made["metadata"]["labels"]) == (5, template, labels)
            assert bench.wrongs == []

    asyncio.run(play())


@pytest.mark.parametrize("writes", [1, 2])
def test_a_hold_begins_after_the_statefulset_was_handed_over(writes: int) -> None:
    async def play() -> None:
        async with a_half_made(writes) as bench:
            bench.desired(2, scaleDown={"stabilizationWindow": "0s"})
            await bench.run(lambda: bench.is_settled(2))
            assert is_handed_over(bench.statefulset())
            assert bench.wrongs == []

    asyncio.run(play())
