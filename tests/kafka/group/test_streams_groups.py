"""Reading a group of the streams protocol, in both versions of the request, and what is no such group."""

import asyncio
from dataclasses import asdict, fields
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.streams_group_describe.v0 import response as v0
from kio.schema.streams_group_heartbeat.v0.request import StreamsGroupHeartbeatRequest
from kio.schema.streams_group_heartbeat.v0.response import StreamsGroupHeartbeatResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i16, i32, i64

from streamapp.core.facts.group import Applied, Assignment, FollowUp, GroupState, StreamsGroup
from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.topology import BrokerSubtopology
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import (
    AnswerTooLargeError,
    GroupNotClassicError,
    KafkaAccessError,
    NotAuthorisedError,
)
from streamapp.kafka.group import groups, streams_groups
from streamapp.kafka.group import streams_describe_v1 as v1
from streamapp.kafka.group.eviction import EvictionResult, MemberToEvict, evict_from_streams_group
from streamapp.kafka.group.streams_groups import StreamsReading, read_streams_group
from streamapp.wire.errors import UndecodableError
from tests.kafka.scripted import NO_THROTTLE, Handler, ScriptedBroker, always, in_turn

PROCESS = "d03dc904-7ab5-4254-be96-2556a7b9edba"
OLD = frozenset({"StreamsGroupDescribe 1"})


def tasks(*partitions: int, subtopology: str = "0") -> tuple[v0.TaskIds, ...]:
    return (v0.TaskIds(subtopology_id=subtopology, partitions=tuple(map(i32, partitions))),)


def given(active: tuple[v0.TaskIds, ...] = (), standby: tuple[v0.TaskIds, ...] = ()) -> v0.Assignment:
    return v0.Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=tasks(5))


def a_member(**changes: Any) -> v0.Member:
    known: dict[str, Any] = {
        "member_id": "m-1",
        "member_epoch": i32(7),
        "client_id": "app-1",
        "client_host": "/10.1.0.1",
        "topology_epoch": i32(0),
        "process_id": PROCESS,
        "client_tags": (),
        "task_offsets": (),
        "task_end_offsets": (),
        "assignment": given(tasks(0, 1), tasks(2)),
        "target_assignment": given(tasks(0), tasks(2)),
        "is_classic": False,
    }
    return v0.Member(**{**known, **changes})


def topic(name: str) -> v0.TopicInfo:
    return v0.TopicInfo(name=TopicName(name), partitions=i32(6), replication_factor=i16(1), topic_configs=())


TOPOLOGY = v0.Topology(
    epoch=i32(0),
    subtopologies=(
        v0.Subtopology(
            subtopology_id="0",
            source_topics=(TopicName("lines"),),
            state_changelog_topics=(topic("app-counts-changelog"),),
            repartition_source_topics=(topic("app-words-repartition"),),
        ),
    ),
)


def a_group(*members: v0.Member, code: ErrorCode = ErrorCode.none, **changes: Any) -> v0.StreamsGroupDescribeResponse:
    known: dict[str, Any] = {
        "error_code": code,
        "group_id": GroupId("app"),
        "group_state": "Stable",
        "group_epoch": i32(8),
        "assignment_epoch": i32(7),
        "topology": TOPOLOGY,
        "members": members,
    }
    return v0.StreamsGroupDescribeResponse(
        throttle_time=NO_THROTTLE, groups=(v0.DescribedGroup(**{**known, **changes}),)
    )


def read(answer: Any, *, features: dict[str, int] | None = None, hidden: frozenset[str] = OLD) -> StreamsReading | None:
    broker = ScriptedBroker({"StreamsGroupDescribe": always(answer)}, hidden=hidden)
    broker.features = features or broker.features

    async def main() -> StreamsReading | None:
        async with broker.running():
            broker.coordinates("app")
            cluster = KafkaCluster(broker.settings(), "app")
            try:
                return await read_streams_group(cluster.group, deadline_seconds=5)
            finally:
                cluster.close()

    return asyncio.run(main())


def test_members_epochs_targets_and_topology_are_read() -> None:
    found = read(a_group(a_member()))
    assert found is not None
    assert found.subtopologies == (
        BrokerSubtopology(
            number=0,
            sources=frozenset({"lines", "app-words-repartition"}),
            changelogs=frozenset({"app-counts-changelog"}),
        ),
    )
    assert found.group.state is GroupState.STABLE
    assert found.group.streams == StreamsGroup(epoch=8, assignment_epoch=7, broker_release="4.2")
    (member,) = found.group.members
    assert (member.id, member.client_host, str(member.process_id)) == ("m-1", "10.1.0.1", PROCESS)
    standbys = frozenset({TaskId(0, 2), TaskId(0, 5)})
    active = frozenset({TaskId(0, 0), TaskId(0, 1)})
    assert member.assignment == Assignment(active=active, standby=standbys, follow_up=FollowUp.NONE)
    assert member.streams is not None
    assert (member.streams.epoch, member.streams.target.active) == (7, frozenset({TaskId(0, 0)}))


def test_version_1_is_asked_where_the_broker_has_it_and_names_the_assignor() -> None:
    (old,) = a_group(a_member()).groups
    kept = {each.name: getattr(old, each.name) for each in fields(old)}
    group = v1.DescribedGroup(**kept, assignor_name="balanced")
    answer = v1.StreamsGroupDescribeResponse(throttle_time=NO_THROTTLE, groups=(group,))
    found = read(answer, features={"metadata.version": 33}, hidden=frozenset())
    assert found is not None
    assert found.group.streams == StreamsGroup(epoch=8, assignment_epoch=7, broker_release="4.4", assignor="balanced")


@pytest.mark.parametrize(
    ("features", "release"),
    [
        ({"metadata.version": 28}, "4.2"),
        ({"metadata.version": 30}, "4.3"),
        ({"metadata.version": 34}, None),
        ({"metadata.version": 27}, None),
        ({"group.version": 1}, None),
    ],
)
def test_the_release_of_the_coordinator_is_told_by_its_features(features: dict[str, int], release: str | None) -> None:
    found = read(a_group(a_member()), features=features)
    assert found is not None
    assert found.group.streams is not None
    assert found.group.streams.broker_release == release


def test_offsets_that_a_member_reports_are_read_and_unknown_ones_are_not() -> None:
    offsets = tuple(
        v0.TaskOffset(subtopology_id="0", partition=i32(each), offset=i64(offset))
        for each, offset in ((2, 40), (3, 2**63 - 1))
    )
    found = read(a_group(a_member(task_offsets=offsets)))
    assert found is not None
    subscription = found.group.members[0].subscription
    assert subscription is not None
    assert dict(subscription.offsets) == {TaskId(0, 2): Applied(40)}


@pytest.mark.parametrize("code", [ErrorCode.group_id_not_found, ErrorCode.unsupported_version])
def test_a_group_that_is_not_there_is_none(code: ErrorCode) -> None:
    assert read(a_group(code=code)) is None


def test_a_broker_that_knows_no_streams_groups_has_none() -> None:
    assert read(None, hidden=frozenset({"StreamsGroupDescribe"})) is None


def test_a_topology_that_the_broker_could_not_complete_is_unknown() -> None:
    found = read(a_group(topology=v0.Topology(epoch=i32(0), subtopologies=None)))
    assert found is not None
    assert found.subtopologies is None


def test_a_group_with_a_classic_member_is_migrating() -> None:
    with pytest.raises(GroupNotClassicError, match="member m-1 still uses the classic protocol"):
        read(a_group(a_member(is_classic=True)))


@pytest.mark.parametrize(
    "answer",
    [
        a_group(a_member(process_id="me")),
        a_group(a_member(assignment=given(tasks(0, subtopology="counts")))),
        a_group(a_member(), group_state="Migrating"),
    ],
    ids=["process", "sub-topology", "state"],
)
def test_what_kafka_streams_does_not_write_is_not_guessed(answer: Any) -> None:
    with pytest.raises(UndecodableError):
        read(answer)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([a_member()] * 4, "the group has 4 members, at most 3"),
        ([a_member(process_id="p" * 1_001)], "more than 1000 characters"),
        ([a_member(assignment=given(tasks(0, 1, 2, 3)), target_assignment=given(tasks(0, 1, 2, 3)))] * 3, "15 tasks"),
    ],
    ids=["members", "names", "tasks"],
)
def test_an_answer_that_would_take_too_much_memory_is_refused(
    members: list[v0.Member], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "MOST_MEMBERS", 3)
    monkeypatch.setattr(streams_groups, "MOST_ENTRIES", 10)
    with pytest.raises(AnswerTooLargeError, match=why):
        read(a_group(*members))


@pytest.mark.parametrize(
    ("code", "right"),
    [
        (ErrorCode.group_authorization_failed, "DESCRIBE on group app"),
        (
            ErrorCode.topic_authorization_failed,
            "DESCRIBE on the source topics and on topics with the prefix app-",
        ),
    ],
)
def test_the_missing_right_is_named(code: ErrorCode, right: str) -> None:
    with pytest.raises(NotAuthorisedError) as caught:
        read(a_group(code=code))
    assert caught.value.acl == right


# Eviction


def heartbeat_answer(code: ErrorCode) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=code,
        member_id="m-1",
        member_epoch=i32(-1),
        heartbeat_interval=NO_THROTTLE,
        acceptable_recovery_lag=i32(0),
        task_offset_interval=NO_THROTTLE,
        status=None,
        active_tasks=None,
        standby_tasks=None,
        warmup_tasks=None,
        endpoint_information_epoch=i32(0),
        partitions_by_user_endpoint=None,
    )


def evicting(handler: Handler, *members: MemberToEvict) -> tuple[dict[MemberToEvict, EvictionResult], ScriptedBroker]:
    broker = ScriptedBroker({"StreamsGroupHeartbeat": handler})

    async def main() -> dict[MemberToEvict, EvictionResult]:
        async with broker.running():
            broker.coordinates("app")
            cluster = KafkaCluster(broker.settings(), "app")
            try:
                return dict(await evict_from_streams_group(cluster.group, members, deadline_seconds=5))
            finally:
                cluster.close()

    return asyncio.run(main()), broker


PLAIN, STATIC = MemberToEvict("m-1"), MemberToEvict("m-2", "pod-2-1")


def test_each_member_leaves_by_a_last_heartbeat_that_says_nothing_else() -> None:
    found, broker = evicting(always(heartbeat_answer(ErrorCode.none)), PLAIN, STATIC)
    assert found == {PLAIN: EvictionResult.EVICTED, STATIC: EvictionResult.EVICTED}
    sent = [one.request for one in broker.seen if isinstance(one.request, StreamsGroupHeartbeatRequest)]
    assert [(one.member_id, one.instance_id, one.member_epoch) for one in sent] == [
        ("m-1", None, -1),
        ("m-2", "pod-2-1", -1),
    ]
    said = {name for one in sent for name, value in asdict(one).items() if value not in (None, False)}
    assert said - {"rebalance_timeout"} == {
        "group_id",
        "member_id",
        "instance_id",
        "member_epoch",
        "endpoint_information_epoch",
    }


def test_members_that_have_gone_or_were_replaced_are_told_apart() -> None:
    codes = (ErrorCode.unknown_member_id, ErrorCode.fenced_instance_id, ErrorCode.group_id_not_found)
    found, _ = evicting(in_turn(*map(heartbeat_answer, codes)), PLAIN, STATIC, MemberToEvict("m-3"))
    gone = EvictionResult.ALREADY_GONE
    assert list(found.values()) == [gone, EvictionResult.REPLACED, gone]


def test_an_eviction_that_is_refused_is_an_error() -> None:
    with pytest.raises(NotAuthorisedError) as caught:
        evicting(always(heartbeat_answer(ErrorCode.group_authorization_failed)), PLAIN)
    assert caught.value.acl == "READ on group app"
    with pytest.raises(KafkaAccessError, match="unknown_server_error"):
        evicting(always(heartbeat_answer(ErrorCode.unknown_server_error)), PLAIN)
