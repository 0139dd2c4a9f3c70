"""Tools for the tests of clusters: the real kubectl for its handling of kubeconfig files, stand-ins for the rest."""

import os
import shutil
from pathlib import Path

import pytest

from lab.settings import Settings


@pytest.fixture
def kubectl() -> Path:
    """Find a kubectl: the machine's, or the one that the lab built."""
    if found := shutil.which("kubectl"):
        return Path(found)
    built = sorted(Settings.from_environment().cache.glob("labkube*/**/kubectl"))
    if not built:
        pytest.skip("no kubectl yet: `python -m lab build` makes one")
    return built[-1]


class StandIns:
    """Scripts in a folder at the head of PATH, each of which writes down its arguments before it does its part.

    Why stand-ins: what is tested is which commands are given and which are not, in states that no test may bring
    about for real (a user's own namespace about to be deleted) or that this machine cannot have (no Docker).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._calls = folder / "calls"

    @property
    def path(self) -> str:
        """PATH with the stand-ins first."""
        return f"{self.folder}:{os.environ['PATH']}"

    def put(self, name: str, script: str = "") -> None:
        """Make a program of shell lines."""
        program = self.folder / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {self._calls}\n{script}\n')
        program.chmod(0o755)

    def calls(self) -> list[str]:
        """Give all calls so far, in order, each as one line."""
        return self._calls.read_text().splitlines() if self._calls.exists() else []


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    """Give an empty folder for programs."""
    folder = tmp_path / "programs"
    folder.mkdir()
    return StandIns(folder)
