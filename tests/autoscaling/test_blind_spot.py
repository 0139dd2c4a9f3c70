"""Where an autoscaler does not see that pods which are held are needed, and what makes that smaller."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.autoscaling.blind_spot import PAGE, SETTINGS, after_a_raise, evenly, held, is_wrong, written
from tests.autoscaling.hpa_model import (
    DEFAULT,
    RECOMMENDED,
    PodUsage,
    Scale,
    Tolerance,
    by_average_value,
    by_pods,
    by_value,
)

CPU, CPU_NARROW, VALUE, AVERAGE = SETTINGS.values()
LOADS = st.fractions(min_value=Fraction(1, 100), max_value=60, max_denominator=100)
HELD = st.integers(2, 40).flatmap(lambda pods: st.tuples(st.just(pods), st.integers(1, pods - 1)))
"""Pods, and fewer that are wished for."""


@pytest.mark.parametrize(
    ("load", "cells"),
    [
        ("3", (3, 3, 3, 3)),
        ("5", (5, 5, 5, 5)),
        ("5.5", (3, 6, 3, 6)),
        ("6", (3, 3, 3, 6)),
        ("6.5", (3, 7, 3, 6)),
        ("8", (8, 8, 8, 8)),
    ],
)
def test_the_wishes_of_the_table_worked_out_by_hand(load: str, cells: tuple[int, ...]) -> None:
    assert tuple(held(wishes, Fraction(load)) for wishes in SETTINGS.values()) == cells


def test_the_page_has_the_tables_as_they_are_computed() -> None:
    assert PAGE.read_text() == written(PAGE.read_text())


@given(LOADS, HELD)
def test_by_processor_time_the_wish_is_wrong_exactly_within_the_tolerance(
    load: Fraction, held: tuple[int, int]
) -> None:
    pods, wish = held
    for wishes, tolerance in ((CPU, DEFAULT), (CPU_NARROW, RECOMMENDED), (VALUE, DEFAULT)):
        assert is_wrong(wishes, load, wish=wish, pods=pods) is tolerance.spares(load / pods)


@given(LOADS, HELD)
def test_a_narrow_tolerance_is_wrong_only_where_a_wide_one_is(load: Fraction, held: tuple[int, int]) -> None:
    pods, wish = held
    narrow = is_wrong(CPU_NARROW, load, wish=wish, pods=pods)
    assert not narrow or is_wrong(CPU, load, wish=wish, pods=pods)


def test_the_recommended_tolerance_leaves_a_fifth_of_the_blind_spot() -> None:
    widths = [(one.up + one.down) for one in (DEFAULT, RECOMMENDED)]
    assert widths[1] / widths[0] == Fraction(1, 5)


@given(LOADS, HELD)
def test_by_lag_as_average_value_the_wish_is_never_wrong(load: Fraction, held: tuple[int, int]) -> None:
    pods, wish = held
    assert not is_wrong(AVERAGE, load, wish=wish, pods=pods)


@given(LOADS, st.integers(1, 40), st.integers(1, 40))
def test_the_blind_spot_is_there_only_while_something_is_held(load: Fraction, pods: int, wish: int) -> None:
    for wishes in SETTINGS.values():
        if wish >= pods:
            assert not is_wrong(wishes, load, wish=wish, pods=pods)


@given(HELD)
def test_told_what_is_wished_for_instead_of_what_is_there_lag_would_have_it_too(held: tuple[int, int]) -> None:
    """Why `status.replicas` of a StreamApp counts the pods that exist."""
    _, wish = held
    as_wished = Scale(spec=wish, status=wish)
    load = Fraction(wish) * Fraction(109, 100)
    assert by_average_value(as_wished, load, DEFAULT) == wish


@pytest.mark.parametrize("load", [Fraction(7), Fraction(12)])
def test_what_is_beyond_the_tolerance_is_seen_from_all_pods_that_there_are(load: Fraction) -> None:
    assert [held(wishes, load) for wishes in SETTINGS.values()] == [load] * 4


@given(st.integers(0, 8), st.fractions(min_value=0, max_value=50, max_denominator=20))
def test_what_pods_spend_that_were_never_ready_raises_no_wish(restoring: int, spent: Fraction) -> None:
    assert after_a_raise(restoring, ready=False, spent=spent) == 3 + restoring or restoring == 0


@given(st.integers(1, 8), LOADS, st.fractions(min_value=0, max_value=50, max_denominator=20))
def test_it_makes_no_difference_what_they_spend(restoring: int, load: Fraction, spent: Fraction) -> None:
    scale = Scale(spec=3 + restoring, status=3 + restoring)
    wishes = {
        by_pods(scale, [*evenly(load, 3), *[PodUsage(one, ready=False)] * restoring], DEFAULT)
        for one in (Fraction(0), spent)
    }
    assert len(wishes) == 1


def test_ready_while_they_restore_they_call_for_more_of_their_kind() -> None:
    wishes = [after_a_raise(restoring, ready=True) for restoring in (1, 2, 3)]
    assert wishes == [5, 7, 9]


def test_tolerances_count_on_their_own_side() -> None:
    lopsided = Tolerance(up=Fraction(0), down=Fraction(1, 2))
    scale = Scale(spec=4, status=4)
    assert by_pods(scale, evenly(Fraction(21, 10), 4), lopsided) == 4
    assert by_pods(scale, evenly(Fraction(41, 10), 4), lopsided) == 5
    assert by_value(scale, Fraction(19, 10), 4, lopsided) == 2
