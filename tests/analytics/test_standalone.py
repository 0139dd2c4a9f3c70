"""The wheel as a user installs it gives on a Spark cluster the tables it gives on one machine."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from streamapp.analytics.build import gold, silver
from streamapp.analytics.spark.session import QUICK
from streamapp.analytics.tables.derived_schemas import GOLD, SILVER
from tests.analytics.conftest import Whole
from tests.analytics.support.reading import rows
from tests.analytics.support.standalone import (
    QUICK_JVM,
    WORKERS,
    Cluster,
    cluster,
    end,
    environment,
    install,
    spark_home,
    tasks_by_host,
)

pytestmark = [pytest.mark.analytics, pytest.mark.cluster, pytest.mark.timeout(2400)]
KILLED_AFTER = "silver: samples"


@dataclass(frozen=True)
class Installed:
    """The wheel's programs beside a running cluster."""

    programs: Path
    place: Path
    cluster: Cluster

    def command(self, *arguments: str) -> list[str]:
        """The command line with what this small machine needs."""
        program = str(self.programs / "streamapp-analytics")
        return [program, *arguments, "--master", self.cluster.address, "--memory", "1g", *self._options()]

    def submission(self, *arguments: str) -> list[str]:
        """The same by `spark-submit`, which alone says where and how."""
        submit = [str(spark_home(self.programs) / "bin" / "spark-submit"), "--master", self.cluster.address]
        program = spark_home(self.programs).parent / "streamapp" / "analytics" / "__main__.py"
        return [*submit, "--driver-memory", "1g", *self._options(), str(program), *arguments]

    def _options(self) -> list[str]:
        conf = {
            "spark.executor.memory": "768m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.extraJavaOptions": QUICK_JVM,
            "spark.driver.extraJavaOptions": QUICK_JVM,
            **QUICK,
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": (self.place / "events").as_uri(),
        }
        return [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]

    def run(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        """Run it to its end."""
        env = environment(self.programs)
        return subprocess.run(command, env=env, cwd=self.place, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("installed"))


@pytest.fixture
def installed(programs: Path, tmp_path: Path) -> Iterator[Installed]:
    (tmp_path / "events").mkdir()
    with cluster(programs, tmp_path) as found:
        yield Installed(programs, tmp_path, found)


def differing(one: Path, other: Path, tables: tuple[str, ...]) -> list[str]:
    return [table for table in tables if rows(one, table) != rows(other, table)]


def test_two_workers_without_python_give_the_tables_of_one_machine(installed: Installed, whole: Whole) -> None:
    root = installed.place / "tables"
    ingest = installed.command("ingest", str(whole.record), "--root", str(root))
    for command in (ingest, installed.submission("build", "--root", str(root))):
        done = installed.run(command)
        assert done.returncode == 0, done.stderr[-3000:]
    assert differing(root, whole.root, (*SILVER, *GOLD)) == []
    assert all(rows(root, table) for table in ("s_learner_stint", *GOLD))
    done_by = tasks_by_host(installed.place / "events")
    assert set(done_by) == set(WORKERS)
    assert min(done_by.values()) > 20


def test_a_worker_that_dies_in_the_middle_of_a_build_changes_no_row(installed: Installed, whole: Whole) -> None:
    root = installed.place / "tables"
    shutil.copytree(whole.root / "bronze", root / "bronze")
    log = installed.place / "build.log"
    with log.open("wb") as out:
        command = installed.command("build", "--root", str(root))
        build = subprocess.Popen(
            command, env=environment(installed.programs), cwd=installed.place, stderr=out, start_new_session=True
        )
    try:
        while KILLED_AFTER not in log.read_text():
            assert build.poll() is None, log.read_text()[-3000:]
            time.sleep(0.05)
        assert [layer(root).current().number for layer in (silver, gold)] == [0, 0]
        installed.cluster.kill(WORKERS[1])
        code = build.wait(1200)
    finally:
        end(build)
    assert code == 0, log.read_text()[-3000:]
    assert differing(root, whole.root, (*SILVER, *GOLD)) == []
    done_by = tasks_by_host(installed.place / "events")
    assert 0 < done_by[WORKERS[1]] < done_by[WORKERS[0]]


def test_what_a_cluster_lacks_is_told_within_a_bounded_time(installed: Installed, whole: Whole) -> None:
    """Spark would wait for a worker for ever, and end well with the rows of the workers missing."""
    of_each_its_own = "/proc/self/cwd/tables"
    done = installed.run(installed.command("ingest", str(whole.record), "--root", of_each_its_own))
    assert done.returncode == 1
    told = done.stderr[done.stderr.index("error: ") :].splitlines()
    assert told[0] == f"error: {of_each_its_own}"
    assert told[1].endswith("are here: they see another folder")
    assert list((installed.place / "tables").rglob("*")) == []
    for host in WORKERS:
        installed.cluster.kill(host)
    more = ("--root", str(installed.place / "tables"), "--wait", "5")
    done = installed.run(installed.command("ingest", str(whole.record), *more))
    assert done.returncode == 1
    assert f"error: workers of {installed.cluster.address}\ncause: none has done anything for 5 s\n" in done.stderr
