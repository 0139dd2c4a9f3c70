"""All of the pipeline by one command, as a job runs it, with an archive of classes that the next run starts from."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamapp.analytics.synthetic.fleet import Fleet
from streamapp.analytics.synthetic.generate import write_record
from tests.analytics.support.reading import records, rows

pytestmark = [pytest.mark.analytics, pytest.mark.timeout(600)]

FLEET = Fleet(apps=1, days=1, tasks=4, pods=3, file_seconds=21600)


def run(folder: Path, *options: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = (sys.executable, "-m", "streamapp.analytics", "run", str(folder / "record"), "--root", str(folder / "t"))
    more = ("--master", "local[2]", "--memory", "1g", *options)
    told = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    return subprocess.run((*command, *more), capture_output=True, text=True, check=False, env=told)


def test_one_command_does_it_all_and_the_next_one_starts_from_the_archive(tmp_path: Path) -> None:
    lines = sum(count for _, count in write_record(FLEET, tmp_path / "record"))
    archive, classes = tmp_path / "spark.jsa", tmp_path / "classes-%p.log"
    first = run(tmp_path, "--archive", str(archive))
    assert first.returncode == 0, first.stderr
    assert f"{lines} taken in, 0 doubled, 0 in quarantine" in first.stdout
    # It is whole when the command ends, and no draft is left.
    assert [path.name for path in tmp_path.glob("spark.jsa*")] == ["spark.jsa"]
    page, gold = tmp_path / "t" / "report.html", rows(tmp_path / "t", "g_convergence_daily")
    (app,) = {row["app"] for row in records(tmp_path / "t", "s_seen")}
    assert app in page.read_text()
    assert "# What scaling cost" in first.stdout
    page.unlink()

    second = run(tmp_path, "--archive", str(archive), JAVA_TOOL_OPTIONS=f"-Xlog:class+load:file={classes}")
    assert second.returncode == 0, second.stderr
    assert "nothing new" in second.stdout
    assert app in page.read_text()
    assert rows(tmp_path / "t", "g_convergence_daily") == gold != []
    loaded = max((path.read_text() for path in tmp_path.glob("classes-*.log")), key=len)
    assert loaded.count("source: shared objects file (top)") > 3000
