"""Encodes what the product only decodes: the tests' own reading of Apache Kafka's layouts.

Written from the layouts, not from the decoder, so that a mistake in one is not a mistake in both.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence

from crc32c import crc32c

from streamapp.core.facts.ids import TaskId, TopicPartition
from streamapp.wire.assignment import DecodedAssignment, Host, NoRebalanceScheduled
from streamapp.wire.subscription import (
    DecodedSubscription,
    PositionSum,
    RunningActivePosition,
    SubscriptionInfo,
    TaskPosition,
)


def string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    return struct.pack(">h", len(text.encode())) + text.encode()


def java_utf(text: str) -> bytes:
    return struct.pack(">H", len(text.encode())) + text.encode()


def blob(raw: bytes) -> bytes:
    return struct.pack(">i", len(raw)) + raw


def array(elements: Iterable[bytes]) -> bytes:
    listed = list(elements)
    return struct.pack(">i", len(listed)) + b"".join(listed)


def by_topic(partitions: Iterable[TopicPartition]) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return array(string(topic) + array(struct.pack(">i", each) for each in found) for topic, found in topics.items())


def position(found: TaskPosition) -> int:
    match found:
        case RunningActivePosition():
            return -2
        case PositionSum(offsets):
            return offsets
        case _:
            return -3


def positions(version: int, found: Mapping[TaskId, TaskPosition]) -> bytes:
    if version >= 10:
        return array(
            struct.pack(">iiq", task.subtopology, task.partition, position(each)) + string(None)
            for task, each in found.items()
        )
    groups: dict[int, list[bytes]] = {}
    for task, each in found.items():
        groups.setdefault(task.subtopology, []).append(struct.pack(">iq", task.partition, position(each)))
    return array(struct.pack(">i", number) + array(entries) for number, entries in groups.items())


def subscription_info(info: SubscriptionInfo) -> bytes:
    parts = [struct.pack(">ii", info.version, info.latest_supported_version), info.process_id.value.bytes]
    parts += [blob(info.user_endpoint.encode()), positions(info.version, info.positions)]
    if info.version >= 8:
        parts.append(struct.pack(">b", info.unique_field))
    if info.version >= 9:
        parts.append(struct.pack(">i", info.error_code))
    if info.version >= 11:
        parts.append(array(blob(key.encode()) + blob(value.encode()) for key, value in info.client_tags))
    return b"".join(parts)


def subscription(found: DecodedSubscription) -> bytes:
    parts = [struct.pack(">h", found.version), array(string(topic) for topic in found.topics)]
    parts.append(blob(subscription_info(found.info)))
    if found.version >= 1:
        parts.append(by_topic(sorted(found.owned_partitions)))
    if found.version >= 2:
        parts.append(struct.pack(">i", -1 if found.generation is None else found.generation))
    if found.version >= 3:
        parts.append(string(found.rack))
    return b"".join(parts)


def task_id(version: int, task: TaskId) -> bytes:
    return struct.pack(">ii", task.subtopology, task.partition) + (struct.pack(">i", 0) if version >= 10 else b"")


def by_host(hosts: Mapping[Host, Iterable[TopicPartition]], topics: Sequence[str]) -> bytes:
    return array(
        java_utf(host.name)
        + struct.pack(">i", host.port)
        + array(struct.pack(">ii", topics.index(topic), partition) for topic, partition in sorted(partitions))
        for host, partitions in hosts.items()
    )


def assignment_info(found: DecodedAssignment) -> bytes:
    owners = {partition: task for task, partitions in found.active.items() for partition in partitions}
    hosted = [*found.active_by_host.values(), *found.standby_by_host.values()]
    topics = sorted({topic for partitions in hosted for topic, _ in partitions})
    next_ms = 2**63 - 1 if isinstance(found.next_rebalance, NoRebalanceScheduled) else found.next_rebalance.epoch_ms
    return b"".join(
        [
            struct.pack(">ii", found.version, found.commonly_supported_version),
            array(task_id(found.version, owners[partition]) for partition in sorted(owners)),
            array(
                task_id(found.version, task)
                + array(java_utf(topic) + struct.pack(">i", partition) for topic, partition in sorted(partitions))
                for task, partitions in found.standby.items()
            ),
            array(struct.pack(">i", index) + java_utf(topic) for index, topic in enumerate(topics)),
            by_host(found.active_by_host, topics),
            by_host(found.standby_by_host, topics),
            struct.pack(">iq", found.error_code, next_ms),
        ]
    )


def assignment(found: DecodedAssignment, consumer_version: int) -> bytes:
    partitions = sorted(partition for held in found.active.values() for partition in held)
    return struct.pack(">h", consumer_version) + by_topic(partitions) + blob(assignment_info(found))


def batch(
    base_offset: int,
    records: int,
    *,
    kept: int | None = None,
    producer_id: int = -1,
    transactional: bool = False,
    control: bool = False,
    attributes: int = 0,
    magic: int = 2,
    body: bytes = b"records",
) -> bytes:
    """A batch whose records are any bytes; `kept`: how many of them compaction left."""
    attributes |= (1 << 4 if transactional else 0) | (1 << 5 if control else 0)
    checked = struct.pack(">hi", attributes, records - 1)
    checked += struct.pack(">qq", 1_700_000_000_000, 1_700_000_000_000)
    checked += struct.pack(">qhi", producer_id, 0, 0)
    checked += struct.pack(">i", records if kept is None else kept) + body
    after_length = struct.pack(">ib", 7, magic) + struct.pack(">I", crc32c(checked)) + checked
    return struct.pack(">qi", base_offset, len(after_length)) + after_length


def marker(offset: int, producer_id: int) -> bytes:
    """A commit or abort marker."""
    return batch(offset, 1, producer_id=producer_id, transactional=True, control=True)
