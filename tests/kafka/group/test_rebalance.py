"""The probe member joins, the broker counts it, and it always leaves again."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.leave_group.v5.request import LeaveGroupRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import (
    KafkaAccessError,
    KafkaTimeoutError,
    NotAuthorisedError,
    UnexpectedAnswerError,
)
from streamapp.kafka.group import rebalance as nudging
from streamapp.kafka.group.rebalance import (
    CLIENT_ID,
    ProbeNotRemoved,
    RebalanceSkipped,
    RebalanceTriggered,
    SkipReason,
    StaleProbesEvicted,
    TriggerOutcome,
    trigger_rebalance,
)
from streamapp.wire.members import RawMember, decode_member
from streamapp.wire.probe_subscription import encode_probe_subscription
from streamapp.wire.subscription import DecodedSubscription
from tests.kafka.coordinating import PROBE, Group
from tests.kafka.scripted import CloseConnectionError, ScriptedBroker
from tests.wire.captures import captured

MEMBERS = captured("4.2.1-standbys")


def model() -> DecodedSubscription:
    subscription = decode_member(MEMBERS[0]).subscription
    assert subscription is not None
    return subscription


async def triggered(group: Group, broker: ScriptedBroker, deadline_seconds: float = 5) -> TriggerOutcome:
    async with broker.running():
        handlers = dict(broker.handlers)
        group.attach(broker)
        broker.handlers |= handlers
        cluster = KafkaCluster(broker.settings(), "app")
        try:
            return await trigger_rebalance(cluster.group, model(), deadline_seconds)
        finally:
            cluster.close()


def run(group: Group, broker: ScriptedBroker | None = None) -> TriggerOutcome:
    return asyncio.run(triggered(group, broker or ScriptedBroker()))


def joins(broker: ScriptedBroker) -> list[JoinGroupRequest]:
    return [each.request for each in broker.seen if isinstance(each.request, JoinGroupRequest)]


def test_a_stable_group_rebalances_and_the_probe_member_is_gone() -> None:
    group, broker = Group(), ScriptedBroker()
    outcome = run(group, broker)
    assert isinstance(outcome, RebalanceTriggered)
    assert outcome.member_id == PROBE
    assert timedelta(0) < outcome.in_group < timedelta(seconds=1)
    assert (group.history, group.joined, group.pending) == (["rebalance", "leave"], {}, set())


def test_the_probe_member_says_who_it_is_and_stays_no_longer_than_it_must() -> None:
    broker = ScriptedBroker()
    run(Group(), broker)
    first, second = joins(broker)
    assert replace(first, member_id=PROBE) == second
    assert second.session_timeout == second.rebalance_timeout == timedelta(seconds=6)
    assert [(each.name, each.metadata) for each in second.protocols] == [("stream", encode_probe_subscription(model()))]
    assert {each.client_id for each in broker.seen if isinstance(each.request, JoinGroupRequest)} == {CLIENT_ID}


def test_the_leave_goes_over_a_connection_of_its_own() -> None:
    broker = ScriptedBroker()
    run(Group(), broker)
    joining = {each.connection for each in broker.seen if isinstance(each.request, JoinGroupRequest)}
    leaving = {each.connection for each in broker.seen if isinstance(each.request, LeaveGroupRequest)}
    assert (len(joining), len(leaving), joining & leaving) == (1, 1, set())


def test_the_leave_waits_until_the_join_was_taken_up() -> None:
    """A leave that overtakes its join is believed, and there is no rebalance."""
    group = Group(join_delay=0.1)
    assert isinstance(run(group), RebalanceTriggered)
    assert group.history == ["rebalance", "leave"]


@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance", "Empty"])
def test_a_group_that_is_not_stable_is_left_alone(state: str) -> None:
    broker = ScriptedBroker()
    group = Group(state=state, members=[replace(member, metadata=b"") for member in MEMBERS])
    assert run(group, broker) == RebalanceSkipped(SkipReason.NOT_STABLE)
    assert joins(broker) == []


def test_a_group_of_one_is_left_alone() -> None:
    broker = ScriptedBroker()
    assert run(Group(members=MEMBERS[:1]), broker) == RebalanceSkipped(SkipReason.TOO_FEW_MEMBERS)
    assert joins(broker) == []


def ghost() -> RawMember:
    return replace(MEMBERS[0], member_id=f"{CLIENT_ID}-9", client_id=CLIENT_ID)


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance"])
def test_a_ghost_of_an_earlier_triggered_rebalance_is_removed_and_nothing_else_is_done(state: str) -> None:
    group, broker = Group(members=[*MEMBERS, ghost()], state=state), ScriptedBroker()
    assert run(group, broker) == StaleProbesEvicted((f"{CLIENT_ID}-9",))
    assert (group.history, group.members, joins(broker)) == (["leave of a real member"], MEMBERS, [])


def test_a_broker_that_allows_no_short_sessions_gets_longer_ones() -> None:
    broker = ScriptedBroker()
    assert isinstance(run(Group(least_session=timedelta(seconds=20)), broker), RebalanceTriggered)
    assert [each.session_timeout.total_seconds() for each in joins(broker)] == [6, 10, 30, 30]


def test_a_broker_that_allows_only_long_sessions_is_left_alone() -> None:
    group, broker = Group(least_session=timedelta(minutes=1)), ScriptedBroker()
    with pytest.raises(UnexpectedAnswerError, match="invalid_session_timeout"):
        run(group, broker)
    assert group.history == []


def test_a_leave_whose_connection_breaks_is_repeated_over_another() -> None:
    group, broker = Group(), ScriptedBroker()
    left_before: list[RequestPayload] = []

    async def leave(request: RequestPayload) -> ResponsePayload:
        if not left_before:
            left_before.append(request)
            raise CloseConnectionError
        return await group.leave(request)

    broker.handlers["LeaveGroup"] = leave
    assert isinstance(run(group, broker), RebalanceTriggered)
    assert group.history == ["rebalance", "leave"]
    assert broker.names().count("LeaveGroup") == 2


def test_a_leave_that_was_heard_but_not_answered_is_known_to_have_worked() -> None:
    group, broker = Group(), ScriptedBroker()

    async def leave(request: RequestPayload) -> ResponsePayload:
        await group.leave(request)
        raise CloseConnectionError

    async def second(request: RequestPayload) -> ResponsePayload:
        broker.handlers["LeaveGroup"] = group.leave
        return await leave(request)

    broker.handlers["LeaveGroup"] = second
    assert isinstance(run(group, broker), RebalanceTriggered)
    assert (group.history, group.joined) == (["rebalance", "leave"], {})


def test_a_leave_that_never_gets_through_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nudging, "LEAVE_SECONDS", 0.5)
    group, broker = Group(), ScriptedBroker()

    async def lost(_: RequestPayload) -> ResponsePayload:
        raise CloseConnectionError

    broker.handlers["LeaveGroup"] = lost
    outcome = run(group, broker)
    assert isinstance(outcome, ProbeNotRemoved)
    assert outcome.member_id == PROBE
    assert "the broker closed the connection" in outcome.why


def test_a_leave_that_is_never_answered_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nudging, "LEAVE_SECONDS", 0.5)

    async def silent(_: RequestPayload) -> ResponsePayload:
        await asyncio.Event().wait()
        raise CloseConnectionError

    assert run(Group(), ScriptedBroker({"LeaveGroup": silent})) == ProbeNotRemoved(PROBE, "no answer")


def test_a_probe_member_that_became_a_real_member_leaves_like_one() -> None:
    group = Group(completes=True)
    assert isinstance(run(group), RebalanceTriggered)
    assert (group.history, group.joined) == (["rebalance", "leave"], {})


def test_a_refused_join_is_an_error_and_the_pending_id_is_given_back() -> None:
    """A pending member holds up the group's next rebalance."""
    group = Group(refuses=ErrorCode.inconsistent_group_protocol)
    with pytest.raises(UnexpectedAnswerError, match="inconsistent_group_protocol"):
        run(group)
    assert (group.history, group.pending) == (["leave of a pending member"], set())


def test_the_missing_right_is_named_before_anything_happens() -> None:
    group, broker = Group(), ScriptedBroker()

    async def denied(_: RequestPayload) -> ResponsePayload:
        answer = await group.join(joins(broker)[-1])
        return replace(answer, error_code=ErrorCode.group_authorization_failed)

    broker.handlers["JoinGroup"] = denied
    with pytest.raises(NotAuthorisedError) as caught:
        run(group, broker)
    assert caught.value.acl == "READ on group app"


@pytest.mark.parametrize("join_delay", [0.0, 0.3], ids=["a member", "still pending"])
def test_a_caller_that_is_cancelled_leaves_no_probe_member_behind(join_delay: float) -> None:
    group, broker = Group(join_delay=join_delay), ScriptedBroker()
    slow = asyncio.Event()

    async def heartbeat(request: RequestPayload) -> ResponsePayload:
        slow.set()
        await asyncio.sleep(0.1)
        return await group.heartbeat(request)

    async def main() -> None:
        broker.handlers["Heartbeat"] = heartbeat
        task = asyncio.create_task(triggered(group, broker))
        await slow.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert (group.joined, group.pending) == ({}, set())


def test_a_deadline_that_passes_inside_leaves_no_probe_member_behind() -> None:
    group, broker = Group(), ScriptedBroker()

    async def heartbeat(_: RequestPayload) -> ResponsePayload:
        await asyncio.Event().wait()
        raise CloseConnectionError

    broker.handlers["Heartbeat"] = heartbeat
    with pytest.raises(KafkaTimeoutError, match=r"group app: trigger rebalance: no answer within 0\.5 s"):
        asyncio.run(triggered(group, broker, deadline_seconds=0.5))
    assert (group.history, group.joined, group.pending) == (["rebalance", "leave"], {}, set())


def test_a_coordinator_that_goes_away_while_the_probe_member_joins_is_an_error() -> None:
    async def gone(_: RequestPayload) -> ResponsePayload:
        raise CloseConnectionError

    group, broker = Group(), ScriptedBroker()
    broker.handlers["Heartbeat"] = gone
    with pytest.raises(KafkaAccessError, match="the broker closed the connection"):
        run(group, broker)
    assert (group.joined, group.pending) == ({}, set())
