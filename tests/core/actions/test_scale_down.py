"""The hold: when it begins, what it waits for, who may override what, and how it ends."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.actions.decision import Decision, Event, Fence, GrantReplicas, WriteHoldRecord
from streamapp.core.decide import decide
from streamapp.core.evidence.eta import EtaAt
from streamapp.core.facts.containers import MemberKey, ObservedMembers
from streamapp.core.facts.group import FollowUp, GroupReading
from streamapp.core.facts.hold_record import Epoch, Forced, ForcedBy, Hold, HoldRecord, OpenStep, Progress
from streamapp.core.facts.ids import Ordinal, TopicPartition
from streamapp.core.facts.policy import OnTimeout, ScaleDownPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import HoldOverride, Snapshot
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.reasons import Reason
from tests.builders import (
    NOW,
    POLICY,
    a_hold,
    a_pod,
    a_reading,
    a_record,
    a_snapshot,
    a_wish,
    ago,
    an_unreadable,
    pods,
    seconds,
    steps,
    told,
)
from tests.support import example

FENCE = Fence("sts", "100")
EPOCH = Epoch(lease=0, counter=int(NOW.timestamp()))
LAGGING = example.members(3, lag=500_000)
BARE = example.members(3, standbys=False)
HOUR = timedelta(hours=1)
FORCE = ScalingPolicy(scale_down=ScaleDownPolicy.IMMEDIATE, force_reason="the cluster goes tonight")


def written(decision: Decision) -> HoldRecord | None:
    """The record that the plan writes, whichever step carries it."""
    for step in decision.plan:
        if isinstance(step, GrantReplicas | WriteHoldRecord):
            record = step.record
            assert record is None or isinstance(record, HoldRecord)
            return record
    raise AssertionError("the plan writes no record")


def hold_written(decision: Decision) -> Hold:
    record = written(decision)
    assert record is not None
    assert record.hold is not None
    return record.hold


def polls(*ago_: float, members: Any = LAGGING) -> tuple[GroupReading, ...]:
    """Polls of a single join, so that there is one reading of positions only."""
    rebalance = a_reading(members, at=max(ago_)).rebalance
    return tuple(a_reading(members, at=at, rebalance=rebalance) for at in ago_)


# How a step is granted.


def test_a_step_is_one_write_of_replicas_and_record_fenced_by_what_was_judged() -> None:
    decision = decide(a_snapshot(desired=1, record=a_record(target=1)), POLICY)
    capture = ObservedMembers(
        ordinal=Ordinal(2),
        pod_uid="pod-2",
        container_id="containerd://2",
        seen_at=ago(15),
        members=(MemberKey("wordcount-2-consumer"),),
    )
    step = OpenStep(
        hold_id="h-1", from_replicas=3, to_replicas=2, granted_at=NOW, reason=Reason.Covered, observed=(capture,)
    )
    hold = a_hold(target=1, granted=2, reason=Reason.Covered, progress=Progress(improved_at=NOW))
    assert decision.plan[1:-1] == (
        GrantReplicas(
            from_replicas=3,
            to_replicas=2,
            record=HoldRecord(epoch=EPOCH, hold=hold, step=step),
            fence=FENCE,
            judged_at=NOW,
            reason=Reason.Covered,
        ),
    )


def test_the_last_step_of_a_hold_ends_it_and_leaves_only_the_open_step() -> None:
    record = written(decide(a_snapshot(), POLICY))
    assert record is not None
    assert (record.hold, record.step is None) == (None, False)


# How a hold begins.


def test_a_new_hold_is_written_down_before_anything_goes() -> None:
    decision = decide(a_snapshot(record=None), POLICY)
    hold = hold_written(decision)
    assert (told(decision), steps(decision)) == (("Hold", "HoldBegan"), ("WriteHoldRecord",))
    began = {"since": NOW, "reason": Reason.HoldBegan, "progress": Progress(improved_at=NOW, counted_at=NOW)}
    assert hold == a_hold(id=hold.id, from_replicas=3, target=2, granted=3, generation=1, **began)


def test_a_record_left_over_from_an_earlier_scale_down_is_not_gone_on_with() -> None:
    decision = decide(a_snapshot(record=a_record(granted=5)), POLICY)
    assert (told(decision), hold_written(decision).id == "h-1") == (("Hold", "HoldBegan"), False)


def test_a_drop_by_more_than_half_is_named() -> None:
    events = decide(a_snapshot(desired=1, record=None), POLICY).events
    assert events == (Event(Reason.HoldBegan, "3 to 1"), Event(Reason.LargeDrop, "3 to 1"))


def test_a_smaller_drop_is_not() -> None:
    assert decide(a_snapshot(record=None), POLICY).events == (Event(Reason.HoldBegan, "3 to 2"),)


def test_nothing_is_told_twice() -> None:
    assert decide(a_snapshot(members=LAGGING), POLICY).events == ()


def test_a_target_that_moves_while_held_is_followed_at_its_highest_in_the_window() -> None:
    desired = a_wish(0, (600, 2), (20, 1), (10, 0))
    decision = decide(
        a_snapshot(members=LAGGING, record=a_record(target=1), app={"desired": desired}), ScalingPolicy(allow_zero=True)
    )
    assert (told(decision), hold_written(decision).id, hold_written(decision).target) == (
        ("Hold", "LearnersCatchingUp"),
        "h-1",
        2,
    )


# What the user says.


def test_the_users_hold_stops_a_covered_step_and_keeps_the_record() -> None:
    decision = decide(a_snapshot(app={"held_because": "audit"}), FORCE)
    assert (told(decision), decision.detail, decision.plan) == (("Hold", "HeldByUser"), "audit", ())


def test_zero_without_permission_takes_nothing_and_prepares_nothing() -> None:
    decision = decide(a_snapshot(desired=0), POLICY)
    assert (told(decision), written(decision)) == (("Hold", "ZeroNotAllowed"), None)


@pytest.mark.parametrize(
    ("policy", "app", "forced"),
    [
        pytest.param(
            FORCE, {}, (Reason.OverriddenByPolicy, ForcedBy.POLICY, "the cluster goes tonight"), id="Immediate"
        ),
        pytest.param(
            POLICY,
            {"override": HoldOverride(hold_id="h-1", why="out of money")},
            (Reason.OverriddenByUser, ForcedBy.OVERRIDE, "out of money"),
            id="override of this hold",
        ),
    ],
)
@pytest.mark.parametrize("members", [LAGGING, BARE], ids=["copies lag", "no copies"])
def test_coverage_can_be_overridden_and_that_is_on_record(
    policy: ScalingPolicy, app: dict[str, Any], forced: tuple[Reason, ForcedBy, str], members: Any
) -> None:
    reason, by, why = forced
    decision = decide(a_snapshot(members=members, app=app), policy)
    record = written(decision)
    assert record is not None
    assert record.step is not None
    assert (told(decision), record.step.forced) == (("Step", reason.name), Forced(by, why))


def test_an_override_of_another_hold_does_nothing() -> None:
    app = {"override": HoldOverride(hold_id="h-0", why="out of money")}
    assert told(decide(a_snapshot(members=LAGGING, app=app), POLICY)) == ("Hold", "LearnersCatchingUp")


def test_where_coverage_is_there_nothing_is_forced() -> None:
    record = written(decide(a_snapshot(), FORCE))
    assert record is not None
    assert record.step is not None
    assert (record.step.reason, record.step.forced) == (Reason.Covered, None)


def test_forcing_waives_positions_and_topology_too_but_still_asks_for_two_readings() -> None:
    blind = tuple(a_reading(BARE, at=at, rebalance=None) for at in (1, 12))
    snapshot = a_snapshot(readings=blind, task_set=TopologyUnknown("two sub-topologies"))
    once = replace(snapshot, readings=blind[:1])
    assert [told(decide(one, FORCE)) for one in (snapshot, once)] == [
        ("Step", "OverriddenByPolicy"),
        ("Hold", "ReadingsPending"),
    ]


def test_forcing_still_goes_one_at_a_time() -> None:
    decision = decide(a_snapshot(desired=1, members=BARE, record=a_record(target=1)), FORCE)
    assert [step.to_replicas for step in decision.plan if isinstance(step, GrantReplicas)] == [2]


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        pytest.param(a_snapshot(readings=(an_unreadable(),)), "BrokersUnreachable", id="the brokers are gone"),
        pytest.param(a_snapshot(workload={"read_at": ago(60)}), "FactsStale", id="facts are old"),
        pytest.param(
            a_snapshot(members=(*BARE, replace(example.member(7), client_host="10.9.9.9"))),
            "ForeignMember",
            id="a foreign member",
        ),
        pytest.param(a_snapshot(workload={"volumes": ()}, members=BARE[:2]), "TaskUnassigned", id="a task is nowhere"),
        pytest.param(a_snapshot(statefulset={"generation": 9}), "StatefulSetUnobserved", id="an unseen change"),
    ],
)
def test_forcing_overrides_coverage_and_nothing_else(snapshot: Snapshot, reason: str) -> None:
    assert told(decide(snapshot, FORCE)) == ("Hold", reason)


# The deadline.


def waited(how_long: timedelta, *, best: int = 980_000, still: float = 4000, **hold: Any) -> HoldRecord:
    """A hold whose next pod has been waited for, and whose copies came nearer for the last time `still` seconds ago."""
    progress = Progress(best=best, improved_at=ago(still), counted_at=NOW - how_long)
    return a_record(**{"reason": Reason.LearnersCatchingUp, "progress": progress, **hold})


PROCEED = ScalingPolicy(on_timeout=OnTimeout.PROCEED, force_reason="may take longer once")
GIVE_UP = ScalingPolicy(on_timeout=OnTimeout.GIVE_UP)


def test_a_hold_that_stands_still_is_told_apart_from_a_slow_one() -> None:
    decision = decide(a_snapshot(members=LAGGING, record=waited(HOUR, still=3700)), POLICY)
    assert (told(decision), decision.detail, decision.events) == (
        ("Hold", "NoProgress"),
        "Since 2026-11-21 10:58:20 UTC: LearnersCatchingUp. 2 tasks wait; 0_5 on ordinal 0 is 500000 records behind",
        (Event(Reason.NoProgress, decision.detail),),
    )


@pytest.mark.parametrize(("how_long", "still"), [(3599, 3599), (3599, 4000), (9000, 3599)])
def test_a_second_less_is_slow_and_so_is_one_whose_copies_come_nearer(how_long: float, still: float) -> None:
    record = waited(seconds(how_long), still=still)
    assert told(decide(a_snapshot(members=LAGGING, record=record), POLICY)) == ("Hold", "LearnersCatchingUp")


def test_progress_is_dated_and_moves_no_deadline() -> None:
    records = [waited(HOUR - seconds(1), best=2_000_000), waited(HOUR, best=2_000_000, still=1)]
    slow, late = (decide(a_snapshot(members=LAGGING, record=one), GIVE_UP) for one in records)
    assert (told(slow), told(late)) == (("Hold", "LearnersCatchingUp"), ("Hold", "GaveUp"))
    assert hold_written(slow).progress == Progress(best=980_000, improved_at=NOW, counted_at=NOW - HOUR + seconds(1))


def test_the_deadline_comes_whatever_a_pass_can_see() -> None:
    blind = [a_snapshot(readings=(an_unreadable(),), record=waited(one)) for one in (HOUR - seconds(1), HOUR)]
    found = [told(decide(one, GIVE_UP)) for one in blind]
    assert found == [("Hold", "BrokersUnreachable"), ("Hold", "GaveUp")]


def test_what_hides_the_copies_is_told_in_place_of_no_progress() -> None:
    blind = a_snapshot(readings=(an_unreadable(),), record=waited(HOUR))
    assert told(decide(blind, POLICY)) == ("Hold", "BrokersUnreachable")


def test_a_hold_that_is_told_to_stand_still_stays_so_while_lags_are_unknown() -> None:
    found = [
        told(decide(a_snapshot(members=example.members(3, lag=None), record=waited(HOUR, reason=one)), POLICY))
        for one in (Reason.NoProgress, Reason.LearnersCatchingUp)
    ]
    assert found == [("Hold", "NoProgress"), ("Hold", "LagUnknown")]


def test_a_users_hold_ends_the_wait_and_the_next_one_begins_anew() -> None:
    kept = decide(a_snapshot(app={"held_because": "audit"}, record=waited(HOUR)), PROCEED)
    assert (told(kept), hold_written(kept).progress) == (("Hold", "HeldByUser"), Progress(improved_at=NOW))
    again = a_snapshot(members=LAGGING, record=written(kept))
    assert (told(decide(again, PROCEED)), hold_written(decide(again, PROCEED)).progress) == (
        ("Hold", "LearnersCatchingUp"),
        Progress(best=980_000, improved_at=NOW, counted_at=NOW),
    )


def test_desired_replicas_that_must_last_again_stop_no_wait() -> None:
    """As after a change of the leader, which does not know for how long they have been lower."""
    record = waited(HOUR)
    young = a_snapshot(members=LAGGING, record=record, app={"desired": a_wish(2, (5, 2))})
    decision = decide(young, PROCEED)
    assert (told(decision), decision.record) == (("Hold", "Stabilizing"), record)


def test_giving_up_withdraws_the_hold_until_the_spec_changes() -> None:
    policy = GIVE_UP
    first = decide(a_snapshot(members=LAGGING, record=waited(HOUR)), policy)
    gave_up = HoldRecord(epoch=EPOCH, hold=hold_written(first))
    again = a_snapshot(record=gave_up)
    assert (told(first), hold_written(first).gave_up_at) == (("Hold", "GaveUp"), 1)
    assert (told(decide(again, policy)), decide(again, policy).plan) == (("Hold", "GaveUp"), ())
    changed = replace(again, app=replace(again.app, generation=2))
    assert (told(decide(changed, policy)), hold_written(decide(changed, policy)).id == "h-1") == (
        ("Hold", "HoldBegan"),
        False,
    )


def test_a_hold_that_was_given_up_can_still_be_overridden() -> None:
    snapshot = a_snapshot(
        members=BARE, record=a_record(gave_up_at=1), app={"override": HoldOverride(hold_id="h-1", why="now")}
    )
    assert told(decide(snapshot, POLICY)) == ("Step", "OverriddenByUser")


def test_proceeding_goes_on_without_coverage_but_not_without_the_rest() -> None:
    going = a_snapshot(members=LAGGING, record=waited(HOUR))
    blind, early = replace(going, readings=(an_unreadable(),)), a_snapshot(members=LAGGING, record=waited(HOUR / 2))
    assert [told(decide(one, PROCEED)) for one in (going, blind, early)] == [
        ("Step", "OverriddenByTimeout"),
        ("Hold", "BrokersUnreachable"),
        ("Hold", "LearnersCatchingUp"),
    ]


SCHEDULED = tuple(
    replace(one, assignment=replace(one.assignment, follow_up=FollowUp.SCHEDULED))
    for one in LAGGING
    if one.assignment is not None
)
OVERRIDE = {"override": HoldOverride(hold_id="h-1", why="now")}


@pytest.mark.parametrize(
    ("policy", "app", "found"),
    [
        (POLICY, {}, ("Hold", "FollowUpScheduled")),
        (PROCEED, {}, ("Step", "OverriddenByTimeout")),
        (FORCE, {}, ("Step", "OverriddenByPolicy")),
        (POLICY, OVERRIDE, ("Step", "OverriddenByUser")),
    ],
    ids=["nobody's word", "onTimeout", "policy", "annotation"],
)
def test_tasks_that_are_still_to_move_hold_no_pod_that_a_user_lets_go(
    policy: ScalingPolicy, app: dict[str, Any], found: tuple[str, str]
) -> None:
    """While copies stand still one follow-up comes after another, so the word would never be kept."""
    assert told(decide(a_snapshot(members=SCHEDULED, app=app, record=waited(HOUR)), policy)) == found


def test_a_word_counts_only_in_two_readings_whatever_is_still_to_move() -> None:
    once = a_snapshot(members=SCHEDULED, record=waited(HOUR), readings=polls(0, members=SCHEDULED))
    assert told(decide(once, PROCEED)) == ("Hold", "ReadingsPending")


def test_after_a_step_the_next_pod_has_its_own_deadline() -> None:
    first = decide(a_snapshot(desired=1, members=LAGGING, record=waited(HOUR, target=1)), PROCEED)
    assert hold_written(first).progress == Progress(improved_at=NOW)


# What is written, and how often.


def test_that_copies_come_nearer_is_written_every_ten_seconds() -> None:
    plans = [
        steps(
            decide(
                a_snapshot(
                    members=LAGGING, record=waited(HOUR / 2, best=2_000_000, still=age), rebalances=_triggered()
                ),
                POLICY,
            )
        )
        for age in (9, 10)
    ]
    assert plans == [(), ("WriteHoldRecord",)]


def test_a_hold_that_only_waits_on_writes_nothing() -> None:
    still = a_snapshot(members=LAGGING, record=waited(HOUR / 2), rebalances=_triggered())
    assert steps(decide(still, POLICY)) == ()


def _triggered() -> Any:
    """A triggered rebalance a moment ago, so that no other comes into the plan."""
    return replace(example.snapshot().rebalances, sent=(ago(5),))


def test_another_verdict_is_written_at_once() -> None:
    snapshot = a_snapshot(
        members=example.members(3, lag=None), record=waited(HOUR / 2, still=1), rebalances=_triggered()
    )
    assert steps(decide(snapshot, POLICY)) == ("WriteHoldRecord",)


def test_a_new_leader_writes_the_record_so_that_what_the_old_one_prepared_fails() -> None:
    snapshot = a_snapshot(members=LAGGING, record=waited(HOUR / 2, still=1), rebalances=_triggered(), lease=1)
    record = written(decide(snapshot, POLICY))
    assert record is not None
    assert record.epoch == Epoch(lease=1, counter=int(NOW.timestamp()))


def test_a_record_that_is_too_large_for_even_one_pod_holds() -> None:
    threads = tuple(
        replace(example.members(3)[2], id=f"wordcount-2-StreamThread-{number}-consumer") for number in range(2000)
    )
    idle = tuple(
        replace(one, assignment=replace(one.assignment, active=frozenset(), standby=frozenset()))
        for one in threads[1:]
        if one.assignment is not None
    )
    members = (*example.members(3)[:2], threads[0], *idle)
    assert told(decide(a_snapshot(members=members), POLICY)) == ("Hold", "HoldRecordTooLarge")


def test_an_idle_run_that_is_too_large_for_the_record_goes_in_parts() -> None:
    many = [
        replace(example.member(ordinal), id=f"wordcount-{ordinal}-StreamThread-{number}-consumer")
        for ordinal in (3, 4, 5)
        for number in range(600)
    ]
    snapshot = a_snapshot(pods=6, desired=3, members=(*example.members(3), *many), record=a_record(granted=6, target=3))
    decision = decide(snapshot, POLICY)
    assert (told(decision), decision.detail) == (("Step", "OwnsNothing"), "6 to 5")


# Zero.

ZERO = ScalingPolicy(allow_zero=True)


def last(**changes: Any) -> Snapshot:
    return a_snapshot(pods=1, desired=0, record=a_record(granted=1, from_replicas=1, target=0), **changes)


def test_the_last_pod_goes_without_coverage_but_behind_the_gates() -> None:
    assert [told(decide(one, ZERO)) for one in (last(), last(readings=(an_unreadable(),)))] == [
        ("Step", "StoppingToZero"),
        ("Hold", "BrokersUnreachable"),
    ]


def test_on_the_way_to_zero_coverage_counts_as_ever() -> None:
    snapshot = a_snapshot(desired=0, members=LAGGING, record=a_record(target=0))
    assert told(decide(snapshot, ZERO)) == ("Hold", "LearnersCatchingUp")


def test_where_a_source_topic_serves_as_changelog_the_last_pod_waits_until_everything_runs() -> None:
    tasks = tuple(
        replace(task, changelogs=(TopicPartition("lines", task.id.partition),)) for task in example.task_set().tasks
    )
    second = replace(example.member(0, active=(3, 4, 5), running=False), id="second-thread")
    members = (example.member(0, active=(0, 1, 2)), second)
    assert [
        told(decide(last(members=members, task_set=TaskSet(one)), ZERO)) for one in (tasks, example.task_set().tasks)
    ] == [("Hold", "TasksNotRunning"), ("Step", "StoppingToZero")]


# What is told.


def test_how_long_still_is_told_from_two_readings() -> None:
    later, earlier = a_reading(LAGGING, at=1), a_reading(example.members(3, lag=600_000), at=21)
    decision = decide(a_snapshot(readings=(later, earlier)), POLICY)
    # 100,000 records in 20 s; 490,000 are left to the limit
    assert decision.eta == EtaAt(ago(3) + seconds(98))


def test_a_pod_that_is_ill_does_not_keep_its_own_ordinal_from_going() -> None:
    ill = a_pod(2, ready=False)
    assert told(decide(a_snapshot(workload={"pods": pods(3, p2=ill)}), POLICY)) == ("Step", "Covered")


def test_one_poll_is_enough_to_say_what_is_missing() -> None:
    assert told(decide(a_snapshot(readings=polls(1, 5)), POLICY)) == ("Hold", "LearnersCatchingUp")


@pytest.mark.guarantee(1)
def test_an_override_does_not_cover_pods_below_the_target_of_its_time() -> None:
    override = HoldOverride(hold_id="h-1", why="pod 2 may go")
    record = a_record(granted=3, target=2)
    lower = a_snapshot(pods=3, desired=1, members=example.members(3, standbys=False), record=record)
    overridden = replace(lower, app=replace(lower.app, override=override))
    decision = decide(overridden, POLICY)
    hold = hold_written(decision)
    assert (hold.target, hold.id == "h-1", decision.verdict.value) == (1, False, "Hold")
    same = replace(overridden, app=replace(overridden.app, desired=a_wish(2, (600, 2))))
    assert told(decide(same, POLICY)) == ("Step", "OverriddenByUser")
