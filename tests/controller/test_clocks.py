"""Clocks that are set, and machines that sleep: neither makes an old fact look new."""

import asyncio

import pytest

from tests.controller.bench import KEY, a_bench


@pytest.mark.guarantee(2)
def test_a_clock_that_is_set_back_does_not_make_old_readings_the_newest() -> None:
    async def play() -> None:
        async with a_bench(4) as bench:
            application = bench.applications.find(KEY)
            assert application is not None
            for _ in range(40):
                bench.clock.move(2)
                await bench.make_pass()
            old = application.memory.readings[0].ended_at
            bench.clock.move(-60)
            bench.group.is_reachable = False
            await bench.make_pass()
            assert bench.condition("KafkaReachable") == ("False", "BrokersUnreachable")
            assert all(reading.ended_at < old for reading in application.memory.readings)
            bench.group.is_reachable = True
            bench.wish(3)
            # and nothing waits until the clock is where it was
            await bench.run(lambda: bench.granted() == 3, 58)
            assert bench.clock.now() < old
            assert bench.group.wrongs == []
            assert [wrong for wrong in bench.wrongs if " to " in wrong] == []

    asyncio.run(play())
