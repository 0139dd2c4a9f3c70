"""How many replicas are asked for: what the words mean, and laws of percentages."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.cli.model import amounts
from streamapp.cli.model.amounts import More, Pods, Share

WISHES = st.integers(0, 1000)
PERCENTAGES = st.decimals(0, 9999, places=3, allow_nan=False).map(str)
UP_TO_ALL = st.decimals(0, 100, places=3).map(str)


@pytest.mark.parametrize(
    ("desired", "text", "target"),
    [
        (40, "80%", 32),
        (41, "80%", 33),
        (3, "80%", 3),
        (3, "50%", 2),
        (3, "1%", 1),
        (3, "0%", 0),
        (3, "150%", 5),
        (8, "12.5%", 1),
        (3, "7", 7),
        (29, "100 %", 29),
    ],
)
def test_to(desired: int, text: str, target: int) -> None:
    assert amounts.to(text).of(desired) == target


@pytest.mark.parametrize(
    ("desired", "text", "target"),
    [(40, "-20%", 32), (41, "-20%", 33), (3, "-20%", 3), (3, "-100%", 0), (3, "+50%", 5), (3, "-2", 1), (3, "+2", 5)],
)
def test_by(desired: int, text: str, target: int) -> None:
    assert amounts.by(text).of(desired) == target


def test_what_is_relative_to_the_wish() -> None:
    assert [one.is_relative for one in (Pods(3), More(-1), Share(Fraction(4, 5)))] == [False, True, True]


@pytest.mark.parametrize("text", ["", "-1", "80%", "3.5", "1e3", "three", "٣", "99999999", " 3"])
def test_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number of replicas"):
        amounts.absolute(text)


@pytest.mark.parametrize("text", ["%", "-20%", "+2", "80%%", "80 percent", "1.2345%", "12345%", "1/2", "nan%"])
def test_no_target(text: str) -> None:
    with pytest.raises(ValueError, match="is neither a percentage"):
        amounts.to(text)


@pytest.mark.parametrize("text", ["20%", "2", "", "−2"])
def test_a_change_needs_a_sign(text: str) -> None:
    with pytest.raises(ValueError, match="has no sign"):
        amounts.by(text)


def test_no_more_than_all_can_go() -> None:
    with pytest.raises(ValueError, match="more than all"):
        amounts.by("-101%")


@given(WISHES, UP_TO_ALL)
def test_a_percentage_never_takes_more_than_was_asked_for_and_less_than_a_pod_fewer(
    desired: int, percentage: str
) -> None:
    asked = desired * (1 - Fraction(percentage) / 100)
    gone = desired - amounts.to(f"{percentage}%").of(desired)
    assert asked - 1 < gone <= asked


@given(WISHES, UP_TO_ALL)
def test_to_and_by_say_the_same(desired: int, percentage: str) -> None:
    rest = format(float(100 - Fraction(percentage)), ".3f")
    assert amounts.by(f"-{percentage}%").of(desired) == amounts.to(f"{rest}%").of(desired)


@given(WISHES, PERCENTAGES)
def test_more_than_nothing_never_leads_to_zero(desired: int, percentage: str) -> None:
    target = amounts.to(f"{percentage}%").of(desired)
    assert (target == 0) == (desired == 0 or Fraction(percentage) == 0)


@given(WISHES, PERCENTAGES, PERCENTAGES)
def test_a_larger_percentage_never_makes_fewer(desired: int, one: str, other: str) -> None:
    less, more = sorted((one, other), key=Fraction)
    assert amounts.to(f"{less}%").of(desired) <= amounts.to(f"{more}%").of(desired)


@given(WISHES)
def test_all_of_it_changes_nothing(desired: int) -> None:
    assert amounts.to("100%").of(desired) == amounts.by("-0%").of(desired) == amounts.by("+0").of(desired) == desired


@given(WISHES, st.integers(0, 1000))
def test_numbers_are_exact(desired: int, pods: int) -> None:
    assert amounts.by(f"+{pods}").of(desired) - desired == desired - amounts.by(f"-{pods}").of(desired) == pods
