"""The judge of restarts without standbys is tested: an operator with one safeguard less is caught within three stories.

Whether a container is up again before the next rebalance begins differs from seed to seed.
"""

import pytest

from tests.prove.bare.mutants import BARE_MUTANTS
from tests.prove.mutants import Mutant
from tests.prove.play import play
from tests.prove.story import Story

SEEDS = (1, 2, 3)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", BARE_MUTANTS, ids=lambda one: one.name)
def test_an_operator_that_restarts_a_pod_while_tasks_are_away_is_caught(mutant: Mutant) -> None:
    stories = [Story(mutant.scene, seed) for seed in SEEDS]
    assert [play(story).wrongs for story in stories] == [()] * len(stories)
    with mutant.at_work():
        wrongs = [wrong for story in stories for wrong in play(story).wrongs]
    assert "ran nowhere" in wrongs[0]
