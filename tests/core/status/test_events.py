"""Reasons as Events: every reason that is sent has a name of its own there, and it can be read back."""

from collections import defaultdict

from hypothesis import given

from streamapp.core.actions.decision import Verdict
from streamapp.core.decide import decide
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.reasons import Reason
from streamapp.core.status.events import event_of, reasons_of_event
from tests.strategies import policies, scale_downs, snapshots


@given(snapshots() | scale_downs(), policies())
def test_every_reason_that_is_sent_has_an_event(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    decision = decide(snapshot, policy)
    sent = {event.reason for event in (*decision.events, *decision.warnings)}
    if decision.verdict in {Verdict.STALLED, Verdict.PAUSED}:
        sent.add(decision.reason)
    assert {reason for reason in sent if not reason.row.event} == set()


def test_events_of_one_name_have_one_type() -> None:
    types = defaultdict(set)
    for reason in Reason:
        if reason.row.event:
            types[reason.row.event].add(reason.row.is_warning)
    assert {name for name, kinds in types.items() if len(kinds) != 1} == set()


def test_the_reasons_of_an_event_are_those_that_are_sent_under_its_name() -> None:
    for reason in Reason:
        assert not reason.row.event or reason in reasons_of_event(event_of(reason))
    assert reasons_of_event("Steady") == frozenset()


def test_a_reason_without_an_event_keeps_its_name() -> None:
    assert event_of(Reason.Steady) == "Steady"
