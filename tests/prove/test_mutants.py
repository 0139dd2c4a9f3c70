"""The judge itself is tested: a product with one safeguard less is caught, or it is known why it cannot be."""

import random
from collections.abc import Iterator

import pytest

from tests.prove.mutants import MUTANTS, Mutant
from tests.prove.plans import systematic
from tests.prove.play import Outcome, play, play_family
from tests.prove.scenes import SCENES
from tests.prove.story import Story

pytestmark = pytest.mark.mutants
AT_MOST = 240
"""Stories."""
AT_A_TIME = 20

CAUGHT = [mutant for mutant in MUTANTS if not mutant.survives]
SURVIVE = [mutant for mutant in MUTANTS if mutant.survives]


def outcomes(mutant: Mutant, at_most: int) -> Iterator[Outcome]:
    """The scene as it is, then with faults, as they come."""
    first = play(Story(mutant.scene, 1))
    yield first
    stories = [
        story
        for story in systematic(SCENES[mutant.scene], first.counts)
        if not mutant.kinds or story.kind in mutant.kinds
    ]
    random.Random(1).shuffle(stories)  # noqa: S311 (orders stories)
    for begin in range(0, min(len(stories), at_most), AT_A_TIME):
        yield from play_family(stories[begin : begin + AT_A_TIME])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", CAUGHT, ids=lambda mutant: mutant.name)
def test_a_product_with_one_safeguard_less_is_caught(mutant: Mutant) -> None:
    play(Story(mutant.scene, 1))  # the scene is set up by the sound product
    with mutant.at_work():
        assert any(outcome.wrongs for outcome in outcomes(mutant, AT_MOST))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", SURVIVE, ids=lambda mutant: mutant.name)
def test_where_a_second_safeguard_stands_behind_the_first_nothing_breaks(mutant: Mutant) -> None:
    play(Story(mutant.scene, 1))
    with mutant.at_work():
        assert [outcome.wrongs for outcome in outcomes(mutant, AT_A_TIME) if outcome.wrongs] == []


def test_mutants_leave_nothing_behind() -> None:
    for mutant in MUTANTS:
        with mutant.at_work():
            pass
    assert play(Story("down-4-3", 1)).wrongs == ()
