"""Quantities as Kubernetes writes them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.api.v1alpha1.quantities import parse_quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", "0"),
        ("12", "12"),
        ("0.5", "0.5"),
        (".5", "0.5"),
        ("500m", "0.5"),
        ("2k", "2000"),
        ("64Mi", "67108864"),
        ("1.5Gi", "1610612736"),
        ("1E", "1000000000000000000"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("5n", "0.000000005"),
        ("-1", "-1"),
    ],
)
def test_a_quantity_is_read(text: str, number: str) -> None:
    assert parse_quantity(text) == Decimal(number)


@pytest.mark.parametrize("text", ["", "Mi", "1KB", "1 Gi", "1mi", "٣", "1e", "--1", "."])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        parse_quantity(text)


@given(st.integers(0, 10**9), st.sampled_from(["", "k", "M", "G"]))
def test_a_binary_unit_is_larger_than_the_decimal_one(number: int, unit: str) -> None:
    binary = "Ki" if unit == "k" else f"{unit}i" if unit else ""
    assert parse_quantity(f"{number}{binary}") >= parse_quantity(f"{number}{unit}")
