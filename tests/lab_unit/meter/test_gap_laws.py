"""Laws of the gap for any inputs and outputs, and a slow reference that looks at every millisecond."""

from itertools import pairwise
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.meter.gaps import Appends, Window, find_gaps, partition_gap

PATIENT = settings(deadline=None)
"""How busy the machine is, is not what is tested."""
Records = list[tuple[int, int]]

MOMENTS = st.integers(0, 60)
INPUTS = st.lists(st.tuples(st.integers(0, 12), MOMENTS), max_size=12, unique_by=lambda record: record[0])
OUTPUTS = st.lists(st.tuples(st.integers(0, 14), MOMENTS), max_size=14)
WINDOWS = st.tuples(MOMENTS, MOMENTS).filter(lambda pair: pair[0] < pair[1]).map(lambda pair: Window(*pair))


def appends(records: Records) -> Appends:
    table = np.array(records, np.int64).reshape(-1, 2)
    return Appends(table[:, 0], table[:, 1])


def gap_ms(inputs: Records, outputs: Records, window: Window) -> int:
    gap = partition_gap(0, appends(inputs), appends(outputs), window).gap
    return 0 if gap is None else gap.end_ms - gap.start_ms


def waits(inputs: Records, outputs: Records, moment: int) -> bool:
    """Whether an input waits from this millisecond to the next."""
    answered = max((offset for offset, time in outputs if time <= moment), default=-1)
    return any(offset > answered for offset, time in inputs if time <= moment)


def longest_run(marks: list[tuple[bool, bool]]) -> int:
    """Length of the longest run of milliseconds that are marked; a second mark starts a new run."""
    longest = run = 0
    for marked, starts_anew in marks:
        run = (0 if starts_anew else run) + 1 if marked else 0
        longest = max(longest, run)
    return longest


def by_every_millisecond(inputs: Records, outputs: Records, window: Window) -> tuple[int, int]:
    """Give the longest waiting and the longest idle run of milliseconds, each cut by every output."""
    times = {time for _, time in outputs}
    moments = range(window.start_ms, window.end_ms)
    waiting = [(waits(inputs, outputs, moment), moment in times) for moment in moments]
    return longest_run(waiting), longest_run([(not marked, anew) for marked, anew in waiting])


@PATIENT
@given(INPUTS, OUTPUTS, WINDOWS)
def test_the_gap_and_the_idle_time_are_those_that_every_millisecond_shows(
    inputs: Records, outputs: Records, window: Window
) -> None:
    found = partition_gap(0, appends(inputs), appends(outputs), window)

    assert (gap_ms(inputs, outputs, window), found.idle_ms) == by_every_millisecond(inputs, outputs, window)


@PATIENT
@given(INPUTS, OUTPUTS, WINDOWS)
def test_a_gap_is_unknown_where_no_input_arrives_or_waits_and_only_there(
    inputs: Records, outputs: Records, window: Window
) -> None:
    moments = range(window.start_ms, window.end_ms)
    due = any(time in moments for _, time in inputs) or any(waits(inputs, outputs, moment) for moment in moments)

    assert (partition_gap(0, appends(inputs), appends(outputs), window).gap is not None) == due


@PATIENT
@given(INPUTS, OUTPUTS, st.lists(MOMENTS, min_size=3, max_size=6, unique=True).map(sorted))
def test_splitting_a_window_never_enlarges_the_gap_and_never_loses_any_of_it(
    inputs: Records, outputs: Records, edges: list[int]
) -> None:
    whole = gap_ms(inputs, outputs, Window(edges[0], edges[-1]))
    parts = [gap_ms(inputs, outputs, Window(*part)) for part in pairwise(edges)]

    assert max(parts) <= whole <= sum(parts)


@PATIENT
@given(INPUTS, OUTPUTS, st.tuples(st.integers(0, 14), MOMENTS), WINDOWS)
def test_one_more_output_never_enlarges_the_gap(
    inputs: Records, outputs: Records, more: tuple[int, int], window: Window
) -> None:
    assert gap_ms(inputs, [*outputs, more], window) <= gap_ms(inputs, outputs, window)


@PATIENT
@given(INPUTS, OUTPUTS, WINDOWS, st.randoms(use_true_random=False))
def test_the_order_of_records_and_partitions_is_irrelevant(
    inputs: Records, outputs: Records, window: Window, random: Random
) -> None:
    mixed_inputs, mixed_outputs = random.sample(inputs, len(inputs)), random.sample(outputs, len(outputs))

    assert find_gaps({0: appends(inputs), 1: appends([])}, {0: appends(outputs)}, window) == find_gaps(
        {1: appends([]), 0: appends(mixed_inputs)}, {0: appends(mixed_outputs)}, window
    )


@PATIENT
@given(INPUTS, OUTPUTS, WINDOWS, st.tuples(MOMENTS, MOMENTS).filter(lambda pair: pair[0] < pair[1]))
def test_an_interruption_is_never_longer_than_gap_and_idle_time_together(
    inputs: Records, outputs: Records, window: Window, interruption: tuple[int, int]
) -> None:
    begins, ends = (min(max(moment, window.start_ms), window.end_ms) for moment in interruption)
    kept = [(offset, time) for offset, time in outputs if not begins < time < ends]
    found = partition_gap(0, appends(inputs), appends(kept), window)

    assert ends - begins <= gap_ms(inputs, kept, window) + found.idle_ms
