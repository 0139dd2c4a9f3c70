"""Reads offsets: ends and starts of partitions, and what a group committed.

Called by the controller's gathering. All or nothing: a read either answers for everything it was asked, or raises
KafkaAccessError with the first thing that failed, since one unknown end offset makes a whole task's lag unknown.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum

from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v7.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v7.response import ListOffsetsPartitionResponse, ListOffsetsResponse
from kio.schema.offset_fetch.v8.request import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kio.schema.offset_fetch.v8.response import OffsetFetchResponse
from kio.schema.types import BrokerId, GroupId, TopicName
from kio.static.primitive import i8, i32, i64

from streamapp.core.facts.ids import TopicPartition
from streamapp.kafka.brokers.coordinator import Coordinator
from streamapp.kafka.brokers.pool import Pool
from streamapp.kafka.connection.deadline import within
from streamapp.kafka.connection.error_codes import failure
from streamapp.kafka.connection.errors import TemporarilyUnavailableError, unexpected
from streamapp.kafka.topics.leaders import by_topic, leaders_of, topics_of
from streamapp.kafka.topics.topics import metadata, names

_ATTEMPTS = 5
_PAUSE_SECONDS = 0.2
_COMMIT_ATTEMPTS = 20
_COMMIT_PAUSE_SECONDS = 0.02
"""A transaction that commits offsets is open for milliseconds; Kafka Streams ends one every 100 ms."""
_NO_REPLICA = BrokerId(-1)
_READ_UNCOMMITTED = i8(0)


class _Spec(IntEnum):
    """Which offset ListOffsets looks for, said as a time stamp."""

    LATEST = -1
    EARLIEST = -2


class OffsetReader:
    """Reads the offsets of one cluster."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def ends(self, partitions: Iterable[TopicPartition], deadline_seconds: float) -> Mapping[TopicPartition, int]:
        """Give the offset after the last record of each partition, committed or not.

        Read uncommitted on purpose: a hanging transaction must not make a lag look like zero.
        """
        return await self._read(partitions, "end offset", deadline_seconds, _Spec.LATEST)

    async def log_starts(
        self, partitions: Iterable[TopicPartition], deadline_seconds: float
    ) -> Mapping[TopicPartition, int]:
        """Give the first offset that still exists in each partition."""
        return await self._read(partitions, "log start", deadline_seconds, _Spec.EARLIEST)

    async def _read(
        self,
        partitions: Iterable[TopicPartition],
        name: str,
        deadline_seconds: float,
        spec: _Spec,
    ) -> Mapping[TopicPartition, int]:
        requested = sorted(set(partitions))
        if not requested:
            return {}
        async with within(deadline_seconds, f"{names(topics_of(requested))}: {name}"):
            for _ in range(_ATTEMPTS - 1):
                # A leader moved between the two requests, or is being elected.
                with suppress(TemporarilyUnavailableError):
                    return await self._read_once(requested, name, spec)
                await asyncio.sleep(_PAUSE_SECONDS)
            return await self._read_once(requested, name, spec)

    async def _read_once(
        self, requested: Sequence[TopicPartition], name: str, spec: _Spec
    ) -> Mapping[TopicPartition, int]:
        leaders = leaders_of(await metadata(self._pool, topics_of(requested)), requested, name)
        requests = {leader: _list_offsets(led, spec) for leader, led in leaders.items()}
        # Not cancelled by the first failure: a connection with half an answer is lost.
        answers = await asyncio.gather(
            *(self._pool.ask(leader, request, ListOffsetsResponse) for leader, request in requests.items()),
            return_exceptions=True,
        )
        answers_by_partition: dict[TopicPartition, ListOffsetsPartitionResponse] = {}
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            for topic in answer.topics:
                answers_by_partition |= {
                    TopicPartition(topic.name, each.partition_index): each for each in topic.partitions
                }
        return {partition: _offset(partition, answers_by_partition.get(partition), name) for partition in requested}


async def committed(
    coordinator: Coordinator, partitions: Iterable[TopicPartition], deadline_seconds: float
) -> Mapping[TopicPartition, int | None]:
    """Give the group's committed offset of each partition; None where it never committed one.

    An exactly-once application commits in transactions, one after the other; each partition is asked for until it is
    seen between two of them. TemporarilyUnavailableError where one stays open.
    """
    requested = sorted(set(partitions))
    offsets: dict[TopicPartition, int | None] = {}
    async with within(deadline_seconds, f"group {coordinator.group_id}: committed offsets"):
        for attempt in range(_COMMIT_ATTEMPTS):
            missing = [each for each in requested if each not in offsets]
            if not missing:
                break
            if attempt:
                await asyncio.sleep(_COMMIT_PAUSE_SECONDS)
            is_last = attempt + 1 == _COMMIT_ATTEMPTS
            offsets |= await _committed_now(coordinator, missing, may_be_open=not is_last)
    return offsets


async def _committed_now(
    coordinator: Coordinator, requested: Sequence[TopicPartition], *, may_be_open: bool
) -> Mapping[TopicPartition, int | None]:
    """Ask once; `may_be_open`: leave out what a transaction is about to commit."""
    what = f"group {coordinator.group_id}: committed offsets"
    answer = await coordinator.ask(
        _offset_fetch(coordinator.group_id, requested),
        OffsetFetchResponse,
        lambda reply: [group.error_code for group in reply.groups],
    )
    if [group.group_id for group in answer.groups] != [coordinator.group_id]:
        raise unexpected(what, "the answer is of other groups")
    (group,) = answer.groups
    if group.error_code is not ErrorCode.none:
        raise failure(group.error_code, what, f"DESCRIBE on group {coordinator.group_id}")
    entries = {
        TopicPartition(topic.name, each.partition_index): each for topic in group.topics for each in topic.partitions
    }
    if entries.keys() != set(requested):
        raise unexpected(what, "the answer is of other partitions")
    offsets: dict[TopicPartition, int | None] = {}
    for partition, each in entries.items():
        if may_be_open and each.error_code is ErrorCode.unstable_offset_commit:
            continue
        if each.error_code is not ErrorCode.none:
            raise failure(each.error_code, f"{what} of topic {partition.topic}", f"DESCRIBE on topic {partition.topic}")
        offsets[partition] = each.committed_offset if each.committed_offset >= 0 else None
    return offsets


def _list_offsets(partitions: Iterable[TopicPartition], spec: _Spec) -> ListOffsetsRequest:
    topics = (
        ListOffsetsTopic(
            name=TopicName(topic),
            partitions=tuple(ListOffsetsPartition(partition_index=i32(each), timestamp=i64(spec)) for each in indexes),
        )
        for topic, indexes in by_topic(partitions).items()
    )
    return ListOffsetsRequest(replica_id=_NO_REPLICA, isolation_level=_READ_UNCOMMITTED, topics=tuple(topics))


def _offset(partition: TopicPartition, answer: ListOffsetsPartitionResponse | None, name: str) -> int:
    what = f"topic {partition.topic} partition {partition.partition}: {name}"
    if answer is None:
        raise unexpected(what, "the leader's answer leaves it out")
    if answer.error_code is ErrorCode.unknown_topic_or_partition:
        # The leader that the metadata named does not have it (yet, or any more).
        raise TemporarilyUnavailableError(what, f"the leader answers {answer.error_code.name}", "wait")
    if answer.error_code is not ErrorCode.none:
        raise failure(answer.error_code, what, f"DESCRIBE on topic {partition.topic}")
    if answer.offset < 0:
        # −1 means "unknown" on the wire; as a number it would make a lag look like zero.
        raise unexpected(what, f"the leader answers {answer.offset}")
    return answer.offset


def _offset_fetch(group_id: str, partitions: Iterable[TopicPartition]) -> OffsetFetchRequest:
    topics = (
        OffsetFetchRequestTopics(name=TopicName(topic), partition_indexes=tuple(i32(each) for each in indexes))
        for topic, indexes in by_topic(partitions).items()
    )
    group = OffsetFetchRequestGroup(group_id=GroupId(group_id), topics=tuple(topics))
    return OffsetFetchRequest(groups=(group,), require_stable=True)
