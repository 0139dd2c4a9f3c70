"""The limits of one application: the largest step down, and the most learners at once. Nothing else waits for them."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import Announce, Decision, GrantReplicas
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import AgentSilent, AgentsSeen
from streamapp.core.facts.group import Member
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import ScaleDownPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from tests.builders import a_pod, a_reading, a_record, a_snapshot, a_step, pods, told, volumes
from tests.support import example

SIX = example.members(6, standbys=False)
"""Six pods with one task each."""
THREE = (
    *(example.member(number, active=(number,)) for number in range(2)),
    *(example.member(number, active=(2 * number - 2, 2 * number - 1)) for number in (2, 3)),
)
"""Four pods; the upper two have two tasks each."""


def a_case(members: tuple[Member, ...] = SIX, desired: int = 1, heard: Any = None, **changes: Any) -> Snapshot:
    said = {} if heard is None else {"heard": heard, "round": example.assigned()}
    count = len(members)
    changes.setdefault("agents", example.agents(members, **said))
    changes.setdefault("record", a_record(from_replicas=count, target=desired, granted=count))
    readings = tuple(a_reading(members, at=at, rebalance=None) for at in (1, 6, 14))
    return a_snapshot(pods=count, desired=desired, readings=readings, **changes)


def limited(**limits: Any) -> ScalingPolicy:
    return ScalingPolicy(agent=True, **limits)


def named(decision: Decision) -> set[int] | None:
    """The ordinals that are announced; None if nothing is."""
    for step in decision.plan:
        if isinstance(step, Announce):
            return {number for number in range(9) if example.process_id(number) in step.process_ids}
    return None


def granted(decision: Decision) -> list[int]:
    return [step.to_replicas for step in decision.plan if isinstance(step, GrantReplicas)]


@pytest.mark.parametrize(
    ("limits", "announced"),
    [
        ({}, {1, 2, 3, 4, 5}),
        ({"max_step": 1}, {5}),
        ({"max_step": 2}, {4, 5}),
        ({"max_step": 9}, {1, 2, 3, 4, 5}),
        ({"max_learners": 3}, {3, 4, 5}),
        ({"max_learners": 3, "max_step": 2}, {4, 5}),
        ({"max_learners": 1, "max_step": 2}, {5}),
    ],
)
def test_only_as_many_pods_are_announced_as_the_limits_allow(limits: dict[str, int], announced: set[int]) -> None:
    assert named(decide(a_case(), limited(**limits))) == announced


@pytest.mark.parametrize(("most", "announced"), [(1, {3}), (2, {3}), (3, {3}), (4, {2, 3}), (5, {1, 2, 3})])
def test_learners_are_counted_by_the_stateful_tasks_of_each_pod_and_one_pod_is_always_drained(
    most: int, announced: set[int]
) -> None:
    assert named(decide(a_case(THREE), limited(max_learners=most))) == announced


def test_a_hold_says_how_many_pods_leave_first() -> None:
    decision = decide(a_case(), limited(max_step=2))
    assert decision.detail.endswith("By the limits of the StreamApp, 2 of 5 pods leave first.")
    assert "limits" not in decide(a_case(), limited(max_step=5)).detail


def test_no_limit_calls_off_a_drain_that_agents_know() -> None:
    heard = example.leaving(3, 4, 5)
    assert named(decide(a_case(heard=heard), limited(max_step=1))) is None
    assert named(decide(a_case(heard=heard), limited(max_learners=1))) is None


def test_a_silent_agent_adds_no_pod_to_those_that_are_drained() -> None:
    heard = example.agents(SIX, heard=example.leaving(4, 5), round=example.assigned())
    silent = AgentsSeen({**heard.words, Ordinal(0): (AgentSilent(Ordinal(0), "none"),)}, heard.ends)
    decision = decide(a_case(agents=silent), limited(max_step=2))
    assert (named(decision), told(decision)[0]) == (None, "Hold")


def test_the_step_takes_the_drained_pods_and_the_hold_goes_on() -> None:
    drained = (*(example.member(number, active=(number,)) for number in range(3)), example.member(3, active=(3, 4, 5)))
    members = (*drained, example.member(4), example.member(5))
    decision = decide(a_case(members, heard=example.leaving(4, 5)), limited(max_step=2))
    assert (granted(decision), told(decision)) == ([4], ("Step", "Drained"))
    (step,) = [step for step in decision.plan if isinstance(step, GrantReplicas)]
    assert step.record is not None
    assert step.record.hold.target == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(("most", "to"), [(None, 1), (1, 3), (2, 2), (3, 1)])
def test_pods_without_tasks_go_in_steps_no_larger_than_the_largest(most: int | None, to: int) -> None:
    members = (example.member(0, active=range(6)), *(example.member(number) for number in (1, 2, 3)))
    limits = {} if most is None else {"max_step": most}
    assert granted(decide(a_case(members, heard=example.leaving(1, 2, 3)), limited(**limits))) == [to]


def test_a_drain_that_is_larger_than_the_limit_leaves_in_steps_of_the_limit() -> None:
    members = (example.member(0, active=range(6)), *(example.member(number) for number in (1, 2, 3)))
    decision = decide(a_case(members, heard=example.leaving(1, 2, 3)), limited(max_learners=1, max_step=2))
    assert granted(decision) == [2]


def test_while_a_step_is_open_the_next_pods_are_drained_within_the_limit() -> None:
    step = a_step(from_replicas=6, to_replicas=5)
    record = a_record(step=step, from_replicas=6, target=1, granted=5)
    members = example.members(6, standbys=False)[:5]
    case = a_case(members, record=record, workload={"volumes": volumes(5)})
    assert (told(decide(case, limited(max_step=2)))[0], named(decide(case, limited(max_step=2)))) == (
        "CloseStep",
        {3, 4},
    )


def test_a_users_word_and_a_raise_do_not_wait_for_a_limit() -> None:
    forced = replace(limited(max_step=1, max_learners=1), scale_down=ScaleDownPolicy.IMMEDIATE, force_reason="now")
    assert granted(decide(a_case(heard=example.leaving(5)), forced)) == [5]
    assert granted(decide(a_case(desired=9), limited(max_step=1, max_learners=1))) == [9]


def test_pods_that_leave_later_keep_their_template_and_hold_up_nothing() -> None:
    """A rollout does not restart pods that leave; so no removal may wait for one of them, in this step or a later."""
    drained = (*(example.member(number, active=(number,)) for number in range(3)), example.member(3, active=(3, 4, 5)))
    members = (*drained, example.member(4), example.member(5))
    older = {f"p{number}": a_pod(number, revision="older") for number in (3, 4, 5)}
    case = a_case(members, desired=3, heard=example.leaving(4, 5), workload={"pods": pods(6, **older)})
    assert granted(decide(case, limited(max_step=2))) == [4]


@pytest.mark.parametrize("limits", [{"max_step": 0}, {"max_learners": 0}, {"max_step": -1}])
def test_a_limit_below_one_is_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        limited(**limits)
