"""The watch of a group: it goes on whatever a look comes to, and begins anew where it is to look elsewhere."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from streamapp.controller.apps.group_poller import GroupPoller, PollIntervals
from streamapp.controller.apps.memory import Memory
from streamapp.controller.leader.clock import SteadyClock
from streamapp.controller.ports import Poll
from streamapp.core.facts.group import GroupDescription, GroupState, GroupUnreadable
from streamapp.core.facts.tasks import TopologyUnknown
from tests.controller.doubles.bench import KEY, a_bench
from tests.support.example import NOW


class Surprising:
    """A group whose first look ends in an error that nobody expected."""

    def __init__(self) -> None:
        self.looks = 0
        self.third_look = asyncio.Event()

    async def describe(self) -> Poll:
        """Fail once."""
        self.looks += 1
        if self.looks == 1:
            raise ValueError("start 5000 and end 0 are no log")
        if self.looks == 3:
            self.third_look.set()
        return Poll(GroupDescription(GroupState.EMPTY))

    def __getattr__(self, name: str) -> Any:
        """Nothing else is asked for."""
        raise AssertionError(name)


def test_a_look_that_fails_unexpectedly_is_not_the_last() -> None:
    async def play() -> None:
        memory, group = Memory("u"), Surprising()
        watch = GroupPoller(group, memory, PollIntervals(0.01, 0.01, 0.01), lambda: None)
        task = asyncio.create_task(watch.run())
        async with asyncio.timeout(5):
            await group.third_look.wait()
        assert not task.done()
        task.cancel()
        assert isinstance(memory.readings[-1].group, GroupUnreadable)
        assert memory.readings[-1].group.detail == "ValueError: start 5000 and end 0 are no log"

    asyncio.run(play())


@pytest.mark.guarantee(7)
def test_members_are_seen_by_the_clock_that_is_ahead() -> None:
    async def play(set_by: float) -> timedelta:
        memory, group, passed = Memory("u"), Surprising(), 0.0
        group.looks = 1
        clock = SteadyClock(lambda: NOW + timedelta(seconds=passed + set_by), lambda: passed)
        poller = GroupPoller(group, memory, PollIntervals(1, 1, 1), lambda: None, clock)
        set_by += 60.0
        await poller.poll()
        return memory.readings[0].seen_at - memory.readings[0].ended_at

    assert asyncio.run(play(0.0)) == timedelta(seconds=60)


@pytest.mark.guarantee(2)
def test_nothing_is_decided_on_what_was_read_over_other_connections() -> None:
    async def play() -> None:
        async with a_bench(4) as bench:
            bench.desired(3)
            application = bench.applications.find(KEY)
            assert application is not None
            await bench.run(lambda: bench.record() is not None)
            bench.desired(3, kafka={"bootstrapServers": "elsewhere:9092"})
            bench.group.is_reachable = False
            await bench.reconciler.reconcile(KEY)
            assert all(isinstance(one.group, GroupUnreadable) for one in application.memory.readings)
            assert isinstance(application.memory.task_set, TopologyUnknown)
            assert bench.granted() == 4

    asyncio.run(play())


def test_the_polls_of_one_join_are_one_description() -> None:
    async def play() -> None:
        async with a_bench(4) as bench:
            for _ in range(40):
                bench.clock.move(2)
                await bench.make_pass()
            application = bench.applications.find(KEY)
            assert application is not None
            readings = application.memory.readings
            assert len(readings) > 20
            joins = {reading.rebalance.settled_at for reading in readings if reading.rebalance is not None}
            assert (len(joins), len({id(reading.group) for reading in readings})) == (2, 2)

    asyncio.run(play())
