"""The gap of a step on record beside the metered one: each as a range, and when the two agree."""

from datetime import timedelta
from typing import Any

import pytest
from rich.console import Console

from lab.meter.costs import Cost, Interval, Step, compared, cost_table, steps_of
from lab.meter.gaps import Gap, GapReport, PartitionGap, Window

BEGAN = "2026-11-21T12:00:00+00:00"
BEFORE, AFTER = "2026-11-21T11:59:55+00:00", "2026-11-21T12:00:21+00:00"
START_MS = 1_795_262_400_000


def application(**changes: Any) -> dict[str, Any]:
    """Figures of a report, cut down to what is read of them."""
    row = {
        "from_replicas": 4,
        "to_replicas": 2,
        "t_event": BEGAN,
        "t_end": "2026-11-21T12:00:20+00:00",
        "outcome": "converged",
        "observed_s": 20.0,
        "worst_gap_s": 2.0,
        "worst_gap_err_s": 1.5,
        "held_s": 11.0,
        "held_by": [
            {"reason": reason, "seconds": seconds}
            for reason, seconds in (("LearnersCatchingUp", 9.0), ("GroupChanged", 1.0), ("FactsStale", 0.6), ("A", 0.4))
        ],
        "waited_for": [
            {"reason": reason, "task": "0_2", "ordinal": 1, "seconds": 4.5}
            for reason in ("LearnersCatchingUp", "TasksReadyToMove")
        ],
    }
    gaps = [
        {"source": "gap", "task": "0_2", "t_stop": BEGAN, "t_resume": "2026-11-21T12:00:09+00:00"},
        {"source": "gap", "task": "0_3", "t_stop": BEFORE, "t_resume": BEGAN},
        {"source": "gap", "task": "0_5", "t_stop": AFTER, "t_resume": AFTER},
        {"source": "step", "task": None, "t_stop": BEGAN, "t_resume": "2026-11-21T12:00:19+00:00"},
    ]
    return {"steps": [row | changes], "gaps": gaps}


def partition(number: int, seconds: float, *, idle: int = 50, quiet: int = 100, is_open: bool = False) -> PartitionGap:
    gap = Gap(START_MS, START_MS + round(seconds * 1000), 0, is_open)
    return PartitionGap(number, 10, 10, gap, idle, quiet)


def cost(*partitions: PartitionGap, **changes: Any) -> Cost:
    (step,) = steps_of(application(**changes))
    return compared("on demand", step, GapReport(Window(START_MS, START_MS + 1), partitions))


def test_a_step_is_read_with_what_held_it_and_with_the_partitions_whose_tasks_moved_in_it() -> None:
    (step,) = steps_of(application())
    assert (step.before, step.after, step.took_s, step.held_s) == (4, 2, 20, 11)
    assert list(step.held_by)[:2] == [("LearnersCatchingUp", 9.0), ("GroupChanged", 1.0)]
    assert list(step.waited_for) == [("0_2", 1), ("0_2", 1)]
    assert step.gap == Interval(0.5, 2)
    assert step.moved == {2}
    assert step.window.seconds == 22


def test_both_agree_where_their_ranges_meet() -> None:
    found = cost(partition(2, 0.7))
    assert found.agree is True
    assert found.meter is not None
    assert (found.meter.least, found.meter.most) == pytest.approx((0.6, 0.75))


@pytest.mark.parametrize("seconds", [0.3, 2.2])
def test_they_disagree_where_only_one_can_be_true(seconds: float) -> None:
    assert cost(partition(2, seconds)).agree is False


@pytest.mark.parametrize("seconds", [0.46, 2.09])
def test_the_meters_own_error_counts(seconds: float) -> None:
    assert cost(partition(2, seconds)).agree is True


def test_a_gap_that_the_window_cuts_may_be_longer() -> None:
    assert cost(partition(2, 0.3, is_open=True)).agree is True


def test_partitions_whose_tasks_stayed_are_not_charged_to_those_that_moved() -> None:
    assert cost(partition(2, 0.7), partition(3, 9.0)).agree is True
    assert cost(partition(2, 9.0), partition(3, 0.7)).agree is False


def test_where_no_task_is_named_the_worst_of_all_counts() -> None:
    (step,) = steps_of(application() | {"gaps": []})
    found = compared("standby", step, GapReport(Window(START_MS, START_MS + 1), (partition(2, 0.7), partition(3, 9.0))))
    assert (found.agree, found.measured) == (False, 9)


def test_what_was_not_seen_agrees_with_nothing() -> None:
    assert cost(partition(2, 0.7), worst_gap_s=None, worst_gap_err_s=None).agree is None
    assert cost().agree is None


def test_the_table_names_each_step_its_hold_its_reason_and_its_tasks() -> None:
    console = Console(width=80, force_terminal=False)
    not_held: dict[str, Any] = {"worst_gap_s": None, "held_s": 0.0, "held_by": [], "outcome": "superseded"}
    with console.capture() as told:
        console.print(cost_table([cost(partition(2, 0.7)), cost(partition(2, 5), **not_held)]))
    rows = [line.split("  ") for line in told.get().splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells == [
        ["step", "took", "held for", "gap on record", "gap metered", "agree"],
        ["on demand 4 -> 2", "20 s", "11 s", "0.50 to 2.00 s", "0.60 to 0.75 s", "yes"],
        ["on demand 4 -> 2", "20 s*", "not held", "not seen", "4.90 to 5.05 s", "-"],
        [],
        ["step", "why it was held"],
        ["on demand 4 -> 2", "LearnersCatchingUp 9 s, GroupChanged 1 s, FactsStale 1 s, 1"],
        ["more 0 s (tasks 0_2 on pod 1)"],
    ]


def test_a_window_has_room_for_two_clocks() -> None:
    (step,) = steps_of(application())
    assert isinstance(step, Step)
    assert step.window == Window.between(step.began - timedelta(seconds=1), step.ended + timedelta(seconds=1))
