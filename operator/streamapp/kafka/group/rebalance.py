"""Starts a rebalance of a classic group from outside: a probe member joins and leaves at once.

Called by `controller.apps.kafka_group`. Kafka Streams promotes a caught-up learner, and refreshes the offset sums that
members report, only if the group rebalances; by default that takes ten minutes. The probe member is in the group for
some milliseconds and in no generation, since a generation waits for all members to rejoin.

How the probe member stays harmless:

- only a Stable group with at least two members is touched, read just before;
- the leave uses a second connection, opened first, since the broker mutes the joining one until it answers;
- the leave is sent only after a heartbeat shows that the broker processed the join: the broker would confirm a leave
  that overtakes its join, no rebalance would start, and the call would look like a success;
- the leave is repeated on fresh connections until the broker confirms it, also if the caller is cancelled;
- the probe member's subscription owns nothing and requests nothing (`wire.probe_subscription`);
- if every leave is lost, the broker drops the probe member after its short session timeout; the next call recognises
  a stale probe member by its client id, evicts it and does nothing else.
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.leave_group.v5.response import LeaveGroupResponse
from kio.schema.types import GroupId
from kio.static.primitive import i32, i32Timedelta

from streamapp.kafka.brokers.coordinator import Coordinator
from streamapp.kafka.connection.connection import Connection
from streamapp.kafka.connection.deadline import within
from streamapp.kafka.connection.error_codes import failure
from streamapp.kafka.connection.errors import KafkaAccessError
from streamapp.kafka.group.eviction import EvictionResult, MemberToEvict, evict, leave_request, leave_results
from streamapp.kafka.group.groups import ClassicGroupState, DecodedGroup, read_group
from streamapp.wire.probe_subscription import encode_probe_subscription
from streamapp.wire.subscription import DecodedSubscription

CLIENT_ID = "streamapp-operator-probe"
"""Identifies a stale probe member; the broker also prefixes the member id with it."""

REASON = "streamapp-operator: triggered rebalance"

SESSION_TIMEOUTS = (timedelta(seconds=6), timedelta(seconds=10), timedelta(seconds=30))
"""Tried in turn: 6 s is the least that brokers allow by default (`group.min.session.timeout.ms`)."""

LEAVE_SECONDS = 5.0
"""How long a leave is repeated, even beyond the caller's deadline; a stale probe member times out a little later."""

_POLL_SECONDS = 0.002
_RETRY_SECONDS = 0.1


class SkipReason(Enum):
    """Why no rebalance was triggered."""

    NOT_STABLE = "NotStable"
    """The group is rebalancing, or has no members."""
    TOO_FEW_MEMBERS = "TooFewMembers"
    """A single member has no other member to hand a task to."""


@dataclass(frozen=True, slots=True)
class RebalanceTriggered:
    """The group rebalances; the members' subscriptions are fresh as soon as the group is Stable again."""

    member_id: str
    """Of the probe member."""
    in_group: timedelta
    """From sending the join to the confirmed leave."""


@dataclass(frozen=True, slots=True)
class RebalanceSkipped:
    """No request that changes the group was sent."""

    reason: SkipReason


@dataclass(frozen=True, slots=True)
class StaleProbesEvicted:
    """Probe members of an earlier call were still in the group; their eviction makes the group rebalance."""

    member_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProbeNotRemoved:
    """The probe member can stay in the group until its session times out or the next call evicts it."""

    member_id: str
    why: str


TriggerOutcome = RebalanceTriggered | RebalanceSkipped | StaleProbesEvicted | ProbeNotRemoved


async def trigger_rebalance(
    coordinator: Coordinator, model: DecodedSubscription, deadline_seconds: float
) -> TriggerOutcome:
    """Make the group rebalance; `model` is the subscription of a member of a process that stays.

    Needs READ on the group. Raises KafkaAccessError if the group cannot be read or the probe member cannot join.
    """
    async with within(deadline_seconds, f"group {coordinator.group_id}: trigger rebalance"):
        reading = await read_group(coordinator, deadline_seconds)
        stale = stale_probes(reading)
        if stale:
            await evict(coordinator, stale, REASON, deadline_seconds)
            return StaleProbesEvicted(tuple(probe.member_id for probe in stale))
        if reading.state is not ClassicGroupState.STABLE:
            return RebalanceSkipped(SkipReason.NOT_STABLE)
        if len(reading.members) < 2:
            return RebalanceSkipped(SkipReason.TOO_FEW_MEMBERS)
        return await _Probe(coordinator, encode_probe_subscription(model)).visit()


def stale_probes(reading: DecodedGroup) -> list[MemberToEvict]:
    """Find probe members of earlier calls."""
    return [MemberToEvict(member.member_id) for member in reading.members if member.client_id == CLIENT_ID]


class _Probe:
    """One visit to one group."""

    def __init__(self, coordinator: Coordinator, metadata: bytes) -> None:
        self._coordinator = coordinator
        self._group_id = coordinator.group_id
        self._metadata = metadata

    async def visit(self) -> TriggerOutcome:
        joining = await self._coordinator.connect(CLIENT_ID)
        try:
            leaving = await self._coordinator.connect(CLIENT_ID)
            try:
                return await self._visit(joining, leaving)
            finally:
                leaving.close()
        finally:
            joining.close()

    async def _visit(self, joining: Connection, leaving: Connection) -> TriggerOutcome:
        member_id, session = await self._member_id(joining)
        started = time.monotonic()
        join = asyncio.create_task(joining.ask(self._join(member_id, session), JoinGroupResponse))
        refused: KafkaAccessError | None = None
        try:
            refused = await self._joined(leaving, join, member_id)
        finally:
            # From here on the probe may be a member, or a pending one that holds up the next rebalance.
            failed = await _finished(asyncio.create_task(self._leave(leaving, join, member_id)))
        if refused is not None:
            raise refused
        if failed is not None:
            return ProbeNotRemoved(member_id, failed)
        return RebalanceTriggered(member_id, timedelta(seconds=time.monotonic() - started))

    async def _member_id(self, joining: Connection) -> tuple[str, timedelta]:
        """Ask for a member id, with the shortest session timeout that the broker allows."""
        code = ErrorCode.invalid_session_timeout
        for session in SESSION_TIMEOUTS:
            answer = await joining.ask(self._join("", session), JoinGroupResponse)
            code = answer.error_code
            if code is ErrorCode.member_id_required:
                return answer.member_id, session
            if code is not ErrorCode.invalid_session_timeout:
                break
        raise self._refused(code)

    def _join(self, member_id: str, session: timedelta) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=GroupId(self._group_id),
            session_timeout=i32Timedelta.parse(session),
            # The group waits for the longest of its members' rebalance timeouts; the probe's must not be it.
            rebalance_timeout=i32Timedelta.parse(session),
            member_id=member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="stream", metadata=self._metadata),),
            reason=REASON,
        )

    async def _joined(
        self, leaving: Connection, join: asyncio.Task[JoinGroupResponse], member_id: str
    ) -> KafkaAccessError | None:
        """Wait until the broker counts the probe as a member; give the error if it refused the join instead."""
        heartbeat = HeartbeatRequest(group_id=GroupId(self._group_id), generation_id=i32(-1), member_id=member_id)
        while not join.done():
            beat = await leaving.ask(heartbeat, HeartbeatResponse)
            if beat.error_code is not ErrorCode.unknown_member_id:
                return None
            await asyncio.sleep(_POLL_SECONDS)
        answer = join.result()
        if answer.error_code is ErrorCode.none:
            return None
        return self._refused(answer.error_code)

    def _refused(self, code: ErrorCode) -> KafkaAccessError:
        return failure(code, f"group {self._group_id}: trigger rebalance, join", f"READ on group {self._group_id}")

    async def _leave(self, leaving: Connection, join: asyncio.Task[JoinGroupResponse], member_id: str) -> str | None:
        """Leave until the broker confirms it; give the last failure if it never did."""
        connection: Connection | None = leaving
        why = "no answer"
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                while True:
                    try:
                        connection = connection or await self._coordinator.connect(CLIENT_ID)
                        if await self._leave_once(connection, join, member_id):
                            return None
                    except KafkaAccessError as error:
                        why = str(error)
                        connection = None
                        self._coordinator.forget()
                    await asyncio.sleep(_RETRY_SECONDS)
        except TimeoutError:
            return why
        finally:
            await _discard(join)
            if connection is not None:
                connection.close()

    async def _leave_once(self, connection: Connection, join: asyncio.Task[JoinGroupResponse], member_id: str) -> bool:
        member = MemberToEvict(member_id)
        answer = await connection.ask(leave_request(self._group_id, [member], REASON), LeaveGroupResponse)
        result = leave_results(self._group_id, [member], answer)[member]
        if result is EvictionResult.EVICTED:
            return True
        # Unknown to the group: gone if its join was answered, else the join may still be on its way.
        return join.done()


async def _finished(task: asyncio.Task[str | None]) -> str | None:
    """Wait for the task to its end even when the caller is cancelled meanwhile, and only then pass that on."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()


async def _discard(task: asyncio.Task[JoinGroupResponse]) -> None:
    """End the task, whatever it was about to say."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
