"""Reading a group: one description, decoded; and what is no Kafka Streams group of the classic protocol."""

import asyncio

import pytest
from kio.schema.errors import ErrorCode

from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import (
    GroupNotClassicError,
    KafkaAccessError,
    NotAuthorisedError,
    TemporarilyUnavailableError,
    UnexpectedAnswerError,
)
from streamapp.kafka.group.groups import ClassicGroupState, DecodedGroup, read_group
from streamapp.wire.errors import UndecodableError
from streamapp.wire.members import RawMember, decode_member
from tests.kafka import answers
from tests.kafka.scripted import (
    CloseConnectionError,
    Handler,
    ScriptedBroker,
    always,
    coordinator_answer,
    in_turn,
)
from tests.wire.captures import captured

MEMBERS = captured("4.2.1-standbys")
STABLE = answers.described("Stable", MEMBERS)


async def reading(broker: ScriptedBroker, times: int = 1) -> list[DecodedGroup]:
    async with broker.running():
        if "FindCoordinator" not in broker.handlers:
            broker.coordinates("app")
        cluster = KafkaCluster(broker.settings(), "app")
        try:
            return [await read_group(cluster.group, deadline_seconds=5) for _ in range(times)]
        finally:
            cluster.close()


def read(**handlers: Handler) -> DecodedGroup:
    return asyncio.run(reading(ScriptedBroker(handlers)))[0]


def refused(kind: type[KafkaAccessError], **handlers: Handler) -> KafkaAccessError:
    with pytest.raises(kind) as caught:
        read(**handlers)
    return caught.value


def test_a_stable_group_is_read_whole() -> None:
    found = read(DescribeGroups=always(STABLE))
    members = tuple(decode_member(raw) for raw in MEMBERS)
    assert found == DecodedGroup("app", ClassicGroupState.STABLE, members)


def test_a_group_in_rebalance_has_members_without_metadata() -> None:
    hidden = [RawMember(m.member_id, m.instance_id, m.client_id, m.client_host, b"", m.assignment) for m in MEMBERS]
    found = read(DescribeGroups=always(answers.described("PreparingRebalance", hidden)))
    assert found.state is ClassicGroupState.PREPARING_REBALANCE
    assert [member.subscription for member in found.members] == [None, None, None]
    assert all(member.assignment for member in found.members)


def test_an_empty_group_has_no_members() -> None:
    found = read(DescribeGroups=always(answers.described("Empty")))
    assert found == DecodedGroup("app", ClassicGroupState.EMPTY, ())


def test_a_group_that_is_not_there_reads_as_dead() -> None:
    found = read(
        DescribeGroups=always(answers.described("Dead")),
        StreamsGroupDescribe=always(answers.streams_described(ErrorCode.group_id_not_found)),
    )
    assert found == DecodedGroup("app", ClassicGroupState.DEAD, ())


def test_a_broker_that_knows_no_streams_groups_cannot_have_one() -> None:
    broker = ScriptedBroker({"DescribeGroups": always(answers.described("Dead"))})
    broker.hidden = frozenset({"StreamsGroupDescribe"})
    assert asyncio.run(reading(broker)) == [DecodedGroup("app", ClassicGroupState.DEAD, ())]


def test_a_group_of_the_streams_protocol_is_told_from_one_that_is_not_there() -> None:
    error = refused(
        GroupNotClassicError,
        DescribeGroups=always(answers.described("Dead")),
        StreamsGroupDescribe=always(answers.streams_described(ErrorCode.none)),
    )
    assert error.why == "it uses the streams protocol (group.protocol=streams)"


def test_a_group_of_plain_consumers_is_none_of_ours() -> None:
    error = refused(GroupNotClassicError, DescribeGroups=always(answers.described("Stable", MEMBERS, protocol="range")))
    assert error.why == "its members speak consumer/range, not consumer/stream"


def test_a_state_that_no_classic_group_has_is_named() -> None:
    error = refused(GroupNotClassicError, DescribeGroups=always(answers.described("Reconciling")))
    assert error.why == "state 'Reconciling' is none of a classic group"


def test_a_member_that_cannot_be_decoded_spoils_the_reading_by_name() -> None:
    bad = RawMember("m-1", None, "c", "/10.0.0.1", b"\0\3", b"")
    with pytest.raises(UndecodableError, match="member m-1: ConsumerProtocolSubscription"):
        read(DescribeGroups=always(answers.described("Stable", [bad])))


def test_the_missing_right_is_named() -> None:
    denied = answers.described("", code=ErrorCode.group_authorization_failed)
    error = refused(NotAuthorisedError, DescribeGroups=always(denied))
    assert isinstance(error, NotAuthorisedError)
    assert error.acl == "DESCRIBE on group app"


def test_an_answer_about_another_group_is_not_believed() -> None:
    refused(UnexpectedAnswerError, DescribeGroups=always(answers.described("Stable", group="other")))


# Finding the coordinator


def test_the_coordinator_is_looked_up_once() -> None:
    broker = ScriptedBroker({"DescribeGroups": always(STABLE)})
    asyncio.run(reading(broker, times=3))
    assert broker.names() == ["FindCoordinator", "DescribeGroups", "DescribeGroups", "DescribeGroups"]
    assert len({each.connection for each in broker.seen}) == 1


def test_a_coordinator_that_has_moved_is_looked_up_again() -> None:
    moved = answers.described("", code=ErrorCode.not_coordinator)
    broker = ScriptedBroker({"DescribeGroups": in_turn(moved, STABLE)})
    (found,) = asyncio.run(reading(broker))
    assert found.state is ClassicGroupState.STABLE
    assert broker.names() == ["FindCoordinator", "DescribeGroups"] * 2


def test_a_connection_that_the_broker_closed_meanwhile_is_opened_again() -> None:
    broker = ScriptedBroker({"DescribeGroups": in_turn(STABLE, CloseConnectionError(), STABLE)})
    found = asyncio.run(reading(broker, times=2))
    assert found[0] == found[1]
    assert len({each.connection for each in broker.seen}) == 2


def test_a_coordinator_that_keeps_loading_is_an_error_that_passes() -> None:
    loading = answers.described("", code=ErrorCode.coordinator_load_in_progress)
    error = refused(TemporarilyUnavailableError, DescribeGroups=always(loading))
    assert error.why == "the broker answers coordinator_load_in_progress"


def test_no_coordinator_yet_is_waited_for() -> None:
    broker = ScriptedBroker({"DescribeGroups": always(STABLE)})

    async def main() -> list[DecodedGroup]:
        async with broker.running():
            broker.handlers["FindCoordinator"] = in_turn(
                coordinator_answer(broker.address, "app", error_code=ErrorCode.coordinator_not_available),
                coordinator_answer(broker.address, "app"),
            )
            cluster = KafkaCluster(broker.settings(), "app")
            try:
                return [await read_group(cluster.group, deadline_seconds=5)]
            finally:
                cluster.close()

    assert asyncio.run(main())[0].state is ClassicGroupState.STABLE
