"""The tail of a partition, read from a real broker after real transactions.

Needs `KAFKA_BOOTSTRAP`; makes topics of its own and deletes them.
"""

import asyncio
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import confluent_kafka
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.clusters.kubectl import wait_until
from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.lag import PartitionEnd, Unknown
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import TopicUnknownError
from streamapp.kafka.connection.settings import read_settings
from streamapp.kafka.topics.tails import WINDOWS
from tests.lab.transactions import last_stable

pytestmark = [pytest.mark.lab]

DEADLINE = 20.0
COMPACTING = {
    "cleanup.policy": "compact",
    "segment.ms": "500",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": "0",
}


def bootstrap() -> str:
    address = os.environ.get("KAFKA_BOOTSTRAP")
    assert address, "KAFKA_BOOTSTRAP is not set: run inside the lab, or name a broker that may be written to"
    return address


@dataclass(frozen=True)
class Log:
    """A topic of one partition."""

    topic: str

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.topic, 0)

    def transactional(self, name: str = "one") -> Producer:
        """Give a producer that may begin transactions; another one of the same name ends those of the first."""
        producer = Producer(
            {"bootstrap.servers": bootstrap(), "transactional.id": f"{self.topic}-{name}", "linger.ms": 20}
        )
        producer.init_transactions(20)
        return producer

    def write(self, producer: Producer, records: int, *, keys: int = 1_000_000, value: bytes | None = b"value") -> None:
        for number in range(records):
            while True:
                try:
                    producer.produce(self.topic, value, key=str(number % keys).encode(), partition=0)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(60) == 0

    def plainly(self, records: int) -> None:
        self.write(Producer({"bootstrap.servers": bootstrap()}), records)

    def committed(self, producer: Producer, records: int) -> None:
        producer.begin_transaction()
        self.write(producer, records)
        producer.commit_transaction(60)

    def aborted(self, producer: Producer, records: int) -> None:
        producer.begin_transaction()
        self.write(producer, records)
        producer.abort_transaction(60)

    def end(self) -> PartitionEnd:
        """Wait until no transaction is open, and give the two ends."""
        ends = time.monotonic() + 20
        while True:
            (end, start), stable = (
                asyncio.run(self._ends()),
                last_stable(AdminClient({"bootstrap.servers": bootstrap()}), self.topic, 0),
            )
            if stable == end:
                return PartitionEnd(log_start=start, end=end)
            assert time.monotonic() < ends, f"open from {stable} to {end}"
            time.sleep(0.1)

    async def _ends(self) -> tuple[int, int]:
        cluster = KafkaCluster(read_settings(bootstrap(), {}), "nobody")
        try:
            end = await cluster.offsets.ends([self.partition], DEADLINE)
            start = await cluster.offsets.log_starts([self.partition], DEADLINE)
            return end[self.partition], start[self.partition]
        finally:
            cluster.close()

    def first_offset(self) -> int:
        """Give the offset of the first record that is still there."""
        consumer = Consumer({"bootstrap.servers": bootstrap(), "group.id": "nobody"})
        try:
            consumer.assign([confluent_kafka.TopicPartition(self.topic, 0, 0)])
            message = consumer.poll(20)
            assert message is not None
            offset = message.offset()
            assert offset is not None
            return int(offset)
        finally:
            consumer.close()

    def tail(self, end: PartitionEnd | None = None) -> int | Unknown:
        return tails({self.partition: end or self.end()})[self.partition]


def tails(ends: dict[TopicPartition, PartitionEnd]) -> dict[TopicPartition, int | Unknown]:
    async def main() -> dict[TopicPartition, int | Unknown]:
        cluster = KafkaCluster(read_settings(bootstrap(), {}), "nobody")
        try:
            return dict(await cluster.tails.data_ends(ends, DEADLINE))
        finally:
            cluster.close()

    return asyncio.run(main())


@pytest.fixture
def admin() -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap()})


def create(admin: AdminClient, topic: NewTopic) -> None:
    """Make a topic and wait until the broker knows it: it says that it made one a little before that."""
    admin.create_topics([topic])[topic.topic].result(20)

    def is_known() -> bool:
        found = admin.list_topics(topic.topic, timeout=20).topics[topic.topic]
        return found.error is None and len(found.partitions) == topic.num_partitions

    wait_until(f"topic {topic.topic}", is_known, 20, interval_seconds=0.05)


@pytest.fixture
def log(request: pytest.FixtureRequest, admin: AdminClient) -> Iterator[Log]:
    name = f"tail-{uuid.uuid4().hex[:12]}"
    config = getattr(request, "param", {"cleanup.policy": "compact"})
    create(admin, NewTopic(name, num_partitions=1, replication_factor=1, config=config))
    yield Log(name)
    admin.delete_topics([name])[name].result(20)


def test_an_empty_partition_ends_where_it_begins(log: Log) -> None:
    assert (log.end(), log.tail()) == (PartitionEnd(log_start=0, end=0), 0)


def test_without_transactions_the_last_record_is_the_last(log: Log) -> None:
    log.plainly(30)
    assert (log.end().end, log.tail()) == (30, 30)


def test_a_commit_marker_at_the_end_is_not_applied(log: Log) -> None:
    log.committed(log.transactional(), 30)
    assert (log.end().end, log.tail()) == (31, 30)


def test_aborted_records_at_the_end_are_not_applied(log: Log) -> None:
    producer = log.transactional()
    log.committed(producer, 30)
    log.aborted(producer, 2_500)
    log.aborted(producer, 7)
    assert (log.end().end, log.tail()) == (31 + 2_501 + 8, 30)


def test_aborted_records_alone_leave_nothing_to_apply(log: Log) -> None:
    log.aborted(log.transactional(), 40)
    assert (log.end().end, log.tail()) == (41, 0)


def test_what_was_committed_after_an_abort_is_applied(log: Log) -> None:
    producer = log.transactional()
    log.aborted(producer, 40)
    log.committed(producer, 3)
    assert (log.end().end, log.tail()) == (45, 44)


def test_two_producers_at_once_are_told_apart(log: Log) -> None:
    one, other = log.transactional("one"), log.transactional("other")
    one.begin_transaction()
    other.begin_transaction()
    log.write(one, 10)
    log.write(other, 10)
    log.write(one, 10)
    one.commit_transaction(20)
    log.write(other, 10)
    other.abort_transaction(20)
    # one 0-9, other 10-19, one 20-29, marker 30, other 31-40, marker 41
    assert (log.end().end, log.tail()) == (42, 30)


def test_an_open_transaction_is_unknown_and_not_zero(log: Log) -> None:
    log.plainly(5)
    producer = log.transactional()
    producer.begin_transaction()
    log.write(producer, 10)
    try:
        found = log.tail(PartitionEnd(log_start=0, end=15))
        assert found == Unknown(f"topic {log.topic} partition 0: tail: a transaction is open from offset 5 on")
        # what was stable before it began is known all the same
        assert log.tail(PartitionEnd(log_start=0, end=5)) == 5
    finally:
        producer.abort_transaction(20)
    assert log.tail() == 5


def test_what_was_written_after_the_end_was_read_changes_nothing(log: Log) -> None:
    producer = log.transactional()
    log.committed(producer, 30)
    end = log.end()
    log.committed(producer, 30)
    assert log.tail(end) == 30


def test_a_tail_of_many_megabytes_is_read_in_several_requests(log: Log) -> None:
    producer = log.transactional()
    log.committed(producer, 10)
    producer.begin_transaction()
    log.write(producer, 2_000, value=os.urandom(4_000))
    producer.abort_transaction(60)
    assert (log.end().end, log.tail()) == (2_012, 10)


@pytest.mark.timeout(180)
def test_a_tail_beyond_the_longest_look_is_unknown(log: Log) -> None:
    producer = log.transactional()
    log.committed(producer, 10)
    log.aborted(producer, WINDOWS[-1])
    assert log.tail() == Unknown(
        f"topic {log.topic} partition 0: tail: none of the last 100000 offsets has a record that is applied"
    )


def test_several_partitions_are_read_together(admin: AdminClient) -> None:
    name = f"tail-{uuid.uuid4().hex[:12]}"
    create(admin, NewTopic(name, num_partitions=3, replication_factor=1))
    try:
        producer = Log(name).transactional()
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(name, b"value", partition=partition)
        producer.commit_transaction(20)
        producer.begin_transaction()
        producer.produce(name, b"value", partition=1)
        assert producer.flush(20) == 0  # what was not sent yet would be dropped and not aborted
        producer.abort_transaction(20)
        ends = {TopicPartition(name, each): PartitionEnd(log_start=0, end=end) for each, end in enumerate((2, 4, 0))}
        # a marker is written a little after the answer; before that the transaction is open
        deadline = time.monotonic() + 20
        found = tails(ends)
        while any(isinstance(each, Unknown) for each in found.values()):
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
            found = tails(ends)
        assert found == {TopicPartition(name, 0): 1, TopicPartition(name, 1): 1, TopicPartition(name, 2): 0}
    finally:
        admin.delete_topics([name])[name].result(20)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("log", [COMPACTING], indirect=True)
def test_compaction_does_not_hide_what_is_applied(log: Log) -> None:
    producer = log.transactional()
    log.committed(producer, 500)
    log.committed(producer, 500)
    log.aborted(producer, 300)
    end, tail = log.end(), log.tail()
    assert (end.end, tail) == (501 + 501 + 301, 501 + 500)
    deadline = time.monotonic() + 120
    while True:
        # the cleaner leaves the newest segment alone; a record of another partition key rolls it
        log.committed(producer, 1)
        time.sleep(1)
        if log.first_offset() >= 501:
            break
        assert time.monotonic() < deadline, f"not compacted, the first record is {log.first_offset()}"
    assert log.tail(end) == tail


def test_a_topic_that_is_not_there_is_named() -> None:
    with pytest.raises(TopicUnknownError, match="topic tail-nowhere partition 0: tail"):
        tails({TopicPartition("tail-nowhere", 0): PartitionEnd(log_start=0, end=1)})
