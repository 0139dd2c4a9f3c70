"""What the meter calls a gap, shown on a few records each; times in milliseconds."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from lab.errors import LabError
from lab.meter.gaps import Appends, Gap, GapReport, PartitionGap, Window, find_gaps, long_gaps, partition_gap

WINDOW = Window(1_000, 2_000)


def appends(records: Sequence[tuple[int, int]]) -> Appends:
    """Take (offset, time) pairs."""
    table = np.array(records, np.int64).reshape(-1, 2)
    return Appends(table[:, 0], table[:, 1])


def steady(start: int, end: int, every: int) -> list[tuple[int, int]]:
    return list(enumerate(range(start, end, every)))


def measured(inputs: Sequence[tuple[int, int]], outputs: Sequence[tuple[int, int]]) -> PartitionGap:
    return partition_gap(0, appends(inputs), appends(outputs), WINDOW)


def test_a_pause_of_the_application_is_the_gap_from_the_first_waiting_input_to_the_next_output() -> None:
    inputs = steady(900, 2_000, 10)
    outputs = [(offset, time + 3) for offset, time in inputs if not 1_300 <= time < 1_800]
    outputs += [(offset, 1_805) for offset, time in inputs if 1_300 <= time < 1_800]

    assert measured(inputs, outputs) == PartitionGap(
        partition=0,
        inputs=100,
        outputs=100,
        gap=Gap(1_300, 1_803, before_ms=0, open=False),
        idle_ms=7,
        quiet_ms=3,
    )


def test_a_pause_of_the_input_is_not_charged_but_lowers_the_resolution() -> None:
    inputs = [(0, 1_000), (1, 1_100), (2, 1_700), (3, 1_800), (4, 1_900)]
    found = measured(inputs, [(offset, time + 20) for offset, time in inputs])

    assert found == PartitionGap(0, 5, 5, Gap(1_000, 1_020, 0, False), idle_ms=580, quiet_ms=20)
    assert (found.seconds, found.resolution) == (0.02, 0.6)


def test_no_output_at_all_is_a_gap_to_the_windows_end_of_unknown_resolution() -> None:
    found = measured([(0, 1_200), (1, 1_300)], [])

    assert found == PartitionGap(0, 2, 0, Gap(1_200, 2_000, before_ms=0, open=True), 200, None)
    assert (found.seconds, found.resolution, found.at_least) == (0.8, None, True)


def test_none_after_the_last_output_is_a_gap_to_the_windows_end() -> None:
    found = measured([(0, 1_000), (1, 1_100), (2, 1_500)], [(0, 1_010), (1, 1_110)])

    assert found.gap == Gap(1_500, 2_000, before_ms=0, open=True)


def test_an_output_just_at_the_windows_end_comes_too_late_for_it() -> None:
    found = measured([(0, 1_000)], [(0, 2_000)])

    assert (found.outputs, found.gap) == (0, Gap(1_000, 2_000, before_ms=0, open=True))


def test_an_input_left_over_from_before_the_window_is_charged_from_its_start() -> None:
    found = measured([(0, 500), (1, 600)], [(0, 510), (1, 1_400)])

    assert found == PartitionGap(0, 0, 1, Gap(1_000, 1_400, before_ms=400, open=False), 600, 10)


@pytest.mark.parametrize(("window_start", "at_least"), [(1_995, False), (2_005, False), (2_020, True)])
def test_a_gap_is_a_lower_bound_when_it_began_before_the_window_by_more_than_inputs_wait_in_quiet(
    window_start: int, at_least: bool
) -> None:
    inputs = steady(1_000, 3_000, 50)
    outputs = [(offset, time + (700 if time == 2_000 else 10)) for offset, time in inputs if not 2_000 < time < 2_700]
    found = partition_gap(0, appends(inputs), appends(outputs), Window(window_start, 3_000))

    assert (found.gap, found.at_least) == (
        Gap(max(window_start, 2_000), 2_700, max(window_start - 2_000, 0), open=False),
        at_least,
    )


def test_outputs_before_the_window_say_what_is_answered_already() -> None:
    assert measured([(0, 500), (1, 1_400)], [(0, 510), (1, 1_410)]).gap == Gap(1_400, 1_410, 0, False)


def test_a_partition_without_inputs_has_an_unknown_gap_and_never_zero() -> None:
    found = measured([(0, 500), (1, 2_500)], [(0, 510)])

    assert (found.gap, found.seconds, found.resolution) == (None, None, None)


def test_an_input_answered_within_its_millisecond_is_a_gap_of_zero() -> None:
    found = measured([(0, 1_400)], [(0, 1_400)])

    assert (found.gap, found.seconds) == (Gap(1_400, 1_400, 0, False), 0.0)


def test_an_input_passed_over_is_lost_and_not_late_for_ever() -> None:
    inputs = [(0, 1_000), (1, 1_010), (2, 1_020)]

    assert measured(inputs, [(0, 1_005), (2, 1_030)]).gap == Gap(1_010, 1_030, 0, False)


def test_a_repeated_output_ends_the_silence_but_not_the_waiting() -> None:
    found = measured([(0, 1_000), (1, 1_010)], [(0, 1_005), (0, 1_300), (1, 1_900)])

    assert found.gap == Gap(1_300, 1_900, 0, False)


def test_offsets_with_holes_as_transactions_leave_them_change_nothing() -> None:
    assert measured([(0, 1_000), (7, 1_100), (21, 1_500)], [(0, 1_010), (7, 1_200), (21, 1_510)]).gap == Gap(
        1_100, 1_200, False, False
    )


def test_the_quiet_spacing_leaves_the_gap_itself_out() -> None:
    inputs = steady(1_000, 2_000, 50)
    outputs = [(offset, time + (400 if offset == 19 else 5)) for offset, time in inputs]

    assert measured(inputs, outputs).quiet_ms == 5


def test_every_partition_of_the_input_has_a_row_in_order_and_the_worst_is_found_among_those_asked() -> None:
    answered = appends([(0, 1_100)])
    report = find_gaps(
        {2: answered, 0: answered, 1: answered, 3: appends([])},
        {0: appends([(0, 1_150)]), 1: appends([(0, 1_900)]), 2: appends([(0, 1_200)])},
        WINDOW,
    )

    assert [(row.partition, row.seconds) for row in report.partitions] == [(0, 0.05), (1, 0.8), (2, 0.1), (3, None)]
    assert [report.worst(), report.worst({0, 2, 3}), report.worst({3}), report.worst(())] == [
        report.partitions[1],
        report.partitions[2],
        None,
        None,
    ]


def test_the_report_becomes_json_in_seconds_and_moments() -> None:
    gap, none = PartitionGap(0, 9, 8, Gap(1_500, 60_000, 0, True), 12, 100), PartitionGap(1, 0, 0, None, 60_000, None)
    report = GapReport(Window(0, 60_000), (gap, none))

    assert json.loads(json.dumps(report.to_json())) == {
        "window": {"start": "1970-01-01T00:00:00.000+00:00", "end": "1970-01-01T00:01:00.000+00:00", "seconds": 60.0},
        "partitions": [
            {
                "partition": 0,
                "inputs": 9,
                "outputs": 8,
                "gap_s": 58.5,
                "began": "1970-01-01T00:00:01.500+00:00",
                "ended": "1970-01-01T00:01:00.000+00:00",
                "before_s": 0.0,
                "open": True,
                "at_least": True,
                "resolution_s": 0.112,
                "longest_idle_s": 0.012,
                "quiet_spacing_s": 0.1,
            },
            {
                "partition": 1,
                "inputs": 0,
                "outputs": 0,
                "gap_s": None,
                "began": None,
                "ended": None,
                "before_s": None,
                "open": None,
                "at_least": False,
                "resolution_s": None,
                "longest_idle_s": 60.0,
                "quiet_spacing_s": None,
            },
        ],
    }


def test_a_window_is_taken_from_two_moments_of_any_zone() -> None:
    start = datetime(2026, 1, 31, 12, tzinfo=UTC)
    end = (start + timedelta(minutes=1)).astimezone(timezone(timedelta(hours=9)))

    assert Window.between(start, end) == Window(1_769_860_800_000, 1_769_860_860_000)


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(LabError, match="it has no time zone"):
        Window.between(datetime(2026, 1, 31, 12), datetime(2026, 1, 31, 13))  # noqa: DTZ001 - the mistake under test


@pytest.mark.parametrize("end", [1_000, 999])
def test_a_window_that_holds_no_time_is_refused(end: int) -> None:
    with pytest.raises(LabError, match="its end is not after its start"):
        Window(1_000, end)


def test_every_gap_that_is_long_enough_is_found_and_each_is_cut_to_the_window() -> None:
    inputs = {0: appends(steady(800, 2_000, 10)), 1: appends([])}
    answered = [(800, 950), (1_200, 1_500), (1_560, 1_590), (1_700, 1_990)]
    outputs = [(offset, time + 3) for offset, time in steady(800, 2_000, 10) if any(a <= time < b for a, b in answered)]

    found = long_gaps(inputs, {0: appends(outputs)}, WINDOW, 100)

    assert found == {
        0: (
            Gap(1_000, 1_203, before_ms=50, open=False),
            Gap(1_590, 1_703, before_ms=0, open=False),
        ),
        1: (),
    }
    assert max(gap.seconds for gap in found[0]) == find_gaps(inputs, {0: appends(outputs)}, WINDOW).worst().seconds  # type: ignore[union-attr]
