"""Evicts members from a group: frees the tasks of an ended container at once.

Called by the controller, and by `rebalance` for its own stale probe member. If the container of an evicted member still
runs, its successor processes records twice. So the caller must know that exactly that container has ended; this module
cannot check it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from kio.schema.errors import ErrorCode
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.leave_group.v5.response import LeaveGroupResponse
from kio.schema.streams_group_heartbeat.v0.request import StreamsGroupHeartbeatRequest
from kio.schema.streams_group_heartbeat.v0.response import StreamsGroupHeartbeatResponse
from kio.schema.types import GroupId
from kio.static.primitive import i32

from streamapp.kafka.brokers.coordinator import Coordinator
from streamapp.kafka.connection.deadline import within
from streamapp.kafka.connection.error_codes import failure
from streamapp.kafka.connection.errors import UnexpectedAnswerError


@dataclass(frozen=True, slots=True)
class MemberToEvict:
    """Exactly one member: its id, and for a static one its instance id too, so that a successor is never hit."""

    member_id: str
    instance_id: str | None = None

    def __post_init__(self) -> None:
        if not self.member_id:
            # An empty id with an instance id would remove the member that has that instance id now.
            raise ValueError("a member is evicted by its member id")


class EvictionResult(Enum):
    """What became of one member."""

    EVICTED = "Evicted"
    ALREADY_GONE = "AlreadyGone"
    """The group has no such member (any more)."""
    REPLACED = "Replaced"
    """The instance id belongs to another member by now, which was left alone."""


_RESULTS = {
    ErrorCode.none: EvictionResult.EVICTED,
    ErrorCode.unknown_member_id: EvictionResult.ALREADY_GONE,
    ErrorCode.fenced_instance_id: EvictionResult.REPLACED,
}
_LEAVES = i32(-1)
"""The epoch of a member that leaves for good (KIP-1071); the coordinator asks for no other proof."""


async def evict(
    coordinator: Coordinator, members: Sequence[MemberToEvict], reason: str, deadline_seconds: float
) -> Mapping[MemberToEvict, EvictionResult]:
    """Remove the members in one request; `reason` appears in the broker's log.

    After KafkaTimeoutError or BrokerUnreachableError nothing is known of the outcome: read the group again. Repeating
    is harmless.
    """
    if not members:
        return {}
    async with within(deadline_seconds, f"group {coordinator.group_id}: evict"):
        request = leave_request(coordinator.group_id, members, reason)
        answer = await coordinator.ask(
            request, LeaveGroupResponse, lambda a: [a.error_code, *(member.error_code for member in a.members)]
        )
    return leave_results(coordinator.group_id, members, answer)


async def evict_from_streams_group(
    coordinator: Coordinator, members: Sequence[MemberToEvict], deadline_seconds: float
) -> Mapping[MemberToEvict, EvictionResult]:
    """Remove the members from a group of the streams protocol, one heartbeat each; errors as `evict`.

    LeaveGroup does not apply there. A heartbeat in a member's name with the epoch of one that leaves does, with READ on
    the group: the coordinator assigns its tasks at the next heartbeat of another member.
    """
    found: dict[MemberToEvict, EvictionResult] = {}
    what, right = f"group {coordinator.group_id}: evict", f"READ on group {coordinator.group_id}"
    async with within(deadline_seconds, what):
        for member in members:
            request = _last_heartbeat(coordinator.group_id, member)
            answer = await coordinator.ask(request, StreamsGroupHeartbeatResponse, lambda a: [a.error_code])
            if answer.error_code is ErrorCode.group_id_not_found:
                found[member] = EvictionResult.ALREADY_GONE
            elif answer.error_code in _RESULTS:
                found[member] = _RESULTS[answer.error_code]
            else:
                raise failure(answer.error_code, what, right)
    return found


def _last_heartbeat(group_id: str, member: MemberToEvict) -> StreamsGroupHeartbeatRequest:
    return StreamsGroupHeartbeatRequest(
        group_id=GroupId(group_id),
        member_id=member.member_id,
        member_epoch=_LEAVES,
        endpoint_information_epoch=i32(-1),
        instance_id=member.instance_id,
        active_tasks=None,
        standby_tasks=None,
        warmup_tasks=None,
        client_tags=None,
        task_offsets=None,
        task_end_offsets=None,
    )


def leave_request(group_id: str, members: Sequence[MemberToEvict], reason: str) -> LeaveGroupRequest:
    """Build the LeaveGroup request for these members."""
    identities = (
        MemberIdentity(member_id=member.member_id, group_instance_id=member.instance_id, reason=reason)
        for member in members
    )
    return LeaveGroupRequest(group_id=GroupId(group_id), members=tuple(identities))


def leave_results(
    group_id: str, members: Sequence[MemberToEvict], answer: LeaveGroupResponse
) -> Mapping[MemberToEvict, EvictionResult]:
    """Read what LeaveGroup answered for each member; KafkaAccessError for any other code."""
    what, right = f"group {group_id}: evict", f"READ on group {group_id}"
    if answer.error_code is not ErrorCode.none:
        raise failure(answer.error_code, what, right)
    codes = {MemberToEvict(each.member_id, each.group_instance_id): each.error_code for each in answer.members}
    missing = [member for member in members if member not in codes]
    if missing:
        raise UnexpectedAnswerError(what, f"no answer for {missing[0].member_id}", "read the group again")
    unknown = [code for code in codes.values() if code not in _RESULTS]
    if unknown:
        raise failure(unknown[0], what, right)
    return {member: _RESULTS[codes[member]] for member in members}
