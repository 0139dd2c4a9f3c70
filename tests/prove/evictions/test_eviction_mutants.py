"""The judge of evictions is tested: an operator with one safeguard less is caught."""

import pytest

from tests.prove.evictions.mutants import EVICTION_MUTANTS
from tests.prove.mutants import Mutant
from tests.prove.play import play
from tests.prove.story import Story
from tests.prove.test_mutants import is_caught


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", [one for one in EVICTION_MUTANTS if one.shows_soon], ids=lambda one: one.name)
def test_an_operator_that_opens_the_budget_too_easily_is_caught(mutant: Mutant) -> None:
    assert is_caught(mutant)


@pytest.mark.judge
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", [one for one in EVICTION_MUTANTS if not one.shows_soon], ids=lambda one: one.name)
def test_a_missing_safeguard_of_evictions_that_shows_only_with_a_fault_is_caught(mutant: Mutant) -> None:
    assert is_caught(mutant)


def test_mutants_of_evictions_leave_nothing_behind() -> None:
    for mutant in EVICTION_MUTANTS:
        with mutant.at_work():
            pass
    assert play(Story("node-drain", 1)).wrongs == ()
