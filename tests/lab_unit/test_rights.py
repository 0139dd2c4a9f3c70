"""The list of rights beside the tests that use them: no right is missing from it, and no test."""

from pathlib import Path

from tests.lab.rights import GRANTED, NEVER_SEEN, USED_IN

LAB = Path(__file__).parent.parent / "lab"


def test_each_right_is_used_by_a_test_or_has_a_reason() -> None:
    used = frozenset().union(*USED_IN.values())
    assert used | NEVER_SEEN.keys() == GRANTED
    assert used & NEVER_SEEN.keys() == set()


def test_each_file_of_the_list_is_there() -> None:
    assert [file for file in USED_IN if not (LAB / file).is_file()] == []
