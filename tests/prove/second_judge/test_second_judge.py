"""The second judge: that the operator keeps README's guarantees by it, and that it can find each of them broken."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.prove.second_judge.ledger import Figures
from tests.prove.second_judge.machine import GUARANTEES, machine_of
from tests.prove.second_judge.plants import PLANTED, Planted
from tests.prove.second_judge.scripts import FOUND, FROZEN, Script, played, toured

README = (Path(__file__).parents[3] / "README.md").read_text()
PROMISES = README.split("\n## What it guarantees\n")[1].split("\n## ")[0]
QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck), report_multiple_bugs=False)


def by_guarantee(stakes: Mapping[str, int]) -> set[int]:
    """The guarantees that were at stake at all."""
    return {int(what.split()[0]) for what, count in stakes.items() if count}


FIRST = list({one.guarantee: one for one in reversed(PLANTED)}.values())
"""One planted fault for each guarantee; the others are slow."""


def found(planted: Planted) -> list[str]:
    """What the judge of its guarantee said of a planted fault."""
    wrongs = played(planted.script, planted.plants)
    return [one for one in wrongs if one.startswith(f"guarantee {planted.guarantee}") and planted.says in one]


def test_each_guarantee_is_judged_by_sentences_that_readme_has() -> None:
    judges = sorted((make() for make in GUARANTEES), key=lambda one: one.number)
    promised = dict(re.findall(r"^(\d)\. (.*)$", PROMISES, re.MULTILINE))
    assert [one.number for one in judges] == list(range(1, 9))
    assert [line for one in judges for line in one.sentences if line not in promised[str(one.number)]] == []


@pytest.mark.timeout(300)
def test_the_tour_puts_every_guarantee_at_stake_and_breaks_none() -> None:
    wrongs, figures = toured()
    assert (wrongs, by_guarantee(figures.stakes)) == ([], set(range(1, 9)))


@pytest.mark.parametrize("script", FOUND, ids=lambda one: one.name)
@pytest.mark.timeout(300)
def test_what_the_machine_once_found_breaks_no_guarantee(script: Script) -> None:
    assert played(script) == []


def test_a_script_is_played_alike_each_time() -> None:
    first, again = Figures(), Figures()
    played(FROZEN, (), first)
    played(FROZEN, (), again)
    assert (first.stakes, first.delays) == (again.stakes, again.delays)


@pytest.mark.parametrize("planted", FIRST, ids=lambda one: f"{one.guarantee} {one.name}")
@pytest.mark.timeout(300)
def test_a_planted_fault_is_found(planted: Planted) -> None:
    assert found(planted)


@pytest.mark.parametrize("planted", [one for one in PLANTED if one not in FIRST], ids=lambda one: one.name)
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_another_planted_fault_is_found(planted: Planted) -> None:
    assert found(planted)


@pytest.mark.timeout(300)
def test_a_planted_fault_fails_the_machine_with_the_calls_that_play_it_again() -> None:
    plants = next(one.plants for one in PLANTED if one.name == "writes spec.replicas")
    few = settings(QUIET, max_examples=1, stateful_step_count=2, phases=[Phase.generate], derandomize=True)
    with pytest.raises(AssertionError, match="guarantee 6") as failure:
        run_state_machine_as_test(machine_of(Figures(), plants, ["four pods"]), settings=few)
    assert "state.bring_up(" in "\n".join(failure.value.__notes__)


@pytest.mark.judge
@pytest.mark.timeout(900)
def test_the_machine_finds_no_guarantee_broken() -> None:
    figures = Figures()
    some = settings(QUIET, max_examples=25, stateful_step_count=25, derandomize=True, database=None)
    run_state_machine_as_test(machine_of(figures), settings=some)
    assert (figures.examples >= 25, by_guarantee(figures.stakes)) == (True, set(range(1, 9)))
