"""A migration stops every pod in one step; everything but coverage is asked as ever."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import Announce, GrantReplicas
from streamapp.core.decide import decide
from streamapp.core.facts.group import GroupState
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import HoldOverride, Snapshot
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from tests.builders import a_reading, a_record, a_snapshot, an_unreadable, told
from tests.support import example

ZERO = ScalingPolicy(allow_zero=True)
LAGGING = example.members(3, lag=500_000)
BARE = example.members(3, standbys=False)


def migrating(members: Any = LAGGING, *, app: dict[str, Any] | None = None, **changes: Any) -> Snapshot:
    whole = {"record": a_record(target=0), **changes}
    return a_snapshot(desired=0, members=members, app={"is_migrating": True, **(app or {})}, **whole)


@pytest.mark.guarantee(1)
@pytest.mark.parametrize("members", [LAGGING, BARE], ids=["copies lag", "no copies"])
def test_all_pods_stop_in_one_step_and_their_members_are_on_record(members: Any) -> None:
    decision = decide(migrating(members), ZERO)
    assert told(decision) == ("Step", "StoppingToZero")
    (grant,) = [step for step in decision.plan if isinstance(step, GrantReplicas)]
    assert (grant.from_replicas, grant.to_replicas) == (3, 0)
    assert isinstance(grant.record, HoldRecord)
    assert grant.record.step is not None
    assert sorted(seen.ordinal for seen in grant.record.step.observed) == [0, 1, 2]


def test_without_a_migration_zero_is_reached_pod_by_pod() -> None:
    assert told(decide(migrating(app={"is_migrating": False}), ZERO)) == ("Hold", "LearnersCatchingUp")


def test_a_migration_changes_nothing_where_pods_stay() -> None:
    snapshot = a_snapshot(members=LAGGING, app={"is_migrating": True})
    assert told(decide(snapshot, ZERO)) == ("Hold", "LearnersCatchingUp")


def test_zero_must_be_allowed_and_a_hold_of_a_user_counts() -> None:
    assert told(decide(migrating(), ScalingPolicy())) == ("Hold", "ZeroNotAllowed")
    assert told(decide(migrating(app={"held_because": "release"}), ZERO)) == ("Hold", "HeldByUser")


def test_the_hold_is_on_record_before_they_stop() -> None:
    assert told(decide(migrating(record=None), ZERO)) == ("Hold", "HoldBegan")


def test_what_could_lose_a_volume_or_a_member_is_asked_as_ever() -> None:
    assert told(decide(migrating(readings=(an_unreadable(),)), ZERO)) == ("Hold", "BrokersUnreachable")
    unwritten = migrating(statefulset={"record": a_record(target=0), "template_is_written": False})
    assert told(decide(unwritten, ZERO)) == ("Hold", "TemplateUnwritten")
    drifted = migrating(statefulset={"record": a_record(target=0), "drift": "spec.template"})
    assert told(decide(drifted, ZERO)) == ("Hold", "StatefulSetChanged")


def test_pods_whose_containers_end_before_they_join_can_be_stopped_too() -> None:
    empty = tuple(a_reading((), at=age, state=GroupState.EMPTY) for age in (1, 12))
    assert told(decide(migrating(readings=empty), ZERO)) == ("Step", "StoppingToZero")
    unknown = TopologyUnknown("no member showed it")
    assert told(decide(migrating(readings=empty, task_set=unknown), ZERO)) == ("Step", "StoppingToZero")


def test_a_task_that_restores_from_a_source_topic_is_not_stopped_on_its_way() -> None:
    tasks = tuple(
        replace(task, changelogs=(TopicPartition("lines", task.id.partition),)) for task in example.task_set().tasks
    )
    first, *others = example.members(3)
    active = first.assignment.active if first.assignment is not None else frozenset()
    restores = example.member(0, active=tuple(task.partition for task in active), running=False)
    restoring = migrating((restores, *others), task_set=TaskSet(tasks))
    assert told(decide(restoring, ZERO)) == ("Hold", "TasksNotRunning")


def test_nothing_is_copied_or_moved_before_since_no_pod_stays() -> None:
    policy = replace(ZERO, agent=True, source=LearnerSource.ON_DEMAND)
    decision = decide(migrating(record=None), policy)
    assert told(decision) == ("Hold", "HoldBegan")
    assert [step for step in decision.plan if isinstance(step, Announce)] == []


def test_an_override_does_not_change_the_reason() -> None:
    snapshot = migrating(app={"override": HoldOverride(hold_id="h-1", why="now")})
    assert told(decide(snapshot, ZERO)) == ("Step", "StoppingToZero")


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(("threads", "remembered"), [(1000, [2]), (2000, [])], ids=["of one pod", "of none"])
def test_they_stop_together_where_the_record_cannot_hold_all_members(threads: int, remembered: list[int]) -> None:
    step = decide(migrating(members=with_threads(threads)), ZERO)
    (grant,) = [one for one in step.plan if isinstance(one, GrantReplicas)]
    assert (grant.from_replicas, grant.to_replicas) == (3, 0)
    assert isinstance(grant.record, HoldRecord)
    assert grant.record.step is not None
    assert [seen.ordinal for seen in grant.record.step.observed] == remembered


def with_threads(number: int) -> Any:
    """So many members in each pod, of which one has the tasks."""
    idle = [
        replace(
            one,
            id=f"wordcount-{ordinal}-StreamThread-{thread}-consumer",
            assignment=replace(one.assignment, active=frozenset(), standby=frozenset()),
        )
        for ordinal, one in enumerate(LAGGING)
        if one.assignment is not None
        for thread in range(2, number + 1)
    ]
    return (*LAGGING, *idle)
