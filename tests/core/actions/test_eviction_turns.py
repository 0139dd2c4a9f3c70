"""Whose turn it is to be evicted: nobody waits for ever behind a pod that nobody evicts."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from streamapp.core.actions.decision import Disruptions
from streamapp.core.actions.eviction_turns import FIRST, LONGEST, eviction_turns_after, in_turn
from streamapp.core.facts.snapshot import EvictionTurn, Snapshot
from streamapp.core.facts.workload import UNSCHEDULABLE, Budget, NodeDrain
from streamapp.core.reasons import Reason
from tests.builders import a_pod, a_snapshot
from tests.support import example

MOMENT = timedelta(seconds=15)


def a_case(*left: int, moments: int = 0) -> Snapshot:
    pods = [a_pod(number, drain=NodeDrain(f"node-{number}", UNSCHEDULABLE)) for number in left]
    return replace(
        a_snapshot(desired=3, record=None, workload={"pods": tuple(pods)}), now=example.NOW + moments * MOMENT
    )


def played(*left: int, moments: int) -> list[int]:
    """The ordinal that may be evicted in each moment, where each is covered at once and nobody evicts any."""
    allowed, turns = [], dict[str, EvictionTurn]()
    for moment in range(moments):
        case = replace(a_case(*left, moments=moment), eviction_turns=turns)
        first = in_turn(turns, case.workload.pods)[0]
        allowed.append(int(first.ordinal))
        now = Disruptions(allows=Budget.OPEN_FOR_ONE, reason=Reason.EvictionCovered, evictable=first)
        turns = dict(eviction_turns_after(case, now))
    return allowed


def test_the_highest_comes_first_and_each_next_turn_is_twice_as_long() -> None:
    assert played(0, 2, moments=16) == [2, 2, 2, 0, 0, 0, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0]


def test_a_pod_that_is_alone_keeps_its_turn() -> None:
    assert played(1, moments=600) == [1] * 600


@given(st.sets(st.integers(0, 5), min_size=2, max_size=4))
def test_nobody_waits_for_ever(left: set[int]) -> None:
    rounds = len(left) * 2 * (FIRST + 2 * MOMENT) // MOMENT
    assert set(played(*left, moments=rounds)) == left


def test_no_turn_is_longer_than_the_longest() -> None:
    case = replace(a_case(0, 1), eviction_turns={"pod-1": EvictionTurn(allowed_since=example.NOW - LONGEST, passed=60)})
    now = Disruptions(allows=Budget.OPEN_FOR_ONE, reason=Reason.EvictionCovered, evictable=case.workload.pods[1])
    assert eviction_turns_after(case, now)["pod-1"] == EvictionTurn(passed=61)


def test_once_a_pod_has_left_all_turns_are_short_again() -> None:
    passed = {f"pod-{number}": EvictionTurn(passed=5) for number in range(3)}
    closed = Disruptions(allows=Budget.CLOSED, reason=Reason.NoLearners)
    assert eviction_turns_after(replace(a_case(0, 1, 2), eviction_turns=passed), closed) == passed
    assert set(eviction_turns_after(replace(a_case(0, 1), eviction_turns=passed), closed).values()) == {EvictionTurn()}


def test_who_is_no_longer_to_leave_is_forgotten() -> None:
    case = replace(a_case(0), eviction_turns={"pod-0": EvictionTurn(passed=2), "pod-1": EvictionTurn(passed=1)})
    closed = Disruptions(allows=Budget.CLOSED, reason=Reason.NoLearners)
    assert eviction_turns_after(case, closed) == {"pod-0": EvictionTurn()}
