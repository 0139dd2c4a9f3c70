from datetime import UTC, datetime, timedelta, timezone

import pytest

from streamapp.cli.text import durations

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (250, "4m10s"),
        (3600, "1h"),
        (3659, "1h"),
        (3660, "1h1m"),
        (86_399, "23h59m"),
        (86_400, "1d"),
        (189_000, "2d4h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert durations.short(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.64, "640ms"), (1, "1s"), (1.25, "1.2s"), (9.629, "9.6s"), (12.7, "12s"), (250, "4m10s")],
)
def test_a_gap_is_told_the_finer_the_shorter_it_is(seconds: float, text: str) -> None:
    assert durations.fine(timedelta(seconds=seconds)) == text


def test_what_is_less_than_a_second_ago_or_still_to_come_is_just_now() -> None:
    assert [durations.ago(NOON, NOON + timedelta(seconds=passed)) for passed in (-60, 0, 0.9, 1)] == [
        "just now",
        "just now",
        "just now",
        "1s ago",
    ]


def test_a_time_reads_the_same_wherever_it_was_told() -> None:
    tokyo = NOON.astimezone(timezone(timedelta(hours=9)))
    assert durations.clock(tokyo) == "2026-11-21 12:00:00 UTC"
