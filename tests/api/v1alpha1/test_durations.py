from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.api.v1alpha1.durations import DurationText, format_duration, parse_duration

MILLISECONDS = st.integers(min_value=0, max_value=3_600_000 * 999_999)


@pytest.mark.parametrize(
    ("text", "duration"),
    {
        "0s": timedelta(0),
        "30s": timedelta(seconds=30),
        "20h": timedelta(hours=20),
        "1h30m": timedelta(hours=1, minutes=30),
        "90m": timedelta(minutes=90),
        "1h0m5s": timedelta(hours=1, seconds=5),
        "640ms": timedelta(milliseconds=640),
        "1m500ms": timedelta(minutes=1, milliseconds=500),
    }.items(),
)
def test_a_duration_is_read_as_people_write_it(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text", ["", "30", "s", "1 h", "1d", "1.5h", "-1s", "30m1h", "1s1s", "1h ", "PT1H", "1000000h", "٣s", "1s\n"]
)
def test_anything_else_is_refused_in_a_sentence(text: str) -> None:
    told = f"{text!r} is no duration; write it like 30s, 20h or 1h30m, with the units h, m, s and ms"
    with pytest.raises(ValueError, match="is no duration") as refused:
        parse_duration(text)
    assert str(refused.value) == told


@given(MILLISECONDS)
def test_what_is_written_is_read_again(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(seconds=200), "3m20s"),
        (timedelta(days=2), "48h"),
        (timedelta(microseconds=1499), "1ms"),
    ],
)
def test_a_duration_is_written_without_empty_parts(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


def test_a_negative_duration_is_not_written() -> None:
    with pytest.raises(ValueError, match="is negative"):
        format_duration(timedelta(seconds=-1))


def test_the_schema_of_a_duration_with_limits_is_one_rule_with_one_message() -> None:
    limits = DurationText(least=timedelta(minutes=1), most=timedelta(hours=2))
    assert limits.message == "must be a duration from 1m to 2h, written like 30s, 20h or 1h30m"
