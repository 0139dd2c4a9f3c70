"""What may be set in the end follows from the dated writes alone."""

import pytest

from tests.prove.streams.setting_writes import Allowed, Meaning, Raised, Values, Write, allowed_after

RECORD = Raised(before=None, to=1)


def by_hand(at: float, value: int | None, record: Raised | None = None) -> Write:
    return Write(at, value, record)


def by_operator(at: float, value: int | None, record: Raised | None = RECORD, *, is_late: bool = False) -> Write:
    return Write(at, value, record, is_by_operator=True, is_late=is_late)


def planned(at: float, value: int, record: Raised = RECORD, *, is_late: bool = True) -> Write:
    return Write(at, value, record, is_by_operator=True, is_late=is_late, is_planned=True)


@pytest.mark.parametrize(
    ("writes", "accepted"),
    [
        ((), {None}),
        ((by_operator(5, 1),), {None}),
        ((by_operator(5, 1), by_operator(50, None)), {None}),
        ((by_hand(5, 2),), {2}),
        ((by_operator(5, 1), by_hand(20, 2, RECORD)), {2}),
        ((by_operator(5, 1), by_hand(20, 1, RECORD)), {1, None}),
        ((by_operator(5, 1), by_operator(50, None), by_hand(60, 1)), {1}),
        ((by_operator(5, 1), by_hand(20, 2, RECORD), by_hand(25, 1, RECORD)), {1, 2, None}),
        ((by_operator(5, 1), by_hand(20, 2, RECORD), by_hand(35, 1, RECORD)), {1, 2}),
        ((by_hand(5, 2), by_operator(6, 1, is_late=True)), {2, None}),
        ((by_hand(5, 1, RECORD), by_operator(6, 1, is_late=True)), {1, None}),
        ((by_hand(5, 1), planned(6, 1)), {1, None}),
        ((by_hand(5, 1), planned(6, 1, is_late=False)), {1}),
        ((by_hand(5, 2), planned(6, 1)), {2}),
        ((by_hand(5, 1), planned(6, 1, Raised(before=0, to=1))), {1}),
        ((planned(4, 1, is_late=False), by_hand(5, 2, RECORD)), {2}),
    ],
)
def test_a_value_is_accepted_if_its_users_set_it_or_the_operator_took_it_for_its_own(
    writes: tuple[Write, ...], accepted: set[int | None]
) -> None:
    assert allowed_after(None, writes).accepted == accepted


@pytest.mark.parametrize(
    ("accepted", "write", "meaning"),
    [
        ({None}, by_operator(9, 1), Meaning.RAISE),
        ({None}, by_operator(9, None), Meaning.PUT_BACK),
        ({1}, by_operator(9, 1, is_late=True), Meaning.HANDS_OWN),
        ({2}, by_operator(9, 1, is_late=True), Meaning.LATE_RAISE),
        ({2}, by_operator(9, 1), Meaning.WRONG),
        ({2}, by_operator(9, None), Meaning.WRONG),
        ({None}, by_operator(9, 1, record=None), Meaning.WRONG),
    ],
)
def test_a_write_of_an_operator_is_judged_by_its_record(accepted: Values, write: Write, meaning: Meaning) -> None:
    assert Allowed(accepted=frozenset(accepted)).meaning(write) is meaning
