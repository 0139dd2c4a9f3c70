"""Decodes what the group's leader assigned to a member.

Two structures, one inside the other: the consumer protocol's assignment (versions 0–3) and, as its user data, Kafka
Streams' own `AssignmentInfo` (versions 7–11). Layouts: `ConsumerProtocolAssignment.json` and `AssignmentInfo.java` of
Apache Kafka. Called by `members`; never guesses: what cannot be read to its last byte is an `UndecodableError`.

The bytes name a task once per input partition and do not tell a standby from a warm-up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from streamapp.core.facts.ids import TaskId, TopicPartition
from streamapp.wire.reader import Reader
from streamapp.wire.subscription import CONSUMER_VERSIONS, STREAMS_VERSIONS, checked_task_id, topic_partitions

_NEVER = 2**63 - 1
_AFTER_TABLES = 12
"""Bytes of errCode and nextRebalanceMs, which end the structure."""

TaskPartitions = Mapping[TaskId, frozenset[TopicPartition]]
"""Tasks with their source partitions (not their changelogs)."""


@dataclass(frozen=True, slots=True)
class NoRebalanceScheduled:
    """The assignor is done: this member asks for no follow-up rebalance."""


@dataclass(frozen=True, slots=True)
class RebalanceScheduled:
    """The member rejoins by itself at that time: a warm-up is pending, or a task waits to be revoked elsewhere."""

    epoch_ms: int
    """Milliseconds since 1970 by the leader's clock; 0 = at once."""


NextRebalance = NoRebalanceScheduled | RebalanceScheduled


class Host(NamedTuple):
    """An `application.server`."""

    name: str
    port: int


HostPartitions = Mapping[Host, frozenset[TopicPartition]]


@dataclass(frozen=True, slots=True)
class DecodedAssignment:
    """A member's whole assignment."""

    version: int
    """Of Kafka Streams' part."""
    commonly_supported_version: int
    active: TaskPartitions
    standby: TaskPartitions
    """Standbys and warm-ups alike."""
    active_by_host: HostPartitions
    """Empty where no process has an `application.server`."""
    standby_by_host: HostPartitions
    error_code: int
    """0 for none."""
    next_rebalance: NextRebalance


def decode_assignment(data: bytes) -> DecodedAssignment:
    """Decode a member's assignment as `DescribeGroups` gives it; UndecodableError for anything else."""
    reader = Reader("ConsumerProtocolAssignment", data)
    version = reader.int16("version")
    if version not in CONSUMER_VERSIONS:
        reader.fail("version", f"version {version} is not one of 0–3")
    reader.version = version
    partitions = topic_partitions(reader, "assignedPartitions")
    user_data = reader.blob("userData")
    reader.end()
    return decode_assignment_info(user_data, partitions)


def decode_assignment_info(data: bytes, partitions: tuple[TopicPartition, ...]) -> DecodedAssignment:
    """Decode the user data of an assignment of these `partitions`; UndecodableError for anything but versions 7–11."""
    reader = Reader("AssignmentInfo", data)
    version = reader.int32("usedVersion")
    if version not in STREAMS_VERSIONS:
        reader.fail("usedVersion", f"version {version} is not one of 7–11")
    reader.version = version
    common = reader.int32("commonlySupportedVersion")
    active = _active(reader, partitions)
    standby = _standby(reader)
    active_by_host, standby_by_host = _host_tables(reader.all_but(_AFTER_TABLES, "partitionsByHost"))
    error_code = reader.int32("errCode")
    next_rebalance = _next_rebalance(reader)
    reader.end()
    return DecodedAssignment(
        version, common, active, standby, active_by_host, standby_by_host, error_code, next_rebalance
    )


def _task_id(reader: Reader) -> TaskId:
    subtopology, partition = reader.int32("subtopology"), reader.int32("partition")
    if reader.version is not None and reader.version >= 10:
        letters = reader.int32("namedTopology")
        if letters:
            reader.fail("namedTopology", f"a name of {letters} letters: named topologies are not supported")
    return checked_task_id(reader, subtopology, partition)


def _active(reader: Reader, partitions: tuple[TopicPartition, ...]) -> TaskPartitions:
    entries = reader.array("activeTasks", 8, lambda: _task_id(reader))
    if len(entries) != len(partitions):
        reader.fail("activeTasks", f"{len(entries)} entries for {len(partitions)} assigned partitions")
    # The n-th entry belongs to the n-th partition in the order of topic, then partition.
    tasks: dict[TaskId, set[TopicPartition]] = {}
    for task, partition in zip(entries, sorted(partitions), strict=True):
        tasks.setdefault(task, set()).add(partition)
    return MappingProxyType({task: frozenset(partitions_of_task) for task, partitions_of_task in tasks.items()})


def _standby(reader: Reader) -> TaskPartitions:
    def one_task() -> tuple[TaskId, frozenset[TopicPartition]]:
        task = _task_id(reader)
        return task, frozenset(reader.array("partitions", 6, lambda: _partition(reader, reader.java_utf("topic"))))

    tasks: dict[TaskId, frozenset[TopicPartition]] = {}
    for task, partitions in reader.array("standbyTasks", 12, one_task):
        if task in tasks:
            reader.fail("standbyTasks", f"task {task} twice")
        tasks[task] = partitions
    return MappingProxyType(tasks)


# Every member gets the same tables, and they are most of the bytes where `application.server` is set: of 50 members
# with 5,000 tasks the assignments take 1.7 s to decode one by one, and 0.1 s with this.
@lru_cache(maxsize=4)
def _host_tables(data: bytes) -> tuple[HostPartitions, HostPartitions]:
    reader = Reader("AssignmentInfo's partitionsByHost", data)
    topics = _topic_dictionary(reader)
    active, standby = _by_host(reader, "activeByHost", topics), _by_host(reader, "standbyByHost", topics)
    reader.end()
    return active, standby


def _topic_dictionary(reader: Reader) -> Mapping[int, str]:
    entries = reader.array("topics", 6, lambda: (reader.int32("index"), reader.java_utf("topic")))
    topics = dict(entries)
    if len(topics) != len(entries):
        reader.fail("topics", "an index twice")
    return topics


def _by_host(reader: Reader, field: str, topics: Mapping[int, str]) -> HostPartitions:
    def one_partition() -> TopicPartition:
        index = reader.int32("topicIndex")
        if index not in topics:
            reader.fail("topicIndex", f"index {index} is not in the dictionary of topics")
        return _partition(reader, topics[index])

    def one_host() -> tuple[Host, frozenset[TopicPartition]]:
        host = Host(reader.java_utf("host"), reader.int32("port"))
        return host, frozenset(reader.array("partitions", 8, one_partition))

    hosts: dict[Host, frozenset[TopicPartition]] = {}
    for host, partitions in reader.array(field, 10, one_host):
        if host in hosts:
            reader.fail(field, f"host {host.name}:{host.port} twice")
        hosts[host] = partitions
    return MappingProxyType(hosts)


def _partition(reader: Reader, topic: str) -> TopicPartition:
    partition = reader.int32("partition")
    if partition < 0:
        reader.fail("partition", f"partition {partition}")
    return TopicPartition(topic, partition)


def _next_rebalance(reader: Reader) -> NextRebalance:
    time = reader.int64("nextRebalanceMs")
    if time == _NEVER:
        return NoRebalanceScheduled()
    if time < 0:
        reader.fail("nextRebalanceMs", f"time {time}")
    return RebalanceScheduled(time)
