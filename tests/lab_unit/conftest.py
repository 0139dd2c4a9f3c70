"""What the tests of several folders share."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.commands.root import main
from tests.lab_unit.stand_ins import StandIns


@dataclass(frozen=True)
class CommandResult:
    """What a command of the lab printed, and its exit code."""

    code: int
    out: str
    err: str


RunLab = Callable[..., CommandResult]


@pytest.fixture
def run_lab(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> RunLab:
    """Give a function that runs `python -m lab` with these words and this environment, in this process."""

    def run(*words: str, **environment: str) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["lab", *words])
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        try:
            code = main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        return CommandResult(code, *capfd.readouterr())

    return run


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    """Give an empty folder for programs."""
    folder = tmp_path / "programs"
    folder.mkdir()
    return StandIns(folder)
