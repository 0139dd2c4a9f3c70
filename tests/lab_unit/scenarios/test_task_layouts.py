from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lab.scenarios.layouts.task_layouts import Move, TaskLayout, TaskLayouts, layout_of_streams_group
from streamapp.core.facts.group import GroupDescription, GroupState
from tests.support.example import member, members

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def layouts(*both: tuple[dict[int, str], dict[int, str]]) -> TaskLayouts:
    found = TaskLayouts()
    for number, (active, copies) in enumerate(both):
        found.note(
            TaskLayout(
                BEGAN + timedelta(seconds=number),
                {ordinal: frozenset(tasks.split()) for ordinal, tasks in active.items()},
                {ordinal: frozenset(tasks.split()) for ordinal, tasks in copies.items()},
            )
        )
    return found


def test_a_move_behind_a_copy_is_told_from_one_that_is_not() -> None:
    found = layouts(
        ({0: "0_0", 1: "0_1 0_2"}, {0: ""}),
        ({0: "0_0", 1: "0_1 0_2"}, {0: "0_1"}),
        ({0: "0_0", 1: ""}, {0: "0_1"}),  # between the two rebalances nobody has them
        ({0: "0_0 0_1 0_2", 1: ""}, {0: ""}),
    )
    assert sorted(found.moves(), key=lambda move: move.task) == [
        Move("0_1", 1, 0, had_copy=True),
        Move("0_2", 1, 0, had_copy=False, had_state=False),
    ]


def test_a_copy_that_was_there_long_ago_is_state_and_no_copy() -> None:
    found = layouts(({1: "0_1"}, {0: "0_1"}), ({1: "0_1"}, {}), ({0: "0_1"}, {}))
    assert found.moves() == [Move("0_1", 1, 0, had_copy=False, had_state=True)]


def test_equal_neighbours_are_one_layout() -> None:
    found = layouts(({1: "0_1"}, {}), ({1: "0_1"}, {}), ({0: "0_1"}, {}))
    assert (len(found.layouts), found.at(BEGAN + timedelta(seconds=1)).owner("0_1")) == (2, 1)


def test_who_has_only_a_copy_does_not_hold_nothing() -> None:
    (layout,) = layouts(({0: "0_0", 1: ""}, {1: "0_0"})).layouts
    assert [layout.holds_nothing(ordinal) for ordinal in (0, 1, 2)] == [False, False, True]


def test_threads_of_a_process_of_the_streams_protocol_are_one_pod() -> None:
    threads = (member(1, active=[2], standby=[0]), replace(member(1, active=[3]), id="another thread"))
    found = layout_of_streams_group(GroupDescription(GroupState.STABLE, (*members(1, standbys=False), *threads)))
    assert found is not None
    assert found.active[1] == {"0_2", "0_3"}
    assert found.copies == {0: frozenset(), 1: {"0_0"}}


def test_a_group_whose_members_still_give_tasks_up_has_no_layout() -> None:
    assert layout_of_streams_group(GroupDescription(GroupState.RECONCILING, members(2))) is None
