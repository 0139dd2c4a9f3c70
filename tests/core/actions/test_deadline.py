"""Holds while nothing is prepared for them: their deadline, and their end; and what else a hold is measured by."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.actions.decision import GrantReplicas, WriteHoldRecord
from streamapp.core.decide import decide
from streamapp.core.facts.hold_record import Hold, HoldRecord, Progress
from streamapp.core.facts.policy import OnTimeout, ScalingPolicy
from streamapp.core.facts.snapshot import HoldOverride
from streamapp.core.reasons import Reason
from tests.builders import NOW, a_hold, a_record, a_snapshot, ago, told
from tests.support import example

LAGGING = example.members(3, lag=500_000)
PROCEED = ScalingPolicy(on_timeout=OnTimeout.PROCEED, force_reason="may take longer once")
AT_THE_DEADLINE = Progress(best=980_000, improved_at=ago(4000), counted_at=NOW - timedelta(hours=1))


@pytest.mark.parametrize(
    ("app", "found"),
    [
        pytest.param({"fault": "broken"}, ("Stalled", "InvalidSpec"), id="an invalid spec"),
        pytest.param({"dry_run": True}, ("Step", "OverriddenByTimeout"), id="a dry run"),
    ],
)
def test_what_prepares_nothing_for_a_hold_ends_the_wait_and_it_begins_anew_after_that(
    app: dict[str, Any], found: tuple[str, str]
) -> None:
    due = a_record(reason=Reason.LearnersCatchingUp, progress=AT_THE_DEADLINE)
    during = decide(a_snapshot(members=LAGGING, app=app, record=due), PROCEED)
    (step,) = during.plan
    assert isinstance(step, WriteHoldRecord)
    record = step.record
    assert isinstance(record, HoldRecord)
    kept = replace(a_hold(), reason=Reason.LearnersCatchingUp, progress=Progress(improved_at=NOW))
    assert (told(during), record.hold) == (found, kept)
    later = decide(a_snapshot(members=LAGGING, app=app, record=record), PROCEED)
    after = decide(a_snapshot(members=LAGGING, record=record), PROCEED)
    assert isinstance(after.record, HoldRecord)
    assert after.record.hold is not None
    assert (later.plan, told(after)) == ((), ("Hold", "LearnersCatchingUp"))
    assert after.record.hold.progress == Progress(best=980_000, improved_at=NOW, counted_at=NOW)


def test_a_hold_that_goes_further_does_not_stand_still_by_what_fewer_pods_needed() -> None:
    progress = Progress(best=10, improved_at=ago(3700), counted_at=NOW - timedelta(hours=1))
    record = a_record(reason=Reason.LearnersCatchingUp, progress=progress)
    same, further = (decide(a_snapshot(members=LAGGING, desired=one, record=record), ScalingPolicy()) for one in (2, 1))
    assert (told(same), told(further)) == (("Hold", "NoProgress"), ("Hold", "LearnersCatchingUp"))
    assert isinstance(further.record, HoldRecord)
    assert further.record.hold is not None
    assert further.record.hold.progress == Progress(best=980_000, improved_at=NOW, counted_at=progress.counted_at)
    late = decide(a_snapshot(members=LAGGING, desired=1, record=record), ScalingPolicy(on_timeout=OnTimeout.GIVE_UP))
    assert told(late) == ("Hold", "GaveUp")


def test_no_hold_begins_whose_deadline_no_record_can_keep() -> None:
    """A StatefulSet whose creation was cut off takes no write but its template, which can be refused for long."""
    half_made = {"is_half_made": True, "template_is_written": False}
    decision = decide(a_snapshot(record=None, statefulset=half_made), ScalingPolicy())
    assert (told(decision), decision.record, decision.events) == (("Hold", "TemplateUnwritten"), None, ())
    assert [type(step).__name__ for step in decision.plan][-1:] == ["WriteTemplate"]


@pytest.mark.parametrize("app", [{"dry_run": True}, {"fault": "broken"}, {"paused": True}, {}], ids=str)
@pytest.mark.parametrize("desired", [3, 4])
def test_a_hold_ends_once_as_many_replicas_are_desired_again_whatever_the_operator_may_do(
    app: dict[str, Any], desired: int
) -> None:
    """An override of it must not let the pods of a later scale-down go."""
    override = HoldOverride(hold_id="h-1", why="disk full")
    decision = decide(a_snapshot(desired=desired, app={"override": override, **app}), ScalingPolicy())
    writes = [step for step in decision.plan if isinstance(step, WriteHoldRecord | GrantReplicas)]
    assert [step.record for step in writes] == [None]


OVERRIDE = HoldOverride(hold_id="h-1", why="disk full")


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(
    ("app", "policy", "before"),
    [
        pytest.param({}, PROCEED, "OverriddenByTimeout", id="its deadline is over"),
        pytest.param({"override": OVERRIDE}, ScalingPolicy(), "OverriddenByUser", id="a user has overridden it"),
    ],
)
def test_a_process_that_missed_changes_of_the_streamapp_begins_another_hold(
    app: dict[str, Any], policy: ScalingPolicy, before: str
) -> None:
    """The desired replicas can have risen and fallen again: then the wait and the word were of another scale-down."""
    due = a_record(reason=Reason.LearnersCatchingUp, progress=AT_THE_DEADLINE)
    same = decide(a_snapshot(members=LAGGING, app=app, record=due.found_at(1)), policy)
    assert told(same) == ("Step", before)
    changed = {**app, "generation": 3}
    found = due.found_at(3)
    first = decide(a_snapshot(members=LAGGING, app=changed, record=found), policy)
    assert isinstance(first.record, HoldRecord)
    held = first.record.hold
    assert held is not None
    assert (held.id != "h-1", held.since, held.granted, held.generation) == (True, NOW, 3, 3)
    assert held.progress == Progress(best=980_000, improved_at=NOW, counted_at=NOW)
    assert (told(first), [type(step) for step in first.plan if isinstance(step, GrantReplicas)]) == (
        ("Hold", "LearnersCatchingUp"),
        [],
    )
    assert Reason.HoldBegan in {event.reason for event in first.events}
    second = decide(a_snapshot(members=LAGGING, app=changed, record=first.record), policy)
    assert told(second) == ("Hold", "LearnersCatchingUp")


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(
    ("app", "policy", "before"),
    [
        pytest.param({}, PROCEED, "OverriddenByTimeout", id="its deadline is over"),
        pytest.param({"override": OVERRIDE}, ScalingPolicy(), "OverriddenByUser", id="a user has overridden it"),
    ],
)
def test_a_change_between_two_passes_of_one_process_begins_another_hold(
    app: dict[str, Any], policy: ScalingPolicy, before: str
) -> None:
    """The desired replicas can have risen and fallen again while one pass waited for answers."""
    due = a_record(reason=Reason.LearnersCatchingUp, progress=AT_THE_DEADLINE)
    seen, missed = (
        decide(a_snapshot(members=LAGGING, app={**app, "generation": generation}, record=due), policy)
        for generation in (2, 3)
    )
    assert (told(seen), told(missed)) == (("Step", before), ("Hold", "LearnersCatchingUp"))
    assert isinstance(missed.record, HoldRecord)
    held = missed.record.hold
    assert held is not None
    assert (held.id != "h-1", held.since, held.granted, held.generation) == (True, NOW, 3, 3)
    assert Reason.HoldBegan in {event.reason for event in missed.events}


@pytest.mark.parametrize("app", [{"dry_run": True}, {"fault": "broken"}], ids=str)
def test_what_prepares_nothing_does_not_make_a_hold_again_in_which_a_change_was_missed(app: dict[str, Any]) -> None:
    override = {"override": OVERRIDE}
    first = decide(a_snapshot(members=LAGGING, app={**app, **override, "generation": 3}), ScalingPolicy())
    (step,) = first.plan
    assert isinstance(step, WriteHoldRecord)
    after = decide(a_snapshot(members=LAGGING, app={**override, "generation": 4}, record=step.record), ScalingPolicy())
    assert (told(after), Reason.HoldBegan in {event.reason for event in after.events}) == (
        ("Hold", "LearnersCatchingUp"),
        True,
    )


@pytest.mark.parametrize("app", [{"dry_run": True}, {"fault": "broken"}, {}], ids=str)
def test_an_operator_that_looks_on_writes_each_generation_once_and_goes_on_with_the_hold(app: dict[str, Any]) -> None:
    progress = Progress(improved_at=NOW) if app else replace(AT_THE_DEADLINE, improved_at=NOW)
    record = a_record(reason=Reason.LearnersCatchingUp, progress=progress)
    first = decide(a_snapshot(members=LAGGING, app={**app, "generation": 2}, record=record), ScalingPolicy())
    (step,) = (step for step in first.plan if isinstance(step, WriteHoldRecord))
    assert isinstance(step.record, HoldRecord)
    assert isinstance(record.hold, Hold)
    assert step.record.hold == replace(record.hold, generation=2)
    second = decide(a_snapshot(members=LAGGING, app={**app, "generation": 2}, record=step.record), ScalingPolicy())
    assert not [step for step in second.plan if isinstance(step, WriteHoldRecord)]


def test_a_hold_that_changed_unseen_is_called_off_by_its_own_id() -> None:
    decision = decide(a_snapshot(desired=3, app={"generation": 3}, record=a_record().found_at(3)), ScalingPolicy())
    assert [(event.reason, event.detail) for event in decision.events] == [(Reason.HoldCancelled, "hold h-1")]
    assert decision.record is None
