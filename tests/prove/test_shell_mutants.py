"""Every safeguard of the shell is in the ledger, and what the ledger says of it is so."""

import pytest

from tests.prove.play import play
from tests.prove.shell_mutants import CAUGHT, NOT_SHOWN, is_caught
from tests.prove.shell_safeguards import every_safeguard, without
from tests.prove.story import Story


def test_each_safeguard_of_the_shell_has_an_entry_and_nothing_else_has() -> None:
    assert sorted([*CAUGHT, *NOT_SHOWN]) == sorted(map(str, every_safeguard()))


def test_each_safeguard_can_be_taken_away_and_comes_back() -> None:
    for one in every_safeguard():
        with without(one):
            pass
    assert play(Story("down-4-3", 1)).wrongs == ()


def test_no_safeguard_that_was_shown_is_lost() -> None:
    """Raise it when a story shows one more; never lower it."""
    assert len(CAUGHT) == 3


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CAUGHT)
def test_a_product_without_the_safeguard_fails_its_story(name: str) -> None:
    assert [bool(play(Story.parse(CAUGHT[name])).wrongs), is_caught(name)] == [False, True]
