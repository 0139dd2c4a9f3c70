"""Which recorder followed which, and from where on lines of clocks that differ are in order."""

from datetime import UTC, datetime, timedelta

from streamapp.analytics.handovers import Extent, Handover, Handovers, following

NOON = datetime(2026, 11, 5, 12, tzinfo=UTC)
APP = ("c", "n", "a", "u")


def span(first: float, last: float) -> Extent:
    """From and to, in seconds after noon."""
    return Extent(NOON + timedelta(seconds=first), NOON + timedelta(seconds=last))


def told(extents: dict[str, Extent], **terms: int) -> dict[str, tuple[float, bool]]:
    """The last line of the former recorders, and whether the clock was behind it."""
    found = following(APP, extents, terms)
    return {one.recorder: ((one.before - NOON).total_seconds(), one.is_behind) for one in found}


def test_a_leader_follows_all_that_led_before() -> None:
    extents = {"a": span(0, 100), "b": span(110, 200), "c": span(205, 300)}
    assert told(extents, a=1, b=2, c=3) == {"b": (100, False), "c": (200, False)}
    assert told(extents) == {"b": (100, False), "c": (200, False)}


def test_the_lines_of_a_later_term_are_later_though_its_clock_is_behind() -> None:
    assert told({"a": span(0, 100), "b": span(95, 200)}, a=1, b=2) == {"b": (100, True)}


def test_without_terms_two_clocks_are_not_compared() -> None:
    extents = {"a": span(0, 100), "b": span(95, 200)}
    assert told(extents) == told(extents, a=1) == {}


def test_a_lease_that_was_made_anew_puts_no_later_leader_before() -> None:
    assert told({"a": span(0, 100), "b": span(95, 200)}, a=7, b=0) == {}


def test_clocks_that_differ_by_more_than_ten_minutes_are_left_alone() -> None:
    assert told({"a": span(0, 1000), "b": span(300, 2000)}, a=1, b=2) == {}


def test_clocks_that_differ_at_midnight_join_the_two_days() -> None:
    late = NOON.replace(hour=23, minute=59, second=58)
    led = Handovers((Handover(APP, "b", late, late + timedelta(seconds=5)),))
    assert led.are_behind
    assert led.reached({"2026-11-06"}) == led.reached({"2026-11-05"}) == {"2026-11-05", "2026-11-06"}
    assert led.reached({"2026-11-07"}) == {"2026-11-07"}
