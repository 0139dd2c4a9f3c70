"""The judge of what a process knew is tested, with the scenes of rare events."""

import pytest

from tests.prove.event_mutants import EVENT_MUTANTS, MEMORY_MUTANTS
from tests.prove.mutants import Mutant
from tests.prove.play import play
from tests.prove.story import Story


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", MEMORY_MUTANTS, ids=lambda one: one.name)
def test_an_operator_that_writes_against_what_it_knows_is_caught(mutant: Mutant) -> None:
    assert play(Story(mutant.scene, 1)).wrongs == ()
    with mutant.at_work():
        assert "and knew that nobody who remains has" in play(Story(mutant.scene, 1)).wrongs[0]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", EVENT_MUTANTS, ids=lambda one: one.name)
def test_an_operator_without_a_safeguard_against_a_rare_event_is_caught(mutant: Mutant) -> None:
    assert play(Story(mutant.scene, 1)).wrongs == ()
    with mutant.at_work():
        assert play(Story(mutant.scene, 1)).wrongs
