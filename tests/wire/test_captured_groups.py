"""Real bytes of Kafka Streams 2.6 to 4.2, decoded to the last one."""

import pytest

from streamapp.core.facts.ids import ProcessId, TaskId, TopicPartition
from streamapp.wire.assignment import DecodedAssignment, Host, NoRebalanceScheduled, RebalanceScheduled
from streamapp.wire.members import DecodedMember, decode_member
from streamapp.wire.subscription import DecodedSubscription, PositionSum, RunningActivePosition, SubscriptionInfo
from tests.wire.captures import NAMES, captured

VERSIONS = {
    # Kafka Streams: consumer protocol, SubscriptionInfo, AssignmentInfo
    "2.6.0": (1, 7, 7),
    "2.6.3": (1, 8, 8),
    "2.8.2": (1, 9, 9),
    "3.1.2": (1, 10, 10),
    "3.8.1": (3, 11, 11),
    "4.2.1": (3, 11, 11),
}


def members(name: str) -> list[DecodedMember]:
    return [decode_member(raw) for raw in captured(name)]


def said(member: DecodedMember) -> DecodedSubscription:
    assert member.subscription is not None
    return member.subscription


def told(member: DecodedMember) -> DecodedAssignment:
    assert member.assignment is not None
    return member.assignment


@pytest.mark.parametrize("name", NAMES)
def test_every_member_is_decoded_in_the_version_of_its_release(name: str) -> None:
    expected = VERSIONS[name.partition("-")[0]]
    found = {(said(each).version, said(each).info.version, told(each).version) for each in members(name)}
    assert found == {expected}


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("-standbys")])
def test_every_task_is_active_once_and_standby_once_elsewhere(name: str) -> None:
    group = members(name)
    every = [TaskId(0, partition) for partition in range(6)]
    assert sorted(task for member in group for task in told(member).active) == every
    assert sorted(task for member in group for task in told(member).standby) == every
    for member in group:
        assert not told(member).active.keys() & told(member).standby.keys()


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("-standbys")])
def test_a_member_reports_its_active_tasks_as_running_and_its_standbys_by_their_position(name: str) -> None:
    for member in members(name):
        reported = said(member).info.positions
        assert {task for task, position in reported.items() if position == RunningActivePosition()} == told(
            member
        ).active.keys()
        sums = {task for task, position in reported.items() if isinstance(position, PositionSum)}
        assert sums >= told(member).standby.keys()


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("-standbys")])
def test_every_process_is_told_where_all_partitions_are(name: str) -> None:
    group = members(name)
    expected = {said(member).info.user_endpoint: set(told(member).active) for member in group}
    for member in group:
        tables = told(member).active_by_host
        assert {
            f"{host.name}:{host.port}": {TaskId(0, partition) for _, partition in partitions}
            for host, partitions in tables.items()
        } == expected


def test_a_member_of_4_2_1_is_read_to_the_last_field() -> None:
    member = next(each for each in members("4.2.1-standbys") if said(each).rack == "r0")
    process = ProcessId.parse("cc5363de-d10f-4e9b-be48-656a600d5a5a")
    assert member.client_id == f"counter-{process}-StreamThread-1-consumer"
    assert (member.host, member.instance_id) == ("127.0.0.1", None)
    assert member.subscription == DecodedSubscription(
        version=3,
        topics=("in",),
        info=SubscriptionInfo(
            version=11,
            latest_supported_version=11,
            process_id=process,
            user_endpoint="localhost:7000",
            positions={
                TaskId(0, 2): RunningActivePosition(),
                TaskId(0, 5): RunningActivePosition(),
                TaskId(0, 3): PositionSum(5016),
                TaskId(0, 4): PositionSum(4952),
                # Directories left on its disk from when the group was smaller.
                TaskId(0, 0): PositionSum(4998),
                TaskId(0, 1): PositionSum(4996),
            },
            unique_field=18,
            error_code=0,
            client_tags=(("zone", "z0"),),
        ),
        owned_partitions=frozenset({TopicPartition("in", 2), TopicPartition("in", 5)}),
        generation=16,
        rack="r0",
    )
    assert told(member).active_by_host.keys() == {Host("localhost", port) for port in (7000, 7001, 7002)}
    assert told(member).next_rebalance == NoRebalanceScheduled()


def test_pending_warm_ups_show_as_standbys_and_a_scheduled_rebalance_of_one_member() -> None:
    group = members("4.2.1-warm-ups")
    scheduled = [told(each).next_rebalance for each in group if told(each).next_rebalance != NoRebalanceScheduled()]
    assert scheduled == [RebalanceScheduled(epoch_ms=1795237785423)]
    assert {task for each in group for task in told(each).standby} == {TaskId(0, 1), TaskId(0, 3)}


def test_static_members_keep_their_instance_ids_and_threads_share_a_process() -> None:
    group = members("4.2.1-repartition")
    assert {each.instance_id for each in group} == {"pod-0-1", "pod-0-2", "pod-1-1", "pod-1-2"}
    processes: dict[str, set[ProcessId]] = {}
    for each in group:
        processes.setdefault(str(each.instance_id)[:5], set()).add(said(each).info.process_id)
    assert [len(found) for found in processes.values()] == [1, 1]


def test_a_task_that_reads_two_topics_is_counted_once_with_both() -> None:
    group = members("4.2.1-repartition")
    active = {task: sources for each in group for task, sources in told(each).active.items()}
    assert active[TaskId(0, 3)] == {TopicPartition("in", 3), TopicPartition("in2", 3)}
    assert active.keys() == {TaskId(number, partition) for number in range(3) for partition in range(6)}


def test_stateless_tasks_have_neither_standby_nor_position() -> None:
    group = members("4.2.1-repartition")
    assert {task.subtopology for each in group for task in told(each).standby} == {0, 1}
    assert {task.subtopology for each in group for task in said(each).info.positions} == {0, 1}


def test_a_global_table_takes_a_sub_topology_number_and_no_task() -> None:
    (only,) = members("4.2.1-global")
    assert told(only).active.keys() == {TaskId(1, partition) for partition in range(6)}
