"""What evictions are allowed: one pod at a time, or only what is covered; and how a node is drained."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import Announce, CloseBudget, Decision, OpenBudget, TriggerRebalance, Verdict
from streamapp.core.decide import decide
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import DisruptionPolicy, LearnerSource, RolloutPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import EvictionTurn, Snapshot
from streamapp.core.facts.workload import UNSCHEDULABLE, Budget, NodeDrain
from streamapp.core.reasons import Reason
from tests.builders import (
    NOW,
    POLICY,
    a_capture,
    a_pod,
    a_reading,
    a_snapshot,
    ago,
    an_end,
    an_unreadable,
    not_running,
    pods,
    seconds,
)
from tests.support import example

FOLLOWS = replace(POLICY, disruption=DisruptionPolicy.WHEN_CAUGHT_UP)
ON_DEMAND = ScalingPolicy(agent=True, disruption=DisruptionPolicy.WHEN_CAUGHT_UP)
LAGGING = example.members(3, lag=500_000)
BARE = example.members(3, standbys=False)
BEYOND = (
    example.member(0, active=(0, 1), standby=(4, 5)),
    example.member(1, active=(2, 3), standby=(0, 1, 4, 5)),
    example.restoring(example.member(2, active=(4, 5), standby=(2, 3)), 5, at=example.END + 1),
)
"""Task 0_5 has two copies near the end, and is restored on pod 2 from a position beyond it."""
CORDONED = NodeDrain("blue", UNSCHEDULABLE)
DRAINED = (example.member(0, active=(0, 1, 4)), example.member(1, active=(2, 3, 5)), example.member(2))
BUDGET = {"budget": Budget.CLOSED, "budget_lease": 0, "sees_nodes": True}


def a_case(
    *left: int, policy_of_budget: Mapping[str, Any] = BUDGET, changed: Mapping[str, Any] | None = None, **changes: Any
) -> Snapshot:
    """Three pods that are wanted; the nodes of some must be drained."""
    there = {f"p{number}": a_pod(number, drain=CORDONED) for number in left}
    workload = {**policy_of_budget, "pods": pods(3, **{**there, **(changed or {})})}
    return a_snapshot(**{"desired": 3, "record": None, "workload": workload, **changes})


def drained_case(*left: int, members: Any = DRAINED, heard: int = 2, **changes: Any) -> Snapshot:
    """The same with agents, on the word of which pod 2 was drained."""
    agents = example.agents(members, heard=example.leaving(heard), round=example.assigned())
    readings = tuple(a_reading(members, at=at, rebalance=None) for at in (1, 6))
    return a_case(*left, readings=readings, agents=agents, **changes)


def budget_steps(decision: Decision) -> list[tuple[str, str, int | None]]:
    steps = (step for step in decision.plan if isinstance(step, OpenBudget | CloseBudget))
    return [(type(one).__name__, one.reason.name, getattr(one, "evictable", None)) for one in steps]


def condition(decision: Decision) -> tuple[str, str]:
    (found,) = [one for one in decision.conditions if one.type == "DisruptionAllowed"]
    return found.status.value, found.reason.name


def with_budget(**changes: Any) -> dict[str, Any]:
    return {"policy_of_budget": {**BUDGET, **changes}}


# One at a time.


def test_without_the_policy_a_budget_stays_open_whatever_the_copies() -> None:
    case = a_case(2, members=LAGGING, policy_of_budget={"budget": Budget.OPEN})
    assert (budget_steps(decide(case, POLICY)), condition(decide(case, POLICY))) == ([], ("True", "OneAtATime"))


@pytest.mark.parametrize("allows", [Budget.OPEN, Budget.CLOSED, Budget.OPEN_FOR_ONE])
def test_a_budget_that_followed_coverage_is_written_anew_when_it_no_longer_does(allows: Budget) -> None:
    (step,) = budget_steps(decide(a_case(**with_budget(budget=allows)), POLICY))
    assert (step[0], step[2]) == ("OpenBudget", None)


# Any one of the pods.


def test_it_opens_for_any_one_when_two_readings_show_each_task_in_two_places() -> None:
    decision = decide(a_case(), FOLLOWS)
    assert decision.plan == (OpenBudget(reason=Reason.EveryTaskCovered, evictable=None, judged_at=NOW),)
    assert condition(decision) == ("True", "EveryTaskCovered")


UNCOVERED: dict[str, tuple[dict[str, Any], str]] = {
    "copies lag": ({"members": LAGGING}, "LearnersCatchingUp"),
    "copies are of unknown lag": ({"members": example.members(3, lag=None)}, "LagUnknown"),
    "no copies": ({"members": BARE}, "NoLearners"),
    "a position lies beyond the end": ({"members": BEYOND}, "LagUnknown"),
    "brokers are gone": ({"readings": (an_unreadable(),)}, "BrokersUnreachable"),
    "the reading is old": ({"readings": (a_reading(example.members(3), at=61),)}, "FactsStale"),
    "a pod is not ready": ({"changed": {"p1": a_pod(1, ready=False)}}, "PodsNotReady"),
    "a pod goes": ({"changed": {"p1": a_pod(1, terminating=True)}}, "PodsNotReady"),
    "a pod does not run": ({"changed": {"p1": a_pod(1, container=not_running())}}, "PodsNotReady"),
    "a pod is missing": ({"changed": {}, "statefulset": {"replicas": 4}, "desired_replicas": 4}, "PodsNotReady"),
    "the StatefulSet was changed": ({"statefulset": {"drift": "spec.updateStrategy: RollingUpdate"}}, "*"),
    "a rollout goes on": ({"statefulset": {"update_revision": "new"}}, "RestartCovered"),
    "it is paused": ({"app": {"paused": True}}, "Paused"),
    "its spec is invalid": ({"app": {"fault": "no such container"}}, "InvalidSpec"),
}


@pytest.mark.parametrize(("changes", "reason"), UNCOVERED.values(), ids=UNCOVERED.keys())
@pytest.mark.parametrize("allows", [Budget.OPEN, Budget.CLOSED])
def test_it_is_closed_otherwise(changes: dict[str, Any], reason: str, allows: Budget) -> None:
    changes = dict(changes)
    if changes.pop("desired_replicas", None):
        case = a_snapshot(
            pods=4, desired=4, record=None, workload={**BUDGET, "budget": allows, "pods": pods(3)}, members=None
        )
    else:
        case = a_case(**with_budget(budget=allows), **changes)
    decision = decide(case, FOLLOWS)
    closes = [step[0] for step in budget_steps(decision)]
    assert closes == (["CloseBudget"] if allows is Budget.OPEN else [])
    assert condition(decision)[0] == "False"
    assert reason in {"*", condition(decision)[1]}


def test_one_reading_keeps_it_open_and_does_not_open_it() -> None:
    one = (a_reading(example.members(3)),)
    assert budget_steps(decide(a_case(readings=one), FOLLOWS)) == []
    assert budget_steps(decide(a_case(readings=one, **with_budget(budget=Budget.OPEN)), FOLLOWS)) == []
    assert condition(decide(a_case(readings=one), FOLLOWS)) == ("False", "NoDrainedNode")


def test_a_join_that_is_old_does_not_keep_it_open() -> None:
    readings = (a_reading(example.members(3), rebalance=example.rebalance(example.members(3), ago(61))),)
    decision = decide(a_case(readings=readings, **with_budget(budget=Budget.OPEN)), FOLLOWS)
    assert budget_steps(decision) == [("CloseBudget", "NoDrainedNode", None)]


def test_a_single_pod_is_never_covered() -> None:
    only = (example.member(0, active=range(6)),)
    case = a_snapshot(pods=1, desired=1, record=None, members=only, workload=BUDGET)
    assert condition(decide(case, FOLLOWS)) == ("False", "NoLearners")


def test_an_application_without_state_can_lose_any_pod() -> None:
    case = a_case(members=example.stateless_members(), task_set=example.stateless_task_set())
    assert condition(decide(case, FOLLOWS)) == ("True", "EveryTaskCovered")


def test_a_rebalance_is_triggered_for_it_only_where_a_node_is_to_be_left() -> None:
    old = tuple(
        a_reading(example.members(3), at=at, rebalance=example.rebalance(example.members(3), ago(200)))
        for at in (1, 15)
    )
    assert [type(step) for step in decide(a_case(readings=old), FOLLOWS).plan] == []
    assert [type(step) for step in decide(a_case(1, readings=old), FOLLOWS).plan] == [TriggerRebalance]


# Who wrote it last.


@pytest.mark.parametrize("allows", [Budget.OPEN, Budget.CLOSED, Budget.OPEN_FOR_ONE])
@pytest.mark.parametrize("lease", [None, 1, 3])
def test_a_budget_of_another_process_is_closed_before_it_is_judged(allows: Budget, lease: int | None) -> None:
    case = a_case(**with_budget(budget=allows, budget_lease=lease), lease=2)
    assert budget_steps(decide(case, FOLLOWS)) == [("CloseBudget", "DisruptionsFenced", None)]


# The next pod whose node must be drained.


def test_a_drain_that_waits_is_reported_as_a_change_in_progress() -> None:
    conditions = {one.type: one for one in decide(a_case(1, members=LAGGING), FOLLOWS).conditions}
    found = conditions["Reconciling"]
    assert (found.status.value, found.reason.name) == ("True", "LearnersCatchingUp")
    assert found.detail.startswith("The drain of node blue is waiting. ")


def test_while_no_node_is_to_be_left_nothing_is_drained_and_nothing_allowed() -> None:
    whole = (example.member(0, active=(0, 1)), example.member(1, active=(2, 3)), example.member(2, active=(4, 5)))
    case = drained_case(members=whole)
    assert condition(decide(case, ON_DEMAND)) == ("False", "NoDrainedNode")
    blind = drained_case(members=whole, **with_budget(sees_nodes=False))
    assert condition(decide(blind, ON_DEMAND)) == ("False", "NodesUnwatched")


def test_a_cordoned_node_starts_the_drain_of_its_pod() -> None:
    whole = (example.member(0, active=(0, 1)), example.member(1, active=(2, 3)), example.member(2, active=(4, 5)))
    readings = tuple(a_reading(whole, at=at, rebalance=None) for at in (1, 6))
    decision = decide(a_case(1, readings=readings, agents=example.agents(whole)), ON_DEMAND)
    (told,) = [step for step in decision.plan if isinstance(step, Announce)]
    assert told.process_ids == (example.process_id(1),)
    assert (budget_steps(decision), condition(decision)[0]) == ([], "False")


def test_the_budget_leaves_the_pod_out_when_it_is_drained() -> None:
    decision = decide(drained_case(2), ON_DEMAND)
    assert budget_steps(decision) == [("OpenBudget", "EvictionCovered", 2)]
    assert condition(decision) == ("True", "EvictionCovered")
    assert [(event.reason, event.detail) for event in decision.events] == [
        (Reason.EvictionCovered, "ordinal 2, node blue is unschedulable")
    ]


def test_it_does_so_no_longer_than_the_pod_is_drained() -> None:
    back = (example.member(0, active=(0, 1)), example.member(1, active=(2, 3)), example.member(2, active=(4, 5)))
    left_out = with_budget(budget=Budget.OPEN_FOR_ONE, evictable=Ordinal(2))
    assert budget_steps(decide(drained_case(2, **left_out), ON_DEMAND)) == []
    (step,) = budget_steps(decide(drained_case(2, members=back, **left_out), ON_DEMAND))
    assert step[0] == "CloseBudget"


GONE: dict[str, dict[str, Any]] = {
    "the node is no longer to be left": {},
    "the pod goes": {"changed": {"p2": a_pod(2, drain=CORDONED, terminating=True)}},
    "another pod is away": {"changed": {"p2": a_pod(2, drain=CORDONED), "p1": a_pod(1, container=not_running())}},
}


@pytest.mark.parametrize("changes", GONE.values(), ids=GONE.keys())
def test_the_budget_closes_when(changes: dict[str, Any]) -> None:
    case = drained_case(**changes, **with_budget(budget=Budget.OPEN_FOR_ONE, evictable=Ordinal(2)))
    (step,) = budget_steps(decide(case, ON_DEMAND))
    assert step[0] == "CloseBudget"


def test_a_scale_down_goes_first() -> None:
    decision = decide(drained_case(1, desired=2), ON_DEMAND)
    assert condition(decision)[0] == "False"
    assert example.process_id(1) not in [
        process for step in decision.plan if isinstance(step, Announce) for process in step.process_ids
    ]


def test_a_rollout_goes_first() -> None:
    case = drained_case(2, statefulset={"update_revision": "new"})
    assert condition(decide(case, ON_DEMAND))[0] == "False"


def test_a_rollout_that_is_paused_delays_no_drain() -> None:
    case = drained_case(2, statefulset={"update_revision": "new"})
    paused = replace(ON_DEMAND, rollout=RolloutPolicy.PAUSED)
    assert condition(decide(case, paused)) == ("True", "EvictionCovered")


def test_a_pod_that_never_runs_and_is_in_no_group_does_not_keep_its_node() -> None:
    rest = (
        example.member(0, active=(0, 1, 2), standby=(3, 4, 5)),
        example.member(1, active=(3, 4, 5), standby=(0, 1, 2)),
    )
    broken = a_pod(2, ready=False, container=not_running(), drain=CORDONED)
    decision = decide(a_case(members=rest, changed={"p2": broken}), FOLLOWS)
    assert budget_steps(decision) == [("OpenBudget", "EvictionOfIdlePod", 2)]


def test_without_a_source_of_copies_no_pod_may_go_and_the_condition_says_so() -> None:
    decision = decide(drained_case(2, members=BARE), replace(FOLLOWS, source=LearnerSource.NONE))
    assert condition(decision)[0] == "False"


@pytest.mark.guarantee(2)
def test_nothing_that_brokers_may_refuse_comes_before_a_budget_is_closed() -> None:
    away = a_pod(1, container=not_running(id_="containerd://1"))
    case = a_case(
        changed={"p1": away}, observed=(a_capture(1),), container_ends=(an_end(1),), **with_budget(budget=Budget.OPEN)
    )
    plan = [type(step).__name__ for step in decide(case, FOLLOWS).plan]
    assert plan[:2] == ["CloseBudget", "Evict"]


def test_a_pod_that_is_not_ready_can_be_evicted_alone_when_it_is_covered() -> None:
    sick = a_pod(2, drain=CORDONED, ready=False)
    assert budget_steps(decide(a_case(changed={"p2": sick}), FOLLOWS)) == [("OpenBudget", "EvictionCovered", 2)]
    lagging = decide(a_case(members=LAGGING, changed={"p2": sick}), FOLLOWS)
    assert (budget_steps(lagging), condition(lagging)) == ([], ("False", "LearnersCatchingUp"))


@pytest.mark.parametrize("rollout", [RolloutPolicy.WHEN_CAUGHT_UP, RolloutPolicy.PAUSED])
def test_a_rollout_that_waits_for_a_pod_does_not_keep_it_on_its_node(rollout: RolloutPolicy) -> None:
    rest = (
        example.member(0, active=(0, 1, 2), standby=(3, 4, 5)),
        example.member(1, active=(3, 4, 5), standby=(0, 1, 2)),
    )
    broken = a_pod(2, ready=False, container=not_running(), drain=CORDONED, revision="new")
    case = a_case(members=rest, changed={"p2": broken}, statefulset={"update_revision": "new"})
    assert budget_steps(decide(case, replace(FOLLOWS, rollout=rollout))) == [("OpenBudget", "EvictionOfIdlePod", 2)]


def test_a_dry_run_closes_what_is_no_longer_covered_and_opens_nothing() -> None:
    dry = {"app": {"dry_run": True}}
    closed = decide(a_case(members=LAGGING, **dry, **with_budget(budget=Budget.OPEN)), FOLLOWS)
    assert [type(step) for step in closed.plan] == [CloseBudget]
    assert condition(closed) == ("False", "LearnersCatchingUp")
    assert decide(a_case(**dry), FOLLOWS).plan == ()


@pytest.mark.parametrize(
    ("budget", "policy", "stands"),
    [
        (with_budget(budget=Budget.CLOSED), FOLLOWS, ("False", "DryRun")),
        (with_budget(budget=Budget.OPEN), FOLLOWS, ("True", "EveryTaskCovered")),
        (with_budget(budget=Budget.OPEN, budget_lease=7), FOLLOWS, ("False", "DryRun")),
        (with_budget(budget=Budget.ABSENT), FOLLOWS, ("True", "DryRun")),
        (with_budget(budget=Budget.OPEN_FOR_ONE, evictable=1), FOLLOWS, ("True", "DryRun")),
        (with_budget(budget=Budget.OPEN, budget_lease=None), ScalingPolicy(), ("True", "OneAtATime")),
    ],
    ids=["it stays closed", "it is open", "it is closed as a fence", "there is none", "another pod", "always"],
)
def test_a_dry_run_says_what_the_budget_allows_and_not_what_it_would(
    budget: dict[str, Any], policy: ScalingPolicy, stands: tuple[str, str]
) -> None:
    assert condition(decide(a_case(app={"dry_run": True}, **budget), policy)) == stands


def test_a_budget_that_is_open_for_one_pod_is_closed_before_it_opens_for_another() -> None:
    """The one that may be evicted can be on its way since the last look, and would be a second pod that is away."""
    found = [
        budget_steps(decide(drained_case(2, **with_budget(budget=allows, evictable=evictable)), ON_DEMAND))
        for allows, evictable in ((Budget.OPEN_FOR_ONE, 1), (Budget.CLOSED, None), (Budget.OPEN_FOR_ONE, 2))
    ]
    assert found == [[("CloseBudget", "EvictionCovered", None)], [("OpenBudget", "EvictionCovered", 2)], []]


def test_a_dry_run_tells_nobody_that_a_pod_may_be_evicted() -> None:
    for dry_run, reasons in ((False, [Reason.EvictionCovered]), (True, [])):
        decision = decide(drained_case(2, app={"dry_run": dry_run}), ON_DEMAND)
        assert [event.reason for event in decision.events] == reasons


def test_a_dry_run_of_a_removal_leaves_the_budget_open() -> None:
    removal = a_case(app={"dry_run": True}, desired=2, **with_budget(budget=Budget.OPEN, budget_lease=None))
    decision = decide(removal, ScalingPolicy())
    assert (decision.verdict, condition(decision)) == (Verdict.STEP, ("True", "DryRun"))
    (told,) = [one.detail for one in decision.conditions if one.type == "DisruptionAllowed"]
    assert told == "The PodDisruptionBudget stays open. Withheld: StepOpen."


def test_a_budget_is_left_open_by_a_streamapp_that_is_deleted() -> None:
    (step,) = budget_steps(decide(a_case(app={"deleting": True}), FOLLOWS))
    assert (step[0], step[2]) == ("OpenBudget", None)


# Turns.


def test_the_pod_that_gave_up_the_fewest_turns_is_drained_next() -> None:
    turns = {"pod-2": EvictionTurn(passed=1)}
    (told,) = [
        step for step in decide(drained_case(1, 2, eviction_turns=turns), ON_DEMAND).plan if isinstance(step, Announce)
    ]
    assert told.process_ids == (example.process_id(1),)


def test_seconds_do_not_matter_to_what_is_allowed() -> None:
    turns = {"pod-2": EvictionTurn(allowed_since=NOW - seconds(3600))}
    assert budget_steps(decide(drained_case(2, eviction_turns=turns), ON_DEMAND)) == [
        ("OpenBudget", "EvictionCovered", 2)
    ]
