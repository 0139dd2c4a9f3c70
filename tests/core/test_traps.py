"""Traps that operators of other systems fell into, each as a test for this one.

The names say what happened there; what must happen here is in the assert.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import GrantReplicas, RestartPod
from streamapp.core.decide import decide
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState, GroupUnreadable
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.lag import EndOffsets
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import RebalanceHistory, Snapshot
from streamapp.core.facts.workload import Budget, Volume
from streamapp.core.reasons import Reason
from tests.builders import (
    NOW,
    POLICY,
    a_capture,
    a_pod,
    a_reading,
    a_record,
    a_snapshot,
    a_step,
    a_wish,
    ago,
    an_unreadable,
    decided,
    pods,
    seconds,
    steps,
    told,
    volumes,
    without_subscriptions,
)
from tests.properties.world import applied
from tests.support import example

GROUP = example.members(3)
HIDDEN = without_subscriptions(GROUP)


def removals(snapshot: Snapshot, policy: ScalingPolicy = POLICY) -> list[int]:
    plan = decide(snapshot, policy).plan
    return [step.to_replicas for step in plan if isinstance(step, GrantReplicas) and step.is_removal]


def without_ends(reading: GroupReading) -> GroupReading:
    nothing = EndOffsets(read_at=NOW, partitions={}, committed={})
    return replace(reading, rebalance=reading.rebalance and replace(reading.rebalance, ends=nothing))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param((), id="none"),
        pytest.param((an_unreadable(),), id="an error"),
        pytest.param((a_reading((), state=GroupState.DEAD),), id="empty"),
        pytest.param((a_reading(GROUP[:2]), a_reading(GROUP[:2], at=15)), id="partial"),
        pytest.param((a_reading(GROUP, at=31), a_reading(GROUP, at=45)), id="stale"),
        pytest.param(tuple(map(without_ends, example.two_readings(GROUP))), id="without ends"),
    ],
)
def test_a_drain_check_that_failed_open(answer: tuple[GroupReading, ...]) -> None:
    assert removals(a_snapshot(readings=answer)) == []


@pytest.mark.parametrize("state", [state for state in GroupState if state is not GroupState.STABLE])
def test_only_one_of_several_unsafe_states_counted(state: GroupState) -> None:
    assert removals(a_snapshot(readings=(a_reading(HIDDEN, state=state, rebalance=None),))) == []


def test_a_target_that_changed_every_second_skipped_the_drain() -> None:
    lagging = example.members(3, lag=500_000)
    history = tuple((float(20 - number), 1 + number % 2) for number in range(20))
    desired = a_wish(1, (600, 2), *history)
    decision = decide(a_snapshot(members=lagging, app={"desired": desired}), POLICY)
    held = decision.record
    assert isinstance(held, HoldRecord)
    assert held.hold is not None
    assert (told(decision), held.hold.id, held.hold.target) == (("Hold", "LearnersCatchingUp"), "h-1", 2)


def test_an_image_changed_during_a_hold_and_pods_went_uncovered() -> None:
    changed = [
        a_snapshot(statefulset={"update_revision": "new"}),
        a_snapshot(statefulset={"update_revision": "new"}, workload={"pods": pods(3, p1=a_pod(1, revision="new"))}),
    ]
    assert [(told(decide(one, POLICY)), removals(one)) for one in changed] == [(("Hold", "RolloutInProgress"), [])] * 2


def test_a_hold_began_during_a_rollout_and_a_restarted_pod_was_forgotten() -> None:
    half = a_snapshot(
        statefulset={"update_revision": "new"}, workload={"pods": pods(3, p1=a_pod(1, revision="new", ready=False))}
    )
    assert (removals(half), [step for step in decide(half, POLICY).plan if isinstance(step, RestartPod)]) == ([], [])


def test_size_and_template_changed_in_one_edit() -> None:
    snapshot = a_snapshot(record=None, statefulset={"template_is_written": False})
    made: list[tuple[str, ...]] = []
    for _ in range(4):
        decision = decide(snapshot, POLICY)
        made.append(steps(decision))
        snapshot = applied(snapshot, decision)
    # one after the other: the hold, the template with its retention policy, and no step while pods have two templates
    assert made[:2] == [("WriteHoldRecord",), ("WriteTemplate",)]
    assert not any("GrantReplicas" in steps_made for steps_made in made)


def test_a_stale_read_led_to_a_wrong_scale_down() -> None:
    decision = decide(a_snapshot(statefulset={"resource_version": "77"}), POLICY)
    assert [step.fence.resource_version for step in decision.plan if isinstance(step, GrantReplicas)] == ["77"]


def test_a_failed_scale_up_blocked_the_scale_down_for_ever() -> None:
    never = replace(example.pod(3).container, id=None, running_since=None, ever_ran=False)
    stuck = tuple(a_pod(number, container=never, ready=False, ips=()) for number in (3, 4, 5))
    fresh = tuple(example.volume(number, process_id=None) for number in (3, 4, 5))
    snapshot = a_snapshot(
        pods=6,
        desired=3,
        record=a_record(granted=6, target=3),
        workload={"pods": (*pods(3), *stuck), "volumes": (*volumes(3), *fresh)},
        readings=(a_reading(HIDDEN, state=GroupState.PREPARING_REBALANCE, rebalance=None),),
    )
    assert (told(decide(snapshot, POLICY)), removals(snapshot)) == (("Step", "NeverRan"), [3])


def test_all_leaving_pods_went_at_once_and_the_survivors_were_overloaded() -> None:
    many = a_snapshot(pods=6, desired=1, record=a_record(granted=6, target=1), members=example.members(6))
    assert removals(many) == [5]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda one: replace(one, desired=replace(one.desired, replicas=3)), id="the wish comes up"),
        pytest.param(lambda one: replace(one, paused=True), id="a pause"),
        pytest.param(lambda one: replace(one, deleting=True), id="a deletion"),
    ],
)
def test_a_scale_down_could_not_be_called_off(change: Callable[[Any], Any]) -> None:
    snapshot = a_snapshot(desired=1, record=None, workload={"budget": Budget.OPEN})
    for _ in range(4):  # between any two writes of a hold and its step
        called_off = replace(snapshot, app=change(snapshot.app))
        for _ in range(3):
            called_off = applied(called_off, decide(called_off, POLICY))
        statefulset = called_off.workload.statefulset
        assert statefulset is not None
        left = statefulset.record
        assert not isinstance(left, HoldRecord) or left.hold is None
        snapshot = applied(snapshot, decide(snapshot, POLICY))


def test_a_left_over_done_marker_made_the_next_drain_a_no_op() -> None:
    lagging = example.members(3, lag=500_000)
    for left_over in (a_record(reason=Reason.Covered), a_record(granted=2, reason=Reason.Covered)):
        assert removals(a_snapshot(members=lagging, record=left_over)) == []


def test_a_second_scale_down_is_a_second_hold() -> None:
    first = decide(a_snapshot(record=None), POLICY).record
    later = replace(a_snapshot(record=None), now=NOW + seconds(1))
    second = decide(replace(later, workload=replace(later.workload, read_at=later.now)), POLICY).record
    assert isinstance(first, HoldRecord)
    assert isinstance(second, HoldRecord)
    assert first.hold is not None
    assert second.hold is not None
    assert first.hold.id != second.hold.id


def test_a_restart_of_the_operator_let_pods_go_undrained() -> None:
    forgotten = replace(a_snapshot(), readings=(), observed=(), rebalances=RebalanceHistory())
    blank = replace(forgotten, app=replace(forgotten.app, desired=a_wish(2)))
    assert (removals(forgotten), removals(blank)) == ([], [])


def test_after_one_error_the_operator_fell_silent() -> None:
    failing = decide(a_snapshot(readings=(an_unreadable(),)), POLICY)
    assert (failing.reason, failing.requeue_after <= seconds(5)) == (Reason.BrokersUnreachable, True)


def test_a_broker_hiccup_scaled_to_zero() -> None:
    zero = ScalingPolicy(allow_zero=True)
    hiccups = [
        (an_unreadable(),),
        (a_reading((), state=GroupState.EMPTY),),
        (a_reading((), state=GroupState.DEAD),),
        (a_reading(example.members(1)), an_unreadable(5), a_reading(example.members(1), at=15)),
    ]
    lonely = a_snapshot(pods=1, desired=0, record=a_record(granted=1, target=0))
    assert [removals(replace(lonely, readings=readings), zero) for readings in hiccups] == [[], [], [], []]


def test_the_wrong_member_was_removed_since_name_and_ordinal_differed() -> None:
    swapped = (
        Volume(ordinal=Ordinal(1), process_id=example.process_id(2)),
        Volume(ordinal=Ordinal(2), process_id=example.process_id(1)),
        volumes(1)[0],
    )
    assert decided(a_snapshot(workload={"volumes": swapped}))[0] == ("Hold", "ProcessIdMismatch")


def test_a_process_id_that_was_made_anew_looked_like_a_pod_without_state() -> None:
    anew = replace(GROUP[2], subscription=example.member(9).subscription)
    assert decided(a_snapshot(members=(*GROUP[:2], anew)))[0] == ("Hold", "ProcessIdMismatch")


def test_a_change_of_the_group_protocol_broke_the_group() -> None:
    other = GroupUnreadable(Reason.GroupProtocolUnsupported, "type streams")
    migrating = a_snapshot(readings=(GroupReading(ended_at=ago(1), group=other, rebalance=None),))
    assert told(decide(migrating, POLICY)) == ("Hold", "GroupProtocolUnsupported")


def test_two_steps_met_in_one_rebalance() -> None:
    first = decide(a_snapshot(desired=1, record=a_record(target=1)), POLICY)
    after = applied(a_snapshot(desired=1, record=a_record(target=1)), first)
    gone = replace(after, workload=replace(after.workload, pods=pods(2)))
    rebalancing = replace(gone, readings=(a_reading(HIDDEN, state=GroupState.PREPARING_REBALANCE, rebalance=None),))
    assert [removals(one) for one in (after, gone, rebalancing)] == [[], [], []]


def test_a_plan_was_trusted_after_the_layout_had_changed() -> None:
    # what was judged a moment ago is not what the group shows now: pod 1's copies went to pod 2
    moved = (
        GROUP[0],
        example.member(1, active=(2, 3)),
        example.member(2, active=(4, 5), standby=(0, 1, 2, 3)),
    )
    readings = (a_reading(moved, at=1), a_reading(GROUP, at=15))
    assert told(decide(a_snapshot(readings=readings), POLICY)) == ("Hold", "GroupChanged")


def test_offsets_that_the_broker_froze_looked_fresh() -> None:
    frozen = tuple(
        replace(
            reading, rebalance=reading.rebalance and replace(reading.rebalance, settled_at=ago(600), began_at=ago(603))
        )
        for reading in example.two_readings(GROUP)
    )
    assert told(decide(a_snapshot(readings=frozen), POLICY)) == ("Hold", "ReadingsPending")


def test_a_pod_still_being_created_was_counted_as_a_survivor() -> None:
    young = a_pod(0, container=replace(example.pod(0).container, running_since=ago(1)))
    assert removals(a_snapshot(workload={"pods": pods(3, p0=young)})) == []


def test_two_operators_on_one_application_fought() -> None:
    mine = a_snapshot()
    theirs = GroupDescription(GroupState.STABLE, (*GROUP, replace(example.member(8), client_host="10.8.0.1")))
    readings = tuple(replace(reading, group=theirs) for reading in mine.readings)
    assert told(decide(replace(mine, readings=readings), POLICY)) == ("Hold", "ForeignMember")


def test_an_undo_was_forgotten_after_a_step_that_failed() -> None:
    # the budget was closed for a step whose write was then refused, and the wish has come up since
    snapshot = a_snapshot(desired=3, workload={"budget": Budget.CLOSED})
    for _ in range(3):
        snapshot = applied(snapshot, decide(snapshot, POLICY))
    statefulset = snapshot.workload.statefulset
    assert statefulset is not None
    assert (statefulset.replicas, statefulset.record, snapshot.workload.budget) == (3, None, Budget.OPEN)


def test_down_then_up_within_a_moment_left_it_stuck_for_ever() -> None:
    # granted 3 to 2 and back to 3 before the StatefulSet's controller looked: nobody was deleted
    step = a_step(from_replicas=3, to_replicas=2, observed=(a_capture(2),))
    record = replace(a_record(step=step), hold=None)
    snapshot = a_snapshot(desired=3, record=record, workload={"budget": Budget.CLOSED})
    for _ in range(3):
        snapshot = applied(snapshot, decide(snapshot, POLICY))
    again = replace(snapshot, app=replace(snapshot.app, desired=a_wish(2, (600, 2))))
    assert (decide(snapshot, POLICY).verdict.value, decide(again, POLICY).reason) == ("Steady", Reason.HoldBegan)
