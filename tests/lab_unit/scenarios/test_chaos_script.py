"""A seed decides everything that is played."""

from collections import Counter

import pytest

from lab.scenarios.chaos.script import HABITS, LEAST, MOST, OF_THE_CLUSTER, Danger, script

NAMES = ("one", "two", "three")
EIGHT_MINUTES = 480.0


def test_a_seed_gives_the_same_acts_and_another_seed_gives_others() -> None:
    assert script(7, EIGHT_MINUTES, NAMES) == script(7, EIGHT_MINUTES, NAMES)
    assert script(7, EIGHT_MINUTES, NAMES) != script(8, EIGHT_MINUTES, NAMES)


@pytest.mark.parametrize("seed", range(10))
def test_eight_minutes_have_every_danger_and_replicas_of_every_application(seed: int) -> None:
    acts = script(seed, EIGHT_MINUTES, NAMES)
    assert {act.danger for act in acts} == set(Danger)
    assert {act.application for act in acts if act.danger is Danger.REPLICAS} == set(NAMES)
    assert Counter(act.danger for act in acts)[Danger.KILL] >= 4


@pytest.mark.parametrize("seed", range(10))
def test_an_act_has_its_time_its_target_and_a_number_that_can_be(seed: int) -> None:
    acts = script(seed, EIGHT_MINUTES, NAMES)
    assert [act.at for act in acts] == sorted(act.at for act in acts)
    assert all(0 <= act.at <= EIGHT_MINUTES for act in acts)
    for act in acts:
        assert (act.application is None) == (act.danger in OF_THE_CLUSTER), act
        least, most = HABITS[act.danger].lasts
        assert least <= act.seconds <= most, act
        if act.danger is Danger.REPLICAS:
            assert LEAST <= act.number <= MOST, act
        else:
            assert 0 <= act.number < (2 if act.danger is Danger.DRAIN else MOST), act


def test_a_shorter_run_is_the_begin_of_a_longer_one() -> None:
    long = script(3, EIGHT_MINUTES, NAMES)
    assert script(3, 120.0, NAMES) == tuple(act for act in long if act.at < 120.0)
