"""The second judge: that the operator keeps README's guarantees by it, and that it can find each of them broken."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.prove.second_judge.ledger import Figures
from tests.prove.second_judge.machine import GUARANTEES, machine_of
from tests.prove.second_judge.plants import PLANTED, Planted
from tests.prove.second_judge.scripts import TOUR, Script, played, toured

README = (Path(__file__).parents[3] / "README.md").read_text()
PROMISES = README.split("\n## What it guarantees\n")[1].split("\n## ")[0]
QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck), report_multiple_bugs=False)


def by_guarantee(stakes: Mapping[str, int]) -> set[int]:
    """The guarantees that were at stake at all."""
    return {int(what.split()[0]) for what, count in stakes.items() if count}


def test_each_guarantee_is_judged_by_sentences_that_readme_has() -> None:
    judges = sorted((make() for make in GUARANTEES), key=lambda one: one.number)
    promised = dict(re.findall(r"^(\d)\. (.*)$", PROMISES, re.MULTILINE))
    assert [one.number for one in judges] == list(range(1, 9))
    assert [line for one in judges for line in one.sentences if line not in promised[str(one.number)]] == []


@pytest.mark.timeout(300)
def test_the_tour_puts_every_guarantee_at_stake_and_breaks_none() -> None:
    wrongs, figures = toured()
    assert (wrongs, by_guarantee(figures.stakes)) == ([], set(range(1, 9)))


@pytest.mark.parametrize("script", [one for one in TOUR if one.ending == 0], ids=lambda one: one.name)
def test_a_script_is_played_alike_each_time(script: Script) -> None:
    first, again = Figures(), Figures()
    played(script, (), first)
    played(script, (), again)
    assert (first.stakes, first.rules) == (again.stakes, again.rules)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda one: f"{one.guarantee} {one.name}")
@pytest.mark.timeout(300)
def test_a_planted_fault_is_found(planted: Planted) -> None:
    wrongs = played(planted.script, planted.plants)
    assert [wrong for wrong in wrongs if wrong.startswith(f"guarantee {planted.guarantee}") and planted.says in wrong]


@pytest.mark.timeout(300)
def test_a_planted_fault_fails_the_machine_with_the_calls_that_play_it_again() -> None:
    plants = next(one.plants for one in PLANTED if one.name == "writes spec.replicas")
    few = settings(QUIET, max_examples=1, stateful_step_count=2, database=None, derandomize=True)
    with pytest.raises(AssertionError, match="guarantee 6") as found:
        run_state_machine_as_test(machine_of(Figures(), plants, ["four pods"]), settings=few)
    assert "state.bring_up(" in "\n".join(found.value.__notes__)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_machine_finds_no_guarantee_broken() -> None:
    figures = Figures()
    some = settings(QUIET, max_examples=25, stateful_step_count=25, derandomize=True, database=None)
    run_state_machine_as_test(machine_of(figures), settings=some)
    assert (figures.examples >= 25, by_guarantee(figures.stakes)) == (True, set(range(1, 9)))
