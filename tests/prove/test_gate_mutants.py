"""Every gate has an entry in the ledger, and what the ledger says of it is so."""

import pytest

from tests.prove.gate_branches import BESIDE
from tests.prove.gate_mutants import (
    ELSEWHERE,
    LEDGER,
    Entry,
    Named,
    every_gate,
    is_caught,
    is_dangerous,
    table,
    without,
)
from tests.prove.play import play
from tests.prove.refusals import counted
from tests.prove.scenes import SCENES
from tests.prove.story import Story

CAUGHT = [named for named, entry in LEDGER.items() if entry.status == "caught"]
EXPLAINED = [named for named, entry in LEDGER.items() if entry.behind]
AT_MOMENTS = [named for named, entry in LEDGER.items() if entry.moments]


def name_of(named: Named) -> str:
    return ".".join(named)


def test_each_gate_of_each_chain_has_an_entry_and_nothing_else_has() -> None:
    assert sorted(LEDGER) == sorted(every_gate())


def test_an_entry_names_a_scene_or_says_why_there_is_none() -> None:
    assert {bool(entry.scene) != bool(entry.why) for entry in LEDGER.values()} == {True}
    assert {entry.story.scene for entry in LEDGER.values() if entry.scene} <= SCENES.keys()


def test_each_gate_can_be_taken_away() -> None:
    assert [named for named in every_gate() if not list(without(named))] == []


def test_each_rule_elsewhere_stands_behind_a_gate() -> None:
    assert {rule for entry in LEDGER.values() for chain, rule in entry.behind if chain == ELSEWHERE} == BESIDE.keys()


def test_no_gate_that_was_shown_is_lost() -> None:
    """Raise these when a story shows one more gate; never lower them."""
    assert (len(CAUGHT), len(EXPLAINED), len(AT_MOMENTS)) == (30, 25, 30)
    assert len(LEDGER) - 85 <= 12
    assert list(table())[-1] == f"mutants: {len(LEDGER)}, caught: 30, explained: 55, not shown: {len(LEDGER) - 85}"


def test_a_scene_shows_which_gates_refuse_in_it_alone() -> None:
    with counted() as found:
        play(Story("behind", 1))
    assert {(chain, gate) for chain, gate, others in found if others == "alone"} >= {
        ("COVERAGE_GATES", "every_stateful_task_is_covered")
    }


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("named", CAUGHT, ids=name_of)
def test_a_product_without_the_gate_fails_its_scene(named: Named) -> None:
    assert is_caught(LEDGER[named], named)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("named", EXPLAINED, ids=name_of)
def test_only_without_the_gate_and_those_behind_it_the_scene_fails(named: Named) -> None:
    entry: Entry = LEDGER[named]
    assert [is_caught(entry, *entry.behind), is_caught(entry, named, *entry.behind)] == [False, True]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("named", AT_MOMENTS, ids=name_of)
def test_where_all_that_the_gate_refuses_is_allowed_the_scene_fails(named: Named) -> None:
    assert is_dangerous(LEDGER[named], named)
