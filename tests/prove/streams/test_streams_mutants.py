"""The judge of streams groups is tested: an operator with one safeguard less is caught."""

import pytest

from tests.prove.mutants import Mutant
from tests.prove.play import play
from tests.prove.story import Story
from tests.prove.streams.mutants import STREAMS_MUTANTS
from tests.prove.test_mutants import is_caught


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", [one for one in STREAMS_MUTANTS if one.shows_soon], ids=lambda one: one.name)
def test_an_operator_without_a_safeguard_of_the_streams_protocol_is_caught(mutant: Mutant) -> None:
    assert is_caught(mutant)


@pytest.mark.judge
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", [one for one in STREAMS_MUTANTS if not one.shows_soon], ids=lambda one: one.name)
def test_a_missing_safeguard_of_the_streams_protocol_that_shows_only_with_a_fault_is_caught(mutant: Mutant) -> None:
    assert is_caught(mutant)


def test_mutants_of_the_streams_protocol_leave_nothing_behind() -> None:
    for mutant in STREAMS_MUTANTS:
        with mutant.at_work():
            pass
    assert play(Story("streams-demand-down-3-2", 1)).wrongs == ()
