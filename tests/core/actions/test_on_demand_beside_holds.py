"""Learners on demand outside of scale-downs: restarts of drained pods, a scale-up that settles, what is reported."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.actions.decision import Announce, Decision, RestartPod, TriggerRebalance
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import (
    AgentReport,
    AgentSilent,
    AgentsSeen,
    AsideKind,
    AssignorInactive,
    Rebalance,
)
from streamapp.core.facts.group import FollowUp, Member
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource, RolloutPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.reasons import Reason
from tests.builders import NOW, a_pod, a_reading, a_record, a_snapshot, a_step, ago, pods, steps, told
from tests.support import example

POLICY = ScalingPolicy(agent=True)
BARE = example.members(3, standbys=False)
WITHOUT_TOP = (example.member(0, active=(0, 1, 4)), example.member(1, active=(2, 3, 5)), example.member(2))
OUTDATED = {"update_revision": "newer"}


def steady(members: tuple[Member, ...], agents: AgentsSeen | None = None, **changes: Any) -> Snapshot:
    """As many as wished for, without standbys; two polls of one join."""
    readings = tuple(a_reading(members, at=at, rebalance=None) for at in (1, 6))
    heard = example.agents(members) if agents is None else agents
    changes.setdefault("record", None)
    changes.setdefault("desired", 3)
    return a_snapshot(readings=readings, agents=heard, **changes)


def named(decision: Decision) -> set[int] | None:
    for step in decision.plan:
        if isinstance(step, Announce):
            return {number for number in range(9) if example.process_id(number) in step.process_ids}
    return None


def restarted(decision: Decision) -> list[tuple[int, str]]:
    return [(step.ordinal, step.reason.name) for step in decision.plan if isinstance(step, RestartPod)]


def rebalances(decision: Decision) -> list[str]:
    return [step.reason.name for step in decision.plan if isinstance(step, TriggerRebalance)]


# Rollouts.


def test_the_next_pod_to_restart_is_announced_and_not_restarted_before_it_is_drained() -> None:
    decision = decide(steady(BARE, statefulset=OUTDATED), POLICY)
    assert (named(decision), restarted(decision)) == ({2}, [])
    heard = example.agents(BARE, heard=example.leaving(2))
    assert rebalances(decide(steady(BARE, heard, statefulset=OUTDATED), POLICY)) == ["AnnouncementNotFollowed"]


def test_a_drained_pod_is_restarted() -> None:
    agents = example.agents(WITHOUT_TOP, heard=example.leaving(2), round=example.assigned())
    decision = decide(steady(WITHOUT_TOP, agents, statefulset=OUTDATED), POLICY)
    assert (restarted(decision), named(decision)) == ([(2, "RestartDrained")], None)


def test_while_it_restarts_it_stays_named_and_afterwards_the_next_one_is() -> None:
    left = WITHOUT_TOP[:2]
    agents = example.agents(left, heard=example.leaving(2), round=example.assigned())
    going = pods(3, p2=a_pod(2, terminating=True))
    decision = decide(steady(left, agents, statefulset=OUTDATED, workload={"pods": going}), POLICY)
    assert (named(decision), restarted(decision)) == (None, [])
    back = pods(3, p2=a_pod(2, revision="newer"))
    agents = example.agents(WITHOUT_TOP, heard=example.leaving(2), round=example.assigned())
    decision = decide(steady(WITHOUT_TOP, agents, statefulset=OUTDATED, workload={"pods": back}), POLICY)
    assert (named(decision), restarted(decision)) == ({1}, [])


def test_a_hold_waits_for_the_rollout_and_nobody_else_is_named_meanwhile() -> None:
    members = (example.member(0, active=(0, 1, 2)), example.member(1, active=(3, 4, 5)))
    case = steady(members, desired=1, pods=2, record=a_record(granted=2, target=1), statefulset=OUTDATED)
    decision = decide(case, POLICY)
    assert named(decision) == {0}


@pytest.mark.parametrize("policy", [RolloutPolicy.PAUSED, RolloutPolicy.IMMEDIATE])
def test_a_rollout_that_is_paused_or_asks_for_nothing_drains_nobody(policy: RolloutPolicy) -> None:
    assert named(decide(steady(BARE, statefulset=OUTDATED), replace(POLICY, rollout=policy))) is None


def test_the_first_pod_with_the_newest_template_must_be_heard_before_another_is_restarted() -> None:
    members = example.members(3)
    agents = example.agents(members)
    quiet = AgentsSeen({**agents.words, Ordinal(2): (AgentSilent(Ordinal(2), "refused"),)}, agents.ends)
    canary = pods(3, p2=a_pod(2, revision="newer"))
    case = a_snapshot(agents=quiet, desired=3, record=None, statefulset=OUTDATED, workload={"pods": canary})
    assert restarted(decide(case, POLICY)) == []
    (reconciling,) = [one for one in decide(case, POLICY).conditions if one.type == "Reconciling"]
    assert reconciling.reason is Reason.AgentSilent
    chosen = replace(POLICY, source=LearnerSource.STANDBYS)
    assert restarted(decide(case, chosen)) == [(1, "RestartCovered")]


def test_an_agent_that_falls_silent_before_a_rollout_holds_it() -> None:
    agents = example.agents(BARE)
    quiet = AgentsSeen({**agents.words, Ordinal(1): (AgentSilent(Ordinal(1), "refused"),)}, agents.ends)
    decision = decide(a_snapshot(members=BARE, agents=quiet, desired=3, record=None, statefulset=OUTDATED), POLICY)
    assert restarted(decision) == []


def test_agents_come_in_by_the_old_rules_even_where_learners_on_demand_are_demanded() -> None:
    case = a_snapshot(agents=AgentsSeen(), desired=3, record=None, statefulset=OUTDATED)
    demanded = replace(POLICY, source=LearnerSource.ON_DEMAND)
    assert restarted(decide(case, demanded)) == [(2, "RestartCovered")]


# A scale-up settles.


def growing(lag: int, learning: int = 2, **made_with: Any) -> Snapshot:
    """A third pod that learns two tasks, of which the assignor has scheduled the moves."""
    members = (
        example.member(0, active=(0, 1, 4), follow_up=FollowUp.SCHEDULED),
        example.member(1, active=(2, 3, 5)),
        example.member(2, standby=(4, 5), lag=lag),
    )
    made = example.assigned(learning=learning, follow_up_is_watch=False, **made_with)
    return steady(members, example.agents(members, round=made))


def test_a_scale_up_is_rebalanced_when_its_learners_are_there_and_not_before() -> None:
    learning, ready = decide(growing(500_000), POLICY), decide(growing(0), POLICY)
    assert (rebalances(learning), rebalances(ready)) == ([], ["TasksReadyToMove"])
    assert learning.convergence.waits_for is not None
    assert learning.convergence.waits_for.reason is Reason.LearnersCatchingUp


def test_the_eager_are_rebalanced_when_some_are_there() -> None:
    eager = replace(POLICY, rebalance=Rebalance.EAGER)
    assert rebalances(decide(growing(500_000, learning=3), eager)) == ["TasksReadyToMove"]
    assert rebalances(decide(growing(500_000, learning=2), eager)) == []


@pytest.mark.parametrize("rebalance", Rebalance)
def test_no_rebalance_is_triggered_for_a_process_that_warms_up_and_the_resource_says_so(rebalance: Rebalance) -> None:
    policy = replace(POLICY, rebalance=rebalance)
    told_of = []
    for warm_at in (NOW + timedelta(seconds=4), NOW):
        decision = decide(growing(0, warm_at=warm_at), policy)
        (converged,) = [one for one in decision.conditions if one.type == "Converged"]
        told_of.append((converged.reason, f"until {warm_at:%H:%M:%S} UTC" in converged.detail, rebalances(decision)))
    assert told_of == [
        (Reason.ProcessWarmsUp, True, []),
        (Reason.TasksReadyToMove, False, ["TasksReadyToMove"]),
    ]


def test_while_a_process_warms_up_and_its_learners_are_behind_the_learners_are_what_is_told() -> None:
    decision = decide(growing(500_000, learning=3, warm_at=NOW + timedelta(seconds=4)), POLICY)
    assert decision.convergence.waits_for is not None
    assert (decision.convergence.waits_for.reason, rebalances(decision)) == (Reason.LearnersCatchingUp, [])


# What is known without a triggered rebalance.


def test_tasks_that_agents_see_running_need_no_join_to_close_a_step() -> None:
    step_progress = a_record(granted=3, step=a_step(observed=(), reason=Reason.Drained))
    case = steady(BARE, record=step_progress, workload={})
    assert told(decide(case, POLICY)) == ("CloseStep", "StepClosed")
    restoring = example.agents((example.member(0, active=(0, 1), running=False), *BARE[1:]))
    decision = decide(replace(case, agents=restoring), POLICY)
    assert (told(decision), rebalances(decision)) == (("CloseStep", "TasksNotRunning"), [])


def test_convergence_is_seen_without_a_join() -> None:
    decision = decide(steady(BARE), POLICY)
    assert (decision.convergence.is_converged, steps(decision)) == (True, ())
    assert decision.convergence.counts is not None
    assert decision.convergence.counts.running == 6


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (AsideKind.OLDER_STREAMS, Reason.OlderStreams),
        (AsideKind.OWN_ASSIGNOR, Reason.OwnAssignor),
        (AsideKind.STREAMS_PROTOCOL, Reason.StreamsProtocol),
        (AsideKind.UNKNOWN_LOADER, Reason.UnknownLoader),
        (AsideKind.SWITCHED_OFF, Reason.AssignorSwitchedOff),
        (AsideKind.FAILED, Reason.AgentFailed),
    ],
)
def test_each_way_of_stepping_aside_has_its_reason(kind: AsideKind, reason: Reason) -> None:
    agents = example.agents(BARE, is_ours=False, aside=AssignorInactive(kind, "because"))
    decision = decide(steady(BARE, agents), POLICY)
    assert decision.source.not_on_demand is not None
    assert (decision.source.source, decision.source.not_on_demand.reason) == (LearnerSource.NONE, reason)
    assert decision.source.not_on_demand.detail == "ordinal 0: because"


def test_an_agent_that_gives_no_reason_is_not_taken_for_ours() -> None:
    decision = decide(steady(BARE, example.agents(BARE, is_ours=False)), POLICY)
    assert decision.source.not_on_demand is not None
    assert decision.source.not_on_demand.reason is Reason.AgentFailed


def test_without_an_agent_nobody_is_told_why_learners_are_not_on_demand() -> None:
    decision = decide(a_snapshot(desired=3, record=None), ScalingPolicy())
    assert (decision.source.source, decision.source.not_on_demand) == (LearnerSource.STANDBYS, None)


def test_the_word_of_a_container_that_is_gone_is_forgotten() -> None:
    young = a_pod(1, container=replace(example.pod(1).container, running_since=ago(3)))
    decision = decide(steady(BARE, workload={"pods": pods(3, p1=young)}), POLICY)
    assert decision.source.not_on_demand is not None
    assert decision.source.not_on_demand.reason is Reason.AgentReportsPending
    assert isinstance(example.agents(BARE).latest(Ordinal(1)), AgentReport)
