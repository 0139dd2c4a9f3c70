"""A classic group as the coordinator keeps it, as far as a probe member can tell.

Modelled on what a real broker 4.2.1 was seen to do: a member id is handed out first and is then pending; a join blocks
until the member leaves; a pending member that leaves is believed and makes no rebalance; an unknown one is named.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.leave_group.v5.request import LeaveGroupRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from streamapp.wire.members import RawMember
from tests.kafka import answers
from tests.kafka.scripted import NO_THROTTLE, ScriptedBroker
from tests.wire.captures import captured

PROBE = "streamapp-operator-probe-1"


@dataclass
class Group:
    """The group `app`, and everything that ever happened to it."""

    members: list[RawMember] = field(default_factory=lambda: captured("4.2.1-standbys"))
    state: str = "Stable"
    least_session: timedelta = timedelta(seconds=6)
    join_delay: float = 0.0
    """Seconds that a join waits in the broker's queue."""
    refuses: ErrorCode | None = None
    """What a join with a member id is answered."""
    completes: bool = False
    """Whether the rebalance ends before the probe member leaves, so that it becomes a real member."""
    pending: set[str] = field(default_factory=set)
    joined: dict[str, asyncio.Event] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)

    def attach(self, broker: ScriptedBroker) -> None:
        """Let the broker answer for this group."""
        broker.coordinates("app")
        broker.handlers |= {
            "DescribeGroups": self.describe,
            "JoinGroup": self.join,
            "Heartbeat": self.heartbeat,
            "LeaveGroup": self.leave,
        }

    async def describe(self, _: RequestPayload) -> ResponsePayload:
        return answers.described(self.state, self.members)

    async def join(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, JoinGroupRequest)
        if request.session_timeout < self.least_session:
            return joined(ErrorCode.invalid_session_timeout)
        if not request.member_id:
            self.pending.add(PROBE)
            return joined(ErrorCode.member_id_required, PROBE)
        await asyncio.sleep(self.join_delay)
        if self.refuses is not None:
            return joined(self.refuses)
        if request.member_id not in self.pending:
            self.history.append("join of an unknown member")
            return joined(ErrorCode.unknown_member_id)
        self.pending.remove(request.member_id)
        self.state = "PreparingRebalance"
        self.history.append("rebalance")
        gone = self.joined[request.member_id] = asyncio.Event()
        if self.completes:
            return joined(ErrorCode.none, request.member_id)
        await gone.wait()
        return joined(ErrorCode.unknown_member_id)

    async def heartbeat(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, HeartbeatRequest)
        known = request.member_id in self.joined
        code = ErrorCode.illegal_generation if known else ErrorCode.unknown_member_id
        return HeartbeatResponse(throttle_time=NO_THROTTLE, error_code=code)

    async def leave(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, LeaveGroupRequest)
        return answers.left(
            {(each.member_id, each.group_instance_id): self._left(each.member_id) for each in request.members}
        )

    def _left(self, member_id: str) -> ErrorCode:
        if member_id in self.joined:
            self.joined.pop(member_id).set()
            self.history.append("leave")
            return ErrorCode.none
        if member_id in self.pending:
            self.pending.remove(member_id)
            self.history.append("leave of a pending member")
            return ErrorCode.none
        if member_id in {member.member_id for member in self.members}:
            self.members = [member for member in self.members if member.member_id != member_id]
            self.history.append("leave of a real member")
            return ErrorCode.none
        return ErrorCode.unknown_member_id


def joined(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(
        throttle_time=NO_THROTTLE,
        error_code=code,
        protocol_name=None,
        leader="",
        member_id=member_id,
        members=(),
    )
