"""Where the broker would put tasks: the sticky assignor played for members that leave, and what nobody can know."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from streamapp.core.assignors.broker_moves import AssignorUnknown, moves_without
from streamapp.core.assignors.group import Task
from streamapp.core.assignors.sticky import BrokerRelease, StickySettings, StreamsMember, assign
from streamapp.core.facts.group import GroupDescription, GroupState, Member
from streamapp.core.facts.ids import ProcessId, TaskId
from tests.support import example
from tests.support.streams import streams_group, streams_members


def group(members: Iterable[Member], **changes: object) -> GroupDescription:
    streams = replace(streams_group(), **changes)  # type: ignore[arg-type]  # fields of the group by their names
    return GroupDescription(GroupState.STABLE, streams_members(members), streams)


def moves(found: GroupDescription, *leaving: str, partitions: int = 6) -> dict[str, set[ProcessId]]:
    played = moves_without(found, example.task_set(partitions), frozenset(leaving))
    assert not isinstance(played, AssignorUnknown), played
    return {str(task): set(processes) for task, processes in played.items()}


def test_tasks_go_to_the_holders_of_standbys_that_are_below_their_quota() -> None:
    spread = (
        example.member(0, active=(0, 1), standby=(4,)),
        example.member(1, active=(2, 3), standby=(5,)),
        example.member(2, active=(4, 5), standby=(0, 1, 2, 3)),
    )
    found = moves(group(spread), "wordcount-2-consumer")
    assert found == {"0_4": {example.process_id(0)}, "0_5": {example.process_id(1)}}


def test_a_holder_with_its_quota_is_passed_over() -> None:
    """Both standbys lie on one process, which takes one task only; the other task starts cold elsewhere."""
    crowded = example.members(3)
    found = moves(group(crowded), "wordcount-2-consumer")
    assert found["0_4"] == {example.process_id(0)}
    assert found["0_5"] == {example.process_id(1)}


def test_a_tie_that_hash_tables_decide_counts_in_every_way() -> None:
    bare = example.members(3, standbys=False)
    found = moves(group(bare), "wordcount-2-consumer")
    either = {example.process_id(0), example.process_id(1)}
    assert found == {"0_4": either, "0_5": either}


def test_tasks_of_pods_that_stay_do_not_move() -> None:
    assert moves(group(example.members(3)), "wordcount-2-consumer").keys() == {"0_4", "0_5"}


def test_threads_of_one_pod_leave_in_any_order() -> None:
    """A thread that leaves first can hand a task to a pod that would not get it if both left at once."""
    one, other = example.member(2, active=(4,), standby=(0,)), example.member(2, active=(5,), standby=(1,))
    threads = (
        example.member(0, active=(0, 1), standby=(5,)),
        example.member(1, active=(2, 3), standby=(4,)),
        replace(one, id="t-1"),
        replace(other, id="t-2"),
    )
    found = moves(group(threads), "t-1", "t-2")
    assert found == {"0_4": {example.process_id(1)}, "0_5": {example.process_id(0)}}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"broker_release": None}, "another release"),
        ({"broker_release": "4.1"}, "another release"),
        ({"broker_release": "4.4", "assignor": "balanced"}, "`balanced`"),
    ],
)
def test_an_assignor_that_is_not_modelled_predicts_nothing(changes: dict[str, str | None], why: str) -> None:
    found = moves_without(group(example.members(3), **changes), example.task_set(), frozenset({"wordcount-2-consumer"}))
    assert isinstance(found, AssignorUnknown)
    assert why in found.why


def test_a_classic_group_is_none_of_the_brokers_concern() -> None:
    classic = GroupDescription(GroupState.STABLE, example.members(3))
    assert isinstance(moves_without(classic, example.task_set(), frozenset({"wordcount-2-consumer"})), AssignorUnknown)


@pytest.mark.parametrize("release", ["4.2", "4.3", "4.4"])
def test_the_answer_under_the_true_names_is_always_among_those_that_are_predicted(release: str) -> None:
    found = group(example.members(6), broker_release=release, assignor="sticky" if release == "4.4" else None)
    left = [member for member in found.members if member.id != "wordcount-5-consumer"]
    played = [
        StreamsMember(
            id=member.id,
            process=str(member.process_id),
            actives=member.assignment.active,
            standbys=member.assignment.standby,
        )
        for member in left
        if member.assignment is not None
    ]
    answer = assign(
        [Task(TaskId(0, number)) for number in range(6)],
        played,
        StickySettings(release=BrokerRelease.of(release), num_standby_replicas=1),
    )
    predicted = moves_without(found, example.task_set(), frozenset({"wordcount-5-consumer"}))
    assert not isinstance(predicted, AssignorUnknown)
    processes = {member.id: member.process_id for member in left}
    (new_owner,) = [processes[name] for name, placed in answer.items() if TaskId(0, 5) in placed.actives]
    assert new_owner in predicted[TaskId(0, 5)]
