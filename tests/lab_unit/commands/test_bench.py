"""`lab bench`: what it says of a run. The run itself needs the lab."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from lab.clusters.cluster import Session
from lab.commands import bench
from lab.errors import LabError
from lab.meter.counts import CountReport, Inputs, Outputs, compare
from lab.meter.gaps import Gap, GapReport, PartitionGap, Window
from lab.meter.table import MeasuredMove
from lab.scenarios.benchmark import Benchmark, Benchmarker, Case, HeldStep
from lab.scenarios.plain_scale_in import ScaleIn


def _counts(answered: int) -> CountReport:
    """Judge three inputs, of which so many have an output."""
    zeros, numbers = np.zeros(3, np.int64), np.arange(3)
    outputs = Outputs(zeros[:answered], numbers[:answered], numbers[:answered], zeros[:answered] + 1)
    return compare(Inputs(zeros, numbers, numbers), outputs, [b"a", b"b", b"c"], exactly_once=False)


def _report(*seconds: float) -> GapReport:
    rows = tuple(
        PartitionGap(number, 1, 1, Gap(0, round(length * 1000), 0, open=False), 0, 0)
        for number, length in enumerate(seconds)
    )
    return GapReport(Window(0, 60_000), rows)


def _scale_in(moved: float) -> ScaleIn:
    return ScaleIn(_report(0.1, 0.2), _report(moved, 0.5), {0: MeasuredMove("counter-2", "counter-1")})


def _step(moved: float, *restores: int) -> HeldStep:
    return HeldStep(_scale_in(moved), 0.125, 15.0, 20.0, 0.25, 3.0, restores)


def _benchmark(answered: int) -> Benchmark:
    steps = (_step(1.0, 10), _step(3.0), _step(2.0, 50, 51))
    case = Case("at-least-once", steps, _counts(answered), (90.0,))
    began_at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    return Benchmark(began_at, 600, 50, (case,), (_scale_in(47.0),), (80.0, 90.0))


def _run(monkeypatch: pytest.MonkeyPatch, answered: int, tmp_path: Path) -> tuple[str, BaseException | None]:
    @contextmanager
    def inside() -> Iterator[Session]:
        yield Session((), {"KAFKA_BOOTSTRAP": "127.0.0.1:1"})

    monkeypatch.setattr(bench, "in_node_namespace", inside)
    monkeypatch.setattr(Benchmarker, "run", lambda *_: _benchmark(answered))
    files = ["--json", str(tmp_path / "bench.json"), "--markdown", str(tmp_path / "bench.md")]
    ran = CliRunner().invoke(bench.bench, files)
    return ran.output, ran.exception


def test_every_run_is_in_the_table_with_the_median_and_the_most(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert _run(monkeypatch, 3, tmp_path)[1] is None
    lines = (tmp_path / "bench.md").read_text().splitlines()
    begin = lines.index("**Held by the operator, at-least-once**")
    assert lines[begin + 4 : begin + 9] == [
        "| 1 | 1.00 | 0.50 | 0.20 | 20.00 | 0.25 | 3.00 | 1 | 0 |",
        "| 2 | 3.00 | 0.50 | 0.20 | 20.00 | 0.25 | 3.00 | 0 | 0 |",
        "| 3 | 2.00 | 0.50 | 0.20 | 20.00 | 0.25 | 3.00 | 2 | 2 |",
        "| median | 2.00 | 0.50 | 0.20 | 20.00 | 0.25 | 3.00 | 1.00 | 0.00 |",
        "| most | 3.00 | 0.50 | 0.20 | 20.00 | 0.25 | 3.00 | 2.00 | 2.00 |",
    ]
    assert "| 1 | 47.00 | 0.50 | 0.20 |" in lines
    assert "Memory of the operator: 80 to 90 MiB in 2 looks." in lines


def test_a_restore_of_half_of_what_there_is_counts_as_one_from_zero() -> None:
    assert [_step(1.0, 49).restored_from_zero(100), _step(1.0, 50).restored_from_zero(100)] == [0, 1]


def test_lost_records_end_the_benchmark_with_an_error_after_all_figures_are_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    error = _run(monkeypatch, 2, tmp_path)[1]
    assert isinstance(error, LabError)
    figures = json.loads((tmp_path / "bench.json").read_text())
    assert [each["restores"] for each in figures["cases"]["at-least-once"]["steps"]] == [[10], [], [50, 51]]
    assert figures["cases"]["at-least-once"]["counts"]["lost"] == 1
