"""Where tasks can end: what was played, and what is exchangeable with it."""

from streamapp.core.facts.ids import TaskId
from streamapp.simulator.forecast.places import possible_places

A, B, C = (TaskId(0, number) for number in range(3))
BEFORE = {A: 0, B: 0, C: 1}


def test_a_task_that_ends_on_one_pod_in_all_ways_has_one_place() -> None:
    ends = [{A: 1, B: 0, C: 1}, {A: 1, B: 0, C: 1}]
    assert possible_places(ends, BEFORE, ()) == {A: {1}, B: {0}, C: {1}}


def test_pods_without_state_are_exchangeable() -> None:
    ends = [{A: 2, B: 3, C: 1}]
    assert possible_places(ends, BEFORE, (2, 3)) == {A: {2, 3}, B: {2, 3}, C: {1}}
    assert possible_places([{A: 2, B: 0, C: 1}], BEFORE, (2,)) == {A: {2}, B: {0}, C: {1}}


def test_tasks_of_one_tie_can_take_each_others_pods_and_stay_where_they_did() -> None:
    ends = [{A: 2, B: 0, C: 1}, {A: 3, B: 3, C: 1}, {A: 2, B: 4, C: 1}]
    assert possible_places(ends, BEFORE, ()) == {A: {2, 3, 4}, B: {0, 2, 3, 4}, C: {1}}
