"""`make test PART=model` fetches what is compared by default, and the release of the lab is among it."""

import re

import pytest

from lab.settings import REPOSITORY
from tests.model.kinds import BROKER, KINDS, STREAMS
from tests.model.recorded import versions_of


@pytest.mark.parametrize(("variable", "part"), [("STREAMS", STREAMS), ("BROKERS", BROKER)])
def test_what_is_compared_is_fetched(variable: str, part: str) -> None:
    fetched = re.search(rf"^{variable} := (.+)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert fetched is not None
    compared = {version for kind in KINDS if kind.part == part for version in kind.versions}
    assert compared == set(fetched[1].split())
    assert "4.2.1" in compared


def test_what_is_recorded_is_compared_too() -> None:
    for kind in KINDS:
        assert set(versions_of(kind)) <= set(kind.versions)
