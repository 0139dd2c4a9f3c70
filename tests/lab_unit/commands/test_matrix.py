"""`lab matrix`: how it ends. Trials themselves need a broker and JVMs, which the command itself starts."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lab.commands import matrix
from lab.errors import LabError
from lab.matrix.cells import CELLS, Cell
from lab.matrix.runner import Runner
from lab.matrix.trial_result import TrialResult, Verdict


def run(monkeypatch: pytest.MonkeyPatch, trial: Callable[[Cell], Verdict], *arguments: str) -> Result:
    """Run the command with trials that end as told."""

    def tried(_: Runner, cells: Sequence[Cell], take: Callable[[TrialResult], None]) -> None:
        for cell in cells:
            take(TrialResult(cell, trial(cell)))

    monkeypatch.setattr(Runner, "run", tried)
    return CliRunner().invoke(matrix.matrix, arguments)


def test_all_cells_are_tried_and_written_in_their_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    figures, text = tmp_path / "matrix.json", tmp_path / "matrix.md"
    ran = run(monkeypatch, lambda _: Verdict.DRAINED, "--json", str(figures), "--markdown", str(text))
    assert ran.exit_code == 0, ran.exception
    assert [each["streams"] for each in json.loads(figures.read_text())["cells"]] == [cell.streams for cell in CELLS]
    assert text.read_text().endswith(f"{len(CELLS)} drained, 0 stepped aside, 0 failed.\n")


def test_a_cell_that_fails_ends_the_command_with_an_error_after_all_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    figures, wanted = tmp_path / "matrix.json", CELLS[0].name
    arguments = ("--only", wanted, "--json", str(figures))
    ran = run(monkeypatch, lambda _: Verdict.FAILED, *arguments)
    assert isinstance(ran.exception, LabError)
    assert (ran.exception.what, ran.exception.why) == ("matrix: 1 of 1 cells failed", wanted)
    assert len(json.loads(figures.read_text())["cells"]) == 1


def test_what_came_before_an_interruption_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def trial(cell: Cell) -> Verdict:
        if cell is CELLS[2]:
            raise KeyboardInterrupt
        return Verdict.DRAINED

    figures = tmp_path / "matrix.json"
    ran = run(monkeypatch, trial, "--json", str(figures))
    assert ran.exit_code == 1
    assert len(json.loads(figures.read_text())["cells"]) == 2


def test_words_that_name_no_cell_are_answered_with_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run(monkeypatch, lambda _: Verdict.DRAINED, "--only", "COBOL")
    assert isinstance(ran.exception, LabError)
    assert CELLS[0].name in ran.exception.next_step
