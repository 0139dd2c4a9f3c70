"""Reasons as Events: every reason that is sent has a name of its own there, and it can be read back."""

from hypothesis import given

from streamapp.core.actions.decision import Verdict
from streamapp.core.decide import decide
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.reasons import Reason
from streamapp.core.status.events import EVENT_REASONS, event_reason, reasons_of_event
from tests.strategies import policies, scale_downs, snapshots


@given(snapshots() | scale_downs(), policies())
def test_every_reason_that_is_sent_has_an_event(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    decision = decide(snapshot, policy)
    sent = {event.reason for event in (*decision.events, *decision.warnings)}
    if decision.verdict in {Verdict.STALLED, Verdict.PAUSED}:
        sent.add(decision.reason)
    assert sent <= set(EVENT_REASONS)


def test_events_of_one_name_have_one_type() -> None:
    assert len(set(EVENT_REASONS.values())) == len({event.name for event in EVENT_REASONS.values()})


def test_the_reasons_of_an_event_are_those_that_are_sent_under_its_name() -> None:
    for reason in EVENT_REASONS:
        assert reason in reasons_of_event(event_reason(reason).name)
    assert reasons_of_event("Steady") == frozenset()


def test_a_reason_that_is_not_in_the_table_keeps_its_name() -> None:
    assert event_reason(Reason.Steady).name == "Steady"
