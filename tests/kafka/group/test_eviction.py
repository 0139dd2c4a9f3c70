"""Evicting members: each by its own id, each with its own result."""

import asyncio

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.types import GroupId

from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import KafkaAccessError, NotAuthorisedError, UnexpectedAnswerError
from streamapp.kafka.group.eviction import EvictionResult, MemberToEvict, evict
from tests.kafka.answers import left
from tests.kafka.scripted import Handler, ScriptedBroker, always, in_turn

PLAIN = MemberToEvict("m-1")
STATIC = MemberToEvict("m-2", "pod-2-1")


async def evicting(broker: ScriptedBroker, *members: MemberToEvict) -> dict[MemberToEvict, EvictionResult]:
    async with broker.running():
        broker.coordinates("app")
        cluster = KafkaCluster(broker.settings(), "app")
        try:
            return dict(await evict(cluster.group, members, "container ended", deadline_seconds=5))
        finally:
            cluster.close()


def evicted(handler: Handler, *members: MemberToEvict) -> dict[MemberToEvict, EvictionResult]:
    return asyncio.run(evicting(ScriptedBroker({"LeaveGroup": handler}), *members))


def refused(kind: type[KafkaAccessError], handler: Handler, *members: MemberToEvict) -> KafkaAccessError:
    with pytest.raises(kind) as caught:
        evicted(handler, *members)
    return caught.value


def test_exactly_the_named_members_leave_in_one_request() -> None:
    broker = ScriptedBroker(
        {"LeaveGroup": always(left({("m-1", None): ErrorCode.none, ("m-2", "pod-2-1"): ErrorCode.none}))}
    )
    found = asyncio.run(evicting(broker, PLAIN, STATIC))
    assert found == {PLAIN: EvictionResult.EVICTED, STATIC: EvictionResult.EVICTED}
    assert broker.seen[-1].request == LeaveGroupRequest(
        group_id=GroupId("app"),
        members=(
            MemberIdentity(member_id="m-1", group_instance_id=None, reason="container ended"),
            MemberIdentity(member_id="m-2", group_instance_id="pod-2-1", reason="container ended"),
        ),
    )


def test_every_member_has_a_result_of_its_own() -> None:
    codes = {("m-1", None): ErrorCode.unknown_member_id, ("m-2", "pod-2-1"): ErrorCode.fenced_instance_id}
    assert evicted(always(left(codes)), PLAIN, STATIC) == {
        PLAIN: EvictionResult.ALREADY_GONE,
        STATIC: EvictionResult.REPLACED,
    }


def test_nobody_to_evict_asks_nobody() -> None:
    broker = ScriptedBroker()
    assert asyncio.run(evicting(broker)) == {}
    assert broker.seen == []


def test_a_member_without_an_id_is_never_sent() -> None:
    """An empty member id with an instance id would remove whoever holds that instance id now."""
    with pytest.raises(ValueError, match="evicted by its member id"):
        MemberToEvict("", "pod-2-1")


def test_a_coordinator_that_moved_is_asked_again() -> None:
    moved = left({("m-1", None): ErrorCode.not_coordinator})
    again = left({("m-1", None): ErrorCode.none})
    assert evicted(in_turn(moved, again), PLAIN) == {PLAIN: EvictionResult.EVICTED}


def test_the_missing_right_is_named() -> None:
    error = refused(NotAuthorisedError, always(left({}, ErrorCode.group_authorization_failed)), PLAIN)
    assert isinstance(error, NotAuthorisedError)
    assert error.acl == "READ on group app"


def test_an_answer_that_leaves_a_member_out_is_not_believed() -> None:
    error = refused(UnexpectedAnswerError, always(left({("m-9", None): ErrorCode.none})), PLAIN)
    assert error.why == "no answer for m-1"


def test_a_result_that_nobody_expects_is_an_error() -> None:
    error = refused(UnexpectedAnswerError, always(left({("m-1", None): ErrorCode.unknown_server_error})), PLAIN)
    assert error.why == "the broker answers unknown_server_error (-1)"
