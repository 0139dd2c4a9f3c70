"""What agents are told: whom, under which epoch, for how long, and when nobody is to be told anything."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.actions.decision import Announce, Decision
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import (
    AgentReport,
    AgentSilent,
    AgentsSeen,
    AnnouncementAck,
    AnnouncementState,
    AsideKind,
    AssignorInactive,
)
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource, OnTimeout, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.reasons import Reason
from tests.builders import NOW, a_pod, a_record, a_snapshot, a_step, ago, pods, seconds, steps
from tests.support import example

POLICY = ScalingPolicy(agent=True)
MEMBERS = example.members(3)
ONCE = example.two_readings(MEMBERS)[:1]
UNKNOWN = AnnouncementAck(state=AnnouncementState.UNKNOWN)
EMPTY = AnnouncementAck(state=AnnouncementState.EMPTY, epoch=Epoch(lease=0, counter=7))
FIVE = replace(EMPTY, epoch=Epoch(lease=0, counter=5))
LATER = int(NOW.timestamp())


def heard(*each: AnnouncementAck) -> AgentsSeen:
    """Agents of three pods, each with what it has heard."""
    seen = example.agents(MEMBERS)
    words = {
        ordinal: tuple(replace(word, heard=each[ordinal]) if isinstance(word, AgentReport) else word for word in said)
        for ordinal, said in seen.words.items()
    }
    return AgentsSeen(words, seen.ends)


def a_case(agents: AgentsSeen, **changes: Any) -> Snapshot:
    return a_snapshot(agents=agents, **changes)


def announced(decision: Decision) -> Announce | None:
    found = [step for step in decision.plan if isinstance(step, Announce)]
    assert len(found) <= 1
    return found[0] if found else None


def told(decision: Decision) -> tuple[tuple[int, ...], set[int], Epoch, Reason] | None:
    """To whom, which ordinals, the epoch and the reason."""
    step = announced(decision)
    if step is None:
        return None
    ordinals = {number for number in range(10) if example.process_id(number) in step.process_ids}
    assert len(ordinals) == len(step.process_ids)
    return step.to, ordinals, step.epoch, step.reason


def renewed(counter: int = 7, **changes: Any) -> AnnouncementAck:
    return replace(example.leaving(2, counter=counter), **changes)


NEXT = Epoch(lease=0, counter=LATER)
SEVEN = Epoch(lease=0, counter=7)

HOLDS: dict[str, tuple[AgentsSeen, Any]] = {
    "nobody has heard anything": (heard(UNKNOWN, UNKNOWN, UNKNOWN), ((0, 1, 2), {2}, NEXT, Reason.LearnersWanted)),
    "all have heard that nobody leaves": (heard(EMPTY, EMPTY, EMPTY), ((0, 1, 2), {2}, NEXT, Reason.LearnersWanted)),
    "all have it": (heard(renewed(), renewed(), renewed()), None),
    "one was not reached": (heard(renewed(), FIVE, renewed()), ((1,), {2}, SEVEN, Reason.LearnersWanted)),
    "one has just started": (heard(renewed(), UNKNOWN, renewed()), ((1,), {2}, SEVEN, Reason.LearnersWanted)),
    "one has the same under an older epoch": (
        heard(renewed(), renewed(6), renewed()),
        ((1,), {2}, SEVEN, Reason.AnnouncementRenewed),
    ),
    "half of the time is over on one": (
        heard(renewed(), renewed(expires_in=seconds(26)), renewed()),
        ((1,), {2}, SEVEN, Reason.AnnouncementRenewed),
    ),
    "one names somebody else, under the same epoch": (
        heard(renewed(), example.leaving(1, counter=7), renewed()),
        ((0, 1, 2), {2}, NEXT, Reason.LearnersWanted),
    ),
    "somebody told one that nobody leaves, later": (
        heard(renewed(), replace(EMPTY, epoch=Epoch(lease=3, counter=9)), renewed()),
        ((0, 1, 2), {2}, Epoch(lease=3, counter=LATER), Reason.LearnersWanted),
    ),
    "one has another under the newest epoch": (
        heard(renewed(), EMPTY, renewed()),
        ((0, 1, 2), {2}, NEXT, Reason.LearnersWanted),
    ),
    "it has expired everywhere": (heard(EMPTY, EMPTY, EMPTY), ((0, 1, 2), {2}, NEXT, Reason.LearnersWanted)),
}


@pytest.mark.parametrize(("agents", "wanted"), HOLDS.values(), ids=HOLDS.keys())
def test_in_a_hold_who_leaves_is_told_to_whoever_has_not_heard_it(agents: AgentsSeen, wanted: Any) -> None:
    assert told(decide(a_case(agents), POLICY)) == wanted


def test_the_epoch_rises_with_the_lease() -> None:
    decision = decide(a_case(heard(EMPTY, EMPTY, EMPTY), lease=4), POLICY)
    assert told(decision) == ((0, 1, 2), {2}, Epoch(lease=4, counter=LATER), Reason.LearnersWanted)


ENDS: dict[str, tuple[dict[str, Any], ScalingPolicy]] = {
    "a raise": ({"desired": 4}, POLICY),
    "the same again": ({"desired": 3}, POLICY),
    "a pause": ({"app": {"paused": True}}, POLICY),
    "a deletion": ({"app": {"deleting": True}}, POLICY),
    "a user's hold": ({"app": {"held_because": "audit"}}, POLICY),
    "zero, which is not allowed": ({"desired": 0}, POLICY),
    "standbys chosen": ({"readings": ONCE}, ScalingPolicy(agent=True, source=LearnerSource.STANDBYS)),
    "giving up": (
        {"record": a_record(gave_up_at=1)},
        ScalingPolicy(agent=True, on_timeout=OnTimeout.GIVE_UP),
    ),
}


@pytest.mark.parametrize(("changes", "policy"), ENDS.values(), ids=ENDS.keys())
def test_whatever_ends_a_hold_calls_everybody_back_at_once(changes: dict[str, Any], policy: ScalingPolicy) -> None:
    decision = decide(a_case(heard(renewed(), renewed(), renewed()), **changes), policy)
    assert told(decision) == ((0, 1, 2), set(), NEXT, Reason.AnnouncementWithdrawn)
    assert decision.requeue_after <= seconds(2)
    again = decide(a_case(heard(EMPTY, EMPTY, EMPTY), **changes), policy)
    assert announced(again) is None


def test_a_raise_is_granted_before_anybody_is_told() -> None:
    decision = decide(a_case(heard(renewed(), renewed(), renewed()), desired=4), POLICY)
    assert steps(decision)[:2] == ("GrantReplicas", "Announce")


def test_whoever_has_just_started_is_told_that_nobody_leaves() -> None:
    assert told(decide(a_case(heard(EMPTY, UNKNOWN, EMPTY), desired=3, record=None), POLICY)) == (
        (1,),
        set(),
        SEVEN,
        Reason.AnnouncementWithdrawn,
    )


@pytest.mark.parametrize(("changes", "policy"), [({"app": {"dry_run": True}}, POLICY), ({}, ScalingPolicy())])
def test_a_dry_run_tells_nobody_nor_does_an_application_without_agents(
    changes: dict[str, Any], policy: ScalingPolicy
) -> None:
    assert announced(decide(a_case(heard(EMPTY, EMPTY, EMPTY), **changes), policy)) is None


def test_another_assignor_in_one_pod_calls_it_off_and_silence_does_not() -> None:
    agents = heard(renewed(), renewed(), renewed())
    last = agents.words[Ordinal(1)]
    aside = AssignorInactive(AsideKind.OLDER_STREAMS, "3.7")
    other = tuple(replace(word, is_ours=False, aside=aside) for word in last if isinstance(word, AgentReport))
    mixed = AgentsSeen({**agents.words, Ordinal(1): other}, agents.ends)
    assert told(decide(a_case(mixed, readings=ONCE), POLICY)) == ((0, 1, 2), set(), NEXT, Reason.AnnouncementWithdrawn)
    old = heard(renewed(expires_in=seconds(20)), renewed(), renewed())
    silent = AgentsSeen({**old.words, Ordinal(1): (AgentSilent(Ordinal(1), "refused"),)}, old.ends)
    assert told(decide(a_case(silent, readings=ONCE), POLICY)) == ((0, 1), {2}, SEVEN, Reason.AnnouncementRenewed)


@pytest.mark.parametrize("silent_for", [0, 12])
def test_a_drain_that_has_begun_is_not_called_off_for_room_while_an_agent_is_silent(silent_for: int) -> None:
    """The learners of the silent pod cannot be seen, so that they look as if they were still to come."""
    giga = 1_000_000_000
    learning = (
        example.member(0, active=(0, 1), standby=(4,)),
        example.member(1, active=(2, 3), standby=(5,)),
        example.member(2, active=(4, 5)),
    )
    known: dict[str, Any] = {
        "heard": example.leaving(2, left=timedelta(seconds=45)),
        "round": example.assigned(),
        "state_bytes": 3 * giga,
        "free_bytes": giga // 2,
        "sizes": dict.fromkeys(range(6), giga),
    }
    seen, zero = example.agents(learning, **known), Ordinal(0)
    if silent_for:
        older = (example.report(learning[0], seconds(silent_for + more), **known) for more in (0, 4))
        seen = replace(seen, words={**seen.words, zero: (AgentSilent(zero, "no answer"), *older)})
    decision = decide(a_snapshot(members=learning, agents=seen), replace(POLICY, source=LearnerSource.ON_DEMAND))
    assert announced(decision) is None


def test_nothing_is_begun_while_an_agent_is_silent() -> None:
    agents = heard(EMPTY, EMPTY, EMPTY)
    silent = AgentsSeen({**agents.words, Ordinal(1): (AgentSilent(Ordinal(1), "refused"),)}, agents.ends)
    assert announced(decide(a_case(silent), POLICY)) is None


def test_never_is_everybody_named() -> None:
    down = a_pod(0, container=replace(example.pod(0).container, running_since=None), ready=False)
    agents = heard(EMPTY, EMPTY, EMPTY)
    case = a_case(agents, desired=1, record=a_record(target=1), workload={"pods": pods(3, p0=down)})
    assert announced(decide(case, POLICY)) is None


def test_towards_zero_the_last_one_is_not_named() -> None:
    policy = replace(POLICY, allow_zero=True)
    decision = decide(a_case(heard(EMPTY, EMPTY, EMPTY), desired=0, record=a_record(target=0)), policy)
    assert told(decision) == ((0, 1, 2), {1, 2}, NEXT, Reason.LearnersWanted)


def test_of_more_processes_than_an_announcement_can_name_the_highest_ordinals_come_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streamapp.core.actions.announcement.MOST_LEAVING", 1)
    decision = decide(a_case(heard(EMPTY, EMPTY, EMPTY), desired=1, record=a_record(target=1)), POLICY)
    assert told(decision) == ((0, 1, 2), {2}, NEXT, Reason.LearnersWanted)


def test_a_pod_stays_named_until_it_is_gone() -> None:
    going = a_pod(2, terminating=True)
    step_progress = a_record(granted=2, step=a_step(from_replicas=3, to_replicas=2, observed=()), target=1)
    changes = {"record": step_progress, "statefulset": {"replicas": 2}, "workload": {"pods": pods(3, p2=going)}}
    still = heard(example.leaving(1, 2, counter=7), example.leaving(1, 2, counter=7), EMPTY)
    assert announced(decide(a_case(still, desired=1, **changes), POLICY)) is None
    paused = decide(a_case(still, desired=1, app={"paused": True}, **changes), POLICY)
    assert told(paused) == ((0, 1), {2}, NEXT, Reason.LearnersWanted)
    raised = decide(a_case(still, desired=3, **changes), POLICY)
    assert told(raised) == ((0, 1), {2}, NEXT, Reason.LearnersWanted)


@pytest.mark.parametrize(("left", "after"), [(45, 19), (28, 2), (40, 14)])
def test_the_next_pass_comes_in_time_to_renew(left: float, after: float) -> None:
    # with two seconds since the agents looked, and one to spare
    agents = heard(*[renewed(expires_in=seconds(left))] * 3)
    decision = decide(a_case(agents, app={"held_because": None}), POLICY)
    assert decision.requeue_after <= seconds(max(1.0, after))
    assert decision.requeue_after > timedelta(0)


def test_an_old_report_tells_nothing_about_what_was_heard() -> None:
    agents = heard(renewed(), renewed(), renewed())
    old = {
        ordinal: tuple(replace(word, as_of=ago(11)) if isinstance(word, AgentReport) else word for word in said)
        for ordinal, said in agents.words.items()
    }
    assert announced(decide(a_case(AgentsSeen(old, agents.ends), desired=3), POLICY)) is None


def test_processes_that_hold_no_task_are_named_for_minutes() -> None:
    agents = heard(renewed(), renewed(), renewed())
    emptied = tuple(replace(word, tasks=()) for word in agents.words[Ordinal(2)] if isinstance(word, AgentReport))
    step = announced(
        decide(a_case(AgentsSeen({**agents.words, Ordinal(2): emptied}, agents.ends), readings=ONCE), POLICY)
    )
    assert step is not None
    assert (step.ttl, step.to, step.epoch) == (timedelta(minutes=8), (0, 1, 2), SEVEN)
