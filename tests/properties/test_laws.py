"""The laws of `decide`: what holds for every application in every kind of trouble."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import Phase, event, find, given, settings
from hypothesis import strategies as st

from streamapp.core.actions.decision import (
    Decision,
    Evict,
    GrantReplicas,
    RestartPod,
    TriggerRebalance,
    Verdict,
    WriteTemplate,
)
from streamapp.core.decide import decide
from streamapp.core.evidence.changelog_tails import with_tails
from streamapp.core.facts.group import Applied, GroupDescription, GroupReading, GroupUnreadable, Member
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable, Unknown
from streamapp.core.facts.policy import ScaleDownPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskFacts, TaskSet, TopologyUnknown
from streamapp.core.reasons import Reason
from tests.properties import oracle, world
from tests.strategies import policies, rollouts, scale_downs, snapshots

UNASKED = {Reason.StoppingToZero, Reason.OverriddenByPolicy, Reason.OverriddenByUser, Reason.OverriddenByTimeout}
"""Removals for which the user's word stands in for coverage."""


def grant_of(decision: Decision) -> GrantReplicas | None:
    return next((step for step in decision.plan if isinstance(step, GrantReplicas)), None)


@given(snapshots(), policies())
def test_the_same_facts_give_the_same_decision(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    assert decide(snapshot, policy) == decide(replace(snapshot), replace(policy))


def _shuffled(items: tuple[Any, ...], data: st.DataObject) -> tuple[Any, ...]:
    return tuple(data.draw(st.permutations(items)))


def _reading_shuffled(reading: GroupReading, data: st.DataObject) -> GroupReading:
    if not isinstance(reading.group, GroupDescription):
        return reading
    return replace(reading, group=GroupDescription(reading.group.state, _shuffled(reading.group.members, data)))


@given(snapshots(), policies(), st.data())
def test_the_order_of_any_collection_means_nothing(
    snapshot: Snapshot, policy: ScalingPolicy, data: st.DataObject
) -> None:
    task_set = snapshot.task_set
    if isinstance(task_set, TaskSet):
        task_set = TaskSet(_shuffled(task_set.tasks, data))
    readings = tuple(_reading_shuffled(reading, data) for reading in snapshot.readings)
    desired = replace(snapshot.app.desired, history=_shuffled(snapshot.app.desired.history, data))
    other = replace(
        snapshot,
        app=replace(snapshot.app, desired=desired),
        workload=replace(
            snapshot.workload,
            pods=_shuffled(snapshot.workload.pods, data),
            volumes=_shuffled(snapshot.workload.volumes, data),
        ),
        task_set=task_set,
        readings=_shuffled(readings, data),
        observed=_shuffled(snapshot.observed, data),
        container_ends=_shuffled(snapshot.container_ends, data),
    )
    assert decide(other, policy) == decide(snapshot, policy)


@given(snapshots(), policies())
def test_done_means_done(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    """With the clock and the world standing still, a few passes come to rest, and none repeats a step of another."""
    world.assert_rest(snapshot, policy, passes=5)


@given(scale_downs(), policies())
@pytest.mark.guarantee(1)
def test_no_pod_goes_while_it_has_the_last_good_copy_of_a_task(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    decision = decide(snapshot, policy)
    to_replicas = oracle.removes(decision)
    if to_replicas is None or decision.reason is not Reason.Covered:
        return
    event("a covered removal")
    kept = set(range(to_replicas))
    seen_good = [
        reading
        for reading in snapshot.readings
        if isinstance(reading.group, GroupDescription)
        and not oracle.tasks_without_a_good_copy(snapshot, reading, policy, kept)
    ]
    joins = sorted({reading.rebalance.settled_at for reading in seen_good if reading.rebalance is not None})
    assert snapshot.readings[0] in seen_good
    assert joins[-1] - joins[0] >= timedelta(seconds=10)


@given(scale_downs(), policies(), st.data())
def test_a_tail_that_a_look_did_not_tell_never_makes_it_bolder(
    snapshot: Snapshot, policy: ScalingPolicy, data: st.DataObject
) -> None:
    def looked(reading: GroupReading) -> GroupReading:
        if reading.rebalance is None or not isinstance(reading.rebalance.ends, EndOffsets):
            return reading
        ends = reading.rebalance.ends
        doubted = {each: Unknown("refused") for each in sorted(ends.partitions) if data.draw(st.booleans())}
        return replace(reading, rebalance=replace(reading.rebalance, ends=with_tails(ends, doubted)))

    before = oracle.removes(decide(snapshot, policy))
    blind = replace(snapshot, readings=tuple(looked(reading) for reading in snapshot.readings))
    assert oracle.removes(decide(blind, policy)) in {before, None}


@given(rollouts(), policies())
def test_no_pod_restarts_while_it_has_the_last_good_copy_of_a_task(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    decision = decide(snapshot, policy)
    restarted = [step for step in decision.plan if isinstance(step, RestartPod)]
    if not restarted or restarted[0].reason is not Reason.RestartCovered:
        return
    event("a covered restart")
    kept = {pod.ordinal for pod in snapshot.workload.pods} - {restarted[0].ordinal}
    assert oracle.tasks_without_a_good_copy(snapshot, snapshot.readings[0], policy, {*map(int, kept)}) == set()


@given(scale_downs(), policies())
def test_never_more_than_one_ordinal_at_once_unless_all_of_them_hold_nothing(
    snapshot: Snapshot, policy: ScalingPolicy
) -> None:
    decision = decide(snapshot, policy)
    grant = grant_of(decision)
    if grant is None or grant.from_replicas - grant.to_replicas <= 1:
        return
    event("several at once")
    for ordinal in range(grant.to_replicas, grant.from_replicas):
        assert oracle.tasks_held_by(ordinal, snapshot, snapshot.readings[0]) == set()


def _blinded(snapshot: Snapshot, how: str) -> Snapshot:
    if how in READING_BY_READING:
        blind = READING_BY_READING[how]
        return replace(snapshot, readings=tuple(blind(reading) for reading in snapshot.readings))
    wordless = replace(snapshot.app, desired=replace(snapshot.app.desired, history=()))
    old = replace(snapshot.workload, read_at=snapshot.now - timedelta(minutes=5))
    return {
        "no reading": replace(snapshot, readings=()),
        "one reading": replace(snapshot, readings=snapshot.readings[:1]),
        "no topology": replace(snapshot, task_set=TopologyUnknown("?")),
        "old facts": replace(snapshot, workload=old),
        "no wish": replace(snapshot, app=wordless),
    }[how]


def _without_offsets(reading: GroupReading) -> GroupReading:
    if not isinstance(reading.group, GroupDescription):
        return reading
    silent = tuple(
        replace(member, subscription=member.subscription and replace(member.subscription, offsets={}))
        for member in reading.group.members
    )
    return replace(reading, group=GroupDescription(reading.group.state, silent))


READING_BY_READING: dict[str, Callable[[GroupReading], GroupReading]] = {
    "unreadable": lambda one: replace(one, group=GroupUnreadable(Reason.GroupUndecodable, "?"), rebalance=None),
    "no join": lambda one: replace(one, rebalance=None),
    "no ends": lambda one: replace(
        one, rebalance=one.rebalance and replace(one.rebalance, ends=EndsUnreadable("refused"))
    ),
    "no offsets": _without_offsets,
}
BLINDNESS = st.sampled_from([*READING_BY_READING, "no reading", "one reading", "no topology", "old facts", "no wish"])


@given(scale_downs() | rollouts(), policies(), BLINDNESS)
@pytest.mark.guarantee(2)
def test_what_nobody_knows_never_takes_a_pod_that_may_hold_something(
    snapshot: Snapshot, policy: ScalingPolicy, how: str
) -> None:
    decision = decide(_blinded(snapshot, how), policy)
    grant = grant_of(decision)
    if grant is not None and grant.is_removal:
        # pods that were never part of the group, the user's own word, or pods of whose emptiness nothing is unknown
        empty = {Reason.OwnsNothing} if how == "no offsets" else set()
        assert grant.reason in {Reason.NeverRan, *UNASKED, *empty}
    elif oracle.restarts(decision) is not None:
        restarted = next(step for step in decision.plan if isinstance(step, RestartPod))
        assert restarted.reason in {
            Reason.RestartOfIdlePod,
            Reason.RestartUncovered,
            Reason.RestartWithoutLearners,
            Reason.RestartCovered if how == "no wish" else Reason.RestartOfIdlePod,
        }


def _further_behind(reading: GroupReading, by: int) -> GroupReading:
    if not isinstance(reading.group, GroupDescription):
        return reading
    return replace(
        reading,
        group=GroupDescription(reading.group.state, tuple(_slower(member, by) for member in reading.group.members)),
    )


def _slower(member: Member, by: int) -> Member:
    if member.subscription is None:
        return member
    offsets = {
        task: Applied(max(0, said.offset_sum - by)) if isinstance(said, Applied) else said
        for task, said in member.subscription.offsets.items()
    }
    return replace(member, subscription=replace(member.subscription, offsets=offsets))


def boldness(decision: Decision) -> tuple[int, int]:
    """How much is taken away: replicas, and pods that restart."""
    grant = grant_of(decision)
    taken = grant.from_replicas - grant.to_replicas if grant is not None and grant.is_removal else 0
    return taken, int(oracle.restarts(decision) is not None)


@given(scale_downs() | rollouts(), policies(), st.sampled_from([1, 2, 9_000, 600_000]))
def test_more_lag_never_makes_it_bolder(snapshot: Snapshot, policy: ScalingPolicy, by: int) -> None:
    slower = replace(snapshot, readings=tuple(_further_behind(reading, by) for reading in snapshot.readings))
    before, after = boldness(decide(snapshot, policy)), boldness(decide(slower, policy))
    assert after[0] <= before[0]
    # a removal that is now held may leave room for a restart, which is judged by itself
    assert after[1] <= before[1] or before[0] > 0


@given(scale_downs() | rollouts(), policies(), st.sampled_from([1, 5, 9, 30, 300]))
@pytest.mark.guarantee(2)
def test_older_facts_never_make_it_bolder(snapshot: Snapshot, policy: ScalingPolicy, by: int) -> None:
    age = timedelta(seconds=by)

    def older(reading: GroupReading) -> GroupReading:
        rebalance = reading.rebalance and replace(
            reading.rebalance, began_at=reading.rebalance.began_at - age, settled_at=reading.rebalance.settled_at - age
        )
        return replace(reading, ended_at=reading.ended_at - age, rebalance=rebalance)

    aged = replace(
        snapshot,
        workload=replace(snapshot.workload, read_at=snapshot.workload.read_at - age),
        readings=tuple(older(reading) for reading in snapshot.readings),
    )
    before, after = boldness(decide(snapshot, policy)), boldness(decide(aged, policy))
    assert after[0] <= before[0]
    assert after[1] <= before[1] or before[0] > 0


@given(snapshots(), policies())
@pytest.mark.guarantee(8)
def test_every_step_of_every_plan_says_why(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    decision = decide(snapshot, policy)
    assert all(isinstance(step.reason, Reason) for step in (*decision.plan, *decision.withheld))
    assert isinstance(decision.reason, Reason)


@given(snapshots(), policies(), st.integers(min_value=1, max_value=9))
@pytest.mark.guarantee(3)
def test_a_raise_is_granted_at_once_and_calls_off_any_hold(
    snapshot: Snapshot, policy: ScalingPolicy, more: int
) -> None:
    statefulset = snapshot.workload.statefulset
    if statefulset is None or not statefulset.is_ours:
        return
    desired = statefulset.replicas + more
    app = replace(
        snapshot.app,
        desired=replace(snapshot.app.desired, replicas=desired),
        paused=False,
        dry_run=False,
        deleting=False,
        fault=None,
    )
    decision = decide(replace(snapshot, app=app), policy)
    first = decision.plan[0]
    assert isinstance(first, GrantReplicas)
    assert (decision.verdict, first.to_replicas) == (Verdict.GROW, desired)
    assert not isinstance(first.record, HoldRecord) or first.record.hold is None


@given(snapshots(), policies())
@pytest.mark.guarantee(7)
def test_a_live_member_is_never_put_out(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    for step in decide(snapshot, policy).plan:
        if not isinstance(step, Evict):
            continue
        event("an eviction")
        assert step.end is not None
        for key in step.members:
            proofs = [
                end
                for end in snapshot.container_ends
                for seen in (*snapshot.observed, *_of_step(snapshot))
                if (seen.container_id, seen.pod_uid) == (end.container_id, end.pod_uid)
                and key in seen.members
                and seen.is_confirmed
                and end.finished_at - seen.seen_at >= timedelta(seconds=10)
            ]
            assert step.end in proofs


def _of_step(snapshot: Snapshot) -> tuple[Any, ...]:
    statefulset = snapshot.workload.statefulset
    record = None if statefulset is None else statefulset.record
    return record.step.observed if isinstance(record, HoldRecord) and record.step is not None else ()


KEPT_STILL: tuple[dict[str, Any], ...] = ({"paused": True}, {"dry_run": True}, {"deleting": True}, {"fault": "?"})
FORBIDDEN = GrantReplicas | RestartPod | WriteTemplate


@given(snapshots(), policies())
def test_who_is_told_to_keep_still_takes_nothing_and_restarts_nothing(
    snapshot: Snapshot, policy: ScalingPolicy
) -> None:
    for app in KEPT_STILL:
        decision = decide(replace(snapshot, app=replace(snapshot.app, **app)), policy)
        assert [step for step in decision.plan if isinstance(step, FORBIDDEN)] == []


@given(snapshots(), policies())
def test_one_pass_makes_one_change(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    plan = decide(snapshot, policy).plan
    changes = [step for step in plan if isinstance(step, GrantReplicas | RestartPod | WriteTemplate)]
    assert len(changes) <= 1
    assert not (changes and any(isinstance(step, TriggerRebalance) for step in plan))


@given(scale_downs())
def test_forcing_takes_no_more_pods_at_once_and_only_from_a_stable_group(snapshot: Snapshot) -> None:
    forced = ScalingPolicy(scale_down=ScaleDownPolicy.IMMEDIATE, force_reason="because")
    decision = decide(snapshot, forced)
    grant = grant_of(decision)
    if grant is None or grant.reason is not Reason.OverriddenByPolicy:
        return
    event("a forced removal")
    latest = snapshot.readings[0]
    taken = range(grant.to_replicas, grant.from_replicas)
    assert len(taken) == 1 or [oracle.tasks_held_by(one, snapshot, latest) for one in taken] == [set()] * len(taken)
    assert isinstance(latest.group, GroupDescription)
    assert latest.group.state.value == "Stable"


@given(scale_downs(), policies())
def test_a_task_that_no_member_has_keeps_every_pod_that_may_hold_it(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    if not isinstance(snapshot.task_set, TaskSet):
        return
    orphan = TaskFacts(id=snapshot.task_set.tasks[0].id._replace(subtopology=9), stateful=False)
    wider = replace(snapshot, task_set=TaskSet((*snapshot.task_set.tasks, orphan)))
    grant = grant_of(decide(wider, policy))
    assert grant is None or not grant.is_removal or grant.reason is Reason.NeverRan


QUICKLY = settings(max_examples=3000, phases=[Phase.generate])

WITHIN_REACH: dict[str, tuple[Any, Callable[[Decision], bool]]] = {
    "a covered removal": (scale_downs(), lambda one: oracle.removes(one) is not None and one.reason is Reason.Covered),
    "idle pods going together": (
        scale_downs(),
        lambda one: (grant := grant_of(one)) is not None and grant.from_replicas - grant.to_replicas > 1,
    ),
    "a covered restart": (rollouts(), lambda one: oracle.restarts(one) is not None),
    "an eviction": (snapshots(), lambda one: any(isinstance(step, Evict) for step in one.plan)),
    "a triggered rebalance": (snapshots(), lambda one: any(isinstance(step, TriggerRebalance) for step in one.plan)),
    "a lag that holds": (scale_downs(), lambda one: one.reason is Reason.LearnersCatchingUp),
    "the last pod": (snapshots(), lambda one: one.reason is Reason.StoppingToZero),
}


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("what", WITHIN_REACH)
def test_the_examples_reach_what_the_laws_are_about(what: str) -> None:
    strategy, happens = WITHIN_REACH[what]
    policy = ScalingPolicy(allow_zero=True)
    assert find(strategy, lambda snapshot: happens(decide(snapshot, policy)), settings=QUICKLY)
