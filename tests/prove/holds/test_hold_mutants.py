"""The ends of the scenes of holds are tested: an operator with one fault more fails the scene that is made for it."""

import pytest

from tests.prove.holds.mutants import HOLD_MUTANTS
from tests.prove.holds.scenes import HOLDS
from tests.prove.mutants import Mutant
from tests.prove.play import play
from tests.prove.story import Story


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", HOLD_MUTANTS, ids=lambda one: one.name)
def test_an_operator_that_ends_a_hold_otherwise_fails_its_scene(mutant: Mutant) -> None:
    story = Story(mutant.scene, 1)
    assert play(story).wrongs == ()
    with mutant.at_work():
        assert play(story).wrongs


def test_mutants_of_holds_leave_nothing_behind() -> None:
    for mutant in HOLD_MUTANTS:
        with mutant.at_work():
            pass
    assert play(Story("idle-5-3", 1)).wrongs == ()


def test_what_must_have_come_of_a_scene_is_asked_only_where_nothing_else_went_wrong() -> None:
    """A story with a raise removes no pod, and is at rest all the same."""
    assert dict(next(one for one in HOLDS if one.name == "idle-5-3").ends.counted) == {"removals": 1}
    outcome = play(Story.parse("idle-5-3 seed=1 second:5:wish:5"))
    assert (outcome.wrongs, outcome.notes["removals"]) == ((), 0)
