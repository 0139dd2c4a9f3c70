"""Every safeguard of the shell is in the ledger, and what the ledger says of it is so."""

from collections import Counter
from functools import cache

import pytest

from tests.prove.play import play
from tests.prove.shell_mutants import LEDGER, SERVICES, Entry, fails_without, figures
from tests.prove.shell_safeguards import every_safeguard, without
from tests.prove.shell_tests import ROOT
from tests.prove.story import Story

GUARANTEES = range(1, 10)


def test_each_safeguard_of_the_shell_has_an_entry_and_nothing_else_has() -> None:
    assert sorted(LEDGER) == sorted(map(str, every_safeguard()))


def test_an_entry_says_what_the_safeguard_keeps_and_names_a_story_or_a_test() -> None:
    assert [name for name, entry in LEDGER.items() if entry.keeps not in {*GUARANTEES, *SERVICES}] == []
    assert [name for name, entry in LEDGER.items() if bool(entry.story) == bool(entry.test)] == []
    assert {behind for entry in LEDGER.values() for behind in entry.behind} <= LEDGER.keys()


def test_every_test_that_an_entry_names_is_there() -> None:
    named = {entry.test for entry in LEDGER.values() if entry.test}
    missing = [test for test in sorted(named) if not _is_there(*test.split("[")[0].split("::"))]
    assert missing == []


def _is_there(file: str, *names: str) -> bool:
    path = ROOT / file
    return path.is_file() and all(
        f" {name}(" in path.read_text() or f"class {name}" in path.read_text() for name in names
    )


def test_each_safeguard_can_be_taken_away_and_comes_back() -> None:
    for one in every_safeguard():
        with without(one):
            pass
    assert play(Story("down-4-3", 1)).wrongs == ()


def test_no_safeguard_that_was_shown_is_lost() -> None:
    """Change these with `docs/proofs.md`; less may be explained, and more may be swept."""
    assert Counter(entry.status for entry in LEDGER.values()) == {"swept": 3, "tested": 63, "explained": 2}


def test_the_proofs_tell_the_figures() -> None:
    assert figures() in (ROOT / "docs" / "proofs.md").read_text()


@cache
def fails_on_the_sound_product(entry: Entry) -> bool:
    return fails_without(entry)


@pytest.mark.judge
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", LEDGER)
def test_a_product_without_the_safeguard_fails(name: str) -> None:
    """Seconds for most of them."""
    entry = LEDGER[name]
    assert not fails_on_the_sound_product(Entry(0, entry.story, entry.test)), "on the sound product"
    if entry.behind:
        assert not fails_without(entry, name), "the safeguard behind it is in its place"
    assert fails_without(entry, name, *entry.behind)


def test_a_test_that_there_is_not_shows_nothing() -> None:
    with pytest.raises(ValueError, match="did not run"):
        fails_without(Entry(2, test="tests/prove/test_shell_mutants.py::test_nothing"))
