"""The watch of a group: it goes on whatever a look comes to, and begins anew where it is to look elsewhere."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.controller.apps.group_poller import GroupPoller, PollIntervals
from streamapp.controller.apps.memory import Memory
from streamapp.controller.leader.clock import SteadyClock
from streamapp.controller.ports import Poll
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState, GroupUnreadable
from streamapp.core.facts.lag import EndsUnreadable
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.reasons import Reason
from tests.controller.doubles.bench import KEY, a_bench
from tests.support import example
from tests.support.example import NOW
from tests.support.streams import streams_group, streams_members


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


# What a coordinator shows that has just taken over.

MINUTE = 60.0
EMPTY = Poll(GroupDescription(GroupState.EMPTY))


class Shown:
    """A group that shows one thing after the other."""

    def __init__(self, polls: Sequence[Poll]) -> None:
        self._polls = list(polls)

    async def describe(self) -> Poll:
        """Show the next."""
        return self._polls.pop(0)

    async def trigger_rebalance(self, like_member: str) -> None:
        """Nothing goes wrong."""

    async def task_set(self) -> TopologyUnknown:
        """No ends are read then."""
        return TopologyUnknown("not asked")


def joined(number: int, *, says_generation: bool = True, members: int = 3) -> Poll:
    """The group after its join of this number, in which each member took part."""
    shown = []
    for member in example.members(3)[:members]:
        assert member.subscription is not None
        generation = number - 1 if says_generation else None
        shown.append(replace(member, subscription=replace(member.subscription, generation=generation)))
    return Poll(GroupDescription(GroupState.STABLE, tuple(shown)), {member.id: number for member in shown})


def at_epoch(epoch: int) -> Poll:
    group = replace(streams_group(), epoch=epoch, assignment_epoch=epoch)
    return Poll(GroupDescription(GroupState.STABLE, streams_members(example.members(3)), group))


def read(*polls: Poll, every: float = 5.0) -> tuple[GroupReading, ...]:
    """What is remembered of each look, the oldest first."""

    async def play() -> tuple[GroupReading, ...]:
        memory, passed, found = Memory("u"), 0.0, list[GroupReading]()
        clock = SteadyClock(lambda: NOW + timedelta(seconds=passed), lambda: passed)
        poller = GroupPoller(Shown(polls), memory, PollIntervals(1, 1, 1), lambda: None, clock)  # type: ignore[arg-type]
        for _ in polls:
            await poller.poll()
            found.append(memory.readings[0])
            passed += every
        return tuple(found)

    return asyncio.run(play())


def settled(readings: Sequence[GroupReading]) -> list[float | None]:
    """The seconds at which the join of each reading settled; None where it was not watched, or is not known."""
    return [None if one.rebalance is None else (one.rebalance.settled_at - NOW).total_seconds() for one in readings]


@pytest.mark.guarantee(2)
def test_an_older_join_is_unknown_and_the_newest_keeps_its_date() -> None:
    readings = read(joined(3), joined(4), joined(3), joined(3), joined(4), joined(5))
    assert settled(readings) == [None, 5.0, None, None, 5.0, 25.0]
    unreadable = [one.group.reason for one in readings if isinstance(one.group, GroupUnreadable)]
    assert unreadable == [Reason.GroupOutdated] * 2


@pytest.mark.guarantee(2)
def test_a_join_that_was_shown_before_an_empty_group_is_no_new_one() -> None:
    assert settled(read(joined(3), joined(4), EMPTY, joined(4))) == [None, 5.0, None, 5.0]
    # a later join of the same members began after they were last seen, and not after the group looked empty
    *_, last = read(joined(3), joined(4), EMPTY, joined(5))
    assert last.rebalance is not None
    assert last.rebalance.began_at == NOW + timedelta(seconds=5)


def test_the_first_join_of_a_group_that_was_empty_is_watched() -> None:
    assert settled(read(EMPTY, joined(1))) == [None, 5.0]


@pytest.mark.guarantee(1)
@pytest.mark.guarantee(2)
@pytest.mark.parametrize("says_generation", [True, False])
def test_what_a_new_coordinator_shows_first_and_next_proves_nothing(says_generation: bool) -> None:
    """It can show a join as the newest while a later one is made, and that one when it is long past."""

    def at(coordinator: str, number: int) -> Poll:
        return replace(joined(number, says_generation=says_generation), coordinator=coordinator)

    known = at("a:9092", 3), at("a:9092", 4)
    of_another = at("b:9092", 4), at("b:9092", 4), at("b:9092", 5), at("b:9092", 5), at("b:9092", 6)
    assert settled(read(*known, *of_another)) == [None, 5.0, None, None, None, None, 30.0]
    unknown = Poll(GroupUnreadable(Reason.BrokersUnreachable, "no answer"))
    assert settled(read(*known, unknown, at("a:9092", 4), at("a:9092", 5))) == [None, 5.0, None, 5.0, 20.0]


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(
    ("look", "began"), [("after it", 2.0), ("under way", 0.0)], ids=["a look after it", "a look that was under way"]
)
def test_a_join_began_after_a_trigger_only_if_the_look_began_after_it(look: str, began: float) -> None:
    """A look that was under way can show a join that was made before the trigger."""

    async def play() -> GroupReading:
        passed = 0.0
        clock = SteadyClock(lambda: NOW + timedelta(seconds=passed), lambda: passed)
        memory, shown = Memory("u"), Shown([joined(3), joined(4)])
        poller = GroupPoller(shown, memory, PollIntervals(1, 1, 1), lambda: None, clock)  # type: ignore[arg-type]
        await poller.poll()
        passed, next_look = 2.0, shown.describe

        async def triggered_meanwhile() -> Poll:
            nonlocal passed
            passed = 3.0
            await poller.trigger_rebalance("any")
            return await next_look()

        if look == "under way":
            shown.describe = triggered_meanwhile  # type: ignore[method-assign]
        else:
            await poller.trigger_rebalance("any")
            passed = 4.0
        await poller.poll()
        return memory.readings[0]

    rebalance = asyncio.run(play()).rebalance
    assert rebalance is not None
    assert rebalance.began_at == NOW + timedelta(seconds=began)


@pytest.mark.parametrize(
    "behind",
    [
        pytest.param(example.task_set(example.PARTITIONS - 1), id="fewer partitions"),
        pytest.param(example.stateless_task_set(), id="no changelog"),
    ],
)
def test_the_tasks_are_read_anew_while_the_group_has_others(behind: TaskSet) -> None:
    """The broker that was asked can be behind the group's leader."""

    class Behind(Shown):
        async def task_set(self) -> TaskSet:  # type: ignore[override]
            return behind if passed < 10 else example.task_set()

        async def ends(self, task_set: TaskSet) -> EndsUnreadable:
            return EndsUnreadable(f"{len(task_set.tasks)} tasks, not asked")

    memory, passed, seen = Memory("u"), 0.0, list[TaskSet | TopologyUnknown]()

    async def play() -> None:
        nonlocal passed
        for _ in range(4):
            await poller.poll()
            seen.append(memory.task_set)
            passed += 5.0

    clock = SteadyClock(lambda: NOW + timedelta(seconds=passed), lambda: passed)
    group = Behind([joined(3), joined(4), joined(4), joined(4)])
    poller = GroupPoller(group, memory, PollIntervals(1, 1, 1), lambda: None, clock)  # type: ignore[arg-type]
    asyncio.run(play())
    assert isinstance(seen[0], TopologyUnknown)
    assert seen[1:] == [behind, behind, example.task_set()]


def tasks_read(found: TaskSet, polls: Sequence[Poll], topology: str = "") -> list[TaskSet | TopologyUnknown]:
    """What is known of the tasks after each look: at the second the topics show all, and then what is given.

    Args:
        found: What the topics show from the third look on.
        polls: What the group shows, ten seconds apart.
        topology: The text that agents report from then on.
    """

    class Hiding(Shown):
        async def task_set(self) -> TaskSet:  # type: ignore[override]
            return example.task_set() if len(known) < 2 else found

        async def ends(self, task_set: TaskSet) -> EndsUnreadable:
            return EndsUnreadable(f"{len(task_set.tasks)} tasks, not asked")

    memory, known = Memory("u"), list[TaskSet | TopologyUnknown]()

    async def play() -> list[TaskSet | TopologyUnknown]:
        clock = SteadyClock(lambda: NOW + timedelta(seconds=10.0 * len(known)), lambda: 10.0 * len(known))
        poller = GroupPoller(Hiding(polls), memory, PollIntervals(1, 1, 1), lambda: None, clock)  # type: ignore[arg-type]
        for _ in polls:
            memory.topology = topology if len(known) >= 2 else ""
            await poller.poll()
            known.append(memory.task_set)
        return known

    return asyncio.run(play())


@pytest.mark.guarantee(1)
def test_tasks_are_unknown_while_a_changelog_is_not_seen_that_was() -> None:
    """Who runs a task tells no position, so nobody has to contradict a broker that hides its changelog."""
    _, seen, *hidden = tasks_read(example.stateless_task_set(), [joined(number) for number in (3, 4, 5, 6)])
    assert seen == example.task_set()
    assert [isinstance(one, TopologyUnknown) and "is not seen any more" in one.reason for one in hidden] == [True, True]


def test_another_version_of_the_application_can_have_no_changelog() -> None:
    polls = [joined(number) for number in (3, 4, 5)]
    assert tasks_read(example.stateless_task_set(), polls, "another text")[-1] == example.stateless_task_set()
    assert isinstance(polls[0].group, GroupDescription)
    anew = tuple(replace(member, id=f"{member.id}-anew") for member in polls[0].group.members)
    others = Poll(GroupDescription(GroupState.STABLE, anew), {member.id: 1 for member in anew})
    assert tasks_read(example.stateless_task_set(), [*polls[:2], others])[-1] == example.stateless_task_set()


@pytest.mark.guarantee(2)
def test_clients_that_do_not_say_their_generation_make_no_join_twice() -> None:
    older, newest = joined(3, says_generation=False), joined(4, says_generation=False)
    assert settled(read(older, newest, older, newest)) == [None, 5.0, None, 5.0]


@pytest.mark.guarantee(2)
def test_an_epoch_that_falls_is_unknown_until_it_has_lasted() -> None:
    readings = read(at_epoch(9), *[at_epoch(2)] * 12, every=MINUTE)
    assert [isinstance(one.group, GroupUnreadable) for one in readings] == [False, *[True] * 10, False, False]
    assert isinstance(read(at_epoch(9), EMPTY, at_epoch(2))[-1].group, GroupDescription)
