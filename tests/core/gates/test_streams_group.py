"""A group of the streams protocol: settled by its epochs, measured by agents, judged by the broker's own assignor."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import Answer, Decision, Evict, GrantReplicas, RestartPod, TriggerRebalance
from streamapp.core.assignors.broker_moves import AssignorUnknown, Moves, moves_without
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import AgentSilent, AgentsSeen, AsideKind, AssignorInactive
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import (
    Applied,
    Assignment,
    FollowUp,
    GroupDescription,
    GroupReading,
    GroupState,
    Member,
    StandbySetting,
)
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource, ScaleDownPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.gates import coverage_gates
from streamapp.core.reasons import Reason
from tests.builders import a_capture, a_pod, a_snapshot, ago, an_end, not_running, pods, steps, told
from tests.support import example
from tests.support.streams import EPOCH, streams_group, streams_members, streams_reading

POLICY = ScalingPolicy(agent=True)
SPREAD = (
    example.member(0, active=(0, 1), standby=(4,)),
    example.member(1, active=(2, 3), standby=(5,)),
    example.member(2, active=(4, 5), standby=(0, 1, 2, 3)),
)
"""Every task of the top pod has its standby on another pod."""
CROWDED = example.members(3)
"""Both standbys of the top pod's tasks are on one pod, which can take one task only."""


def reports(members: tuple[Member, ...], **changes: Any) -> AgentsSeen:
    aside = AssignorInactive(AsideKind.STREAMS_PROTOCOL, "the broker assigns")
    return example.agents(members, is_ours=False, aside=aside, **changes)


def a_case(members: tuple[Member, ...] = SPREAD, *, readings: Any = None, **changes: Any) -> Snapshot:
    both = tuple(streams_reading(members, seconds) for seconds in (1, 15)) if readings is None else readings
    changes.setdefault("agents", reports(members))
    return a_snapshot(readings=both, **changes)


def removed(decision: Decision) -> list[int]:
    return [step.to_replicas for step in decision.plan if isinstance(step, GrantReplicas)]


def reading_with(at: float, **changes: Any) -> GroupReading:
    """A poll, with other fields of the group."""
    found = streams_reading(SPREAD, at)
    assert isinstance(found.group, GroupDescription)
    return replace(found, group=replace(found.group, **changes))


@pytest.mark.guarantee(1)
def test_a_pod_goes_when_the_broker_is_predicted_to_choose_caught_up_copies() -> None:
    decision = decide(a_case(), POLICY)
    assert (told(decision), removed(decision)) == (("Step", "Covered"), [2])


@pytest.mark.guarantee(1)
def test_a_standby_on_a_pod_that_stays_is_not_enough_if_the_broker_passes_it_over() -> None:
    decision = decide(a_case(CROWDED), POLICY)
    assert told(decision) == ("Hold", "WouldMoveCold")
    assert decision.detail == "task 0_5 would restore at most 1000000 records"
    assert [(str(wait.task), wait.records_to_go) for wait in decision.waiting_for] == [("0_5", example.END)]


@pytest.mark.guarantee(1)
def test_a_copy_that_is_behind_where_the_broker_puts_the_task_holds() -> None:
    behind = (*SPREAD[:1], example.member(1, active=(2, 3), standby=(5,), lag=20_000), SPREAD[2])
    assert decide(a_case(behind), POLICY).reason is Reason.LearnersCatchingUp


def test_two_readings_of_one_group_are_played_once(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[frozenset[str]] = []

    def counted(
        group: GroupDescription, task_set: TaskSet, leaving: frozenset[str], to_come: frozenset[int]
    ) -> Moves | AssignorUnknown:
        played.append(leaving)
        return moves_without(group, task_set, leaving, to_come)

    monkeypatch.setattr(coverage_gates, "moves_without", counted)
    decision = decide(a_case(), POLICY)
    assert (told(decision), len(played)) == (("Step", "Covered"), 1)


def test_a_user_can_override_a_cold_move() -> None:
    by_policy = replace(POLICY, scale_down=ScaleDownPolicy.IMMEDIATE, force_reason="cost")
    decision = decide(a_case(CROWDED), by_policy)
    assert (decision.reason, removed(decision)) == (Reason.OverriddenByPolicy, [2])


@pytest.mark.parametrize("release", [None, "4.1", "5.0"])
def test_a_broker_that_is_not_modelled_holds(release: str | None) -> None:
    readings = tuple(reading_with(at, streams=streams_group(release)) for at in (1, 15))
    decision = decide(a_case(readings=readings), POLICY)
    assert (told(decision), removed(decision)) == (("Hold", "BrokerAssignorUnknown"), [])


def test_another_assignor_of_the_broker_holds() -> None:
    other = replace(streams_group("4.4"), assignor="balanced")
    decision = decide(a_case(readings=tuple(reading_with(at, streams=other) for at in (1, 15))), POLICY)
    assert decision.reason is Reason.BrokerAssignorUnknown
    assert "balanced" in decision.detail


@pytest.mark.guarantee(1)
def test_a_copy_on_a_disk_that_a_new_coordinator_has_forgotten_is_played_all_the_same() -> None:
    """The pod with the old copy has fewer tasks than the one with the standby: brokers 4.4 would give it the task."""
    layout = (
        example.member(0, active=(3, 4), standby=(0,)),
        example.member(1, active=(5,), standby=(1, 2)),
        example.member(2, active=(0, 1, 2), standby=(3, 4, 5)),
    )
    newest = replace(streams_group("4.4"), assignor="sticky")
    bare = tuple(streams_reading(layout, at, newest) for at in (1, 15))
    assert told(decide(a_case(layout, readings=bare), POLICY)) == ("Step", "Covered")
    before = streams_reading(layout, 40, newest)
    assert isinstance(before.group, GroupDescription)
    old_copy = replace(
        before.group,
        members=tuple(_on_disk(one) if one.id == layout[1].id else one for one in before.group.members),
    )
    decision = decide(a_case(layout, readings=(*bare, replace(before, group=old_copy))), POLICY)
    assert (told(decision), removed(decision)) == (("Hold", "WouldMoveCold"), [])


def _on_disk(member: Member) -> Member:
    assert member.subscription is not None
    return replace(member, subscription=replace(member.subscription, offsets={example.task(0): Applied(10)}))


def _member_with_a_target(active: tuple[int, ...]) -> tuple[Member, ...]:
    found = streams_members(SPREAD)
    target = Assignment(active=frozenset(map(example.task, active)), standby=frozenset(), follow_up=FollowUp.NONE)
    assert found[1].streams is not None
    return (found[0], replace(found[1], streams=replace(found[1].streams, target=target)), found[2])


def _member_behind(epoch: int) -> tuple[Member, ...]:
    found = streams_members(SPREAD)
    assert found[1].streams is not None
    return (found[0], replace(found[1], streams=replace(found[1].streams, epoch=epoch)), found[2])


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"state": GroupState.RECONCILING}, "Reconciling"),
        ({"state": GroupState.ASSIGNING}, "Assigning"),
        ({"state": GroupState.NOT_READY}, "NotReady"),
        (
            {"streams": replace(streams_group(), assignment_epoch=EPOCH - 1)},
            "the target assignment is of epoch 6, the group is at epoch 7",
        ),
        ({"members": _member_behind(EPOCH - 1)}, "member wordcount-1-consumer is at epoch 6 of 7"),
        ({"members": _member_behind(-2)}, "member wordcount-1-consumer is at epoch -2 of 7"),
        (
            {"members": _member_with_a_target((2,))},
            "member wordcount-1-consumer does not have its target assignment",
        ),
    ],
)
def test_a_group_that_is_not_settled_holds(changes: dict[str, Any], detail: str) -> None:
    decision = decide(a_case(readings=(reading_with(1, **changes), reading_with(15))), POLICY)
    assert (told(decision), decision.detail) == (("Hold", "GroupRebalancing"), detail)


@pytest.mark.guarantee(2)
def test_one_reading_is_not_enough() -> None:
    assert decide(a_case(readings=(streams_reading(SPREAD, 1),)), POLICY).reason is Reason.ReadingsPending


@pytest.mark.guarantee(2)
def test_without_an_agent_no_position_is_known_and_nothing_goes() -> None:
    decision = decide(a_case(agents=None), ScalingPolicy())
    assert told(decision) == ("Hold", "PositionsNotReported")
    assert not decision.convergence.can_be_told


@pytest.mark.guarantee(2)
def test_a_silent_agent_holds_and_says_which() -> None:
    heard = reports(SPREAD)
    silent = AgentsSeen({**heard.words, Ordinal(1): (AgentSilent(Ordinal(1), "connection refused"),)}, heard.ends)
    decision = decide(a_case(agents=silent), POLICY)
    assert told(decision) == ("Hold", "AgentSilent")
    assert "ordinal 1" in decision.detail


@pytest.mark.guarantee(2)
def test_an_agent_that_sees_other_tasks_than_the_brokers_holds() -> None:
    other = (SPREAD[0], example.member(1, active=(2,), standby=(5,)), SPREAD[2])
    assert decide(a_case(agents=reports(other)), POLICY).reason is Reason.AgentsDisagree


def _reading_with_offset(at: float, ordinal: int, task: int, offset: int) -> GroupReading:
    """A poll of a broker 4.4, to which one member has reported how far its copy of a task is."""
    found = streams_members(SPREAD)
    before = found[ordinal].subscription
    assert before is not None
    reported = replace(before, offsets={example.task(task): Applied(offset)})
    members = tuple(replace(one, subscription=reported) if one is found[ordinal] else one for one in found)
    return reading_with(at, members=members, streams=streams_group("4.4"))


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(
    ("at", "offset", "reason"),
    [
        (15, example.END + 1, "PositionsDisagree"),
        (15, example.END, "Covered"),
        (15, 0, "Covered"),
        (1, example.END + 1, "Covered"),
    ],
    ids=["the copy went back", "as far", "an old word", "heard after the agent was asked"],
)
def test_a_copy_that_is_behind_what_brokers_knew_before_holds(at: float, offset: int, reason: str) -> None:
    plain = reading_with(16 - at, streams=streams_group("4.4"))
    decision = decide(a_case(readings=(_reading_with_offset(at, 0, 4, offset), plain)), POLICY)
    assert decision.reason is Reason[reason]
    if reason == "PositionsDisagree":
        assert decision.detail == f"task 0_4 on ordinal 0: {example.END} by its agent, {offset} by the brokers before"


def test_what_brokers_knew_of_an_earlier_container_says_nothing_of_this_one() -> None:
    restarted = pods(3, p0=a_pod(0, container=replace(a_pod(0).container, running_since=ago(12))))
    readings = (reading_with(1, streams=streams_group("4.4")), _reading_with_offset(15, 0, 4, example.END + 1))
    decision = decide(a_case(readings=readings, workload={"pods": restarted}), POLICY)
    assert (told(decision), decision.detail) == (("Step", "Covered"), "3 to 2")


def test_no_rebalance_is_ever_triggered() -> None:
    behind = (example.member(0, active=(0, 1), standby=(4,), lag=90_000), *SPREAD[1:])
    for snapshot in (a_case(), a_case(behind), a_case(CROWDED), a_case(agents=None)):
        for policy in (POLICY, ScalingPolicy()):
            assert not [one for one in decide(snapshot, policy).plan if isinstance(one, TriggerRebalance)]


def test_a_settled_group_with_caught_up_copies_is_converged() -> None:
    steady = decide(a_case(desired=3, record=None), POLICY)
    assert (told(steady), steady.convergence.is_converged) == (("Steady", "Steady"), True)


def learners(snapshot: Snapshot, policy: ScalingPolicy) -> tuple[Answer, Reason]:
    (condition,) = (one for one in decide(snapshot, policy).conditions if one.type == "LearnersAvailable")
    return condition.status, condition.reason


def test_at_rest_standbys_that_can_be_raised_are_called_available() -> None:
    on_demand = ScalingPolicy(agent=True, source=LearnerSource.ON_DEMAND)
    bare = example.members(3, standbys=False)
    readable = replace(streams_group(), standbys=StandbySetting(0, is_set=False))
    readings = tuple(streams_reading(bare, seconds, readable) for seconds in (1, 15))
    rested = a_case(bare, readings=readings, desired=3, record=None)
    assert learners(rested, on_demand) == (Answer.TRUE, Reason.StandbysOnDemand)
    assert decide(rested, on_demand).source.told is LearnerSource.ON_DEMAND
    assert learners(rested, POLICY) == (Answer.FALSE, Reason.NoLearners)
    unread = a_case(bare, desired=3, record=None)
    assert learners(unread, on_demand) == (Answer.FALSE, Reason.StandbysNotRaisable)
    silent = a_case(bare, readings=readings, desired=3, record=None, agents=None)
    assert learners(silent, on_demand)[0] is Answer.FALSE
    assert learners(rested, replace(on_demand, agent=False)) == (Answer.FALSE, Reason.AgentDisabled)


def test_a_scale_up_is_not_delayed_and_says_that_new_pods_begin_without_state() -> None:
    growing = a_case(desired=4, record=None)
    decision = decide(growing, POLICY)
    assert [step.to_replicas for step in decision.plan if isinstance(step, GrantReplicas)] == [4]
    assert [event.detail for event in decision.warnings if event.reason is Reason.ColdScaleUp] == ["3 to 4"]
    classic = decide(a_snapshot(desired=4, record=None), ScalingPolicy())
    assert not [event for event in classic.warnings if event.reason is Reason.ColdScaleUp]


# Restarts


def a_rollout(members: tuple[Member, ...], **changes: Any) -> Snapshot:
    return a_case(members, desired=3, record=None, statefulset={"update_revision": "new"}, **changes)


def restarts(snapshot: Snapshot, policy: ScalingPolicy = POLICY) -> list[int]:
    return [step.ordinal for step in decide(snapshot, policy).plan if isinstance(step, RestartPod)]


def test_a_pod_restarts_only_if_the_broker_is_predicted_to_choose_caught_up_copies() -> None:
    assert restarts(a_rollout(SPREAD)) == [2]
    assert restarts(a_rollout(CROWDED)) == []


@pytest.mark.parametrize(("standbys", "is_said"), [(0, True), (1, True), (2, False)])
def test_a_rollout_says_that_pods_return_without_state_unless_each_has_a_copy_of_everything(
    standbys: int, *, is_said: bool
) -> None:
    group = replace(streams_group(), standbys=StandbySetting(standbys, is_set=True))
    readings = tuple(streams_reading(SPREAD, seconds, group) for seconds in (1, 15))
    rolling = a_rollout(SPREAD, readings=readings)
    (condition,) = [one for one in decide(rolling, POLICY).conditions if one.type == "Reconciling"]
    assert condition.status is Answer.TRUE
    assert ("a pod that returns" in condition.detail) == is_said
    classic = decide(a_snapshot(statefulset={"update_revision": "new"}, desired=3, record=None), ScalingPolicy())
    assert all("a pod that returns" not in one.detail for one in classic.conditions)


def test_the_first_agent_of_a_group_with_standbys_needs_a_users_word() -> None:
    """Only agents report positions here, so the restart that brings the first one cannot be covered."""
    bare = tuple(replace(pod, has_agent=False) for pod in pods(3))
    silent = AgentsSeen({Ordinal(each): (AgentSilent(Ordinal(each), "no agent"),) for each in range(3)})
    first = a_rollout(SPREAD, agents=silent, workload={"pods": bare})
    (condition,) = [one for one in decide(first, POLICY).conditions if one.type == "Reconciling"]
    assert condition.reason is Reason.FirstRestartUncovered
    assert restarts(first) == []


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("source", [LearnerSource.NONE, LearnerSource.STANDBYS, None])
def test_no_pod_of_a_group_without_standbys_restarts_while_an_agent_is_silent(source: LearnerSource | None) -> None:
    """Only agents tell whether the tasks of the pod that restarted last run again."""
    bare = example.members(3, standbys=False)
    own = tuple(a_pod(number, has_agent=True, revision="new" if number == 2 else "old") for number in range(3))
    heard = reports(bare)
    quiet = AgentsSeen({**heard.words, Ordinal(0): (AgentSilent(Ordinal(0), "no answer"),)}, heard.ends)
    policy = replace(POLICY, source=source)
    assert restarts(a_rollout(bare, workload={"pods": own}), policy) == [1]
    waits = a_rollout(bare, agents=quiet, workload={"pods": own})
    assert restarts(waits, policy) == []
    (condition,) = [one for one in decide(waits, policy).conditions if one.type == "Reconciling"]
    assert condition.reason is Reason.AgentSilent


@pytest.mark.parametrize(("ran_for", "reason"), [(20, "AgentReportsPending"), (61, "AgentSilent")])
def test_the_agent_of_a_pod_that_has_just_begun_to_run_is_awaited_and_no_user_is_sent_after_it(
    ran_for: int, reason: str
) -> None:
    """Each scale-up and each restart has such a pod: nothing is wrong, and nothing is known meanwhile."""
    heard = reports(SPREAD)
    quiet = AgentsSeen({**heard.words, Ordinal(2): (AgentSilent(Ordinal(2), "refused"),)}, heard.ends)
    begun = replace(a_pod(2).container, running_since=ago(ran_for), first_seen_at=ago(ran_for))
    own = pods(3, p2=a_pod(2, has_agent=True, ready=False, container=begun))
    readable = replace(streams_group(), standbys=StandbySetting(0, is_set=False))
    both = tuple(streams_reading(SPREAD, seconds, readable) for seconds in (1, 15))
    case = a_case(readings=both, agents=quiet, workload={"pods": own})
    decision = decide(case, replace(POLICY, source=LearnerSource.ON_DEMAND))
    found = {one.type: (one.status, one.reason.name) for one in decision.conditions}
    assert found["LearnersAvailable"] == (Answer.FALSE, reason)
    assert found["Converged"] == (Answer.UNKNOWN, reason)
    assert removed(decision) == []


# Death


def test_the_members_of_an_ended_container_are_evicted_static_ones_too() -> None:
    """A static member stands in its successor's way: the broker refuses the instance id, and the client gives up."""
    key = MemberKey("wordcount-2-consumer", "pod-2-1")
    dead = (*SPREAD[:2], replace(SPREAD[2], instance_id="pod-2-1"))
    snapshot = a_case(
        dead,
        desired=3,
        record=None,
        agents=reports(SPREAD),
        workload={"pods": pods(3, p2=a_pod(2, ready=False, container=not_running()))},
        observed=(a_capture(2, members=(key,)),),
        container_ends=(an_end(2, finished_at=ago(5)),),
    )
    evicted = [one.members for one in decide(snapshot, POLICY).plan if isinstance(one, Evict)]
    assert evicted == [(key,)]
    assert "Evict" in steps(decide(snapshot, POLICY))
