"""A real Kafka Streams group, read and rebalanced.

Needs `KAFKA_BOOTSTRAP`, and in `STREAMS_GROUP` the application id of a running Kafka Streams application of the classic
protocol with at least two processes and a changelog. Nothing is evicted but our own ghost; the application goes on.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # their stub forgets it
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.types import GroupId
from kio.static.primitive import i32, i32Timedelta

from streamapp.controller.apps.kafka_group import KafkaGroup
from streamapp.core.facts.ids import TaskId, TopicPartition
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.topology import GroupEvidence, TopicEvidence, infer_universe
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.settings import read_settings
from streamapp.kafka.group.groups import ClassicGroupState, DecodedGroup, read_group
from streamapp.kafka.group.rebalance import (
    CLIENT_ID,
    RebalanceSkipped,
    RebalanceTriggered,
    SkipReason,
    StaleProbesEvicted,
    stale_probes,
    trigger_rebalance,
)
from streamapp.wire.probe_subscription import encode_probe_subscription
from streamapp.wire.subscription import DecodedSubscription, PositionSum, RunningActivePosition

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("streams_group")]

T = TypeVar("T")
DEADLINE = 10.0


def required(name: str) -> str:
    value = os.environ.get(name)
    assert value, f"{name} is not set: run inside the lab with a Kafka Streams application in it"
    return value


def with_group(work: Callable[[KafkaCluster], Awaitable[T]]) -> T:
    async def main() -> T:
        cluster = KafkaCluster(read_settings(required("KAFKA_BOOTSTRAP"), {}), required("STREAMS_GROUP"))
        try:
            await stable(cluster)
            return await work(cluster)
        finally:
            cluster.close()

    return asyncio.run(main())


async def stable(cluster: KafkaCluster, longer_than: int | None = None) -> DecodedGroup:
    """Wait until the group is Stable, and its members have joined from a newer generation than the given one."""
    ends = time.monotonic() + 50
    while True:
        reading = await read_group(cluster.group, DEADLINE)
        new = longer_than is None or joined_from(reading) > longer_than
        if reading.state is ClassicGroupState.STABLE and new and not stale_probes(reading):
            return reading
        assert time.monotonic() < ends, f"still {reading.state.value}, joined from {joined_from(reading)}"
        await asyncio.sleep(0.2)


def joined_from(reading: DecodedGroup) -> int:
    """Give the newest generation that any member reports to have left when it joined; 0 if none does."""
    generations = [member.subscription.generation for member in reading.members if member.subscription]
    return max((generation for generation in generations if generation is not None), default=0)


def assigned(reading: DecodedGroup) -> dict[str, tuple[set[TaskId], set[TaskId]]]:
    """Give the active and standby tasks of each member."""
    given = {member.member_id: member.assignment for member in reading.members}
    return {one: (set(each.active), set(each.standby)) for one, each in given.items() if each is not None}


def said(reading: DecodedGroup) -> list[DecodedSubscription]:
    found = [member.subscription for member in reading.members]
    assert found
    assert all(found)
    return [subscription for subscription in found if subscription]


def active(reading: DecodedGroup) -> dict[TaskId, frozenset[TopicPartition]]:
    tasks: dict[TaskId, frozenset[TopicPartition]] = {}
    for member in reading.members:
        assert member.assignment is not None
        assert not tasks.keys() & member.assignment.active.keys()
        tasks |= member.assignment.active
    return tasks


def test_every_member_is_decoded_and_every_task_is_active_once() -> None:
    reading = with_group(stable)
    tasks = active(reading)
    numbers = {number: {task.partition for task in tasks if task.subtopology == number} for number, _ in _pairs(tasks)}
    assert all(found == set(range(len(found))) for found in numbers.values())
    assert {subscription.info.version for subscription in said(reading)} == {11}


def _pairs(tasks: dict[TaskId, frozenset[TopicPartition]]) -> list[tuple[int, int]]:
    return [(task.subtopology, task.partition) for task in tasks]


@pytest.mark.timeout(120)
def test_a_triggered_rebalance_refreshes_what_members_say_and_moves_nothing() -> None:
    async def work(cluster: KafkaCluster) -> tuple[DecodedGroup, DecodedGroup]:
        before = await stable(cluster)
        outcome = await trigger_rebalance(cluster.group, said(before)[0], DEADLINE)
        assert isinstance(outcome, RebalanceTriggered)
        assert outcome.in_group < timedelta(seconds=1)
        return before, await stable(cluster, longer_than=joined_from(before))

    before, after = with_group(work)
    assert assigned(after) == assigned(before)
    fields = {subscription.info.process_id: subscription.info.unique_field for subscription in said(before)}
    later = {subscription.info.process_id: subscription.info.unique_field for subscription in said(after)}
    assert all(later[process] != fields[process] for process in fields)


@pytest.mark.timeout(120)
def test_after_a_triggered_rebalance_running_tasks_say_so_and_positions_lie_within_the_changelogs() -> None:
    async def work(cluster: KafkaCluster) -> tuple[DecodedGroup, TaskSet, dict[TopicPartition, int]]:
        before = await stable(cluster)
        await trigger_rebalance(cluster.group, said(before)[0], DEADLINE)
        reading = await stable(cluster, longer_than=joined_from(before))
        task_set = await inferred(cluster, reading)
        changelogs = [each for task in task_set.tasks for each in task.changelogs]
        return reading, task_set, dict(await cluster.offsets.ends(changelogs, DEADLINE))

    reading, task_set, ends = with_group(work)
    for member in reading.members:
        assert member.subscription is not None
        assert member.assignment is not None
        for task in task_set.stateful:
            reported = member.subscription.info.positions.get(task.id)
            if task.id in member.assignment.active:
                assert reported == RunningActivePosition()
            if isinstance(reported, PositionSum):
                assert 0 <= reported.offsets <= sum(ends[each] for each in task.changelogs)


async def inferred(cluster: KafkaCluster, reading: DecodedGroup) -> TaskSet:
    subscribed = frozenset(topic for subscription in said(reading) for topic in subscription.topics)
    shown = {task for subscription in said(reading) for task in subscription.info.positions}
    task_set = infer_universe(
        GroupEvidence(active(reading), frozenset(shown), subscribed),
        TopicEvidence(
            reading.group_id,
            await cluster.topics.partition_counts(subscribed, DEADLINE),
            await cluster.topics.changelogs(reading.group_id, DEADLINE),
        ),
    )
    assert isinstance(task_set, TaskSet), task_set
    return task_set


@pytest.mark.timeout(120)
def test_changelogs_that_may_belong_to_another_application_are_not_taken_for_its_own() -> None:
    bootstrap, name = required("KAFKA_BOOTSTRAP"), required("STREAMS_GROUP")
    admin, other = AdminClient({"bootstrap.servers": bootstrap}), f"{name}-eu"
    changelog = f"{other}-counts-changelog"
    admin.create_topics([NewTopic(changelog, 6, 1)])[changelog].result(DEADLINE)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": other})
    try:
        consumer.subscribe([changelog])
        consumer.poll(DEADLINE)
        task_set = asyncio.run(universe_of_group(bootstrap, name))
    finally:
        consumer.close()
        admin.delete_consumer_groups([other])[other].result(DEADLINE)
        admin.delete_topics([changelog])[changelog].result(DEADLINE)
    assert isinstance(task_set, TopologyUnknown)
    assert changelog in task_set.reason
    assert isinstance(asyncio.run(universe_of_group(bootstrap, name)), TaskSet)


async def universe_of_group(bootstrap: str, name: str) -> TaskSet | TopologyUnknown:
    """Find out the application's tasks as the operator does."""
    group = KafkaGroup(KafkaCluster(read_settings(bootstrap, {}), name), name, "", deadline_seconds=DEADLINE)
    try:
        await group.describe()
        return await group.task_set()
    finally:
        group.close()


@pytest.mark.timeout(120)
def test_a_group_in_rebalance_gets_no_second_rebalance() -> None:
    async def work(cluster: KafkaCluster) -> object:
        before = await stable(cluster)
        assert isinstance(await trigger_rebalance(cluster.group, said(before)[0], DEADLINE), RebalanceTriggered)
        second = await trigger_rebalance(cluster.group, said(before)[0], DEADLINE)
        await stable(cluster)
        return second

    assert with_group(work) == RebalanceSkipped(SkipReason.NOT_STABLE)


@pytest.mark.timeout(120)
def test_a_ghost_is_recognised_and_removed() -> None:
    async def work(cluster: KafkaCluster) -> tuple[str, object, DecodedGroup]:
        model = said(await stable(cluster))[0]
        ghost = await haunt(cluster, model)
        outcome = await trigger_rebalance(cluster.group, model, DEADLINE)
        return ghost, outcome, await stable(cluster)

    ghost, outcome, after = with_group(work)
    assert outcome == StaleProbesEvicted((ghost,))
    assert ghost not in {member.member_id for member in after.members}


async def haunt(cluster: KafkaCluster, model: DecodedSubscription) -> str:
    """Join as a triggered rebalance would, and go away without leaving; give the member id."""
    group_id = GroupId(cluster.group.group_id)

    def join(member_id: str) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=group_id,
            session_timeout=i32Timedelta.parse(timedelta(seconds=6)),
            rebalance_timeout=i32Timedelta.parse(timedelta(seconds=6)),
            member_id=member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="stream", metadata=encode_probe_subscription(model)),),
        )

    joining, watching = await cluster.group.connect(CLIENT_ID), await cluster.group.connect(CLIENT_ID)
    try:
        member_id = (await joining.ask(join(""), JoinGroupResponse)).member_id
        task = asyncio.create_task(joining.ask(join(member_id), JoinGroupResponse))
        beat = HeartbeatRequest(group_id=group_id, generation_id=i32(-1), member_id=member_id)
        for _ in range(1000):
            if (await watching.ask(beat, HeartbeatResponse)).error_code is not ErrorCode.unknown_member_id:
                break
            await asyncio.sleep(0.005)
        task.cancel()
        return member_id
    finally:
        joining.close()
        watching.close()
