"""The command line says what is wrong before Spark starts, with the object, the cause and the next step."""

from pathlib import Path

import pytest

from streamapp.analytics.__main__ import main
from streamapp.analytics.session import Engine, java_options, settings


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    code = main(list(arguments))
    return code, capsys.readouterr().err.splitlines()


def test_a_record_that_is_empty_or_missing_is_told_apart(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, lines = told(capsys, "ingest", str(tmp_path), "--root", str(tmp_path / "t"))
    assert (code, lines) == (
        1,
        [
            f"error: {tmp_path}",
            "cause: no file *.jsonl.gz is in it",
            "next:  name the folder that the operator's recorder fills",
        ],
    )
    code, lines = told(capsys, "ingest", str(tmp_path / "no"), "--root", str(tmp_path / "t"))
    assert (code, lines[1]) == (1, "cause: there is no such file or folder")


def test_an_output_that_cannot_be_written_and_tables_that_are_not_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    code, lines = told(capsys, "generate", str(tmp_path / "file" / "x"))
    assert (code, lines[1]) == (1, "cause: it cannot be written to: Not a directory")
    code, lines = told(capsys, "build", "--root", str(tmp_path))
    assert (code, lines[1]) == (1, "cause: there is nothing to build from")
    code, lines = told(capsys, "bench", "--root", str(tmp_path))
    assert (code, lines[1]) == (1, "cause: it is not empty")


def test_tables_do_not_lie_where_spark_would_not_find_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").touch()
    code, lines = told(capsys, "ingest", str(tmp_path), "--root", str(tmp_path / "t[1]"))
    assert (code, lines[1]) == (1, "cause: Spark takes [ ] { } * ? and \\ for patterns")


def test_a_missing_java_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["generate", str(tmp_path / "record"), "--apps", "1", "--tasks", "2"]) == 0
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    code, lines = told(capsys, "ingest", str(tmp_path / "record"), "--root", str(tmp_path / "t"))
    assert (code, lines[:2]) == (1, ["error: Java", "cause: JAVA_HOME is /nowhere, and there is no bin/java in it"])


def test_a_java_that_is_too_old_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "record").mkdir()
    (tmp_path / "record" / "a.jsonl.gz").touch()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho '    java.specification.version = 11' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, lines = told(capsys, "ingest", str(tmp_path / "record"), "--root", str(tmp_path / "t"))
    assert (code, lines[:2]) == (1, [f"error: {java}", "cause: Spark needs Java 17 or newer, this one is 11"])


def test_the_session_stays_on_this_machine_and_what_is_given_wins() -> None:
    told = settings(Engine(cores=3, conf={"spark.sql.shuffle.partitions": "9", "spark.ui.enabled": "true"}))
    assert (told["spark.driver.bindAddress"], told["spark.sql.session.timeZone"]) == ("127.0.0.1", "UTC")
    assert (told["spark.sql.shuffle.partitions"], told["spark.ui.enabled"]) == ("9", "true")
    assert settings(Engine(cores=3))["spark.sql.shuffle.partitions"] == "6"
    assert "spark.driver.bindAddress" not in settings(Engine(master="spark://a:7077"))


def test_an_archive_is_written_first_and_used_then(tmp_path: Path) -> None:
    archive = tmp_path / "spark.jsa"
    assert f"-XX:ArchiveClassesAtExit={archive}" in java_options(Engine(archive=archive))
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive}" in java_options(Engine(archive=archive))
