"""Generations are read from the bytes that a coordinator writes, and the group is looked for where it is."""

import struct
from datetime import UTC, datetime

import pytest

from lab.scenarios.layouts.generations import key_of, members_of, partition_of
from lab.scenarios.layouts.task_layouts import layout_of_classic_group
from streamapp.wire.errors import UndecodableError
from streamapp.wire.members import RawMember, decode_member
from tests.wire.captures import NAMES, captured
from tests.wire.encoding import array, blob, string

AT = datetime(2026, 11, 28, tzinfo=UTC)


def generation(members: list[RawMember], version: int = 3) -> bytes:
    head = struct.pack(">h", version) + string("consumer") + struct.pack(">i", 7) + string("stream")
    return head + string("leader") + struct.pack(">q", 1) + array(map(member, members))


def member(raw: RawMember) -> bytes:
    names = string(raw.member_id) + string(raw.instance_id) + string(raw.client_id) + string(raw.client_host)
    return names + struct.pack(">ii", 300_000, 45_000) + blob(raw.metadata) + blob(raw.assignment)


@pytest.mark.parametrize("name", NAMES)
def test_members_of_a_generation_are_those_that_the_broker_describes(name: str) -> None:
    assert members_of(generation(captured(name))) == tuple(map(decode_member, captured(name)))


def test_the_layout_of_a_generation_has_each_task_once() -> None:
    layout = layout_of_classic_group(members_of(generation(captured("4.2.1-standbys"))), AT)
    active = [task for tasks in layout.active.values() for task in tasks]
    assert len(active) == len(set(active)) > 0
    assert layout.at == AT


def test_an_empty_group_and_members_without_an_assignment_have_no_layout() -> None:
    joined = [RawMember("m", None, "c", "/10.0.0.1", captured("4.2.1-standbys")[0].metadata, b"")]
    assert layout_of_classic_group(members_of(generation([])), AT).active == {}
    assert layout_of_classic_group(members_of(generation(joined)), AT).active == {}


def test_another_version_of_the_bytes_is_refused() -> None:
    with pytest.raises(UndecodableError, match="only version 3 is known"):
        members_of(generation([], version=9))


def test_the_key_of_a_group_is_its_own() -> None:
    assert key_of("mine") == struct.pack(">h", 2) + string("mine") != key_of("other")


@pytest.mark.parametrize(
    ("group", "partition"),
    [("abc", 96354 % 50), ("polygenelubricants", 0), ("streamapp-operator", 44), ("", 0), ("ä", 228 % 50)],
    ids=["small", "the smallest hash", "a negative hash", "empty", "beyond ASCII"],
)
def test_a_group_lies_in_the_partition_of_javas_hash(group: str, partition: int) -> None:
    assert partition_of(group, 50) == partition
