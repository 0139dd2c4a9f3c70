"""What silent agents, or another assignor, must not bring about: restarts that nothing covers, holds without end."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from streamapp.core.actions.decision import Announce, Decision, GrantReplicas, RestartPod
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import (
    AgentReply,
    AgentReport,
    AgentSilent,
    AgentsSeen,
    AsideKind,
    AssignorInactive,
)
from streamapp.core.facts.group import FollowUp
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource, RolloutPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import HoldOverride, Snapshot
from streamapp.core.reasons import Reason
from tests.builders import a_pod, a_snapshot, ago, pods, seconds
from tests.support import example

POLICY = ScalingPolicy(agent=True)
DEMANDED = replace(POLICY, source=LearnerSource.ON_DEMAND)
BARE = example.members(3, standbys=False)


def changed(seen: AgentsSeen, change: Callable[[AgentReport], AgentReply], *ordinals: int) -> AgentsSeen:
    words = {
        ordinal: tuple(change(word) if ordinal in ordinals and isinstance(word, AgentReport) else word for word in said)
        for ordinal, said in seen.words.items()
    }
    return AgentsSeen(words, seen.ends)


def silent(word: AgentReport) -> AgentSilent:
    return AgentSilent(word.ordinal, "no whole answer within 2 s")


def rolling(agents: AgentsSeen, *, newest: tuple[int, ...] = (), with_agent: tuple[int, ...] = (0, 1, 2)) -> Snapshot:
    """Three pods without standbys, of which some have the newest template, and some an agent."""
    own = tuple(
        a_pod(pod.ordinal, has_agent=pod.ordinal in with_agent, revision="newer" if pod.ordinal in newest else "older")
        for pod in pods(3)
    )
    newer = {"update_revision": "newer"}
    return a_snapshot(members=BARE, agents=agents, desired=3, record=None, statefulset=newer, workload={"pods": own})


def restarted(decision: Decision) -> list[tuple[int, str]]:
    return [(step.ordinal, step.reason.name) for step in decision.plan if isinstance(step, RestartPod)]


def named(decision: Decision) -> set[int] | None:
    told = [step for step in decision.plan if isinstance(step, Announce)]
    return {number for number in range(9) if example.process_id(number) in told[0].process_ids} if told else None


def held_by(decision: Decision) -> Reason:
    (reconciling,) = [one for one in decision.conditions if one.type == "Reconciling"]
    return reconciling.reason


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("policy", [POLICY, DEMANDED])
@pytest.mark.parametrize(("newest", "quiet"), [((), (0, 1, 2)), ((1, 2), (0,)), ((2,), (0, 1))])
def test_no_pod_with_an_agent_restarts_with_its_tasks_because_agents_are_silent(
    policy: ScalingPolicy, newest: tuple[int, ...], quiet: tuple[int, ...]
) -> None:
    decision = decide(rolling(changed(example.agents(BARE), silent, *quiet), newest=newest), policy)
    assert (restarted(decision), held_by(decision)) == ([], Reason.AgentSilent)
    by_force = decide(
        rolling(changed(example.agents(BARE), silent, *quiet), newest=newest),
        replace(policy, rollout=RolloutPolicy.IMMEDIATE),
    )
    assert len(restarted(by_force)) == 1


def test_pods_that_never_came_into_the_group_may_get_the_template_that_mends_them() -> None:
    agents = changed(example.agents(BARE), silent, 0, 1, 2)
    outside = replace(rolling(agents), readings=(example.reading((), seconds(1)), example.reading((), seconds(15))))
    assert held_by(decide(outside, POLICY)) is not Reason.AgentSilent


def test_a_canary_without_a_voice_may_be_replaced() -> None:
    agents = changed(example.agents(BARE), silent, 0, 1, 2)
    decision = decide(rolling(agents, with_agent=(2,)), POLICY)
    assert restarted(decision) == [(2, "RestartWithoutLearners")]


def test_a_template_that_changes_again_while_agents_come_in_does_not_wait_for_pods_that_have_none() -> None:
    agents = changed(example.agents(BARE), silent, 0, 1)
    decision = decide(rolling(agents, with_agent=(2,)), POLICY)
    assert restarted(decision) == [(2, "RestartWithoutLearners")]


def test_a_rollout_of_another_recovery_lag_drains_as_every_other() -> None:
    agents = changed(example.agents(BARE), lambda word: replace(word, recovery_lag=500), 2)
    decision = decide(rolling(agents, newest=(2,)), POLICY)
    assert (restarted(decision), named(decision)) == ([], {1})
    decision = decide(rolling(agents, newest=(1, 2)), POLICY)
    assert decision.source.not_on_demand is not None
    assert decision.source.not_on_demand.reason is Reason.RecoveryLagUnclear


@pytest.mark.parametrize("policy", [POLICY, DEMANDED])
def test_a_canary_that_loses_the_assignor_stays_alone(policy: ScalingPolicy) -> None:
    older = AssignorInactive(AsideKind.OLDER_STREAMS, "3.7")
    agents = changed(example.agents(BARE), lambda word: replace(word, is_ours=False, aside=older), 2)
    decision = decide(rolling(agents, newest=(2,)), policy)
    assert (restarted(decision), held_by(decision)) == ([], Reason.AssignorMixed)


def test_a_canary_that_brings_the_assignor_does_not() -> None:
    off = AssignorInactive(AsideKind.SWITCHED_OFF, "not named")
    agents = changed(example.agents(BARE), lambda word: replace(word, is_ours=False, aside=off), 0, 1)
    assert restarted(decide(rolling(agents, newest=(2,)), POLICY)) == [(1, "RestartWithoutLearners")]


# A hold.


def half_heard(silent_for: float) -> AgentsSeen:
    """Who leaves was told to all; one of them is silent since."""
    heard = example.agents(LEARNING, heard=example.leaving(2, left=seconds(20)), round=example.assigned())
    last = replace(example.report(LEARNING[1]), as_of=ago(silent_for))
    return AgentsSeen({**heard.words, Ordinal(1): (AgentSilent(Ordinal(1), "refused"), last)}, heard.ends)


LEARNING = (
    example.member(0, active=(0, 1), standby=(4,), follow_up=FollowUp.SCHEDULED),
    example.member(1, active=(2, 3), standby=(5,)),
    example.member(2, active=(4, 5)),
)
OVERRIDDEN = {"override": HoldOverride(hold_id="h-1", why="night")}


def test_an_announcement_outlasts_a_short_silence_and_not_one_that_outlasts_it() -> None:
    assert named(decide(a_snapshot(members=LEARNING, agents=half_heard(45)), POLICY)) == {2}
    assert named(decide(a_snapshot(members=LEARNING, agents=half_heard(55)), POLICY)) == set()


def test_an_agent_that_this_process_never_heard_is_waited_for_as_long() -> None:
    heard = half_heard(45)
    never = AgentsSeen({**heard.words, Ordinal(1): (AgentSilent(Ordinal(1), "refused"),)}, heard.ends)
    readings = example.reading(LEARNING, seconds(1)), example.reading(LEARNING, seconds(15))
    assert named(decide(a_snapshot(readings=readings, agents=never), POLICY)) == {2}
    watched = (*readings, example.reading(LEARNING, seconds(58)))
    assert named(decide(a_snapshot(readings=watched, agents=never), POLICY)) == set()


@pytest.mark.parametrize("silent_for", [45, 55, 120])
def test_an_override_ends_the_hold_whether_agents_still_know_who_leaves_or_not(silent_for: float) -> None:
    """Tasks are still to move, by what the agents were told; a user does not want to wait for that."""
    decision = decide(a_snapshot(members=LEARNING, agents=half_heard(silent_for), app=OVERRIDDEN), POLICY)
    assert [step.to_replicas for step in decision.plan if isinstance(step, GrantReplicas)] == [2]


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(("seconds_ago", "goes"), [(100, True), (130, False)])
def test_a_word_from_long_ago_confirms_nothing(seconds_ago: float, goes: bool) -> None:
    members = example.members(3)
    agents = example.agents(members, is_ours=False, aside=AssignorInactive(AsideKind.SWITCHED_OFF, "not named"))
    earlier = changed(agents, lambda word: replace(word, as_of=ago(seconds_ago)), 0, 1, 2)
    words = {one: (said[0], earlier.words[one][1]) for one, said in agents.words.items()}
    decision = decide(a_snapshot(members=members, agents=AgentsSeen(words, agents.ends)), POLICY)
    assert any(isinstance(step, GrantReplicas) for step in decision.plan) is goes
