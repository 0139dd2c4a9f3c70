"""Decodes what a member of a classic Kafka Streams group reports of itself when it joins.

Two structures, one inside the other: the consumer protocol's subscription (versions 0–3) and, as its user data, Kafka
Streams' own `SubscriptionInfo` (versions 7–11, Streams 2.6 to 4.4). Both are a snapshot of the member's last JoinGroup:
only a rebalance refreshes them. Layouts: `ConsumerProtocolSubscription.json` and `SubscriptionInfoData.json` of Apache
Kafka. Called by `members`; never guesses: what cannot be read to its last byte is an `UndecodableError`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from streamapp.core.facts.ids import ProcessId, TaskId, TopicPartition
from streamapp.wire.reader import Reader

CONSUMER_VERSIONS = range(4)
STREAMS_VERSIONS = range(7, 12)

_RUNNING_ACTIVE = -2
_UNKNOWN = -3
_OVERFLOW = 2**63 - 1


@dataclass(frozen=True, slots=True)
class PositionSum:
    """The next offsets to read, summed over all changelog partitions of the task."""

    offsets: int


@dataclass(frozen=True, slots=True)
class RunningActivePosition:
    """The member processes the task: its state is complete by definition and no sum is reported."""


@dataclass(frozen=True, slots=True)
class UnknownPosition:
    """The member has state of the task and cannot say how far it is."""


TaskPosition = PositionSum | RunningActivePosition | UnknownPosition


@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    """Kafka Streams' part of a subscription."""

    version: int
    latest_supported_version: int
    process_id: ProcessId
    user_endpoint: str
    """`application.server`, empty where it is not set."""
    positions: Mapping[TaskId, TaskPosition]
    """Every stateful task of which the process has state, directories without an owner included."""
    unique_field: int | None
    """Raised by one at every join; None before version 8."""
    error_code: int
    """0 for none, also before version 9."""
    client_tags: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DecodedSubscription:
    """A member's whole subscription."""

    version: int
    topics: tuple[str, ...]
    info: SubscriptionInfo
    owned_partitions: frozenset[TopicPartition]
    """What the member owned when it joined; empty before version 1."""
    generation: int | None
    """The generation the member was in when it joined; None for a new member and before version 2."""
    rack: str | None


def decode_subscription(data: bytes) -> DecodedSubscription:
    """Decode a member's metadata as `DescribeGroups` gives it; UndecodableError for anything else."""
    reader = Reader("ConsumerProtocolSubscription", data)
    version = reader.int16("version")
    if version not in CONSUMER_VERSIONS:
        reader.fail("version", f"version {version} is not one of 0–3")
    reader.version = version
    topics = reader.array("topics", 2, lambda: reader.string("name"))
    info = decode_subscription_info(reader.blob("userData"))
    owned = topic_partitions(reader, "ownedPartitions") if version >= 1 else ()
    generation = reader.int32("generationId") if version >= 2 else -1
    rack = reader.nullable_string("rackId") if version >= 3 else None
    reader.end()
    if generation < -1:
        reader.fail("generationId", f"generation {generation}")
    return DecodedSubscription(version, topics, info, frozenset(owned), None if generation == -1 else generation, rack)


def topic_partitions(reader: Reader, field: str) -> tuple[TopicPartition, ...]:
    """Read an array of topics with their partitions, in the order they stand there."""

    def one_topic() -> tuple[TopicPartition, ...]:
        topic = reader.string("topic")
        partitions = reader.array("partitions", 4, lambda: reader.int32("partition"))
        if min(partitions, default=0) < 0:
            reader.fail("partitions", f"partition {min(partitions)}")
        return tuple(TopicPartition(topic, partition) for partition in partitions)

    partitions = tuple(partition for topic in reader.array(field, 6, one_topic) for partition in topic)
    if len(set(partitions)) != len(partitions):
        reader.fail(field, "a partition twice")
    return partitions


def decode_subscription_info(data: bytes) -> SubscriptionInfo:
    """Decode the user data of a subscription; UndecodableError for anything but versions 7–11."""
    reader = Reader("SubscriptionInfo", data)
    version = reader.int32("version")
    if version not in STREAMS_VERSIONS:
        reader.fail("version", f"version {version} is not one of 7–11")
    reader.version = version
    latest = reader.int32("latestSupportedVersion")
    process_id = ProcessId(reader.uuid("processId"))
    endpoint = _text(reader, "userEndPoint")
    sums = reader.array("taskOffsetSums", 18, lambda: _sum(reader)) if version >= 10 else _grouped_sums(reader)
    unique_field = reader.int8("uniqueField") if version >= 8 else None
    error_code = reader.int32("errorCode") if version >= 9 else 0
    tags = reader.array("clientTags", 8, lambda: _tag(reader)) if version >= 11 else ()
    reader.end()
    positions = _positions(reader, sums)
    return SubscriptionInfo(version, latest, process_id, endpoint, positions, unique_field, error_code, tags)


def _sum(reader: Reader) -> tuple[TaskId, TaskPosition]:
    task = task_id(reader)
    position = _position(reader)
    name = reader.nullable_string("namedTopology")
    if name is not None:
        reader.fail("namedTopology", f"named topology {name!r}: named topologies are not supported")
    return task, position


def _grouped_sums(reader: Reader) -> tuple[tuple[TaskId, TaskPosition], ...]:
    def one_subtopology() -> tuple[tuple[TaskId, TaskPosition], ...]:
        subtopology = reader.int32("subtopology")

        def one_partition() -> tuple[TaskId, TaskPosition]:
            return checked_task_id(reader, subtopology, reader.int32("partition")), _position(reader)

        return reader.array("partitionToOffsetSum", 12, one_partition)

    return tuple(each for group in reader.array("taskOffsetSums", 8, one_subtopology) for each in group)


def task_id(reader: Reader) -> TaskId:
    """Read a task id without a topology's name."""
    return checked_task_id(reader, reader.int32("subtopology"), reader.int32("partition"))


def checked_task_id(reader: Reader, subtopology: int, partition: int) -> TaskId:
    """Build a task id, refusing negative numbers."""
    if subtopology < 0 or partition < 0:
        reader.fail("taskId", f"task {subtopology}_{partition}")
    return TaskId(subtopology, partition)


def _position(reader: Reader) -> TaskPosition:
    offsets = reader.int64("offsetSum")
    if offsets == _RUNNING_ACTIVE:
        return RunningActivePosition()
    # Streams pins a sum that overflows to the largest long: a number that says nothing.
    if offsets in {_UNKNOWN, _OVERFLOW}:
        return UnknownPosition()
    if offsets < 0:
        reader.fail("offsetSum", f"sum {offsets}")
    return PositionSum(offsets)


def _positions(reader: Reader, sums: Iterable[tuple[TaskId, TaskPosition]]) -> Mapping[TaskId, TaskPosition]:
    positions: dict[TaskId, TaskPosition] = {}
    for task, position in sums:
        if task in positions:
            reader.fail("taskOffsetSums", f"task {task} twice")
        positions[task] = position
    return MappingProxyType(positions)


def _tag(reader: Reader) -> tuple[str, str]:
    return _text(reader, "key"), _text(reader, "value")


def _text(reader: Reader, field: str) -> str:
    raw = reader.blob(field)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        reader.fail(field, f"no UTF-8: {error.reason} at its byte {error.start}")
