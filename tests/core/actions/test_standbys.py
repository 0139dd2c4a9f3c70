"""Standbys of a streams group, raised on demand: on record before the write, put back whoever decides next."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import (
    Decision,
    GrantReplicas,
    OpenBudget,
    RestartPod,
    SetStandbys,
    WriteHoldRecord,
)
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import AgentsSeen, AsideKind, AssignorInactive
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import GroupDescription, Member, StandbySetting, StandbySettingUnread
from streamapp.core.facts.hold_record import Epoch, HoldRecord, RaisedStandbys, RaiseState
from streamapp.core.facts.policy import DisruptionPolicy, LearnerSource, RolloutPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import UNSCHEDULABLE, Budget, NodeDrain
from streamapp.core.reasons import Reason
from tests.builders import a_capture, a_hold, a_pod, a_snapshot, a_step, ago, pods, told
from tests.support import example
from tests.support.streams import streams_group, streams_reading

POLICY = ScalingPolicy(agent=True, source=LearnerSource.ON_DEMAND)
BARE = example.members(3, standbys=False)
CROWDED = example.members(3)
SPREAD = (
    example.member(0, active=(0, 1), standby=(4,)),
    example.member(1, active=(2, 3), standby=(5,)),
    example.member(2, active=(4, 5), standby=(0, 1, 2, 3)),
)
DEFAULT = StandbySetting(0, is_set=False)
RAISED = RaisedStandbys(before=None, instead_of=0, to=1, at=ago(20))
SEEN = replace(RAISED, state=RaiseState.SEEN)
TWICE = replace(RAISED, instead_of=1, is_second=True, to=2)


def reports(members: tuple[Member, ...], **changes: Any) -> AgentsSeen:
    aside = AssignorInactive(AsideKind.STREAMS_PROTOCOL, "the broker assigns")
    room = {"state_bytes": 2_000, "free_bytes": 1_000_000}
    return example.agents(members, is_ours=False, aside=aside, **{**room, **changes})


def a_case(
    members: tuple[Member, ...] = BARE,
    setting: StandbySetting | StandbySettingUnread = DEFAULT,
    raised: RaisedStandbys | None = None,
    *,
    is_held: bool = True,
    agents: dict[str, Any] | None = None,
    **changes: Any,
) -> Snapshot:
    """A hold from three to two, or its end, with that setting at the brokers and that record."""
    group = replace(streams_group(), standbys=setting)
    hold = a_hold() if is_held else None
    record = HoldRecord(epoch=Epoch(lease=0, counter=1), hold=hold, standbys=raised)
    return a_snapshot(
        readings=tuple(streams_reading(members, seconds, group) for seconds in (1, 15)),
        agents=reports(members, **(agents or {})),
        desired=changes.pop("desired", 2 if is_held else 3),
        record=None if hold is None and raised is None else record,
        **changes,
    )


def written(decision: Decision) -> list[int | None]:
    return [step.replicas for step in decision.plan if isinstance(step, SetStandbys)]


def on_record(decision: Decision) -> RaisedStandbys | None:
    """What the record says when the plan is done, if the plan writes it or it stays."""
    return decision.record.standbys if isinstance(decision.record, HoldRecord) else None


def test_the_old_value_is_on_record_before_the_first_write() -> None:
    decision = decide(a_case(), POLICY)
    assert decision.reason is Reason.NoLearners
    assert on_record(decision) == replace(RAISED, at=example.NOW)
    assert any(isinstance(step, WriteHoldRecord) for step in decision.plan)
    assert written(decision) == []
    assert [event.detail for event in decision.events if event.reason is Reason.StandbysRaised] == [
        "0 to 1: NoLearners"
    ]


@pytest.mark.guarantee(2)
def test_what_is_on_record_is_written_until_the_brokers_show_it() -> None:
    assert written(decide(a_case(raised=RAISED), POLICY)) == [1]
    behind = example.members(3, lag=50_000)
    shown = decide(a_case(behind, StandbySetting(1, is_set=True), RAISED), POLICY)
    assert (written(shown), on_record(shown)) == ([], SEEN)


def test_a_second_standby_is_asked_for_where_one_leaves_a_task_cold() -> None:
    decision = decide(a_case(CROWDED, StandbySetting(1, is_set=True), SEEN), POLICY)
    assert decision.reason is Reason.WouldMoveCold
    assert on_record(decision) == replace(TWICE, at=example.NOW)
    assert written(decision) == []
    assert written(decide(a_case(CROWDED, StandbySetting(1, is_set=True), TWICE), POLICY)) == [2]


def test_standbys_that_are_still_behind_are_waited_for_before_a_second_one_is_asked_for() -> None:
    behind = decide(a_case(example.members(3, lag=50_000), StandbySetting(1, is_set=True), SEEN), POLICY)
    assert (behind.reason, on_record(behind)) == (Reason.LearnersCatchingUp, SEEN)


def test_while_the_standbys_are_there_the_step_is_taken_and_they_stay() -> None:
    decision = decide(a_case(SPREAD, StandbySetting(1, is_set=True), SEEN), POLICY)
    (step,) = [one for one in decision.plan if isinstance(one, GrantReplicas)]
    assert isinstance(step.record, HoldRecord)
    assert (step.to_replicas, step.record.standbys, written(decision)) == (2, SEEN, [])


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(
    ("raised", "setting", "before"),
    [
        (SEEN, StandbySetting(1, is_set=True), None),
        (replace(SEEN, before=0), StandbySetting(1, is_set=True), 0),
        (RAISED, StandbySetting(1, is_set=True), None),
        (TWICE, StandbySetting(1, is_set=True), None),
        (replace(TWICE, state=RaiseState.SEEN), StandbySetting(2, is_set=True), None),
    ],
)
@pytest.mark.parametrize("ends_by", ["steady", "paused", "deleted", "raise"])
def test_they_are_put_back_when_nothing_needs_them(
    raised: RaisedStandbys, setting: StandbySetting, before: int | None, ends_by: str
) -> None:
    """Whoever decides: nothing but the record is needed."""
    app: dict[str, Any] = {"paused": {"paused": True}, "deleted": {"deleting": True}}.get(ends_by, {})
    is_held, desired = ends_by in {"paused", "deleted"}, {"raise": 4, "steady": 3}.get(ends_by, 2)
    snapshot = a_case(SPREAD, setting, raised, is_held=is_held, app=app)
    snapshot = replace(
        snapshot,
        app=replace(snapshot.app, desired=replace(snapshot.app.desired, replicas=desired)),
    )
    decision = decide(snapshot, POLICY)
    assert written(decision) == [before]
    kept = on_record(decision)
    assert kept is not None
    assert (kept.before, kept.to) == (raised.before, raised.to)


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(
    ("app", "desired", "put_back"),
    [({}, 3, []), ({}, 5, []), ({"paused": True}, 3, []), ({"deleting": True}, 3, [None])],
    ids=["steady", "raised", "paused", "deleted"],
)
def test_a_step_that_is_open_keeps_them(app: dict[str, Any], desired: int, put_back: list[int | None]) -> None:
    """The members of its pods are in the group until they have left."""
    step = replace(a_step(observed=(a_capture(3),)), from_replicas=4, to_replicas=3)
    record = HoldRecord(epoch=Epoch(lease=0, counter=1), hold=None, step=step, standbys=SEEN)
    closing = a_case(SPREAD, StandbySetting(1, is_set=True), SEEN, is_held=False, desired=desired, app=app)
    statefulset = closing.workload.statefulset
    assert statefulset is not None
    workload = replace(closing.workload, statefulset=replace(statefulset, record=record))
    assert written(decide(replace(closing, workload=workload), POLICY)) == put_back


@pytest.mark.guarantee(2)
def test_the_record_ends_when_the_old_value_is_shown_and_no_write_is_on_its_way() -> None:
    done = decide(a_case(SPREAD, DEFAULT, SEEN, is_held=False), POLICY)
    assert (written(done), on_record(done)) == ([], None)
    assert [event.detail for event in done.events if event.reason is Reason.StandbysRestored] == ["0"]
    late = decide(a_case(SPREAD, DEFAULT, RAISED, is_held=False), POLICY)
    assert on_record(late) == RAISED
    old = replace(RAISED, at=ago(40))
    assert on_record(decide(a_case(SPREAD, DEFAULT, old, is_held=False), POLICY)) is None


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("setting", [StandbySetting(2, is_set=True), StandbySetting(0, is_set=True), DEFAULT])
def test_a_value_of_another_hand_stays(setting: StandbySetting) -> None:
    during = decide(a_case(BARE, setting, SEEN), POLICY)
    foreign = replace(SEEN, state=RaiseState.FOREIGN)
    assert (written(during), on_record(during)) == ([], foreign)
    again = decide(a_case(BARE, StandbySetting(1, is_set=True), foreign), POLICY)
    assert (written(again), on_record(again)) == ([], foreign)
    after = decide(a_case(SPREAD, setting, foreign, is_held=False), POLICY)
    assert (written(after), on_record(after)) == ([], None)


@pytest.mark.guarantee(2)
def test_a_default_that_another_hand_sets_explicitly_is_not_overwritten() -> None:
    during = decide(a_case(BARE, StandbySetting(0, is_set=True), RAISED), POLICY)
    assert (written(during), on_record(during)) == ([], replace(RAISED, state=RaiseState.FOREIGN))


@pytest.mark.parametrize(
    "changes",
    [
        {"setting": StandbySettingUnread("the broker refuses it to this user")},
        {"setting": StandbySetting(2, is_set=True)},
        {"agents": {"free_bytes": 10}},
        {"agents": {"free_bytes": None}},
    ],
    ids=["unread", "as many as brokers allow", "no room", "room unknown"],
)
def test_nothing_is_raised_where_it_cannot_be_or_must_not(changes: dict[str, Any]) -> None:
    decision = decide(a_case(**changes), POLICY)
    assert (written(decision), on_record(decision)) == ([], None)


def test_the_hold_names_the_volume_that_has_no_room_for_standbys() -> None:
    decision = decide(a_case(agents={"free_bytes": 10}), POLICY)
    assert told(decision) == ("Hold", "NoRoomForLearners")
    assert decision.detail.startswith("ordinal 0: 0 MB are needed, 0 MB are free")


def test_nothing_is_raised_unless_learners_on_demand_are_demanded() -> None:
    for policy in (ScalingPolicy(agent=True), replace(POLICY, source=LearnerSource.STANDBYS)):
        assert on_record(decide(a_case(), policy)) is None


def test_a_dry_run_writes_nothing() -> None:
    decision = decide(a_case(raised=RAISED, app={"dry_run": True}), POLICY)
    assert (written(decision), decision.plan) == ([], ())


def test_what_cannot_be_read_is_said_where_learners_are_told() -> None:
    decision = decide(a_case(setting=StandbySettingUnread("no right")), POLICY)
    refusal = decision.source.not_on_demand
    assert refusal is not None
    assert (refusal.reason, refusal.detail) == (Reason.StandbysNotRaisable, "no right")


# Rollouts


def a_rollout(members: tuple[Member, ...], setting: StandbySetting, raised: RaisedStandbys | None = None) -> Snapshot:
    return a_case(members, setting, raised, is_held=False, statefulset={"update_revision": "new"})


def restarts(decision: Decision) -> list[int]:
    return [int(step.ordinal) for step in decision.plan if isinstance(step, RestartPod)]


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
    case = a_case(SPREAD, StandbySetting(1, is_set=True), SEEN, is_held=False)
    group = case.readings[0].group
    assert isinstance(group, GroupDescription)
    member = group.members[2]
    before = replace(a_capture(2), members=(MemberKey(member.id, None),), container_id="the one before")
    decision = decide(replace(case, observed=(before,)), POLICY)
    assert (written(decision), on_record(decision)) == ([], SEEN)


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
    two, seen = StandbySetting(2, is_set=True), replace(TWICE, state=RaiseState.SEEN)
    half = {"pods": pods(3, p1=a_pod(1, revision="new"))}
    decision = decide(a_case(members, two, seen, statefulset={"update_revision": "new"}, workload=half), policy)
    removals = [step.to_replicas for step in decision.plan if isinstance(step, GrantReplicas)]
    reconciling = [one.reason for one in decision.conditions if one.type == "Reconciling"]
    assert (removals, decision.reason, reconciling) == (removed, reason, [of_rollout])
