"""The laws of `decide` where agents speak: no pod goes with a task, nobody is believed alone, nobody is left named."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, event, find, given
from hypothesis import strategies as st

from streamapp.core.actions.decision import Announce, Decision, GrantReplicas, RestartPod, Verdict
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import (
    AgentReport,
    AgentSilent,
    AgentsSeen,
    AnnouncementState,
    LocalTask,
    TaskState,
)
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.reasons import Reason
from tests.agent_strategies import agent_policies, drained, in_any_case, with_agents
from tests.properties import oracle, world
from tests.properties.test_laws import QUICKLY, UNASKED, grant_of
from tests.strategies import rollouts, scale_downs, snapshots
from tests.support import example

ON_DEMAND = ScalingPolicy(agent=True, source=LearnerSource.ON_DEMAND, allow_zero=True)


def announced(decision: Decision) -> list[Announce]:
    return [step for step in decision.plan if isinstance(step, Announce)]


def held_by_agent(snapshot: Snapshot, ordinal: int) -> set[Any]:
    """What the newest words of an agent, by its own count, say that it has."""
    assert snapshot.agents is not None
    reports = [one for one in snapshot.agents.words.get(Ordinal(ordinal), ()) if isinstance(one, AgentReport)]
    newest = max(reports, key=lambda one: one.sequence, default=None)
    return set() if newest is None else {task.id for task in newest.tasks or ()}


def processes_without_active_tasks(snapshot: Snapshot) -> set[Any]:
    """The processes of which some report shows no active task."""
    assert snapshot.agents is not None
    reports = [one for words in snapshot.agents.words.values() for one in words if isinstance(one, AgentReport)]
    return {
        one.process_id for one in reports if one.tasks is not None and not any(task.is_active for task in one.tasks)
    }


def _is_near(task: LocalTask, policy: ScalingPolicy) -> bool:
    return example.END - task.positions.get("counts", 0) <= policy.acceptable_recovery_lag


def without_a_good_copy(snapshot: Snapshot, kept: int, policy: ScalingPolicy) -> set[Any]:
    """Tasks that no agent of a pod below says to run, or to have caught up with; each has one store, to END."""
    assert snapshot.agents is not None
    good: set[Any] = set()
    for ordinal in range(kept):
        reports = [one for one in snapshot.agents.words.get(Ordinal(ordinal), ()) if isinstance(one, AgentReport)]
        tasks = max(reports, key=lambda one: one.sequence).tasks or () if reports else ()
        good |= {task.id for task in tasks if task.is_active and task.state is TaskState.RUNNING}
        good |= {task.id for task in tasks if not task.is_active and _is_near(task, policy)}
    assert isinstance(snapshot.task_set, TaskSet)
    return {task.id for task in snapshot.task_set.tasks} - good


@given(in_any_case(), agent_policies())
@pytest.mark.guarantee(1)
def test_no_pod_is_drained_away_while_anybody_says_that_it_holds_a_task(
    snapshot: Snapshot, policy: ScalingPolicy
) -> None:
    decision = decide(snapshot, policy)
    grant = grant_of(decision)
    going: list[int] = []
    if grant is not None and grant.is_removal and grant.reason is Reason.Drained:
        event("a drained removal")
        going = list(range(grant.to_replicas, grant.from_replicas))
        assert without_a_good_copy(snapshot, grant.to_replicas, policy) == set()
    for step in decision.plan:
        if isinstance(step, RestartPod) and step.reason is Reason.RestartDrained:
            event("a drained restart")
            going = [step.ordinal]
    for ordinal in going:
        assert oracle.tasks_held_by(ordinal, snapshot, snapshot.readings[0]) == set()
        assert held_by_agent(snapshot, ordinal) == set()


@given(in_any_case(), st.data())
@pytest.mark.guarantee(2)
def test_where_an_agent_is_unknown_nothing_goes_that_was_to_be_drained(snapshot: Snapshot, data: st.DataObject) -> None:
    running = [pod.ordinal for pod in snapshot.workload.pods if pod.is_running]
    assume(running)
    assert snapshot.agents is not None
    mute = data.draw(st.sampled_from(running))
    words = {**snapshot.agents.words, mute: (AgentSilent(mute, "refused"),)}
    decision = decide(replace(snapshot, agents=AgentsSeen(words, snapshot.agents.ends)), ON_DEMAND)
    grant = grant_of(decision)
    assert grant is None or not grant.is_removal or grant.reason in {Reason.NeverRan, *UNASKED}


@given(in_any_case(), agent_policies())
def test_never_is_everybody_named_nor_anybody_who_stays(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    for step in announced(decide(snapshot, policy)):
        event("an announcement")
        known = {volume.process_id for volume in snapshot.workload.volumes if volume.process_id is not None}
        assert not step.process_ids or not known or set(step.process_ids) < known or len(known) > len(step.process_ids)
        if step.ttl > timedelta(seconds=60):
            assert step.ttl == policy.timing.announcement_of_empty
            assert set(step.process_ids) <= processes_without_active_tasks(snapshot)


@given(in_any_case(), agent_policies())
def test_an_epoch_is_never_lower_than_one_that_was_heard(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    assert snapshot.agents is not None
    running = {pod.ordinal: pod.uid for pod in snapshot.workload.pods if pod.is_running}
    for step in announced(decide(snapshot, policy)):
        heard = [
            said[0].heard.epoch
            for ordinal, said in snapshot.agents.words.items()
            if isinstance(said[0], AgentReport)
            and said[0].pod_uid == running.get(ordinal)
            and timedelta(0) <= snapshot.now - said[0].as_of <= timedelta(seconds=10)
        ]
        assert all(one is None or one <= step.epoch for one in heard)


WITHDRAWN: tuple[dict[str, Any], ...] = ({"paused": True}, {"deleting": True}, {"held_because": "audit"})


@given(with_agents(snapshots(most_troubles=0), trouble=False), st.sampled_from([*WITHDRAWN, "raise", "same"]))
def test_whatever_calls_a_hold_off_leaves_nobody_named(snapshot: Snapshot, how: Any) -> None:
    statefulset = snapshot.workload.statefulset
    assert statefulset is not None
    app = snapshot.app
    if isinstance(how, str):
        desired = statefulset.replicas + (how == "raise")
        app = replace(app, desired=replace(app.desired, replicas=desired))
    else:
        desired = min(app.desired.replicas, statefulset.replicas)
        app = replace(app, desired=replace(app.desired, replicas=desired), **how)
    decision = decide(replace(snapshot, app=app), ScalingPolicy(agent=True, allow_zero=True))
    assert all(step.process_ids == () for step in announced(decision))
    assert snapshot.agents is not None
    is_named = any(
        isinstance(said[0], AgentReport) and said[0].heard.state is AnnouncementState.SET
        for said in snapshot.agents.words.values()
    )
    assert bool(announced(decision)) == is_named


@given(with_agents(scale_downs()) | with_agents(rollouts()), agent_policies())
def test_agents_that_step_aside_or_fall_silent_change_nothing_about_the_old_rules(
    snapshot: Snapshot, policy: ScalingPolicy
) -> None:
    """The fall-back never takes a pod that would have stayed without any agent."""
    assert snapshot.agents is not None
    mute = {pod.ordinal: (AgentSilent(pod.ordinal, "refused"),) for pod in snapshot.workload.pods}
    fallen = decide(replace(snapshot, agents=AgentsSeen(dict(mute))), policy)
    old = decide(replace(snapshot, agents=None), replace(policy, agent=False, source=None))
    taken = oracle.removes(fallen)
    assert taken is None or taken == oracle.removes(old)


@given(in_any_case(), agent_policies())
def test_with_the_world_standing_still_a_few_passes_come_to_rest(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    world.assert_rest(snapshot, policy, passes=6)


@given(drained(), st.sampled_from([1, 5, 9, 30, 300]))
@pytest.mark.guarantee(2)
def test_older_words_never_make_it_bolder(snapshot: Snapshot, by: int) -> None:
    assert snapshot.agents is not None
    age = timedelta(seconds=by)
    words = {
        ordinal: tuple(replace(one, as_of=one.as_of - age) if isinstance(one, AgentReport) else one for one in said)
        for ordinal, said in snapshot.agents.words.items()
    }
    ends = tuple(replace(one, began_at=one.began_at - age) for one in snapshot.agents.ends)
    before = oracle.removes(decide(snapshot, ON_DEMAND))
    after = oracle.removes(decide(replace(snapshot, agents=AgentsSeen(words, ends)), ON_DEMAND))
    assert after in {before, None}


REACHED = {
    "a drained removal": lambda one: one.reason is Reason.Drained,
    "several at once": lambda one: (
        one.reason is Reason.Drained
        and any(isinstance(step, GrantReplicas) and step.from_replicas - step.to_replicas > 1 for step in one.plan)
    ),
    "a contradiction": lambda one: one.reason is Reason.AgentsDisagree,
    "an announcement in a hold": lambda one: (
        one.verdict is Verdict.HOLD and any(step.process_ids for step in announced(one))
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("what", REACHED)
def test_the_examples_reach_what_the_laws_are_about(what: str) -> None:
    policy = ScalingPolicy(agent=True)
    found = find(drained(), lambda one: REACHED[what](decide(one, policy)), settings=QUICKLY)
    assert isinstance(found.readings[0].group, GroupDescription)
