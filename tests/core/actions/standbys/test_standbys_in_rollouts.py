"""Standbys that are raised for restarts and evictions, and stay until the members have left."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.actions.decision import (
    Decision,
    GrantReplicas,
    OpenBudget,
    RestartPod,
)
from streamapp.core.decide import decide
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import Member, StandbySetting, StandbySettingUnread
from streamapp.core.facts.hold_record import Epoch, HoldRecord, RaisedStandbys
from streamapp.core.facts.policy import DisruptionPolicy, RolloutPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import UNSCHEDULABLE, Budget, NodeDrain
from streamapp.core.reasons import Reason
from tests.builders import NOW, a_capture, a_pod, a_step, an_end, pods
from tests.support import example
from tests.support.raised_standbys import BARE, CROWDED, POLICY, RAISED, SEEN, SPREAD, TWICE, a_case, on_record, written
from tests.support.streams import streams_group, streams_reading


def a_rollout(members: tuple[Member, ...], setting: StandbySetting, raised: RaisedStandbys | None = None) -> Snapshot:
    return a_case(members, setting, raised, is_held=False, statefulset={"update_revision": "new"})


def restarts(decision: Decision) -> list[int]:
    return [int(step.ordinal) for step in decision.plan if isinstance(step, RestartPod)]


@pytest.mark.guarantee(1)
def test_a_rollout_waits_while_brokers_refuse_to_raise_standbys() -> None:
    """They may take the next write: a refusal must not cost a restart without a copy."""
    refused = StandbySettingUnread("no right")
    decision = decide(a_case(BARE, refused, is_held=False, statefulset={"update_revision": "new"}), POLICY)
    assert restarts(decision) == []
    (waits,) = [one for one in decision.conditions if one.type == "Reconciling"]
    assert (waits.reason, "no right" in waits.detail) == (Reason.StandbysNotRaisable, True)
    accepted = replace(POLICY, rollout=RolloutPolicy.IMMEDIATE)
    at_once = a_case(BARE, refused, is_held=False, statefulset={"update_revision": "new"})
    assert restarts(decide(at_once, accepted)) == [2]


def test_a_rollout_asks_for_standbys_before_it_restarts_a_pod() -> None:
    bare = decide(a_case(BARE, is_held=False, statefulset={"update_revision": "new", "record": None}), POLICY)
    assert restarts(bare) == []
    assert on_record(bare) == replace(RAISED, at=example.NOW)
    there = decide(a_rollout(SPREAD, StandbySetting(1, is_set=True), SEEN), POLICY)
    assert (restarts(there), written(there)) == ([2], [])


@pytest.mark.guarantee(1)
def test_while_a_pod_may_be_evicted_the_standbys_that_this_rests_on_stay() -> None:
    policy = replace(POLICY, disruption=DisruptionPolicy.WHEN_CAUGHT_UP)
    left = a_pod(2, drain=NodeDrain("blue", UNSCHEDULABLE))
    workload = {"pods": pods(3, p2=left), "budget": Budget.CLOSED, "budget_lease": 0, "sees_nodes": True}
    case = a_case(SPREAD, StandbySetting(1, is_set=True), SEEN, is_held=False, workload=workload)
    decision = decide(case, policy)
    assert [step.evictable for step in decision.plan if isinstance(step, OpenBudget)] == [2]
    assert (written(decision), on_record(decision)) == ([], SEEN)
    nobody_leaves = replace(case, workload=replace(case.workload, pods=pods(3)))
    assert written(decide(nobody_leaves, policy)) == [None]


def test_a_drain_names_the_brokers_that_refuse_to_raise_standbys() -> None:
    policy = replace(POLICY, disruption=DisruptionPolicy.WHEN_CAUGHT_UP)
    left = a_pod(2, drain=NodeDrain("blue", UNSCHEDULABLE))
    workload = {"pods": pods(3, p2=left), "budget": Budget.CLOSED, "budget_lease": 0, "sees_nodes": True}
    case = a_case(
        BARE, StandbySettingUnread("no right"), is_held=False, statefulset={"record": None}, workload=workload
    )
    decision = decide(case, policy)
    assert not any(isinstance(step, OpenBudget) for step in decision.plan)
    (waits,) = [one for one in decision.conditions if one.type == "Reconciling"]
    assert (waits.reason, "no right" in waits.detail) == (Reason.StandbysNotRaisable, True)


@pytest.mark.parametrize(
    ("rollout", "revision"), [(RolloutPolicy.PAUSED, "new"), (RolloutPolicy.WHEN_CAUGHT_UP, example.REVISION)]
)
def test_a_rollout_that_a_user_paused_neither_keeps_drains_from_standbys_nor_keeps_standbys(
    rollout: RolloutPolicy, revision: str
) -> None:
    policy = replace(POLICY, disruption=DisruptionPolicy.WHEN_CAUGHT_UP, rollout=rollout)
    left = a_pod(2, drain=NodeDrain("blue", UNSCHEDULABLE))
    budget = {"budget": Budget.CLOSED, "budget_lease": 0, "sees_nodes": True}
    statefulset = {"update_revision": revision, "record": None}
    drained = a_case(BARE, is_held=False, statefulset=statefulset, workload={"pods": pods(3, p2=left), **budget})
    assert on_record(decide(drained, policy)) == replace(RAISED, at=example.NOW)
    done = a_case(
        SPREAD,
        StandbySetting(1, is_set=True),
        SEEN,
        is_held=False,
        statefulset={"update_revision": revision},
        workload={"pods": pods(3), **budget},
    )
    assert written(decide(done, policy)) == [None]


LEAVING = pods(3, p2=a_pod(2, terminating=True))


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(
    ("app", "desired", "revision"),
    [({}, 3, example.REVISION), ({}, 5, "new"), ({"paused": True}, 3, example.REVISION)],
    ids=["the last pod of a rollout", "replicas rise", "paused"],
)
def test_a_pod_that_restarts_keeps_them_until_its_members_have_left(
    app: dict[str, Any], desired: int, revision: str
) -> None:
    case = a_case(
        SPREAD,
        StandbySetting(1, is_set=True),
        SEEN,
        is_held=False,
        desired=desired,
        app=app,
        statefulset={"update_revision": revision},
        workload={"pods": LEAVING},
    )
    leaving = decide(case, POLICY)
    assert (written(leaving), on_record(leaving)) == ([], SEEN)
    group = replace(streams_group(), standbys=StandbySetting(1, is_set=True))
    gone = tuple(streams_reading(SPREAD[:2], seconds, group) for seconds in (1, 15))
    assert written(decide(replace(case, readings=gone), POLICY)) == [None]


@pytest.mark.guarantee(1)
def test_a_pod_that_was_evicted_keeps_them_until_its_members_have_left() -> None:
    policy = replace(POLICY, disruption=DisruptionPolicy.WHEN_CAUGHT_UP)
    going = a_pod(2, drain=NodeDrain("blue", UNSCHEDULABLE), terminating=True)
    workload = {
        "pods": pods(3, p2=going),
        "budget": Budget.OPEN_FOR_ONE,
        "evictable": 2,
        "budget_lease": 0,
        "sees_nodes": True,
    }
    decision = decide(a_case(SPREAD, StandbySetting(1, is_set=True), SEEN, is_held=False, workload=workload), policy)
    assert (written(decision), on_record(decision)) == ([], SEEN)


@pytest.mark.guarantee(1)
def test_a_member_of_a_container_that_ended_keeps_them_though_its_pod_runs_again() -> None:
    decision = decide(seen_in_the_one_before(), POLICY)
    assert (written(decision), on_record(decision)) == ([], SEEN)


SESSION = timedelta(seconds=45)
LONG_PAST = timedelta(minutes=11, seconds=32)
"""Ten minutes and two sessions before the reading, which was asked for a second ago, and a second more."""


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(
    ("session", "end", "put_back"),
    [
        pytest.param(SESSION, {"finished_at": NOW - LONG_PAST}, [None], id="its session would be over"),
        pytest.param(SESSION, {"finished_at": NOW - LONG_PAST + timedelta(seconds=1)}, [], id="it may not be over"),
        pytest.param(None, {"finished_at": NOW - LONG_PAST}, [], id="nobody tells how long a session is"),
        pytest.param(SESSION, None, [], id="nobody tells when it ended"),
        pytest.param(
            SESSION,
            {"finished_at": NOW - LONG_PAST, "reason": "ContainerStatusUnknown"},
            [],
            id="the kubelet only lost sight of it",
        ),
        pytest.param(timedelta(minutes=5), {"finished_at": NOW - LONG_PAST}, [], id="sessions are long"),
    ],
)
def test_whoever_is_listed_long_after_its_container_ended_is_of_the_next_one(
    session: timedelta | None, end: dict[str, Any] | None, put_back: list[int | None]
) -> None:
    ends = () if end is None else (an_end(pod_uid="pod-2", container_id="the one before", **end),)
    case = replace(seen_in_the_one_before(session_timeout=session), container_ends=ends)
    assert written(decide(case, POLICY)) == put_back


def seen_in_the_one_before(**told: Any) -> Snapshot:
    """Pod 2 runs again, and its member was seen while the container before the present one ran."""
    case = a_case(SPREAD, StandbySetting(1, is_set=True), SEEN, is_held=False)
    group = replace(streams_group(), standbys=StandbySetting(1, is_set=True), **told)
    readings = tuple(streams_reading(SPREAD, seconds, group) for seconds in (1, 15))
    before = replace(a_capture(2), members=(MemberKey(SPREAD[2].id, None),), container_id="the one before")
    return replace(case, readings=readings, observed=(before,))


@pytest.mark.guarantee(1)
def test_a_step_that_is_open_keeps_the_first_standby_while_a_second_one_is_not_there_yet() -> None:
    step = replace(a_step(observed=(a_capture(3),)), from_replicas=4, to_replicas=3)
    record = HoldRecord(epoch=Epoch(lease=0, counter=1), hold=None, step=step, standbys=TWICE)
    case = a_case(SPREAD, StandbySetting(1, is_set=True), TWICE, is_held=False, desired=5)
    statefulset = case.workload.statefulset
    assert statefulset is not None
    workload = replace(case.workload, statefulset=replace(statefulset, record=record))
    assert written(decide(replace(case, workload=workload), POLICY)) == []


EVEN = (
    example.member(0, active=(0, 1), standby=(5,)),
    example.member(1, active=(2, 3), standby=(0, 4)),
    example.member(2, active=(4, 5), standby=(1, 2, 3)),
)
"""Whichever pod goes, each of its tasks goes to a pod with a copy. In `SPREAD` that holds for ordinal 2 alone."""


@pytest.mark.parametrize(
    ("members", "policy", "removed", "reason", "of_rollout"),
    [
        (EVEN, POLICY, [], Reason.RolloutInProgress, Reason.RestartCovered),
        (SPREAD, POLICY, [2], Reason.Covered, Reason.Covered),
        (CROWDED, POLICY, [], Reason.WouldMoveCold, Reason.WouldMoveCold),
        (SPREAD, replace(POLICY, rollout=RolloutPolicy.PAUSED), [], Reason.RolloutInProgress, Reason.RolloutInProgress),
    ],
    ids=["the restart is covered", "the removal alone is covered", "neither is covered", "the rollout is paused"],
)
def test_a_scale_down_goes_before_a_rollout_only_if_the_restart_would_move_tasks_cold(
    members: tuple[Member, ...], policy: ScalingPolicy, removed: list[int], reason: Reason, of_rollout: Reason
) -> None:
    one = StandbySetting(1, is_set=True)
    half = {"pods": pods(3, p1=a_pod(1, revision="new"))}
    decision = decide(a_case(members, one, SEEN, statefulset={"update_revision": "new"}, workload=half), policy)
    removals = [step.to_replicas for step in decision.plan if isinstance(step, GrantReplicas)]
    reconciling = [one.reason for one in decision.conditions if one.type == "Reconciling"]
    assert (removals, decision.reason, reconciling) == (removed, reason, [of_rollout])
