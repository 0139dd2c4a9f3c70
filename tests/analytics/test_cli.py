"""The command line says what is wrong before Spark starts, with the object, the cause and the next step."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from streamapp.analytics import cli
from streamapp.analytics.__main__ import INTERRUPTED, main
from streamapp.analytics.bronze.kafka import connector_jars, properties_in
from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.spark.session import Engine, cores_of, java_options, master_of, settings


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
    assert (code, lines[1:]) == (1, ["cause: it cannot be written to: Not a directory", "next:  choose another FOLDER"])
    code, lines = told(capsys, "build", "--root", str(tmp_path))
    assert (code, lines[1]) == (1, "cause: there is nothing to build from")


def test_tables_do_not_lie_where_spark_would_not_find_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").touch()
    code, lines = told(capsys, "ingest", str(tmp_path), "--root", str(tmp_path / "t[1]"))
    assert (code, lines[1]) == (1, "cause: Spark takes [ ] { } * ? and \\ for patterns")


def test_a_page_that_cannot_be_written_is_told_before_anything_is_computed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl.gz").touch()
    run = ("run", str(tmp_path), "--root", str(tmp_path / "t"), "--out")
    code, lines = told(capsys, *run, str(tmp_path / "a.jsonl.gz" / "page.html"))
    assert (code, lines[2]) == (1, "next:  choose another --out")
    code, lines = told(capsys, *run, str(tmp_path))
    assert (code, lines[-1]) == (2, f"Error: Invalid value for '--out': File '{tmp_path}' is a directory.")


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        ("2", "'2' is no size; name one as in 2g or 1500m"),
        ("2gb", "'2gb' is no size; name one as in 2g or 1500m"),
        ("0g", "Spark does not start with 0g; 512m is the least"),
        ("511m", "Spark does not start with 511m; 512m is the least"),
    ],
)
def test_a_heap_that_java_or_spark_would_refuse_is_refused_before_they_start(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, memory: str, words: str
) -> None:
    code, lines = told(capsys, "build", "--root", str(tmp_path), "--memory", memory)
    assert (code, lines[-1]) == (2, f"Error: Invalid value for '--memory': {words}")


def test_a_heap_is_handed_on_as_java_takes_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for memory in ("512m", "1500M", "2G"):
        code, lines = told(capsys, "build", "--root", str(tmp_path), "--memory", memory)
        assert (code, lines[1]) == (1, "cause: there is nothing to build from")


def test_help_tells_each_command_in_a_whole_line_and_which_version_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "..." not in capsys.readouterr().out.split("Commands:")[1]
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("streamapp-analytics, version ")


def test_what_java_throws_is_asked_while_it_still_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for Java's error, which loses its words as soon as Java has ended."""
    running = [True]

    class ThrownError(Py4JJavaError):  # type: ignore[misc] # py4j has no types
        def __init__(self) -> None:
            """Without a connection to Java."""

        def __str__(self) -> str:
            assert running
            return "An error occurred while calling o1.parquet.\n: cannot read file a.jsonl.gz\n\tat somewhere"

    def check(*_: object) -> None:
        raise ThrownError

    (tmp_path / "a.jsonl.gz").touch()
    monkeypatch.setattr(cli, "open_session", lambda _: None)
    monkeypatch.setattr(cli, "close_session", lambda *_: running.clear())
    monkeypatch.setattr(cli, "check_workers", check)
    code, lines = told(capsys, "ingest", str(tmp_path), "--root", str(tmp_path / "t"))
    assert (code, lines[:2], running) == (1, ["error: Spark", "cause: cannot read file a.jsonl.gz"], [])


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
    assert f"-XX:ArchiveClassesAtExit={archive}.new " in java_options(Engine(archive=archive))
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive} " in java_options(Engine(archive=archive))


def test_classes_are_looked_for_in_one_order_where_an_archive_is_to_know_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    (tmp_path / "jars").mkdir()
    for name in ("b.jar", "c.jar", "a.jar", "notes.txt"):
        (tmp_path / "jars" / name).touch()
    ordered = settings(Engine(archive=tmp_path / "spark.jsa"))["spark.driver.extraClassPath"].split(":")
    assert ordered == [str(tmp_path / "jars" / name) for name in ("a.jar", "b.jar", "c.jar")]
    assert "spark.driver.extraClassPath" not in settings(Engine())


def test_partitions_follow_the_cores_that_are_named_and_not_those_of_the_machine() -> None:
    assert (cores_of("local[3]"), cores_of("local[*]"), cores_of("")) == (3, os.cpu_count(), os.cpu_count())


def test_a_user_without_a_name_is_told_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl.gz").touch()
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    monkeypatch.setattr("streamapp.analytics.spark.session.check_java", lambda: None)
    code, lines = told(capsys, "run", str(tmp_path), "--root", str(tmp_path / "t"))
    assert (code, lines[:2]) == (
        1,
        ["error: user 4000000", "cause: it has no name in /etc/passwd, and Spark needs one"],
    )
    assert f"`4000000:x:4000000:{os.getgid()}" in lines[2]


@pytest.mark.parametrize("command", ["ingest", "run"])
def test_the_record_comes_from_files_or_from_a_topic(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    for record in ([], [str(tmp_path), "--kafka", "a:9092"]):
        code, lines = told(capsys, command, *record, "--root", str(tmp_path / "t"))
        assert (code, lines[-1]) == (2, "Error: Name files of the record, or --kafka BOOTSTRAP; one of them.")


def test_the_connector_is_one_of_sparks_own_jars_or_lies_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STREAMAPP_KAFKA_JARS", raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    with pytest.raises(AnalyticsError, match="no folder is named"):
        connector_jars(None)
    for folder in (tmp_path / "spark" / "jars", tmp_path / "other"):
        folder.mkdir(parents=True)
        (folder / "spark-sql-kafka-0-10_2.13-4.2.0.jar").touch()
    assert connector_jars(None) == ""
    assert connector_jars(tmp_path / "other") == str(tmp_path / "other" / "spark-sql-kafka-0-10_2.13-4.2.0.jar")


def test_a_secret_of_the_operators_is_read_as_the_operator_reads_it(tmp_path: Path) -> None:
    with pytest.raises(AnalyticsError, match="no property is in it"):
        properties_in(tmp_path)
    given = {"security.protocol": "SSL\n", "ssl.truststore.certificates": "-----BEGIN", "..data": "no property"}
    for name, text in given.items():
        (tmp_path / name).write_text(text)
    read = {"security.protocol": "SSL", "ssl.truststore.certificates": "-----BEGIN", "ssl.truststore.type": "PEM"}
    assert properties_in(tmp_path) == read
    (tmp_path / "ssl.truststore.type").write_text("JKS")
    assert properties_in(tmp_path)["ssl.truststore.type"] == "JKS"


def test_a_master_that_does_not_answer_is_named_before_spark_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["generate", str(tmp_path / "record"), "--apps", "1", "--tasks", "2"]) == 0
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        master = f"spark://127.0.0.1:{port},localhost:{port}"
        arguments = ["ingest", str(tmp_path / "record"), "--root", str(tmp_path / "t"), "--master"]
        code, lines = told(capsys, *arguments, master)
    assert (code, lines[0]) == (1, f"error: Spark's master {master}")
    refused = "Connection refused"
    assert lines[1] == f"cause: 127.0.0.1:{port}: {refused}; localhost:{port}: {refused}"
    code, lines = told(capsys, *arguments, "spark://there")
    assert (code, lines[1:]) == (
        1,
        ["cause: there is not a host and a port", "next:  write it as the master's page does: spark://HOST:PORT"],
    )


@pytest.mark.parametrize(
    ("error", "cause", "step"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "its Java process ended", "--memory is its heap"),
        (Py4JNetworkError("Error while sending or receiving"), "its Java process ended", "--memory is its heap"),
        (
            PySparkException("Job aborted: java.lang.OutOfMemoryError: Java heap space"),
            "Job aborted",
            "more by --memory",
        ),
        (PySparkException("[DIVIDE_BY_ZERO] Division by zero."), "[DIVIDE_BY_ZERO]", "with --debug"),
    ],
)
def test_a_spark_that_dies_or_has_no_memory_left_is_told_as_such(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    cause: str,
    step: str,
) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(cli, "require_bronze", failing)
    code, lines = told(capsys, "build", "--root", str(tmp_path))
    assert (code, lines[0]) == (1, "error: Spark")
    assert lines[1].startswith(f"cause: {cause}")
    assert step in lines[2]
    assert "nothing counts of what was not finished" in lines[2]


def test_what_a_submission_says_is_kept_and_its_master_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER", "local[7]")
    assert (master_of(Engine()), master_of(Engine(master="local[2]"))) == ("local[7]", "local[2]")
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert (master_of(Engine()), master_of(Engine(master="local[2]"))) == ("", "local[2]")
    assert "spark.driver.bindAddress" not in settings(Engine())


@pytest.mark.slow
def test_whoever_is_told_to_end_ends_as_if_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "streamapp.analytics", "generate", str(tmp_path / "record"), "--days", "10"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as running:
        while not list(tmp_path.glob("record/*.gz")):
            assert running.poll() is None
            time.sleep(0.05)
        running.terminate()
        assert running.wait(120) == INTERRUPTED
        assert running.stderr is not None
        assert b"Traceback" not in running.stderr.read()
