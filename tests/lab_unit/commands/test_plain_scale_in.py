"""`lab plain-scale-in`: how it ends. The scenario itself is played in the lab tests."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from lab.clusters.cluster import Session
from lab.commands import plain_scale_in
from lab.errors import LabError
from lab.meter.counts import CountReport, Inputs, Outputs, compare
from lab.scenarios.plain_scale_in import PlainScaleIn, ScaleInResult


def _counts(answered: int) -> CountReport:
    """Judge three inputs, of which so many have an output."""
    zeros, numbers = np.zeros(3, np.int64), np.arange(3)
    outputs = Outputs(zeros[:answered], numbers[:answered], numbers[:answered], zeros[:answered] + 1)
    return compare(Inputs(zeros, numbers, numbers), outputs, [b"a", b"b", b"c"], exactly_once=False)


def _run(monkeypatch: pytest.MonkeyPatch, answered: int, json_file: Path) -> tuple[int, BaseException | None]:
    """Run the command with the outcome of a scenario in which so many of three records were answered."""

    @contextmanager
    def inside() -> Iterator[Session]:
        yield Session((), {"KAFKA_BOOTSTRAP": "127.0.0.1:1"})

    monkeypatch.setattr(plain_scale_in, "in_node_namespace", inside)
    monkeypatch.setattr(PlainScaleIn, "run", lambda *_, **__: ScaleInResult((), _counts(answered)))
    ran = CliRunner().invoke(plain_scale_in.plain_scale_in, ["--json", str(json_file)])
    return ran.exit_code, ran.exception


def test_lost_records_end_the_demo_with_an_error_after_all_figures_are_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, error = _run(monkeypatch, 2, tmp_path / "figures.json")
    assert code == 1
    assert isinstance(error, LabError)
    assert error.what.startswith("counts of counter-")
    assert error.what.endswith("-output: lost")
    assert json.loads((tmp_path / "figures.json").read_text())["counts"]["lost"] == 1


def test_a_demo_that_lost_nothing_ends_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert _run(monkeypatch, 3, tmp_path / "figures.json") == (0, None)
