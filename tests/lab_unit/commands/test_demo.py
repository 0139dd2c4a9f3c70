"""The end of the demo on a machine that cannot make the report: it says what lacks and what to run, and goes on."""

from pathlib import Path

import pytest

from lab.clusters.cluster import Session
from lab.commands import demo
from lab.errors import LabError
from lab.scenarios.record import flight_record, report


def taken(_: object, folder: Path) -> list[Path]:
    folder.mkdir(parents=True)
    (folder / "one.jsonl.gz").touch()
    return [folder / "one.jsonl.gz"]


def test_without_java_the_record_is_there_and_the_commands_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(flight_record, "take", taken)
    monkeypatch.setattr(report, "missing", lambda: "no java on the PATH: install Java 17")
    demo._report(Session((), {}), (), tmp_path / "demo-report")
    told = capsys.readouterr().out
    assert "no report: no java on the PATH: install Java 17" in told
    for command in ("ingest", "build", "report"):
        assert f"streamapp-analytics {command} " in told
    assert (tmp_path / "demo-report" / "record" / "one.jsonl.gz").exists()


def test_a_pipeline_that_fails_fails_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Path) -> None:
        raise LabError("streamapp-analytics build: failed", "why", "what to do")

    monkeypatch.setattr(flight_record, "take", taken)
    monkeypatch.setattr(report, "missing", lambda: "")
    monkeypatch.setattr(report, "make", fail)
    with pytest.raises(LabError, match="streamapp-analytics build: failed"):
        demo._report(Session((), {}), (), tmp_path)
