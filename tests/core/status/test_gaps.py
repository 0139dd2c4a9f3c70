"""The gap of a step as seen from outside: what the clocks of the looks leave open is never counted as seen."""

from dataclasses import replace

from streamapp.core.facts.ids import Ordinal
from streamapp.core.status.gaps import Gap, GapUnknown, RunningSeen, seen_by_agents, worst_gap
from tests.builders import ago, seconds
from tests.support.example import member, report, task

A, B = task(0), task(1)


def look(at: float, **where: int) -> RunningSeen:
    names = {"a": A, "b": B}
    return RunningSeen(ago(at), {names[name]: Ordinal(ordinal) for name, ordinal in where.items()})


def test_a_task_that_stays_where_it_is_has_no_gap_however_rare_the_looks() -> None:
    assert worst_gap((look(60, a=0), look(0, a=0)), {A}) == Gap(seconds(0), seconds(0))


def test_a_gap_is_at_least_what_was_seen_and_at_most_what_the_looks_leave_open() -> None:
    looks = (look(20, a=0), look(15), look(11), look(5, a=1))
    assert worst_gap(looks, {A}) == Gap(seconds(4), seconds(15))


def test_a_move_between_two_looks_may_have_taken_all_the_time_between_them_or_none() -> None:
    assert worst_gap((look(20, a=0), look(18, a=1)), {A}) == Gap(seconds(0), seconds(2))


def test_the_worst_of_all_tasks_counts() -> None:
    looks = (look(20, a=0, b=0), look(15, b=1), look(5, a=1, b=1))
    assert worst_gap(looks, {A, B}) == Gap(seconds(0), seconds(15))


def test_the_order_in_which_looks_are_kept_means_nothing() -> None:
    looks = (look(5, a=1), look(20, a=0), look(11), look(15))
    assert worst_gap(looks, {A}) == worst_gap(tuple(reversed(looks)), {A}) == Gap(seconds(4), seconds(15))


def test_a_task_that_ran_nowhere_at_the_first_or_the_last_look_has_no_gap_that_can_be_told() -> None:
    assert worst_gap((look(20), look(10, a=1)), {A}) == GapUnknown(A)
    assert worst_gap((look(20, a=0), look(10)), {A}) == GapUnknown(A)
    assert worst_gap((look(20, b=0), look(10, b=0)), {A, B}) == GapUnknown(A)


def test_agents_see_what_runs_from_the_first_to_the_last_of_their_looks() -> None:
    early, late = report(member(0, active=(0,)), seconds(4)), report(member(1, active=(1,)), seconds(3))
    seen = seen_by_agents({Ordinal(0): early, Ordinal(1): late}, frozenset({A, B}), is_complete=True)
    assert seen == RunningSeen(ago(4), {A: Ordinal(0), B: Ordinal(1)}, frozenset(), ago(3))
    assert worst_gap((look(9, a=1, b=1), seen), {A}) == Gap(seconds(0), seconds(6))


def test_where_an_agent_was_not_heard_or_names_no_tasks_a_task_may_run_all_the_same() -> None:
    one = report(member(0, active=(0,)), seconds(1))
    assert seen_by_agents({Ordinal(0): one}, frozenset({A, B}), is_complete=True).unproven == frozenset()
    assert seen_by_agents({Ordinal(0): one}, frozenset({A, B}), is_complete=False).unproven == {B}
    mute = {Ordinal(0): replace(one, tasks=None)}
    assert seen_by_agents(mute, frozenset({A, B}), is_complete=True).unproven == {A, B}
