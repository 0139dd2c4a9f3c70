"""Writes records to one topic, at least once: the flight record, and nothing else of the operator.

Called by `controller.record.topic_writer`. All in-sync replicas acknowledge a batch. If an answer is lost, the records
are sent again, so readers must recognise duplicates. kio encodes the batches.
"""

import asyncio
import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zlib import crc32

from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_batch
from kio.schema.errors import ErrorCode
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v9.response import ProduceResponse
from kio.schema.types import TopicName
from kio.static.primitive import Records, TZAwareMicros, i8, i16, i32, i32Timedelta, i64

from streamapp.core.facts.ids import TopicPartition
from streamapp.kafka.brokers.pool import Pool
from streamapp.kafka.brokers.shared_brokers import SharedBrokers
from streamapp.kafka.connection.connector import Connector, Threads
from streamapp.kafka.connection.deadline import within
from streamapp.kafka.connection.error_codes import failure
from streamapp.kafka.connection.errors import unexpected
from streamapp.kafka.connection.settings import Address, KafkaSettings
from streamapp.kafka.topics.leaders import leaders_of
from streamapp.kafka.topics.topics import metadata

_ALL_IN_SYNC = i16(-1)
_NOBODY, _NO_EPOCH, _NO_SEQUENCE = i64(-1), i16(-1), i32(-1)
"""No idempotent producer: that would need an ID, and a right more."""


@dataclass(frozen=True, slots=True)
class Message:
    """One record."""

    key: bytes
    """Those of one key are in one partition."""
    value: bytes


class Producer:
    """Writes to one topic; connects at first use, from within the event loop."""

    def __init__(self, settings: KafkaSettings, topic: str) -> None:
        self._threads = Threads()
        self._brokers = SharedBrokers(settings, Connector(settings, self._threads))
        self._pool = Pool(self._brokers)
        self._topic = topic

    def close(self) -> None:
        """Drop every connection; waits for nothing."""
        self._pool.close()
        self._brokers.close()
        self._threads.close()

    async def send(self, messages: Sequence[Message], deadline_seconds: float) -> None:
        """Write all of these, in their order within each key; KafkaAccessError if some can be missing."""
        what = f"topic {self._topic}: write"
        async with within(deadline_seconds, what):
            answer = await metadata(self._pool, [self._topic])
            # One that is not there has no partition; who leads its first one is asked for all the same, and says why.
            shares = _shares(messages, max([1, *(len(topic.partitions) for topic in answer.topics)]))
            leaders = leaders_of(answer, [TopicPartition(self._topic, number) for number in shares], "write")
            packed = await asyncio.to_thread(_packed, shares)
            for leader, led in leaders.items():
                await self._write(leader, {one.partition: packed[one.partition] for one in led}, deadline_seconds)

    async def _write(self, leader: Address, packed: Mapping[int, bytes], deadline_seconds: float) -> None:
        request = ProduceRequest(
            acks=_ALL_IN_SYNC,
            timeout=i32Timedelta.parse(timedelta(seconds=deadline_seconds)),
            topic_data=(
                TopicProduceData(
                    name=TopicName(self._topic),
                    partition_data=tuple(
                        PartitionProduceData(index=i32(number), records=Records(batch))
                        for number, batch in packed.items()
                    ),
                ),
            ),
        )
        answer = await self._pool.ask(leader, request, ProduceResponse)
        responses = {one.index: one for topic in answer.responses for one in topic.partition_responses}
        for number in packed:
            what = f"topic {self._topic} partition {number}: write"
            if i32(number) not in responses:
                raise unexpected(what, "the broker says nothing about it")
            code = responses[i32(number)].error_code
            if code is not ErrorCode.none:
                raise failure(code, what, f"WRITE on topic {self._topic}")


def _shares(messages: Sequence[Message], partitions: int) -> Mapping[int, list[Message]]:
    messages_by_partition: defaultdict[int, list[Message]] = defaultdict(list)
    for message in messages:
        messages_by_partition[crc32(message.key) % partitions].append(message)
    return messages_by_partition


def _packed(shares: Mapping[int, list[Message]]) -> Mapping[int, bytes]:
    at = TZAwareMicros.parse(datetime.now(UTC))
    return {number: _batch(messages, at) for number, messages in shares.items()}


def _batch(messages: Sequence[Message], at: TZAwareMicros) -> bytes:
    records = tuple(
        Record(attributes=i8(0), timestamp=at, offset=i64(number), key=one.key, value=one.value, headers=())
        for number, one in enumerate(messages)
    )
    batch = NewRecordBatch(
        producer_id=_NOBODY,
        producer_epoch=_NO_EPOCH,
        partition_leader_epoch=i32(-1),
        base_sequence=_NO_SEQUENCE,
        records=records,
        attributes=i16(0),
    )
    buffer = io.BytesIO()
    write_batch(buffer, batch)
    return buffer.getvalue()
