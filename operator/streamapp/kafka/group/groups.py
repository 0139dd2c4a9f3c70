"""Reads a classic Kafka Streams group: its state and its decoded members.

Called by `controller.apps.kafka_group` and by `rebalance`. A reading is one DescribeGroups answer, so its members are
consistent. The broker returns members' metadata only in state Stable, and never a generation.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
from kio.schema.describe_groups.v5.response import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from kio.schema.errors import ErrorCode
from kio.schema.streams_group_describe.v0.request import StreamsGroupDescribeRequest
from kio.schema.streams_group_describe.v0.response import StreamsGroupDescribeResponse
from kio.schema.types import GroupId

from streamapp.kafka.brokers.coordinator import Coordinator
from streamapp.kafka.connection.deadline import within
from streamapp.kafka.connection.error_codes import failure
from streamapp.kafka.connection.errors import (
    AnswerTooLargeError,
    BrokerUnsupportedError,
    GroupNotClassicError,
    StreamsProtocolError,
    UnexpectedAnswerError,
)
from streamapp.kafka.connection.off_loop import decode
from streamapp.wire.errors import UndecodableError
from streamapp.wire.members import DecodedMember, RawMember, decode_member

MOST_MEMBERS = 5_000
"""Of one group: 500 pods of ten stream threads."""
MOST_ENTRIES = 100_000
"""Positions, assigned tasks and standbys of all members of a group together: 20 for each of 5,000 tasks."""
LONGEST_NAME = 1_000
"""Characters of an ID of a member; a client's ID has 249 at most, and the broker adds a UUID."""
_LONGEST_SHOWN = 100


class ClassicGroupState(Enum):
    """The states of a classic group, as the broker names them."""

    EMPTY = "Empty"
    """Known by its committed offsets; no members."""
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    """Unknown to the broker."""


@dataclass(frozen=True, slots=True)
class RawGroup:
    """One DescribeGroups answer."""

    group_id: str
    state: ClassicGroupState
    protocol_type: str
    """`consumer`, or empty for a group without members."""
    protocol: str
    """`stream` for Kafka Streams; empty outside Stable."""
    members: tuple[RawMember, ...]


@dataclass(frozen=True, slots=True)
class DecodedGroup:
    """One DescribeGroups answer, decoded."""

    group_id: str
    state: ClassicGroupState
    members: tuple[DecodedMember, ...]


async def read_group(coordinator: Coordinator, deadline_seconds: float) -> DecodedGroup:
    """Read and decode the group.

    A group that is not there reads as DEAD without members. Raises StreamsProtocolError for a group of the streams
    protocol, GroupNotClassicError for one of plain consumers, UndecodableError for a member whose bytes cannot be read,
    and KafkaAccessError.
    """
    raw = await describe(coordinator, deadline_seconds)
    if raw.protocol_type not in {"", "consumer"} or raw.protocol not in {"", "stream"}:
        raise GroupNotClassicError(
            f"group {raw.group_id}: describe",
            f"its members speak {raw.protocol_type}/{raw.protocol}, not consumer/stream",
            "check spec.applicationId",
        )
    size = sum(len(member.metadata) + len(member.assignment) for member in raw.members)
    return await decode(size, _decoded, raw)


def _decoded(raw: RawGroup) -> DecodedGroup:
    members, entries = [], 0
    for raw_member in raw.members:
        member = decode_member(raw_member)
        if member.subscription is not None:
            entries += len(member.subscription.info.positions)
        if member.assignment is not None:
            entries += len(member.assignment.active) + len(member.assignment.standby)
        if entries > MOST_ENTRIES:
            why = f"more than {MOST_ENTRIES} positions and tasks, which is more than the operator keeps"
            raise UndecodableError(f"group {raw.group_id}", "members", None, why)
        members.append(member)
    return DecodedGroup(raw.group_id, raw.state, tuple(members))


async def describe(coordinator: Coordinator, deadline_seconds: float) -> RawGroup:
    """Read the group without decoding its members' bytes; errors as `read_group`, UndecodableError aside."""
    async with within(deadline_seconds, f"group {coordinator.group_id}: describe"):
        request = DescribeGroupsRequest(groups=(GroupId(coordinator.group_id),), include_authorized_operations=False)
        answer = await coordinator.ask(request, DescribeGroupsResponse, lambda a: [g.error_code for g in a.groups])
        raw = _raw(coordinator.group_id, answer)
        if raw.state is ClassicGroupState.DEAD:
            await _point_to_streams_protocol(coordinator)
    return raw


def _raw(group_id: str, answer: DescribeGroupsResponse) -> RawGroup:
    if [group.group_id for group in answer.groups] != [group_id]:
        raise UnexpectedAnswerError(
            f"group {group_id}: describe", "the answer is of other groups", "see the broker's log"
        )
    (group,) = answer.groups
    if group.error_code is not ErrorCode.none:
        raise failure(group.error_code, f"group {group_id}: describe", f"DESCRIBE on group {group_id}")
    refuse_too_many_members(group_id, (_names(member) for member in group.members), len(group.members))
    members = tuple(
        RawMember(
            member_id=member.member_id,
            instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            metadata=member.member_metadata,
            assignment=member.member_assignment,
        )
        for member in group.members
    )
    return RawGroup(group_id, _state(group), group.protocol_type, group.protocol_data, members)


def too_large(group_id: str, why: str) -> AnswerTooLargeError:
    """Build the error for an answer that would take too much memory."""
    return AnswerTooLargeError(f"group {group_id}: describe", why, "see the broker's log")


def refuse_too_many_members(group_id: str, names: Iterable[Iterable[str | None]], count: int) -> None:
    """Bound what is kept of a description: AnswerTooLargeError for too many members, or for an ID that is too long.

    Args:
        group_id: The group.
        names: Of each member, the texts that name it.
        count: How many members there are.
    """
    if count > MOST_MEMBERS:
        raise too_large(group_id, f"the group has {count} members, at most {MOST_MEMBERS} are read")
    if any(len(name or "") > LONGEST_NAME for of_member in names for name in of_member):
        raise too_large(group_id, f"the ID of a member has more than {LONGEST_NAME} characters")


def _names(member: DescribedGroupMember) -> tuple[str | None, ...]:
    return (member.member_id, member.group_instance_id, member.client_id, member.client_host)


def _state(group: DescribedGroup) -> ClassicGroupState:
    try:
        return ClassicGroupState(group.group_state)
    except ValueError as error:
        raise GroupNotClassicError(
            f"group {group.group_id}: describe",
            f"state {group.group_state[:_LONGEST_SHOWN]!r} is none of a classic group",
            "check spec.applicationId and group.protocol",
        ) from error


async def _point_to_streams_protocol(coordinator: Coordinator) -> None:
    """Distinguish a missing group from one of the streams protocol: both describe as Dead."""
    request = StreamsGroupDescribeRequest(
        group_ids=(GroupId(coordinator.group_id),), include_authorized_operations=False
    )
    try:
        answer = await coordinator.ask(
            request, StreamsGroupDescribeResponse, lambda a: [g.error_code for g in a.groups]
        )
    except BrokerUnsupportedError:
        return
    if any(group.error_code is ErrorCode.none for group in answer.groups):
        raise StreamsProtocolError(
            f"group {coordinator.group_id}: describe",
            "it uses the streams protocol (group.protocol=streams)",
            "read it with StreamsGroupDescribe",
        )
