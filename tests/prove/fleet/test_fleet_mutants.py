"""What the product does for several StreamApps is held by the sweep: with a fault in it, stories fail."""

import pytest

from tests.prove.fleet.mutants import FLEET_MUTANTS, stories_of
from tests.prove.mutants import Mutant
from tests.prove.play import play, play_family
from tests.prove.test_mutants import is_caught

MOST = 40
"""Stories of a mutant that cannot be noticed."""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", [one for one in FLEET_MUTANTS if one.shows_soon], ids=lambda one: one.name)
def test_a_fault_between_streamapps_is_caught(mutant: Mutant) -> None:
    assert is_caught(mutant)


@pytest.mark.judge
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "mutant", [one for one in FLEET_MUTANTS if not one.shows_soon and not one.survives], ids=lambda one: one.name
)
def test_a_fault_between_streamapps_that_shows_only_with_another_is_caught_by_the_sweep(mutant: Mutant) -> None:
    assert is_caught(mutant)


@pytest.mark.judge
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mutant", [one for one in FLEET_MUTANTS if one.survives], ids=lambda one: one.name)
def test_where_another_safeguard_stands_behind_nothing_breaks_between_streamapps(mutant: Mutant) -> None:
    stories = stories_of(mutant, MOST)
    with mutant.at_work():
        assert [one.wrongs for one in play_family(stories) if one.wrongs] == []


def test_mutants_between_streamapps_leave_nothing_behind() -> None:
    for mutant in FLEET_MUTANTS:
        with mutant.at_work():
            pass
    (first, *_) = stories_of(FLEET_MUTANTS[0], 1)
    assert play(first).wrongs == ()
