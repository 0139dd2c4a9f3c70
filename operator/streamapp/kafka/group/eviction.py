"""Evicts members from a classic group: frees the tasks of an ended container at once.

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
from kio.schema.types import GroupId

from streamapp.kafka.connection.coordinator import Coordinator
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
