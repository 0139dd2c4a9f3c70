"""What the tests of several folders share."""

from pathlib import Path

import pytest

from tests.lab_unit.stand_ins import StandIns


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    """Give an empty folder for programs."""
    folder = tmp_path / "programs"
    folder.mkdir()
    return StandIns(folder)
