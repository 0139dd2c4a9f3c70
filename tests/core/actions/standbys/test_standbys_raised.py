"""Standbys of a streams group, raised on demand: on record before the write, put back whoever decides next."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import (
    GrantReplicas,
    WriteHoldRecord,
)
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.group import StandbySetting, StandbySettingUnread
from streamapp.core.facts.hold_record import Epoch, HoldRecord, RaisedStandbys, RaiseState
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import HoldOverride
from streamapp.core.reasons import Reason
from tests.builders import a_capture, a_hold, a_step, ago, told
from tests.support import example
from tests.support.raised_standbys import (
    BARE,
    CROWDED,
    POLICY,
    RAISED,
    READ_AT,
    SEEN,
    SPREAD,
    TWICE,
    a_case,
    on_record,
    written,
)


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
    assert (written(shown), on_record(shown)) == ([], replace(SEEN, at=READ_AT))


@pytest.mark.guarantee(2)
def test_a_raise_that_is_sent_again_is_dated_anew_before() -> None:
    """It can arrive as late as the first one: until then a hold that ends must not forget what there is to put back."""
    decision = decide(a_case(raised=replace(RAISED, at=ago(61))), POLICY)
    again = replace(RAISED, at=example.NOW)
    assert (written(decision), on_record(decision)) == ([], again)
    assert any(isinstance(step, WriteHoldRecord) for step in decision.plan)
    assert written(decide(a_case(raised=again), POLICY)) == [1]
    off = decide(a_case(raised=replace(again, at=ago(1)), is_held=False), POLICY)
    assert on_record(off) == replace(again, at=ago(1))


def test_a_second_standby_is_asked_for_where_one_leaves_a_task_cold() -> None:
    decision = decide(a_case(CROWDED, StandbySetting(1, is_set=True), SEEN), POLICY)
    assert decision.reason is Reason.WouldMoveCold
    assert on_record(decision) == replace(TWICE, at=READ_AT)
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
@pytest.mark.parametrize("is_held", [True, False])
def test_a_record_that_is_gone_with_its_statefulset_is_written_anew_and_the_old_value_comes_back(
    is_held: bool,
) -> None:
    lost = a_case(SPREAD, StandbySetting(1, is_set=True), is_held=is_held)
    statefulset = lost.workload.statefulset
    assert statefulset is not None
    workload = replace(lost.workload, statefulset=replace(statefulset, record=None))
    decision = decide(replace(lost, workload=workload, lost_standbys=SEEN), POLICY)
    kept = on_record(decision)
    assert kept is not None
    assert (kept.before, kept.to) == (None, 1)
    assert any(isinstance(step, WriteHoldRecord) for step in decision.plan)
    assert written(decision) == ([] if is_held else [None])


@pytest.mark.guarantee(2)
def test_a_raise_whose_record_is_gone_is_not_sent_before_it_is_on_record_again() -> None:
    lost = a_case()
    statefulset = lost.workload.statefulset
    assert statefulset is not None
    workload = replace(lost.workload, statefulset=replace(statefulset, record=None))
    decision = decide(replace(lost, workload=workload, lost_standbys=RAISED), POLICY)
    assert (written(decision), on_record(decision)) == ([], RAISED)


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


def test_standbys_are_raised_only_if_they_have_room_on_the_pods_that_are_left_in_the_end() -> None:
    """Six pods of one task of 1000 bytes each: each of five pods would get two more copies, each of two pods five."""
    six, room = example.members(6, standbys=False), {"state_bytes": 1_000, "free_bytes": 3_000}
    for desired, reason in ((5, "NoLearners"), (2, "NoRoomForLearners")):
        decision = decide(a_case(six, agents=room, desired=desired, pods=6), POLICY)
        assert told(decision) == ("Hold", reason)
        assert (on_record(decision) is None) == (desired == 2)


SIX = a_hold(from_replicas=6, granted=6, target=5)
ROOM_OF_FIVE = {"state_bytes": 1_000, "free_bytes": 3_000}
"""One task of 1000 bytes on each of six pods: each of five pods would get two copies more, each of two pods five."""
FULLER = {"state_bytes": 2_000, "free_bytes": 2_000}
"""The same when each has its standby."""


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(("desired", "target"), [(5, ("Step", "Covered")), (2, ("Hold", "NoRoomForLearners"))])
def test_fewer_desired_replicas_are_judged_again_for_room_after_the_raise(
    desired: int, target: tuple[str, str]
) -> None:
    six = example.members(6)
    lowered = a_case(six, StandbySetting(1, is_set=True), SEEN, agents=FULLER, desired=desired, pods=6, hold=SIX)
    decision = decide(lowered, POLICY)
    assert told(decision) == target
    assert (written(decision), on_record(decision)) == ([], SEEN)


def test_a_volume_of_a_pod_that_leaves_keeps_no_pod_once_standbys_are_raised() -> None:
    case = a_case(SPREAD, StandbySetting(1, is_set=True), SEEN)
    assert case.agents is not None
    words = dict(case.agents.words)
    words[Ordinal(2)] = tuple(replace(one, free_bytes=0) for one in words[Ordinal(2)] if isinstance(one, AgentReport))
    assert told(decide(replace(case, agents=replace(case.agents, words=words)), POLICY)) == ("Step", "Covered")


def test_a_raise_on_record_is_not_sent_if_fewer_replicas_leave_no_room_for_it() -> None:
    for desired, reason, sent in ((5, "LearnersNotPlaced", [1]), (2, "NoRoomForLearners", [])):
        bare = example.members(6, standbys=False)
        decision = decide(a_case(bare, raised=RAISED, agents=ROOM_OF_FIVE, desired=desired, pods=6, hold=SIX), POLICY)
        assert (told(decision), written(decision)) == (("Hold", reason), sent)
        assert on_record(decision) == RAISED


def test_a_user_can_override_that_there_is_no_room_any_more() -> None:
    override = {"override": HoldOverride(hold_id="h-1", why="the volumes grow today")}
    setting, six, hold = StandbySetting(1, is_set=True), example.members(6), replace(SIX, target=2)
    decision = decide(a_case(six, setting, SEEN, agents=FULLER, desired=2, pods=6, hold=hold, app=override), POLICY)
    assert told(decision) == ("Step", "OverriddenByUser")


@pytest.mark.parametrize(
    ("setting", "raised", "says"),
    [
        (StandbySetting(0, is_set=False), RAISED, "are being raised"),
        (StandbySetting(1, is_set=True), RAISED, "were raised"),
        (StandbySetting(1, is_set=True), SEEN, "were raised"),
    ],
    ids=["before the write", "after the write", "shown before"],
)
def test_a_hold_that_has_asked_for_standbys_says_so(setting: StandbySetting, raised: RaisedStandbys, says: str) -> None:
    decision = decide(a_case(BARE, setting, raised), POLICY)
    assert told(decision) == ("Hold", "LearnersNotPlaced")
    assert decision.detail.startswith(f"Standbys {says} from 0 to 1.")
    assert {wait.reason for wait in decision.waiting_for} == {Reason.LearnersNotPlaced}


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
