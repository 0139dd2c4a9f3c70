"""The budget of learners of one Kafka cluster: what waits for a place, what never does, and what is claimed of it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.actions.decision import Announce, Decision, GrantReplicas, RestartPod, RestoreClaim, RestoreNeed
from streamapp.core.decide import decide
from streamapp.core.facts.group import FollowUp, Member, StandbySetting
from streamapp.core.facts.hold_record import HoldRecord, RaisedStandbys, RaiseState
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource, OnTimeout, RolloutPolicy, ScaleDownPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import HoldOverride, RestorePlace, Snapshot
from streamapp.core.reasons import Reason
from tests.builders import a_hold, a_reading, a_record, a_snapshot, a_wish, ago, seconds, told
from tests.support import example
from tests.support.streams import streams_group, streams_reading

POLICY = ScalingPolicy(agent=True, allow_zero=True)
FREE = RestorePlace(most=1)
USED = RestorePlace(is_free=False, ahead=2, most=1)
HELD = RestorePlace(is_held=True, most=1)
BARE = example.members(3, standbys=False)
COVERED = example.members(3)
DRAINED = (example.member(0, active=(0, 1, 4)), example.member(1, active=(2, 3, 5)), example.member(2))
TOP = frozenset({Ordinal(2)})


def a_case(members: tuple[Member, ...] = BARE, place: RestorePlace = USED, **changes: Any) -> Snapshot:
    """A hold from three to two; the agents have received no announcement, unless it is `heard`."""
    heard = changes.pop("heard", None)
    said = {} if heard is None else {"heard": heard, "round": example.assigned()}
    changes.setdefault("agents", example.agents(members, **said))
    readings = tuple(a_reading(members, at=at, rebalance=None) for at in (1, 6, 14))
    return a_snapshot(readings=readings, place=place, **changes)


def named(decision: Decision) -> set[int] | None:
    for step in decision.plan:
        if isinstance(step, Announce):
            return {number for number in range(9) if example.process_id(number) in step.process_ids}
    return None


def granted(decision: Decision) -> list[int]:
    return [step.to_replicas for step in decision.plan if isinstance(step, GrantReplicas)]


def need(decision: Decision) -> RestoreNeed:
    return decision.restores.need


# What waits.


def test_without_a_place_a_drain_does_not_begin_and_says_how_many_are_ahead() -> None:
    decision = decide(a_case(), POLICY)
    assert (told(decision), decision.detail) == (("Hold", "RestoreBudgetUsed"), "2 ahead, 1 at once")
    assert (named(decision), need(decision)) == (None, RestoreNeed.WAITING)
    assert decision.requeue_after <= seconds(5)


def test_with_a_place_it_begins_and_keeps_the_place() -> None:
    decision = decide(a_case(place=FREE), POLICY)
    assert (named(decision), told(decision)) == ({2}, ("Hold", "AnnouncementPending"))
    assert decision.restores == RestoreClaim(need=RestoreNeed.LEARNING, leaving=TOP, records_to_go=None)


def test_a_hold_that_waits_for_a_place_keeps_its_deadline() -> None:
    late = a_record(since=ago(9_000), progress=replace(a_hold().progress, counted_at=ago(7_200)))
    found = []
    for hours in (3, 2):
        policy = replace(POLICY, on_timeout=OnTimeout.PROCEED, force_reason="late", timeout=timedelta(hours=hours))
        found.append(told(decide(a_case(record=late), policy)))
    assert found == [("Hold", "RestoreBudgetUsed"), ("Step", "OverriddenByTimeout")]


def test_a_hold_that_waits_for_a_place_is_not_stalled() -> None:
    late = a_record(
        since=ago(9_000), progress=replace(a_hold().progress, improved_at=ago(9_000), counted_at=ago(9_000))
    )
    assert told(decide(a_case(record=late), POLICY)) == ("Hold", "RestoreBudgetUsed")


def test_a_moving_group_changes_nothing_in_the_queue() -> None:
    moving = (example.member(0, active=(0, 1), follow_up=FollowUp.SCHEDULED), *BARE[1:])
    decision = decide(a_case(moving), POLICY)
    assert (decision.reason, need(decision), named(decision)) == (Reason.RestoreBudgetUsed, RestoreNeed.WAITING, None)


def test_a_rollout_waits_for_a_place_too() -> None:
    outdated: dict[str, Any] = {"desired": 3, "record": None, "statefulset": {"update_revision": "newer"}}
    waits = decide(a_case(**outdated), POLICY)
    assert (named(waits), need(waits)) == (None, RestoreNeed.WAITING)
    (rolls,) = [one for one in waits.conditions if one.type == "Reconciling"]
    assert (rolls.reason, waits.requeue_after) == (Reason.RestoreBudgetUsed, seconds(2))
    goes_on = decide(a_case(place=FREE, **outdated), POLICY)
    assert (named(goes_on), need(goes_on)) == ({2}, RestoreNeed.LEARNING)


def test_what_a_new_leader_only_found_goes_on_and_the_other_pods_wait_for_a_place() -> None:
    """It had counted before the group was read: an agent knows of a pod that leaves, and that could be learning."""
    found, record = RestorePlace(is_held=True, is_free=False, ahead=1, most=1), a_record(target=1)
    learning = decide(a_case(place=found, desired=1, record=record, heard=example.leaving(2)), POLICY)
    assert (named(learning), need(learning)) == (None, RestoreNeed.LEARNING)
    drained = decide(a_case(DRAINED, found, desired=1, record=record, heard=example.leaving(2)), POLICY)
    assert (granted(drained), need(drained)) == ([2], RestoreNeed.NONE), "the place goes back with the step"
    with_a_place = replace(found, is_granted=True, is_free=True)
    assert named(decide(a_case(place=with_a_place, desired=1, record=record, heard=example.leaving(2)), POLICY)) == {
        1,
        2,
    }


# What does not.


def test_a_drain_that_agents_know_is_not_called_off_and_takes_a_place_by_itself() -> None:
    """As after a change of the leader, which knows nothing of the places."""
    decision = decide(a_case(heard=example.leaving(2)), POLICY)
    assert (decision.reason, named(decision)) == (Reason.LearnersNotPlaced, None)
    assert need(decision) is RestoreNeed.LEARNING


def test_an_operator_that_takes_over_within_the_stabilization_window_calls_no_learner_off() -> None:
    """What was desired before it came is not in its memory, and the hold is on record."""
    new: dict[str, Any] = {"app": {"desired": a_wish(2, (1, 2))}}
    known = decide(a_case(heard=example.leaving(2), **new), POLICY)
    assert (told(known), named(known), need(known)) == (("Hold", "Stabilizing"), None, RestoreNeed.LEARNING)
    unknown = decide(a_case(place=FREE, **new), POLICY)
    assert (told(unknown), named(unknown), need(unknown)) == (("Hold", "Stabilizing"), None, RestoreNeed.NONE)


def test_pods_whose_tasks_have_caught_up_copies_need_no_place() -> None:
    decision = decide(a_case(COVERED), POLICY)
    assert (decision.reason, named(decision), need(decision)) == (
        Reason.AnnouncementPending,
        {2},
        RestoreNeed.NONE,
    )


def test_without_a_place_the_top_pods_that_need_no_learners_are_drained() -> None:
    """The lower one, whose tasks have no copy, waits; and what is announced below it stays announced."""
    half = (
        example.member(0, active=(0, 1), standby=(4, 5), lag=0),
        example.member(1, active=(2, 3)),
        example.member(2, active=(4, 5)),
    )
    record = a_record(target=1)
    assert named(decide(a_case(half, desired=1, record=record), POLICY)) == {2}
    assert named(decide(a_case(half, FREE, desired=1, record=record), POLICY)) == {1, 2}
    known = example.leaving(1)
    assert named(decide(a_case(BARE, desired=1, record=record, heard=known), POLICY)) is None


def test_drained_pods_go_without_a_place() -> None:
    decision = decide(a_case(DRAINED, heard=example.leaving(2)), POLICY)
    assert (granted(decision), need(decision)) == ([2], RestoreNeed.NONE)


def test_pods_that_are_covered_by_standbys_go_without_a_place() -> None:
    decision = decide(a_snapshot(place=USED), ScalingPolicy())
    assert (granted(decision), need(decision)) == ([2], RestoreNeed.NONE)


WORDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "an override": ({"app": {"override": HoldOverride(hold_id="h-1", why="now")}}, {}),
    "the policy": ({}, {"scale_down": ScaleDownPolicy.IMMEDIATE, "force_reason": "now"}),
}


@pytest.mark.parametrize(("changes", "policy"), WORDS.values(), ids=WORDS.keys())
def test_a_users_word_does_not_wait_for_a_place(changes: dict[str, Any], policy: dict[str, Any]) -> None:
    assert granted(decide(a_case(**changes), replace(POLICY, **policy))) == [2]


def test_a_rollout_that_waits_for_no_copies_does_not_wait_for_a_place() -> None:
    case = a_case(desired=3, record=None, statefulset={"update_revision": "newer"})
    decision = decide(case, replace(POLICY, rollout=RolloutPolicy.IMMEDIATE))
    assert [step.ordinal for step in decision.plan if isinstance(step, RestartPod)] == [2]
    assert need(decision) is RestoreNeed.NONE


@pytest.mark.guarantee(3)
@pytest.mark.parametrize("place", [FREE, USED, HELD])
def test_a_raise_waits_for_no_place(place: RestorePlace) -> None:
    assert granted(decide(a_case(place=place, desired=5), POLICY)) == [5]


# How long a place is held.


def test_the_place_is_held_until_the_pods_are_empty_although_learners_have_caught_up() -> None:
    learned = (
        example.member(0, active=(0, 1), standby=(4,), lag=0),
        example.member(1, active=(2, 3), standby=(5,), lag=0),
        example.member(2, active=(4, 5)),
    )
    heard = example.leaving(2)
    assert need(decide(a_case(learned, HELD, heard=heard), POLICY)) is RestoreNeed.LEARNING
    assert need(decide(a_case(DRAINED, HELD, heard=heard), POLICY)) is RestoreNeed.NONE


@pytest.mark.parametrize(
    "changes",
    [{"app": {"paused": True}}, {"app": {"held_because": "audit"}}, {"app": {"deleting": True}}, {"desired": 3}],
)
def test_what_is_called_off_gives_its_place_back_once_agents_know_it(changes: dict[str, Any]) -> None:
    still = decide(a_case(place=HELD, heard=example.leaving(2), **changes), POLICY)
    assert (named(still), need(still)) == (set(), RestoreNeed.LEARNING)
    assert need(decide(a_case(place=HELD, **changes), POLICY)) is RestoreNeed.NONE


def test_the_claim_says_how_far_the_learners_are() -> None:
    behind = (
        example.member(0, active=(0, 1), standby=(4,), lag=30_000),
        example.member(1, active=(2, 3), standby=(5,), lag=30_000),
        example.member(2, active=(4, 5)),
    )
    decision = decide(a_case(behind, HELD, heard=example.leaving(2)), POLICY)
    assert decision.restores == RestoreClaim(need=RestoreNeed.LEARNING, leaving=TOP, records_to_go=40_000)
    unplaced = decide(a_case(BARE, HELD, heard=example.leaving(2)), POLICY)
    assert unplaced.restores.records_to_go == 2 * example.END


@pytest.mark.parametrize("changes", [{"app": {"dry_run": True}}, {"place": RestorePlace()}])
def test_a_dry_run_and_an_operator_without_a_limit_claim_nothing(changes: dict[str, Any]) -> None:
    assert need(decide(a_case(**changes), POLICY)) is RestoreNeed.NONE


REFUSED: dict[str, dict[str, Any]] = {
    "a dry run": {"dry_run": True},
    "an invalid spec": {"fault": "replicas: too few"},
    "an object that the API server refuses": {"fault": "denied by a policy", "is_rejected": True},
}


@pytest.mark.parametrize("app", REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("place", [HELD, USED])
def test_what_is_refused_keeps_its_place_as_long_as_agents_know_who_leaves(
    app: dict[str, Any], place: RestorePlace
) -> None:
    still = decide(a_case(place=place, heard=example.leaving(2), app=app), POLICY)
    assert (named(still), need(still)) == (None, RestoreNeed.LEARNING)
    assert need(decide(a_case(place=place, app=app), POLICY)) is RestoreNeed.NONE


@pytest.mark.parametrize(("place", "expected"), [(HELD, RestoreNeed.LEARNING), (USED, RestoreNeed.NONE)])
def test_a_spec_that_does_not_say_whether_there_are_agents_keeps_the_place_that_is_held(
    place: RestorePlace, expected: RestoreNeed
) -> None:
    case = a_case(place=place, agents=None, app={"fault": "unreadable"})
    assert need(decide(case, ScalingPolicy())) is expected


# The streams protocol.

STREAMS = ScalingPolicy(agent=True, source=LearnerSource.ON_DEMAND)
RAISED = RaisedStandbys(before=None, instead_of=0, to=1, at=ago(20))


def a_streams_case(place: RestorePlace, raised: RaisedStandbys | None = None, **changes: Any) -> Snapshot:
    is_raised = raised is not None and raised.state is not RaiseState.RETURNED
    number = changes.pop("shown", 1 if is_raised else 0)
    shown = StandbySetting(number, is_set=number > 0)
    group = replace(streams_group(), standbys=shown)
    record = replace(a_record(), standbys=raised)
    room = {"state_bytes": 2_000, "free_bytes": 1_000_000, "is_ours": False}
    changes.setdefault("record", record)
    return a_snapshot(
        readings=tuple(streams_reading(BARE, at, group) for at in (1, 15)),
        agents=example.agents(BARE, **room),
        place=place,
        **changes,
    )


def raised_to(decision: Decision) -> int | None:
    record = decision.record
    return record.standbys.to if isinstance(record, HoldRecord) and record.standbys is not None else None


def test_without_a_place_the_standbys_of_a_group_are_not_raised() -> None:
    waits = decide(a_streams_case(USED), STREAMS)
    assert (waits.reason, raised_to(waits), need(waits)) == (Reason.RestoreBudgetUsed, None, RestoreNeed.WAITING)
    goes_on = decide(a_streams_case(FREE), STREAMS)
    assert (goes_on.reason, raised_to(goes_on), need(goes_on)) == (Reason.NoLearners, 1, RestoreNeed.LEARNING)


def test_without_a_place_the_standbys_of_a_group_are_not_raised_for_a_rollout() -> None:
    rollout: dict[str, Any] = {"desired": 3, "record": None, "statefulset": {"update_revision": "newer"}}
    waits = decide(a_streams_case(USED, **rollout), STREAMS)
    assert (raised_to(waits), need(waits)) == (None, RestoreNeed.WAITING)
    goes_on = decide(a_streams_case(FREE, **rollout), STREAMS)
    assert (raised_to(goes_on), need(goes_on)) == (1, RestoreNeed.LEARNING)


def test_raised_standbys_are_a_claim_until_they_are_put_back() -> None:
    seen = replace(RAISED, state=RaiseState.SEEN)
    for changes in (
        {},
        {"desired": 3},
        {"app": {"paused": True}},
        {"app": {"dry_run": True}},
        {"app": {"fault": "no"}},
    ):
        assert need(decide(a_streams_case(USED, seen, **changes), STREAMS)) is RestoreNeed.LEARNING


def test_a_record_of_standbys_that_were_put_back_claims_nothing_and_the_next_raise_waits_for_a_place() -> None:
    former = replace(RAISED, state=RaiseState.RETURNED)
    back = replace(former, lease=0)
    at_rest = decide(
        a_streams_case(USED, former, desired=3, record=replace(a_record(), hold=None, standbys=former)), STREAMS
    )
    assert (raised_to(at_rest), need(at_rest)) == (1, RestoreNeed.NONE)
    waits = decide(a_streams_case(USED, back), STREAMS)
    assert (waits.reason, need(waits)) == (Reason.RestoreBudgetUsed, RestoreNeed.WAITING)
    goes_on = decide(a_streams_case(FREE, back), STREAMS)
    assert (goes_on.reason, need(goes_on)) == (Reason.NoLearners, RestoreNeed.LEARNING)


def test_another_hands_standbys_claim_nothing_and_the_next_hold_raises_with_a_place_alone() -> None:
    foreign = replace(RAISED, lease=0, at=ago(40), state=RaiseState.FOREIGN)
    of_this_hold = decide(a_streams_case(USED, foreign, shown=0), STREAMS)
    assert (of_this_hold.reason, need(of_this_hold)) == (Reason.NoLearners, RestoreNeed.NONE)
    record = replace(a_record(), hold=replace(a_hold(), since=ago(30)), standbys=foreign)
    waits = decide(a_streams_case(USED, foreign, shown=0, record=record), STREAMS)
    assert (waits.reason, need(waits)) == (Reason.RestoreBudgetUsed, RestoreNeed.WAITING)
    assert isinstance(waits.record, HoldRecord)
    assert waits.record.standbys == foreign
    goes_on = decide(a_streams_case(FREE, foreign, shown=0, record=record), STREAMS)
    assert isinstance(goes_on.record, HoldRecord)
    assert goes_on.record.standbys is not None
    assert (goes_on.record.standbys.state, need(goes_on)) == (RaiseState.WANTED, RestoreNeed.LEARNING)


def test_an_operator_that_takes_over_within_the_stabilization_window_keeps_raised_standbys() -> None:
    seen = replace(RAISED, state=RaiseState.SEEN)
    decision = decide(a_streams_case(USED, seen, app={"desired": a_wish(2, (1, 2))}), STREAMS)
    assert (told(decision), raised_to(decision)) == (("Hold", "Stabilizing"), 1)
    assert [step for step in decision.plan if type(step).__name__ == "SetStandbys"] == []


def test_standbys_that_another_source_provides_wait_for_no_place() -> None:
    decision = decide(a_streams_case(USED), ScalingPolicy(agent=True))
    assert (decision.reason, need(decision)) == (Reason.NoLearners, RestoreNeed.NONE)
