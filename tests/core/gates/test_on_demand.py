"""Learners on demand: when they are in force, what a pod must be before it goes, and what is waited for."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.actions.decision import Announce, Decision, GrantReplicas, TriggerRebalance
from streamapp.core.decide import decide
from streamapp.core.evidence.eta import EtaAt
from streamapp.core.facts.agent_reports import (
    AgentReport,
    AgentSilent,
    AgentsSeen,
    AnnouncementAck,
    AnnouncementState,
    AsideKind,
    AssignorInactive,
    Rebalance,
)
from streamapp.core.facts.group import Applied, FollowUp, GroupReading, Member
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.lag import EndsUnreadable
from streamapp.core.facts.policy import LearnerSource, OnTimeout, ScaleDownPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import HoldOverride, RebalanceHistory, Snapshot
from streamapp.core.reasons import Reason
from tests.builders import NOW, a_hold, a_reading, a_record, a_snapshot, a_wish, ago, seconds, steps, told
from tests.support import example

POLICY = ScalingPolicy(agent=True, allow_zero=True)
DEMANDED = ScalingPolicy(agent=True, source=LearnerSource.ON_DEMAND)
TOP_LEAVES = {"heard": example.leaving(2), "round": example.assigned()}
AgentTrouble = Callable[[AgentReport], Any]


def layout(*, lag: int | None = 0, learners: Iterable[int] = (4, 5), follow_up: FollowUp = FollowUp.NONE) -> Any:
    """Three pods without standbys; the tasks of the top one have learners on the others."""
    placed = set(learners)
    return (
        example.member(0, active=(0, 1), standby=placed & {4}, lag=lag, follow_up=follow_up),
        example.member(1, active=(2, 3), standby=placed & {5}, lag=lag, follow_up=follow_up),
        example.member(2, active=(4, 5), follow_up=follow_up),
    )


DRAINED = (example.member(0, active=(0, 1, 4)), example.member(1, active=(2, 3, 5)), example.member(2))


def polled(members: tuple[Member, ...]) -> tuple[GroupReading, ...]:
    """Two polls of one join, five seconds apart: what agents need, and less than would do without them."""
    return tuple(a_reading(members, at=at, rebalance=None) for at in (1, 6))


def a_case(members: tuple[Member, ...] = DRAINED, agents: Any = None, **changes: Any) -> Snapshot:
    """A hold from three to two, with agents that say what the group says."""
    heard = example.agents(members, **TOP_LEAVES) if agents is None else agents
    return a_snapshot(readings=polled(members), agents=heard, **changes)


def reported(seen: AgentsSeen, change: AgentTrouble, *ordinals: int) -> AgentsSeen:
    """The agents, with other words of some."""
    words = {
        ordinal: tuple(change(word) if ordinal in ordinals and isinstance(word, AgentReport) else word for word in said)
        for ordinal, said in seen.words.items()
    }
    return AgentsSeen(words, seen.ends)


def announced(decision: Decision) -> Announce:
    (step,) = [step for step in decision.plan if isinstance(step, Announce)]
    return step


def triggered(decision: Decision) -> list[Reason]:
    return [step.reason for step in decision.plan if isinstance(step, TriggerRebalance)]


def grants(decision: Decision) -> list[tuple[int, int]]:
    return [(step.from_replicas, step.to_replicas) for step in decision.plan if isinstance(step, GrantReplicas)]


# From the announcement to the step.


def test_a_hold_first_tells_every_agent_who_leaves() -> None:
    bare = layout(learners=())
    decision = decide(a_case(bare, agents=example.agents(bare), record=None), POLICY)
    assert told(decision) == ("Hold", "AnnouncementPending")
    assert steps(decision) == ("WriteHoldRecord", "Announce")
    step = announced(decision)
    assert (step.to, step.process_ids, step.ttl) == ((0, 1, 2), (example.process_id(2),), seconds(50))
    assert (step.epoch > Epoch(lease=0, counter=2), step.rebalance) == (True, Rebalance.CONSERVATIVE)


def test_when_all_have_heard_it_the_first_triggered_rebalance_places_learners_at_once() -> None:
    bare = layout(learners=())
    decision = decide(a_case(bare, agents=example.agents(bare, heard=example.leaving(2))), POLICY)
    assert (told(decision), triggered(decision)) == (
        ("Hold", "AnnouncementNotFollowed"),
        [Reason.AnnouncementNotFollowed],
    )


def test_while_learners_learn_no_rebalance_is_triggered_and_lag_and_time_are_told() -> None:
    now, before = layout(lag=100_000, follow_up=FollowUp.SCHEDULED), layout(lag=300_000)
    agents = example.agents(now, heard=example.leaving(2), round=example.assigned(follow_up_is_watch=False, learning=2))
    earlier = example.agents(before, **TOP_LEAVES).words
    agents = AgentsSeen({one: (agents.words[one][0], earlier[one][1]) for one in agents.words}, agents.ends)
    decision = decide(a_case(now, agents=agents), POLICY)
    assert (told(decision), triggered(decision)) == (("Hold", "LearnersCatchingUp"), [])
    assert [(wait.task.partition, wait.records_to_go) for wait in decision.waiting_for] == [(4, 90_000), (5, 90_000)]
    # 200,000 records in four seconds
    assert decision.eta == EtaAt(ago(2) + timedelta(seconds=1.8))


def test_when_all_learners_are_there_their_tasks_are_moved_at_once() -> None:
    learned = layout(lag=9_000, follow_up=FollowUp.SCHEDULED)
    decision = decide(a_case(learned, rebalances=RebalanceHistory(sent=(ago(4),), layout_since=ago(3))), POLICY)
    assert (told(decision), triggered(decision)) == (("Hold", "TasksReadyToMove"), [Reason.TasksReadyToMove])
    assert (
        triggered(decide(a_case(learned, rebalances=RebalanceHistory(sent=(ago(2),), layout_since=ago(1))), POLICY))
        == []
    )


HALF_LEARNED = (
    example.member(0, active=(0, 1), standby=(4,), lag=0),
    example.member(1, active=(2, 3), standby=(5,), lag=500_000),
    example.member(2, active=(4, 5)),
)
BOTH_ON_ONE = (
    replace(
        (both := example.member(0, active=(0, 1), standby=(4, 5), lag=0)),
        subscription=replace(
            both.subscription,  # type: ignore[type-var]
            offsets={
                **both.subscription.offsets,  # type: ignore[union-attr]
                example.task(5): Applied(example.END - 500_000),
            },
        ),
    ),
    example.member(1, active=(2, 3)),
    example.member(2, active=(4, 5)),
)


@pytest.mark.parametrize(
    ("members", "rebalance", "reason"),
    [
        pytest.param(HALF_LEARNED, Rebalance.CONSERVATIVE, "TasksReadyToMove", id="all of one process are ready"),
        pytest.param(BOTH_ON_ONE, Rebalance.CONSERVATIVE, "LearnersCatchingUp", id="one of two of a process is"),
        pytest.param(BOTH_ON_ONE, Rebalance.EAGER, "TasksReadyToMove", id="any is enough for the eager"),
    ],
)
def test_a_triggered_rebalance_waits_for_a_whole_process_unless_it_is_eager(
    members: tuple[Member, ...], rebalance: Rebalance, reason: str
) -> None:
    agents = example.agents(members, heard=replace(example.leaving(2), rebalance=rebalance), round=example.assigned())
    decision = decide(a_case(members, agents=agents), replace(POLICY, rebalance=rebalance))
    assert told(decision) == ("Hold", reason)


def test_a_task_whose_learner_the_assignor_has_not_made_yet_is_told_and_rebalanced_for() -> None:
    decision = decide(a_case(layout(learners=())), POLICY)
    assert (told(decision), triggered(decision)) == (("Hold", "LearnersNotPlaced"), [Reason.LearnersNotPlaced])


def test_standbys_that_are_left_on_a_leaving_pod_keep_it() -> None:
    members = (*DRAINED[:2], example.member(2, standby=(0,)))
    assert told(decide(a_case(members), POLICY)) == ("Hold", "Draining")


def test_a_drained_pod_goes_on_two_words_of_the_agents_without_any_triggered_rebalance() -> None:
    decision = decide(a_case(), POLICY)
    assert (told(decision), steps(decision)) == (("Step", "Drained"), ("CloseBudget", "GrantReplicas", "RecordState"))


def test_pods_that_are_drained_from_the_top_go_in_one_step() -> None:
    members = (
        *(example.member(number, active=(2 * number, 2 * number + 1)) for number in range(3)),
        *(example.member(number) for number in (3, 4, 5)),
    )
    agents = example.agents(members, heard=example.leaving(3, 4, 5), round=example.assigned())
    decision = decide(a_case(members, agents=agents, pods=6, desired=3, record=a_record(granted=6, target=3)), POLICY)
    assert (told(decision), grants(decision)) == (("Step", "Drained"), [(6, 3)])


def test_drained_pods_above_one_that_is_not_go_before_it() -> None:
    members = (
        *(example.member(number, active=(number,)) for number in range(3)),
        example.member(3, active=(3, 4, 5)),
        *(example.member(number) for number in (4, 5)),
    )
    agents = example.agents(members, heard=example.leaving(3, 4, 5), round=example.assigned())
    decision = decide(a_case(members, agents=agents, pods=6, desired=3, record=a_record(granted=6, target=3)), POLICY)
    assert grants(decision) == [(6, 4)]


# What holds.


def silent(_: AgentReport) -> AgentSilent:
    return AgentSilent(Ordinal(1), "connection refused")


def with_tasks_of(members: tuple[Member, ...], ordinal: int) -> AgentTrouble:
    return lambda word: replace(word, tasks=example.report(members[ordinal]).tasks)


HOLDS: dict[str, tuple[AgentTrouble, int, str]] = {
    "an agent that is silent": (silent, 1, "AgentSilent"),
    "an old word": (lambda word: replace(word, as_of=word.as_of - seconds(10)), 1, "AgentSilent"),
    "a word from the future": (lambda word: replace(word, as_of=NOW + seconds(1)), 1, "AgentSilent"),
    "a word of another pod": (lambda word: replace(word, pod_uid="pod-1-before"), 1, "AgentSilent"),
    "no tasks": (lambda word: replace(word, tasks=None), 1, "AgentSilent"),
    "no process ID": (lambda word: replace(word, process_id=None), 1, "AgentSilent"),
    "the same word twice": (lambda word: replace(word, sequence=7), 1, "AgentReportsPending"),
    "two incarnations": (
        lambda word: replace(word, incarnation=f"jvm-{word.sequence}"),
        1,
        "AgentReportsPending",
    ),
    "another process ID": (lambda word: replace(word, process_id=example.process_id(7)), 1, "ProcessIdMismatch"),
    "another assignor": (
        lambda word: replace(word, is_ours=False, aside=AssignorInactive(AsideKind.OLDER_STREAMS, "3.7.2")),
        1,
        "AssignorMixed",
    ),
    "another limit": (lambda word: replace(word, recovery_lag=5), 1, "RecoveryLagUnclear"),
    "no limit told": (lambda word: replace(word, recovery_lag=None), 1, "RecoveryLagUnclear"),
    "an unbounded limit": (lambda word: replace(word, recovery_lag=2**63 - 1), 1, "RecoveryLagUnbounded"),
}


@pytest.mark.parametrize(("change", "ordinal", "reason"), HOLDS.values(), ids=HOLDS.keys())
def test_where_on_demand_is_demanded_and_not_in_force_nothing_goes(
    change: AgentTrouble, ordinal: int, reason: str
) -> None:
    agents = reported(example.agents(DRAINED, **TOP_LEAVES), change, ordinal)
    decision = decide(a_case(agents=agents), DEMANDED)
    assert told(decision) == ("Hold", reason)
    (learners,) = [one for one in decision.conditions if one.type == "LearnersAvailable"]
    assert (learners.reason.name, learners.status.value) == (reason, "False")


DISAGREE: dict[str, tuple[AgentTrouble, int, str]] = {
    "the agent of the top pod sees a task": (with_tasks_of(layout(), 2), 2, "AgentsDisagree"),
    "another agent misses one": (lambda word: replace(word, tasks=word.tasks[1:]), 0, "AgentsDisagree"),  # type: ignore[index]
    "one has heard nothing": (
        lambda word: replace(word, heard=AnnouncementAck(state=AnnouncementState.UNKNOWN)),
        0,
        "AnnouncementPending",
    ),
    "one has heard an older one": (
        lambda word: replace(word, heard=example.leaving(2, counter=1)),
        0,
        "AnnouncementPending",
    ),
    "it has expired on one": (
        lambda word: replace(word, heard=example.leaving(2, left=seconds(1))),
        0,
        "AnnouncementPending",
    ),
    "the top pod is not named": (
        lambda word: replace(word, heard=example.leaving(1)),
        (0, 1, 2),
        "AnnouncementPending",
    ),  # type: ignore[dict-item]
    "the leader went by an older one": (
        lambda word: replace(word, round=example.assigned(1)),
        (0, 1, 2),  # type: ignore[dict-item]
        "AnnouncementNotFollowed",
    ),
    "a newer assignment rests on an older one": (
        lambda word: replace(word, round=example.assigned(1, made_at=ago(5))),
        0,
        "AnnouncementNotFollowed",
    ),
    "the leader fell back": (
        lambda word: replace(word, round=example.assigned(fell_back="no such task")),
        (0, 1, 2),  # type: ignore[dict-item]
        "AnnouncementNotFollowed",
    ),
    "nobody tells of an assignment": (lambda word: replace(word, round=None), (0, 1, 2), "AnnouncementNotFollowed"),  # type: ignore[dict-item]
}


@pytest.mark.parametrize(("change", "ordinals", "reason"), DISAGREE.values(), ids=DISAGREE.keys())
@pytest.mark.parametrize("policy", [POLICY, DEMANDED], ids=["detected", "demanded"])
def test_a_drained_pod_stays_while_agents_contradict(
    change: AgentTrouble, ordinals: Any, reason: str, policy: ScalingPolicy
) -> None:
    those = (ordinals,) if isinstance(ordinals, int) else ordinals
    agents = reported(example.agents(DRAINED, **TOP_LEAVES), change, *those)
    decision = decide(a_case(agents=agents), policy)
    assert (told(decision), grants(decision)) == (("Hold", reason), [])


def test_a_contradiction_is_told_in_place_of_no_progress() -> None:
    agents = reported(example.agents(DRAINED, **TOP_LEAVES), with_tasks_of(layout(), 2), 2)
    late = a_record(progress=replace(a_hold().progress, improved_at=ago(9000), counted_at=ago(9000)))
    assert told(decide(a_case(agents=agents, record=late), POLICY)) == ("Hold", "AgentsDisagree")


def test_one_word_that_lies_between_two_good_ones_is_enough_to_hold() -> None:
    good = example.agents(DRAINED, **TOP_LEAVES)
    words = dict(good.words)
    newest, before = words[Ordinal(2)]
    assert isinstance(before, AgentReport)
    words[Ordinal(2)] = (newest, with_tasks_of(layout(), 2)(before))
    assert told(decide(a_case(agents=AgentsSeen(words, good.ends)), POLICY)) == ("Hold", "ReadingsPending")


def test_an_old_answer_that_comes_late_is_not_the_newest_word() -> None:
    busy = example.agents(layout(), **TOP_LEAVES)
    late = example.agents(DRAINED, **TOP_LEAVES)
    words = dict(late.words)
    # the newest word of pod 2 has tasks; an older look of it, without any, is heard after it
    newest = late.latest(Ordinal(2))
    assert isinstance(newest, AgentReport)
    old = replace(newest, sequence=1, as_of=ago(1))
    words[Ordinal(2)] = (old, *busy.words[Ordinal(2)])
    assert grants(decide(a_case(agents=AgentsSeen(words, late.ends)), POLICY)) == []


def test_a_follow_up_holds_unless_the_leader_only_watches_by_it() -> None:
    follow_up = FollowUp.SCHEDULED
    busy = (
        example.member(0, active=(0, 1, 4), follow_up=follow_up),
        example.member(1, active=(2, 3, 5), follow_up=follow_up),
        example.member(2, follow_up=follow_up),
    )
    watching = example.agents(busy, **TOP_LEAVES)
    moving = example.agents(busy, heard=example.leaving(2), round=example.assigned(follow_up_is_watch=False))
    assert told(decide(a_case(busy, agents=watching), POLICY)) == ("Step", "Drained")
    assert told(decide(a_case(busy, agents=moving), POLICY)) == ("Hold", "FollowUpScheduled")


def test_a_task_that_restores_on_a_pod_that_stays_keeps_a_drained_pod() -> None:
    members = (example.member(0, active=(0, 1, 4), running=False), *DRAINED[1:])
    assert told(decide(a_case(members), POLICY)) == ("Hold", "TasksRestoring")


def test_a_pod_that_runs_outside_the_group_is_not_drained() -> None:
    agents = example.agents(DRAINED, **TOP_LEAVES)
    assert grants(decide(a_case(DRAINED[:2], agents=agents), POLICY)) == []


def test_ends_are_not_needed_where_every_task_runs_on_pods_that_stay() -> None:
    agents = example.agents(DRAINED, **TOP_LEAVES)
    unread = tuple(replace(one, ends=EndsUnreadable("refused")) for one in agents.ends)
    assert told(decide(a_case(agents=AgentsSeen(agents.words, unread)), POLICY)) == ("Step", "Drained")


# The user's word, and the way back.


def test_forcing_takes_a_pod_that_is_not_drained_and_only_from_a_group_that_agrees() -> None:
    forced = replace(POLICY, scale_down=ScaleDownPolicy.IMMEDIATE, force_reason="tonight")
    members = layout(lag=500_000)
    readings = tuple(a_reading(members, at=at, rebalance=None) for at in (1, 12))
    case = replace(a_case(members), readings=readings)
    assert told(decide(case, forced)) == ("Step", "OverriddenByPolicy")
    agents = reported(example.agents(members, **TOP_LEAVES), with_tasks_of(DRAINED, 2), 2)
    assert told(decide(replace(case, agents=agents), forced)) == ("Hold", "AgentsDisagree")


def test_an_override_ends_a_hold_that_waits_for_agents() -> None:
    readings = example.two_readings(layout())
    overridden = a_snapshot(
        readings=readings,
        agents=reported(example.agents(layout()), silent, 1),
        app={"override": HoldOverride(hold_id="h-1", why="now")},
    )
    assert told(decide(overridden, DEMANDED)) == ("Step", "OverriddenByUser")


def test_the_last_pod_goes_undrained_where_zero_is_allowed() -> None:
    members = example.members(1)
    readings = tuple(a_reading(members, at=at, rebalance=None) for at in (1, 12))
    case = a_snapshot(
        pods=1, desired=0, readings=readings, agents=example.agents(members), record=a_record(granted=1, target=0)
    )
    decision = decide(case, POLICY)
    assert (told(decision), grants(decision)) == (("Step", "StoppingToZero"), [(1, 0)])


STANDBYS = example.members(3)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (silent, "AgentSilent, ordinal 1: connection refused"),
        (
            lambda word: replace(word, is_ours=False, aside=AssignorInactive(AsideKind.UNKNOWN_LOADER, "Foo")),
            "AssignorMixed, UnknownLoader: ordinal 1: Foo",
        ),
    ],
)
def test_without_it_standbys_are_gone_by_as_ever_and_the_condition_says_why(change: AgentTrouble, why: str) -> None:
    agents = reported(example.agents(STANDBYS), change, 1)
    decision = decide(a_snapshot(agents=agents), POLICY)
    (learners,) = [one for one in decision.conditions if one.type == "LearnersAvailable"]
    assert (told(decision), learners.reason.name) == (("Step", "Covered"), "StandbysDetected")
    assert learners.detail == f"Not on demand: {why}"
    assert decision.source.source is LearnerSource.STANDBYS


def test_the_old_rules_are_not_satisfied_by_agents_that_are_silent() -> None:
    agents = reported(example.agents(STANDBYS), silent, 1)
    assert told(decide(a_snapshot(agents=agents, readings=polled(STANDBYS)), POLICY)) == ("Hold", "PositionsUnknown")


def test_where_standbys_are_chosen_agents_give_the_positions_and_nothing_is_announced() -> None:
    chosen = replace(POLICY, source=LearnerSource.STANDBYS)
    agents = example.agents(STANDBYS)
    assert told(decide(a_snapshot(agents=agents, readings=polled(STANDBYS)), chosen)) == ("Step", "Covered")
    behind = example.agents(example.members(3, lag=500_000))
    decision = decide(a_snapshot(agents=behind, readings=polled(STANDBYS)), chosen)
    assert (told(decision), steps(decision)) == (("Hold", "LearnersCatchingUp"), ("WriteHoldRecord",))


def test_the_applications_own_limit_counts_where_it_is_smaller() -> None:
    chosen = replace(POLICY, source=LearnerSource.STANDBYS)
    members = example.members(3, lag=500)
    agents = example.agents(members, recovery_lag=400)
    assert told(decide(a_snapshot(agents=agents, readings=polled(members)), chosen)) == ("Hold", "LearnersCatchingUp")


def test_an_assignor_of_the_applications_own_holds_where_the_stock_one_was_declared() -> None:
    agents = example.agents(
        STANDBYS, is_ours=False, aside=AssignorInactive(AsideKind.OWN_ASSIGNOR, "com.acme.Assignor")
    )
    assert told(decide(a_snapshot(agents=agents), POLICY)) == ("Hold", "OwnAssignor")


def test_a_hold_whose_tasks_never_move_times_out() -> None:
    policy = replace(POLICY, timeout=seconds(60), on_timeout=OnTimeout.GIVE_UP)
    record = a_record()
    assert record.hold is not None
    progress = replace(record.hold.progress, best=0, counted_at=ago(60))
    waiting = replace(record, hold=replace(record.hold, progress=progress))
    decision = decide(a_case(layout(), record=waiting), policy)
    assert (told(decision), announced(decision).process_ids) == (("Hold", "GaveUp"), ())


def test_a_wish_that_is_young_announces_nobody() -> None:
    case = a_case(agents=example.agents(DRAINED), app={"desired": a_wish(2, (600, 3), (5, 2))})
    assert (told(decide(case, POLICY)), steps(decide(case, POLICY))) == (("Hold", "Stabilizing"), ())
