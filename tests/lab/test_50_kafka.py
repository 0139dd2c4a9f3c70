"""What the product reads of a real broker, against what was written to it.

Needs `KAFKA_BOOTSTRAP`; makes topics of its own and deletes them.
"""

import asyncio
import os
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

import confluent_kafka
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from streamapp.controller.apps.kafka_group import KafkaGroup
from streamapp.core.actions.decision import Event
from streamapp.core.decide import decide
from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.facts.topic_configs import ConfigUnread, TopicConfig
from streamapp.core.reasons import Reason
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import GroupNotClassicError, TemporarilyUnavailableError, TopicUnknownError
from streamapp.kafka.connection.settings import read_settings
from streamapp.kafka.group.eviction import EvictionResult, MemberToEvict, evict
from streamapp.kafka.group.groups import ClassicGroupState, DecodedGroup, describe, read_group
from streamapp.kafka.topics.offsets import committed
from streamapp.kafka.topics.topics import PROBE
from tests.lab.transactions import last_stable
from tests.support import example

pytestmark = [pytest.mark.lab]

T = TypeVar("T")
DEADLINE = 10.0


def bootstrap() -> str:
    address = os.environ.get("KAFKA_BOOTSTRAP")
    assert address, "KAFKA_BOOTSTRAP is not set: run inside the lab, or name a broker that may be written to"
    return address


def ask(read: Callable[[KafkaCluster], Awaitable[T]], group_id: str = "nobody") -> T:
    """Read something over a cluster of its own."""

    async def main() -> T:
        cluster = KafkaCluster(read_settings(bootstrap(), {}), group_id)
        try:
            return await read(cluster)
        finally:
            cluster.close()

    return asyncio.run(main())


@dataclass(frozen=True)
class Place:
    """A topic with two partitions: 30 records in the first, none in the second."""

    topic: str
    admin: AdminClient

    @property
    def partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.topic, 0), TopicPartition(self.topic, 1)]

    def both(self, first: int | None, second: int | None) -> dict[TopicPartition, int | None]:
        return dict(zip(self.partitions, [first, second], strict=True))


@pytest.fixture
def place() -> Iterator[Place]:
    name = f"t-{uuid.uuid4().hex[:12]}-store-changelog"
    admin = AdminClient({"bootstrap.servers": bootstrap()})
    config = {"cleanup.policy": "compact", "delete.retention.ms": "3600000", "retention.ms": "-1"}
    admin.create_topics([NewTopic(name, num_partitions=2, replication_factor=1, config=config)])[name].result(20)
    producer = Producer({"bootstrap.servers": bootstrap()})
    for number in range(30):
        producer.produce(name, f"value {number}".encode(), key=str(number).encode(), partition=0)
    assert producer.flush(20) == 0
    yield Place(name, admin)
    admin.delete_topics([name])[name].result(20)


def test_end_offsets_and_log_starts(place: Place) -> None:
    assert ask(lambda cluster: cluster.offsets.ends(place.partitions, DEADLINE)) == place.both(30, 0)
    assert ask(lambda cluster: cluster.offsets.log_starts(place.partitions, DEADLINE)) == place.both(0, 0)


def test_a_hanging_transaction_holds_back_the_stable_offset_and_not_the_end(place: Place) -> None:
    producer = Producer({"bootstrap.servers": bootstrap(), "transactional.id": place.topic})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(place.topic, b"open", key=b"open", partition=1)
    assert producer.flush(20) == 0
    try:
        assert ask(lambda cluster: cluster.offsets.ends(place.partitions, DEADLINE)) == place.both(30, 1)
        assert last_stable(place.admin, place.topic, 1) == 0
    finally:
        producer.abort_transaction(20)
    # The marker of the abort is a record too; it is written a little after the answer.
    ends = time.monotonic() + 20
    while last_stable(place.admin, place.topic, 1) != 2:
        assert time.monotonic() < ends, "the transaction is still open"
        time.sleep(0.1)


def test_committed_offsets_and_none_where_nothing_was_committed(place: Place) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap(), "group.id": place.topic, "enable.auto.commit": False})
    consumer.commit(offsets=[confluent_kafka.TopicPartition(place.topic, 0, 12)], asynchronous=False)
    consumer.close()
    found = ask(lambda cluster: committed(cluster.group, place.partitions, DEADLINE), place.topic)
    assert found == place.both(12, None)


def test_offsets_committed_in_an_open_transaction_are_not_known_yet(place: Place) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap(), "group.id": place.topic, "enable.auto.commit": False})
    producer = Producer({"bootstrap.servers": bootstrap(), "transactional.id": place.topic})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.send_offsets_to_transaction(
        [confluent_kafka.TopicPartition(place.topic, 0, 7)], consumer.consumer_group_metadata(), 20
    )
    with pytest.raises(TemporarilyUnavailableError, match="unstable_offset_commit"):
        ask(lambda cluster: committed(cluster.group, place.partitions, DEADLINE), place.topic)
    producer.commit_transaction(20)
    consumer.close()
    found = ask(lambda cluster: committed(cluster.group, place.partitions, DEADLINE), place.topic)
    assert found == place.both(7, None)


def test_partition_counts_and_settings(place: Place) -> None:
    assert ask(lambda cluster: cluster.topics.partition_counts([place.topic, "no-such-topic"], DEADLINE)) == {
        place.topic: 2
    }
    assert ask(lambda cluster: cluster.topics.configs([place.topic], DEADLINE)) == {
        place.topic: TopicConfig(frozenset({"compact"}), None, timedelta(hours=1))
    }


TOPOLOGY = """Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [{source}])
      --> KSTREAM-AGGREGATE-0000000001
    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [store])
      --> none
      <-- KSTREAM-SOURCE-0000000000
"""


def test_a_changelog_that_forgets_tombstones_before_state_is_removed_is_named(place: Place) -> None:
    """From the broker's settings to the sentence; the other topic is one that the topology has, and nobody made."""
    application_id, source = place.topic.removesuffix("-store-changelog"), f"{place.topic}-in"
    place.admin.create_topics([NewTopic(source, num_partitions=2, replication_factor=1)])[source].result(20)
    missing = f"{application_id}-gone-changelog"

    async def read() -> dict[str, TopicConfig | ConfigUnread]:
        text = TOPOLOGY.format(source=source)
        group = KafkaGroup(
            KafkaCluster(read_settings(bootstrap(), {}), application_id),
            application_id,
            text,
            deadline_seconds=DEADLINE,
        )
        try:
            task_set = await group.task_set()
            assert isinstance(task_set, TaskSet)
            assert task_set.topics == {place.topic}
            return dict(await group.configs([*task_set.topics, missing]))
        finally:
            group.close()

    try:
        configs = asyncio.run(read())
    finally:
        place.admin.delete_topics([source])[source].result(20)
    assert isinstance(configs[missing], ConfigUnread)
    whole = example.snapshot()
    snapshot = replace(whole, app=replace(whole.app, max_idle_time=timedelta(hours=20)), topic_configs=configs)
    assert decide(snapshot, ScalingPolicy()).warnings == (
        Event(
            Reason.MaxIdleTimeTooLong,
            f"topic {place.topic}: delete.retention.ms is 3600000 (1:00:00), `state.maxIdleTime` is 20:00:00",
        ),
    )
    shorter = replace(snapshot, app=replace(snapshot.app, max_idle_time=timedelta(minutes=59)))
    assert decide(shorter, ScalingPolicy()).warnings == ()


def test_changelogs_by_prefix_and_no_topic_left_behind_by_looking(place: Place) -> None:
    application_id = place.topic.removesuffix("-store-changelog")
    assert ask(lambda cluster: cluster.topics.changelogs(application_id, DEADLINE)) == {place.topic: 2}
    with pytest.raises(TopicUnknownError):
        ask(lambda cluster: cluster.offsets.ends([TopicPartition("no-such-topic", 0)], DEADLINE))
    names = place.admin.list_topics(timeout=20).topics.keys()
    assert not [name for name in names if PROBE in name or name == "no-such-topic"]


def test_a_partition_that_is_not_there(place: Place) -> None:
    with pytest.raises(TopicUnknownError, match="partition 2: end offset"):
        ask(lambda cluster: cluster.offsets.ends([*place.partitions, TopicPartition(place.topic, 2)], DEADLINE))


def test_a_group_that_is_not_there_is_dead() -> None:
    name = f"t-{uuid.uuid4()}"
    assert ask(lambda cluster: read_group(cluster.group, DEADLINE), name) == DecodedGroup(
        name, ClassicGroupState.DEAD, ()
    )


@pytest.fixture
def consumer(place: Place) -> Iterator[Consumer]:
    """A plain consumer that is a member of the group named like the topic."""
    found = Consumer({"bootstrap.servers": bootstrap(), "group.id": place.topic, "session.timeout.ms": 45000})
    found.subscribe([place.topic])
    ends = time.monotonic() + 30
    while not found.assignment():
        assert time.monotonic() < ends, "no assignment within 30 s"
        found.poll(0.2)
    yield found
    found.close()


def test_a_group_of_plain_consumers_is_told_apart(place: Place, consumer: Consumer) -> None:
    assert consumer.assignment()
    with pytest.raises(GroupNotClassicError, match="its members speak consumer/range"):
        ask(lambda cluster: read_group(cluster.group, DEADLINE), place.topic)


def test_an_evicted_member_is_gone_at_once_and_cannot_be_evicted_twice(place: Place, consumer: Consumer) -> None:
    member = MemberToEvict(str(consumer.memberid()))
    stranger = MemberToEvict("nobody")

    async def main(cluster: KafkaCluster) -> tuple[object, object, object]:
        first = await evict(cluster.group, [member, stranger], "a test", DEADLINE)
        left = await describe(cluster.group, DEADLINE)
        second = await evict(cluster.group, [member], "a test", DEADLINE)
        return first, [each.member_id for each in left.members], second

    assert ask(main, place.topic) == (
        {member: EvictionResult.EVICTED, stranger: EvictionResult.ALREADY_GONE},
        [],
        {member: EvictionResult.ALREADY_GONE},
    )
