"""The report at the demo's end: what an earlier run left goes and nothing else does; what fails is told."""

import json
import sys
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.scenarios.record import report
from lab.scenarios.record.report import Report, clear, make, missing
from tests.lab_unit.stand_ins import StandIns


def test_a_folder_is_cleared_of_an_earlier_report_and_of_nothing_else(tmp_path: Path) -> None:
    for name in ("record/2026-11-21", "tables/gold"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("report.html", "report.json", "pipeline.log", "own.txt"):
        (tmp_path / name).write_text("old")
    assert clear(tmp_path) == tmp_path / "record"
    assert [path.name for path in tmp_path.iterdir()] == ["own.txt"]


def test_a_machine_without_java_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install Java 17" in missing()
    StandIns(tmp_path).put("java")
    assert missing() == ""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert f"under JAVA_HOME={tmp_path / 'nowhere'}" in missing()


def test_a_machine_without_the_extra_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "find_spec", lambda name: None if name == "pyspark" else object())
    assert missing().startswith("pyspark not installed: uv sync --frozen")


def test_a_command_that_fails_is_named_with_its_last_words_and_where_all_of_them_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = StandIns(tmp_path)
    programs.put("python", "echo 'cause: 3 of 10 lines are bad' >&2; exit 1")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(LabError, match="streamapp-analytics run: failed with exit code 1") as told:
        make(tmp_path)
    assert told.value.why == "cause: 3 of 10 lines are bad"
    assert "pipeline.log" in told.value.next_step
    assert "3 of 10" in (tmp_path / "pipeline.log").read_text()


def test_the_commands_are_run_in_their_order_over_one_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = StandIns(tmp_path)
    (tmp_path / "figures").write_text(json.dumps({"applications": []}))
    programs.put("python", f'if [ "$3" = report ]; then cp {tmp_path}/figures {tmp_path}/report.json; fi; echo said $3')
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    made = make(tmp_path)
    assert made.ingested == "said run"
    assert [call.split()[3] for call in programs.calls()] == ["run", "report"]
    assert all(f"--root {tmp_path / 'tables'}" in call for call in programs.calls())
    with pytest.raises(LabError, match="report of demo/counter: it is not in it"):
        made.application("demo", "counter", "u")


def test_an_application_is_found_by_its_uid() -> None:
    one = {"namespace": "demo", "app": "counter", "uid": "u"}
    made = Report(Path("x"), {"applications": [one | {"uid": "older"}, one]}, "")
    assert made.application("demo", "counter", "u") == one
