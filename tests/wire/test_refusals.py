"""Bytes of the right length that mean nothing: each is refused with its place and its reason."""

import struct
from collections.abc import Callable

import pytest

from streamapp.core.facts.ids import ProcessId, TaskId, TopicPartition
from streamapp.wire.assignment import NoRebalanceScheduled, decode_assignment, decode_assignment_info
from streamapp.wire.errors import UndecodableError
from streamapp.wire.subscription import (
    PositionSum,
    RunningActivePosition,
    UnknownPosition,
    decode_subscription,
    decode_subscription_info,
)
from tests.wire.encoding import array, blob, by_topic, java_utf, string, task_id

PROCESS = ProcessId.parse("00000001-0000-4000-8000-000000000000")
TASK = TaskId(0, 3)
NEVER = struct.pack(">iq", 0, 2**63 - 1)
NO_HOSTS = array([]) * 3
IN_0 = TopicPartition("in", 0)


def info(sums: bytes, tail: bytes = b"\0" + bytes(8), endpoint: bytes = b"") -> bytes:
    """SubscriptionInfo 11 with these offset sums."""
    return struct.pack(">ii", 11, 11) + PROCESS.value.bytes + blob(endpoint) + sums + tail


def offset_sum(offsets: int, task: TaskId = TASK, name: str | None = None) -> bytes:
    return struct.pack(">iiq", task.subtopology, task.partition, offsets) + string(name)


def told(active: bytes = array([]), standby: bytes = array([]), hosts: bytes = NO_HOSTS, end: bytes = NEVER) -> bytes:
    """AssignmentInfo 11."""
    return struct.pack(">ii", 11, 11) + active + standby + hosts + end


def host(partitions: bytes) -> bytes:
    return java_utf("pod-0") + struct.pack(">i", 7000) + partitions


SAID: dict[str, tuple[bytes, str]] = {
    "a sum that is no offset and no known mark": (info(array([offset_sum(-1)])), "sum -1"),
    "a sum that Kafka's checkpoints know and members never send": (info(array([offset_sum(-4)])), "sum -4"),
    "a task twice": (info(array([offset_sum(1), offset_sum(2)])), "task 0_3 twice"),
    "a negative partition": (info(array([offset_sum(1, TaskId(0, -1))])), "task 0_-1"),
    "a negative sub-topology": (info(array([offset_sum(1, TaskId(-1, 0))])), "task -1_0"),
    "a named topology": (info(array([offset_sum(1, name="eu")])), "named topology 'eu': named topologies are not"),
    "an endpoint that is no text": (info(array([]), endpoint=b"\xff"), "no UTF-8"),
    "a null array": (info(struct.pack(">i", -1)), "null where an array must be"),
}

TOLD: dict[str, tuple[bytes, str]] = {
    "more active tasks than partitions": (told(array([task_id(11, TASK)])), "1 entries for 0 assigned partitions"),
    "a standby twice": (told(standby=array([task_id(11, TASK) + array([])] * 2)), "task 0_3 twice"),
    "a named topology": (
        told(standby=array([struct.pack(">iii", 0, 3, 2) + "eu".encode("utf-16-be") + array([])])),
        "a name of 2 letters: named topologies are not",
    ),
    "a negative partition of a standby": (
        told(standby=array([task_id(11, TASK) + array([java_utf("in") + struct.pack(">i", -1)])])),
        "partition -1",
    ),
    "a topic's index twice": (
        told(hosts=array([struct.pack(">i", 0) + java_utf("in")] * 2) + array([]) * 2),
        "an index twice",
    ),
    "an index that is no topic's": (
        told(hosts=array([]) + array([host(array([struct.pack(">ii", 5, 0)]))]) + array([])),
        "index 5 is not in the dictionary of topics",
    ),
    "a host twice": (told(hosts=array([]) + array([host(array([]))] * 2) + array([])), "host pod-0:7000 twice"),
    "a time before 1970": (told(end=struct.pack(">iq", 0, -5)), "time -5"),
}


@pytest.mark.parametrize(("data", "why"), SAID.values(), ids=SAID.keys())
def test_what_a_member_cannot_have_said(data: bytes, why: str) -> None:
    with pytest.raises(UndecodableError, match=why):
        decode_subscription_info(data)


@pytest.mark.parametrize(("data", "why"), TOLD.values(), ids=TOLD.keys())
def test_what_a_member_cannot_have_been_told(data: bytes, why: str) -> None:
    with pytest.raises(UndecodableError, match=why):
        decode_assignment_info(data, ())


@pytest.mark.parametrize("version", [-1, 4, 32767])
@pytest.mark.parametrize("decode", [decode_subscription, decode_assignment])
def test_a_consumer_protocol_that_nobody_described(decode: Callable[[bytes], object], version: int) -> None:
    with pytest.raises(UndecodableError, match=f"version {version} is not one of 0–3"):
        decode(struct.pack(">h", version) + bytes(40))


def test_a_partition_that_is_assigned_twice() -> None:
    twice = array([string("in") + array([bytes(4)] * 2)])
    with pytest.raises(UndecodableError, match=r"assignedPartitions at byte \d+: a partition twice"):
        decode_assignment(b"\0\3" + twice + blob(told()))


def test_a_generation_below_none() -> None:
    data = b"\0\2" + array([]) + blob(info(array([]))) + by_topic([IN_0]) + struct.pack(">i", -2)
    with pytest.raises(UndecodableError, match="generation -2"):
        decode_subscription(data)


def test_the_marks_of_kafka_streams_become_types() -> None:
    tasks = [TaskId(0, partition) for partition in range(4)]
    marks = [0, -2, -3, 2**63 - 1]
    sums = array(offset_sum(mark, task) for task, mark in zip(tasks, marks, strict=True))
    assert decode_subscription_info(info(sums)).positions == {
        tasks[0]: PositionSum(0),
        tasks[1]: RunningActivePosition(),
        tasks[2]: UnknownPosition(),
        tasks[3]: UnknownPosition(),
    }


def test_an_empty_assignment_is_one() -> None:
    decoded = decode_assignment_info(told(), ())
    assert (decoded.active, decoded.standby, decoded.next_rebalance) == ({}, {}, NoRebalanceScheduled())
