"""A number of standbys that is set, and that brokers have not placed yet: no pod goes on copies that will be gone."""

from dataclasses import replace

import pytest

from streamapp.core.actions.decision import CloseBudget, GrantReplicas, OpenBudget, RestartPod
from streamapp.core.decide import decide
from streamapp.core.facts.group import StandbySetting
from streamapp.core.facts.hold_record import RaisedStandbys, RaiseState
from streamapp.core.facts.policy import DisruptionPolicy, LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import UNSCHEDULABLE, Budget, NodeDrain
from tests.builders import a_pod, ago, pods, told
from tests.support.raised_standbys import (
    DEFAULT,
    FOREIGN,
    POLICY,
    RAISED,
    RETURNED,
    RETURNING,
    SEEN,
    SPREAD,
    a_case,
    on_record,
    written,
)

ONE = StandbySetting(1, is_set=True)
NONE = StandbySetting(0, is_set=True)
BY_USERS = ScalingPolicy(agent=True)
"""Whose standbys the operator never raises."""
TO_ONE = replace(RETURNING, before=1, instead_of=1, to=2)
"""A user's one standby comes back in place of two."""


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(
    ("setting", "raised", "policy"),
    [
        (NONE, None, BY_USERS),
        (NONE, FOREIGN, POLICY),
        (ONE, RETURNING, POLICY),
        (DEFAULT, RETURNING, POLICY),
        (DEFAULT, RETURNED, POLICY),
        (DEFAULT, None, POLICY),
    ],
    ids=[
        "a user took them away",
        "another hand took them away",
        "the old value is on its way",
        "the old value is there",
        "it was there before",
        "nothing is on record any more",
    ],
)
def test_copies_that_brokers_drop_at_the_next_heartbeat_let_no_pod_go(
    setting: StandbySetting, raised: RaisedStandbys | None, policy: ScalingPolicy
) -> None:
    decision = decide(a_case(SPREAD, setting, raised), policy)
    assert told(decision) == ("Hold", "WouldMoveCold")
    assert not [step for step in decision.plan if isinstance(step, GrantReplicas)]


@pytest.mark.parametrize(("setting", "raised"), [(ONE, None), (ONE, TO_ONE), (StandbySetting(1, is_set=False), None)])
def test_copies_that_stay_let_a_pod_go(setting: StandbySetting, raised: RaisedStandbys | None) -> None:
    assert told(decide(a_case(SPREAD, setting, raised), POLICY)) == ("Step", "Covered")


def test_a_hold_that_begins_again_has_the_old_value_back_first_and_raises_anew() -> None:
    returning = decide(a_case(SPREAD, ONE, RETURNING), POLICY)
    assert (written(returning), on_record(returning)) == ([None], RETURNING)
    back = on_record(decide(a_case(SPREAD, DEFAULT, RETURNING), POLICY))
    assert back is not None
    assert (back.before, back.to, back.state) == (None, 1, RaiseState.WANTED)


def a_rollout(raised: RaisedStandbys) -> Snapshot:
    return a_case(SPREAD, ONE, raised, is_held=False, statefulset={"update_revision": "new"})


@pytest.mark.guarantee(1)
@pytest.mark.parametrize("source", [LearnerSource.STANDBYS, LearnerSource.NONE, None])
def test_nothing_is_put_back_in_the_pass_that_takes_a_pod_though_users_ask_for_no_learners_any_more(
    source: LearnerSource | None,
) -> None:
    policy = replace(POLICY, source=source)
    removal = decide(a_case(SPREAD, ONE, SEEN), policy)
    assert [step.to_replicas for step in removal.plan if isinstance(step, GrantReplicas)] == [2]
    assert (written(removal), on_record(removal)) == ([], SEEN)
    restart = decide(a_rollout(SEEN), policy)
    assert [int(step.ordinal) for step in restart.plan if isinstance(step, RestartPod)] == [2]
    assert (written(restart), on_record(restart)) == ([], SEEN)
    assert written(decide(a_case(SPREAD, ONE, SEEN, is_held=False), policy)) == [None]


def test_no_restart_rests_on_copies_that_are_put_back() -> None:
    assert not [step for step in decide(a_rollout(RETURNING), POLICY).plan if isinstance(step, RestartPod)]


@pytest.mark.guarantee(1)
def test_no_pod_goes_while_a_raise_is_on_its_way() -> None:
    wanted = replace(RAISED, before=1, instead_of=1, to=2, at=ago(3))
    decision = decide(a_case(SPREAD, ONE, wanted), POLICY)
    assert (told(decision), written(decision)) == (("Hold", "WouldMoveCold"), [2])


@pytest.mark.guarantee(1)
def test_no_raise_is_sent_in_the_pass_that_takes_a_pod() -> None:
    """Brokers could give a task of the pod to a standby that they have just placed."""
    wanted = replace(RAISED, before=1, instead_of=1, to=2)
    decision = decide(a_case(SPREAD, ONE, wanted), POLICY)
    assert told(decision) == ("Step", "Covered")
    assert (written(decision), on_record(decision)) == ([], wanted)


def on_a_drained_node(raised: RaisedStandbys, budget: Budget) -> Snapshot:
    left = a_pod(2, drain=NodeDrain("blue", UNSCHEDULABLE))
    workload = {"pods": pods(3, p2=left), "budget": budget, "budget_lease": 0, "sees_nodes": True}
    is_open = {"evictable": 2} if budget is Budget.OPEN_FOR_ONE else {}
    return a_case(SPREAD, ONE, raised, is_held=False, workload={**workload, **is_open})


@pytest.mark.guarantee(1)
def test_no_eviction_is_allowed_on_copies_that_are_put_back() -> None:
    on_demand = replace(POLICY, disruption=DisruptionPolicy.WHEN_CAUGHT_UP)
    by_users = replace(on_demand, source=LearnerSource.STANDBYS)
    allowed = decide(on_a_drained_node(SEEN, Budget.CLOSED), by_users)
    assert [step.evictable for step in allowed.plan if isinstance(step, OpenBudget)] == [2]
    assert (written(allowed), on_record(allowed)) == ([], SEEN)
    returning = decide(on_a_drained_node(RETURNING, Budget.OPEN_FOR_ONE), on_demand)
    assert any(isinstance(step, CloseBudget) for step in returning.plan)


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(("budget", "put_back"), [(Budget.OPEN_FOR_ONE, []), (Budget.CLOSED, [None])])
def test_the_budget_is_closed_in_a_pass_of_its_own_before_standbys_are_put_back(
    budget: Budget, put_back: list[int | None]
) -> None:
    """Its pod can have been evicted since the pods were read, and its members are in the group until they have left."""
    case = on_a_drained_node(SEEN, budget)
    uncordoned = replace(case, workload=replace(case.workload, pods=pods(3)))
    decision = decide(uncordoned, replace(POLICY, disruption=DisruptionPolicy.WHEN_CAUGHT_UP))
    assert any(isinstance(step, CloseBudget) for step in decision.plan) == (budget is Budget.OPEN_FOR_ONE)
    assert written(decision) == put_back
