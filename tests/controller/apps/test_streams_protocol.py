"""A group of the streams protocol on its way to the core: recognised, followed by its epochs, evicted its own way."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from streamapp.controller.apps.group_poller import GroupPoller, PollIntervals
from streamapp.controller.apps.kafka_group import KafkaGroup
from streamapp.controller.apps.memory import Memory
from streamapp.controller.ports import KafkaStepError, Poll
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import (
    GroupDescription,
    GroupState,
    GroupUnreadable,
    StandbySetting,
    StandbySettingUnread,
    StreamsSupport,
)
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.reasons import Reason
from streamapp.kafka.cluster import KafkaCluster
from tests.kafka import answers
from tests.kafka.group.test_group_configs import a_setting, a_write, of_cluster
from tests.kafka.group.test_streams_groups import OLD, a_group, a_member, heartbeat_answer
from tests.kafka.scripted import ScriptedBroker, always, in_turn
from tests.support import example
from tests.support.streams import streams_group, streams_members

DEAD = answers.described("Dead")


def on_broker(broker: ScriptedBroker, work: Callable[[KafkaGroup], Awaitable[Any]], topology: str = "") -> Any:
    async def main() -> Any:
        async with broker.running():
            broker.coordinates("app")
            group = KafkaGroup(KafkaCluster(broker.settings(), "app"), "app", topology, deadline_seconds=5)
            try:
                return await work(group)
            finally:
                group.close()

    return asyncio.run(main())


def test_a_streams_group_is_asked_in_its_own_protocol_until_it_is_one_no_more() -> None:
    gone = a_group(code=ErrorCode.group_id_not_found)
    broker = ScriptedBroker(
        {
            "DescribeGroups": always(DEAD),
            # Version 0 tells the kinds apart; the reading itself is another question.
            "StreamsGroupDescribe": in_turn(*[a_group(a_member())] * 3, gone, gone),
            "Metadata": always(answers.cluster([], {})),
            "DescribeConfigs": always(a_setting("0", 5)),
        },
        hidden=OLD,
    )

    async def work(group: KafkaGroup) -> list[Poll]:
        return [await group.describe() for _ in range(3)]

    first, second, third = on_broker(broker, work)
    for poll in (first, second):
        assert isinstance(poll.group, GroupDescription)
        assert poll.group.streams is not None
        assert poll.joins == {}
    assert third.group == GroupDescription(GroupState.DEAD)
    describes = [name for name in broker.names() if name.endswith(("Groups", "Describe"))]
    assert describes == [
        *("DescribeGroups", "StreamsGroupDescribe", "StreamsGroupDescribe"),
        "StreamsGroupDescribe",
        *("StreamsGroupDescribe", "DescribeGroups", "StreamsGroupDescribe"),
    ]


@pytest.mark.guarantee(2)
def test_a_look_says_which_broker_showed_a_classic_group() -> None:
    broker = ScriptedBroker({"DescribeGroups": always(answers.described("Empty"))}, hidden=OLD)
    assert on_broker(broker, lambda group: group.describe()).coordinator == broker.address


@pytest.mark.guarantee(2)
def test_a_group_that_migrates_is_not_read() -> None:
    broker = ScriptedBroker(
        {
            "DescribeGroups": always(DEAD),
            "StreamsGroupDescribe": in_turn(a_group(), a_group(a_member(is_classic=True))),
        },
        hidden=OLD,
    )
    poll = on_broker(broker, lambda group: group.describe())
    assert isinstance(poll.group, GroupUnreadable)
    assert poll.group.reason is Reason.GroupProtocolUnsupported
    assert "still uses the classic protocol" in poll.group.detail


def test_tasks_are_known_from_the_brokers_without_a_text() -> None:
    counts = {"lines": [0] * 2, "app-words-repartition": [0] * 3, "app-counts-changelog": [0] * 3}
    broker = ScriptedBroker(
        {
            "DescribeGroups": always(DEAD),
            "StreamsGroupDescribe": always(a_group(a_member())),
            "Metadata": always(answers.cluster([], {})),
            "DescribeConfigs": always(a_setting("0", 5)),
        },
        hidden=OLD,
    )

    async def work(group: KafkaGroup) -> TaskSet | TopologyUnknown:
        broker.handlers["Metadata"] = always(answers.cluster([broker.address], counts))
        await group.describe()
        return await group.task_set()

    found = on_broker(broker, work)
    assert isinstance(found, TaskSet), found
    assert [str(task.id) for task in found.stateful] == ["0_0", "0_1", "0_2"]


def test_a_member_is_evicted_by_its_last_heartbeat() -> None:
    broker = ScriptedBroker(
        {
            "DescribeGroups": always(DEAD),
            "StreamsGroupDescribe": always(a_group(a_member())),
            "Metadata": always(answers.cluster([], {})),
            "DescribeConfigs": always(a_setting("0", 5)),
            "StreamsGroupHeartbeat": always(heartbeat_answer(ErrorCode.none)),
        },
        hidden=OLD,
    )

    async def work(group: KafkaGroup) -> None:
        await group.describe()
        await group.evict([MemberKey("m-1")], "its container ended")

    on_broker(broker, work)
    assert broker.names()[-1] == "StreamsGroupHeartbeat"


def test_a_refused_write_is_not_repeated_and_says_why() -> None:
    broker = ScriptedBroker(
        {
            "DescribeGroups": always(DEAD),
            "StreamsGroupDescribe": always(a_group(a_member())),
            "Metadata": always(answers.cluster([], {})),
            "DescribeConfigs": always(a_setting("0", 5)),
            "IncrementalAlterConfigs": always(a_write(ErrorCode.group_authorization_failed)),
        },
        hidden=OLD,
    )

    async def work(group: KafkaGroup) -> list[object]:
        before = await group.describe()
        with pytest.raises(KafkaStepError, match="ALTER_CONFIGS on group app"):
            await group.set_standbys(1)
        polls = [before, await group.describe()]
        return [poll.group.streams.standbys for poll in polls if isinstance(poll.group, GroupDescription)]  # type: ignore[union-attr]

    before, after = on_broker(broker, work)
    assert before == StandbySetting(0, is_set=False)
    assert isinstance(after, StandbySettingUnread)
    assert "ALTER_CONFIGS on group app" in after.detail


@pytest.mark.guarantee(2)
def test_nothing_is_written_to_another_cluster_than_the_one_that_was_read() -> None:
    broker = ScriptedBroker(
        {
            "DescribeGroups": always(DEAD),
            "StreamsGroupDescribe": always(a_group(a_member())),
            "Metadata": in_turn(of_cluster("one"), of_cluster("two")),
            "DescribeConfigs": always(a_setting("1", 8)),
            "IncrementalAlterConfigs": always(a_write(ErrorCode.none)),
        },
        hidden=OLD,
    )

    async def work(group: KafkaGroup) -> object:
        seen = await group.standbys()
        assert isinstance(seen, StandbySetting)
        with pytest.raises(KafkaStepError, match="is set since"):
            await group.set_standbys(None, seen)
        return await group.standbys()

    now = on_broker(broker, work)
    assert "IncrementalAlterConfigs" not in broker.names()
    assert now.cluster == "two"


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(
    ("now", "is_written"),
    [(a_setting("0", 5), True), (a_setting("2", 8), False), (a_setting("0", 8), False)],
    ids=["the same", "another value", "the same value, but set"],
)
def test_what_another_hand_set_since_the_last_look_is_not_overwritten(now: Any, is_written: bool) -> None:
    broker = ScriptedBroker(
        {
            "DescribeGroups": always(DEAD),
            "StreamsGroupDescribe": always(a_group(a_member())),
            "Metadata": always(answers.cluster([], {})),
            "DescribeConfigs": in_turn(a_setting("0", 5), now, now),
            "IncrementalAlterConfigs": always(a_write(ErrorCode.none)),
        },
        hidden=OLD,
    )

    async def work(group: KafkaGroup) -> object:
        seen = await group.describe()
        assert isinstance(seen.group, GroupDescription)
        assert seen.group.streams is not None
        assert isinstance(seen.group.streams.standbys, StandbySetting)
        with nullcontext() if is_written else pytest.raises(KafkaStepError, match="is set since"):
            await group.set_standbys(1, seen.group.streams.standbys)
        after = await group.describe()
        return isinstance(after.group, GroupDescription) and after.group.streams

    after = on_broker(broker, work)
    assert ("IncrementalAlterConfigs" in broker.names()) is is_written
    assert isinstance(after.standbys, StandbySetting)  # it is no refusal of the brokers, after which none is asked


class Epochs:
    """A streams group, as its application's Kafka side shows it."""

    def __init__(self) -> None:
        self.epoch, self.state = 7, GroupState.STABLE
        self.task_set_reads = 0
        self.is_classic, self.support = False, StreamsSupport(is_on=True, release="4.2")
        self.answer: TaskSet | TopologyUnknown = example.task_set()

    async def describe(self) -> Poll:
        if self.is_classic:
            return Poll(GroupDescription(GroupState.EMPTY), support=self.support)
        group = replace(streams_group(), epoch=self.epoch, assignment_epoch=self.epoch)
        return Poll(GroupDescription(self.state, streams_members(example.members(3)), group))

    async def task_set(self) -> TaskSet | TopologyUnknown:
        self.task_set_reads += 1
        return self.answer

    def __getattr__(self, name: str) -> Any:
        """Nothing else is asked for."""
        raise AssertionError(name)


def test_the_tasks_are_read_anew_with_each_epoch_and_while_they_are_unknown() -> None:
    clock = [datetime(2026, 11, 21, 12, tzinfo=UTC)]
    memory, group = Memory("u"), Epochs()
    poller = GroupPoller(group, memory, PollIntervals(1, 1, 1), lambda: None, now=lambda: clock[0])

    def after(seconds: float, **changes: Any) -> int:
        vars(group).update(changes)
        clock[0] += timedelta(seconds=seconds)
        asyncio.run(poller.poll())
        return group.task_set_reads

    assert after(1) == 1
    assert after(1) == 1
    assert after(1, epoch=8, state=GroupState.RECONCILING) == 1
    assert after(1, state=GroupState.STABLE, answer=TopologyUnknown("a topic is missing")) == 2
    assert after(1) == 2
    assert after(10, answer=example.task_set()) == 3
    assert isinstance(memory.task_set, TaskSet)
    assert after(60) == 3
    assert all(reading.rebalance is None for reading in memory.readings)


@pytest.mark.parametrize(
    "behind",
    [
        pytest.param(example.task_set(example.PARTITIONS - 1), id="fewer partitions"),
        pytest.param(example.stateless_task_set(), id="no changelog"),
    ],
)
def test_the_tasks_are_read_anew_while_the_group_has_others(behind: TaskSet) -> None:
    """The broker that was asked can be behind the one that assigns."""
    clock = [datetime(2026, 11, 21, 12, tzinfo=UTC)]
    memory, group = Memory("u"), Epochs()
    group.answer = behind
    poller = GroupPoller(group, memory, PollIntervals(1, 1, 1), lambda: None, now=lambda: clock[0])
    reads = []
    for seconds in (0, 9, 1, 1, 9, 60):
        clock[0] += timedelta(seconds=seconds)
        asyncio.run(poller.poll())
        reads.append(group.task_set_reads)
        group.answer = example.task_set()
    assert memory.task_set == example.task_set()
    assert reads == [1, 1, 2, 2, 2, 2]


def test_a_group_that_was_classic_in_between_is_read_anew_though_its_epoch_is_the_same() -> None:
    memory, group = Memory("u"), Epochs()
    poller = GroupPoller(group, memory, PollIntervals(1, 1, 1), lambda: None)
    support: list[StreamsSupport | None] = []
    for is_classic in (False, True, False):
        group.is_classic = is_classic
        asyncio.run(poller.poll())
        support.append(memory.streams_support)
    assert (group.task_set_reads, support) == (2, [None, group.support, None])


@pytest.mark.parametrize(
    ("code", "hidden", "is_on"),
    [
        (ErrorCode.group_id_not_found, OLD, True),
        (ErrorCode.unsupported_version, OLD, False),
        (ErrorCode.none, OLD | {"StreamsGroupDescribe 0"}, False),
    ],
    ids=["on", "off", "older brokers"],
)
def test_a_classic_group_tells_rarely_whether_it_could_have_the_streams_protocol(
    code: ErrorCode, hidden: frozenset[str], is_on: bool
) -> None:
    broker = ScriptedBroker(
        {"DescribeGroups": always(answers.described("Empty")), "StreamsGroupDescribe": always(a_group(code=code))},
        hidden=hidden,
    )

    async def work(group: KafkaGroup) -> list[Poll]:
        return [await group.describe() for _ in range(3)]

    broker.features = {"metadata.version": 30}
    polls = on_broker(broker, work)
    assert [poll.support for poll in polls] == [StreamsSupport(is_on=is_on, release="4.3")] * 3
    assert broker.names().count("StreamsGroupDescribe") <= 1
