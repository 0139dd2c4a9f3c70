"""Reasons as Events: every reason that is sent has a name of its own there, and it can be read back."""

from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given

from streamapp.core.actions.decision import OpenBudget, Verdict
from streamapp.core.decide import decide
from streamapp.core.facts.group import StandbySetting
from streamapp.core.facts.policy import DisruptionPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import UNSCHEDULABLE, Budget, NodeDrain
from streamapp.core.reasons import Reason
from streamapp.core.status.events import event_of, reasons_of_event
from tests.builders import a_pod, a_snapshot, pods
from tests.strategies import policies, scale_downs, snapshots
from tests.support.raised_standbys import POLICY, SEEN, SPREAD
from tests.support.raised_standbys import a_case as streams_case


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


@pytest.mark.guarantee(8)
@pytest.mark.parametrize(
    ("snapshot", "made", "reasons"),
    [
        pytest.param(a_snapshot(record=None), {"WriteHoldRecord"}, ["HoldBegan"], id="the hold is on record"),
        pytest.param(a_snapshot(record=None), set(), [], id="it is not, and begins anew"),
        pytest.param(a_snapshot(), {"CloseBudget", "GrantReplicas"}, ["Covered"], id="the pod was removed"),
        pytest.param(a_snapshot(), {"CloseBudget"}, [], id="it was not"),
    ],
)
def test_after_a_failure_only_what_was_done_is_told(snapshot: Snapshot, made: set[str], reasons: list[str]) -> None:
    decision = decide(snapshot, ScalingPolicy())
    steps = [step for step in decision.plan if type(step).__name__ in made]
    assert {type(step).__name__ for step in steps} == made
    assert [event.reason.name for event in decision.events_after(steps)] == reasons


@pytest.mark.guarantee(8)
def test_a_pod_that_may_not_be_evicted_yet_is_not_told_as_one_that_may() -> None:
    drained = a_pod(2, drain=NodeDrain("blue", UNSCHEDULABLE))
    workload = {"pods": pods(3, p2=drained), "budget": Budget.CLOSED, "budget_lease": 0, "sees_nodes": True}
    case = streams_case(SPREAD, StandbySetting(1, is_set=True), SEEN, is_held=False, workload=workload)
    decision = decide(case, replace(POLICY, disruption=DisruptionPolicy.WHEN_CAUGHT_UP))
    opening = [step for step in decision.plan if isinstance(step, OpenBudget)]
    assert [event.reason for event in decision.events_after(decision.plan)] == [Reason.EvictionCovered]
    others = [step for step in decision.plan if step not in opening]
    assert (len(opening), decision.events_after(others)) == (1, ())
