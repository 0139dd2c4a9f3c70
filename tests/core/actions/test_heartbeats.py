"""The heartbeat cap of a streams group: asked for while tasks are on their way, and never a condition for anything."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.actions.decision import CapHeartbeats, Decision, GrantReplicas, Verdict
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import AgentsSeen, AsideKind, AssignorInactive, HeartbeatCap
from streamapp.core.facts.hold_record import Epoch, HoldRecord
from streamapp.core.facts.policy import ScaleDownPolicy, ScalingPolicy, Timing
from streamapp.core.facts.snapshot import Raise, Snapshot
from tests.builders import a_hold, a_pod, a_snapshot, a_step, ago, pods
from tests.support import example
from tests.support.streams import streams_reading

POLICY = ScalingPolicy(agent=True)
MEMBERS = example.members(3)
FREE = HeartbeatCap()
SECOND = timedelta(seconds=1)
CAP = timedelta(milliseconds=300)
EPOCH = Epoch(lease=0, counter=1)


def a_cap(left: float = 50) -> HeartbeatCap:
    return HeartbeatCap(interval=CAP, expires_in=left * SECOND)


def reports(cap: HeartbeatCap | None, **changes: Any) -> AgentsSeen:
    aside = AssignorInactive(AsideKind.STREAMS_PROTOCOL, "the broker assigns")
    return example.agents(MEMBERS, is_ours=False, aside=aside, heartbeat_cap=cap, **changes)


def a_case(cap: HeartbeatCap | None = FREE, *, is_classic: bool = False, **changes: Any) -> Snapshot:
    """Three settled pods on the streams protocol, whose agents report this cap."""
    readings = tuple(streams_reading(MEMBERS, seconds) for seconds in (1, 15))
    if is_classic:
        return a_snapshot(agents=reports(cap), **changes)
    return a_snapshot(readings=readings, agents=reports(cap), **changes)


def an_open_step(cap: HeartbeatCap | None = FREE, granted: float = 5, **changes: Any) -> Snapshot:
    """From four to three; the pod is still there."""
    record = HoldRecord(epoch=EPOCH, hold=None, step=a_step(granted_at=ago(granted)))
    there = (*pods(), a_pod(3, terminating=True))
    return a_case(cap, desired=3, record=record, workload={"pods": there}, **changes)


def asked(decision: Decision) -> list[tuple[tuple[int, ...], timedelta, timedelta]]:
    return [(step.to, step.cap, step.ttl) for step in decision.plan if isinstance(step, CapHeartbeats)]


ALL = ((0, 1, 2), CAP, timedelta(minutes=1))
"""Every agent, for as long as it goes."""
NO_MORE = ((0, 1, 2), CAP, timedelta(0))


def test_a_settled_application_keeps_its_brokers_interval() -> None:
    assert asked(decide(a_case(desired=3, record=None), POLICY)) == []


def test_every_agent_is_asked_while_a_step_is_open_the_leaving_one_too() -> None:
    assert asked(decide(an_open_step(), POLICY)) == [ALL]


def test_an_agent_that_has_the_cap_for_long_enough_is_not_asked_again() -> None:
    assert asked(decide(an_open_step(a_cap(33)), POLICY)) == []
    assert asked(decide(an_open_step(a_cap(31)), POLICY)) == [ALL]


def test_the_cap_ends_when_the_step_is_closed() -> None:
    assert asked(decide(a_case(a_cap(), desired=3, record=None), POLICY)) == [NO_MORE]


def test_a_step_that_is_slow_does_not_cost_heartbeats_for_ever() -> None:
    assert asked(decide(an_open_step(a_cap(1), granted=599), POLICY)) == [ALL]
    assert asked(decide(an_open_step(a_cap(1), granted=601), POLICY)) == []


def test_a_cap_stays_until_it_expires_while_the_pod_that_was_taken_is_still_there() -> None:
    restarting = a_case(a_cap(1), desired=3, record=None, workload={"pods": pods(p2=a_pod(2, terminating=True))})
    assert asked(decide(restarting, POLICY)) == []


def test_the_pass_that_takes_a_pod_asks_before_it_takes_it() -> None:
    hold = replace(a_hold(), since=ago(100))
    snapshot = a_case(desired=2, record=HoldRecord(epoch=EPOCH, hold=hold))
    forced = replace(POLICY, scale_down=ScaleDownPolicy.IMMEDIATE, force_reason="a test")
    plan = [type(step) for step in decide(snapshot, forced).plan]
    assert plan.index(CapHeartbeats) == plan.index(GrantReplicas) - 1


def test_a_raise_never_waits_for_an_agent() -> None:
    raised = decide(a_case(desired=4, record=None), POLICY)
    kinds = [type(step) for step in raised.plan]
    assert kinds[0] is GrantReplicas
    assert asked(raised) == [ALL]
    made = decide(
        a_case(desired=4, record=None, statefulset={"replicas": 4}, raised=Raise(from_replicas=3, to_replicas=4)),
        POLICY,
    )
    assert made.verdict is Verdict.GROW
    assert asked(made) == [ALL]


@pytest.mark.parametrize("cap", [FREE, a_cap(50), None])
def test_what_agents_have_heard_changes_nothing_else(cap: HeartbeatCap | None) -> None:
    without = decide(an_open_step(None), POLICY)
    decision = decide(an_open_step(cap), POLICY)
    assert [step for step in decision.plan if not isinstance(step, CapHeartbeats)] == list(without.plan)
    assert (decision.verdict, decision.reason, decision.record) == (without.verdict, without.reason, without.record)


def test_an_agent_that_cannot_is_not_asked() -> None:
    assert asked(decide(an_open_step(None), POLICY)) == []
    assert asked(decide(an_open_step(), replace(POLICY, agent=False))) == []


def test_no_agent_of_a_classic_group_is_asked() -> None:
    assert asked(decide(an_open_step(is_classic=True), POLICY)) == []


def test_a_pod_that_began_lately_keeps_the_cap_until_the_group_has_converged() -> None:
    container = example.pod(2).container
    began = a_pod(2, container=replace(container, running_since=ago(20)))
    settled = a_case(desired=3, record=None, workload={"pods": pods(p2=began)})
    assert asked(decide(settled, POLICY)) == []
    readings = tuple(streams_reading(MEMBERS[:2], seconds) for seconds in (1, 15))
    assert asked(decide(replace(settled, readings=readings), POLICY)) == [ALL]
    assert asked(decide(replace(a_case(desired=3, record=None), readings=readings), POLICY)) == []


@pytest.mark.parametrize("limits", [{"heartbeat_cap": 99}, {"heartbeat_cap": 5001}, {"heartbeat_cap_lasts": 121_000}])
def test_a_cap_that_no_agent_takes_is_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="heartbeat_cap"):
        Timing(**{name: timedelta(milliseconds=value) for name, value in limits.items()})
