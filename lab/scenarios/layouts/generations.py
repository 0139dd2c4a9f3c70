"""Every generation that a classic group went through, as its coordinator wrote it: none is missed, however busy we are.

A coordinator writes the whole group, with what each member joined with and was assigned, to `__consumer_offsets` as a
rebalance ends (`GroupMetadataValue` of Kafka's group coordinator, read in its sources). Whoever asks the group again
and again sees only what is in force while it looks; a layout between two rebalances lasts some tens of milliseconds.
"""

import struct
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from lab.errors import LabError
from lab.scenarios.layouts.task_layouts import TaskLayouts, layout_of_classic_group
from streamapp.wire.members import DecodedMember, RawMember, decode_member
from streamapp.wire.reader import Reader

TOPIC = "__consumer_offsets"
_GROUP_METADATA = 2
"""Version of a key that names a group; lower ones name an offset."""
_VALUE_VERSION = 3
_LEAST_MEMBER_BYTES = 24
_TIMEOUT_SECONDS = 20.0
_MESSAGES = 5_000
_PAUSE_SECONDS = 0.2
"""So many are taken at once, or as many as came in this time."""


def layouts_since(bootstrap: str, group_id: str, since: datetime) -> TaskLayouts:
    """Give each layout that the group was assigned: the last one before then, and all from then on.

    Raises:
        LabError: The broker does not answer, or the group never had a layout.
        UndecodableError: A record or a member's bytes cannot be read.
    """
    every = [layout_of_classic_group(members, at) for at, members in _generations(bootstrap, group_id)]
    every = [layout for layout in every if layout.active]
    if not every:
        why = f"{TOPIC} has no assignment of it"
        raise LabError(f"group {group_id}: no generation", why, "look at the logs of its members")
    first = max((at for at, layout in enumerate(every) if layout.at < since), default=0)
    found = TaskLayouts()
    for layout in every[first:]:
        found.note(layout)
    return found


def partition_of(group_id: str, partitions: int) -> int:
    """Give the partition that has a group: Java's hash of its ID, without its sign (`Utils.abs` of Kafka)."""
    code, units = 0, group_id.encode("utf-16-be")
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2])) & 0xFFFFFFFF
    signed = code - (code >> 31 << 32)
    return 0 if signed == -(2**31) else abs(signed) % partitions


_Generation = tuple[datetime, tuple[DecodedMember, ...]]


def _generations(bootstrap: str, group_id: str) -> Iterator[_Generation]:
    """Read from the first record to the one that is the last now: under exactly-once there is always a later one."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reads-generations-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
        }
    )
    try:
        partitions = len(consumer.list_topics(TOPIC, timeout=_TIMEOUT_SECONDS).topics[TOPIC].partitions)
        place = TopicPartition(TOPIC, partition_of(group_id, partitions), OFFSET_BEGINNING)
        _, end = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_SECONDS)
        consumer.assign([place])
        key = key_of(group_id)
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            for message in consumer.consume(_MESSAGES, _PAUSE_SECONDS):
                deadline = time.monotonic() + _TIMEOUT_SECONDS
                yield from _generation(message, key)
                if message.error() is not None or (message.offset() or 0) >= end - 1:
                    return
        why = f"nothing within {_TIMEOUT_SECONDS:.0f} s"
        raise LabError(f"{TOPIC}: no answer", why, "look at `kubectl logs -n kafka kafka-0`")
    finally:
        consumer.close()


def _generation(message: Message, key: bytes) -> Iterator[_Generation]:
    error, value = message.error(), message.value()
    if error is not None:
        if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 (its public name)
            raise LabError(f"{TOPIC}: cannot be read", str(error), "look at `kubectl logs -n kafka kafka-0`")
    elif value is not None and message.key() == key:
        yield datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC), members_of(value)


def key_of(group_id: str) -> bytes:
    """Give the key of a group's generations; those of offsets have lower versions."""
    name = group_id.encode()
    return struct.pack(">hh", _GROUP_METADATA, len(name)) + name


def members_of(value: bytes) -> tuple[DecodedMember, ...]:
    """Read the members of a generation; UndecodableError for what is none."""
    reader = Reader("generation of a group", value)
    reader.version = reader.int16("version")
    if reader.version != _VALUE_VERSION:
        reader.fail("version", f"only version {_VALUE_VERSION} is known")
    reader.string("protocolType")
    reader.int32("generation")
    reader.nullable_string("protocol")
    reader.nullable_string("leader")
    reader.int64("currentStateTimestamp")
    return reader.array("members", _LEAST_MEMBER_BYTES, lambda: _member(reader))


def _member(reader: Reader) -> DecodedMember:
    member_id, instance_id = reader.string("memberId"), reader.nullable_string("groupInstanceId")
    client_id, host = reader.string("clientId"), reader.string("clientHost")
    reader.int32("rebalanceTimeout")
    reader.int32("sessionTimeout")
    metadata, assignment = reader.blob("subscription"), reader.blob("assignment")
    return decode_member(RawMember(member_id, instance_id, client_id, host, metadata, assignment))
