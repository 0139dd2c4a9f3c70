"""The judge itself is tested: a product with one safeguard less is caught, or it is known why it cannot be."""

import random
from collections.abc import Iterator, Sequence

import pytest

from tests.prove.mutants import MUTANTS, Mutant
from tests.prove.plans import systematic
from tests.prove.play import Outcome, play, play_family
from tests.prove.scenes import SCENES
from tests.prove.story import Story

SEEDS = (1, 2, 3, 4, 5)
EACH = 120
"""Stories of each seed."""
AT_A_TIME = 15


def outcomes(mutant: Mutant, seeds: Sequence[int] = SEEDS) -> Iterator[Outcome]:
    """The scene as it is, then with faults, as they come."""
    first = play(Story(mutant.scene, 1))
    yield first
    chance = random.Random(1)  # noqa: S311 (orders stories)
    for seed in seeds:
        stories = [
            story
            for story in systematic(SCENES[mutant.scene], first.counts, seed)
            if not mutant.kinds or story.kind in mutant.kinds
            if mutant.site in {"", story.disturbances[0].site}
        ]
        chance.shuffle(stories)
        for begin in range(0, min(len(stories), EACH), AT_A_TIME):
            yield from play_family(stories[begin : begin + AT_A_TIME])


def is_caught(mutant: Mutant) -> bool:
    """Whether any story fails; the scene itself is set up by the sound product."""
    play(Story(mutant.scene, 1))
    with mutant.at_work():
        return any(outcome.wrongs for outcome in outcomes(mutant))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.shows_soon], ids=lambda one: one.name)
def test_a_product_with_one_safeguard_less_is_caught(mutant: Mutant) -> None:
    assert is_caught(mutant)


@pytest.mark.judge
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.kinds and not one.survives], ids=lambda one: one.name)
def test_a_product_whose_missing_safeguard_shows_only_with_a_fault_is_caught_by_the_sweep(mutant: Mutant) -> None:
    assert is_caught(mutant)


@pytest.mark.judge
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.survives], ids=lambda one: one.name)
def test_where_a_second_safeguard_stands_behind_the_first_nothing_breaks(mutant: Mutant) -> None:
    assert not is_caught(mutant)


def test_mutants_leave_nothing_behind() -> None:
    for mutant in MUTANTS:
        with mutant.at_work():
            pass
    assert play(Story("down-4-3", 1)).wrongs == ()
