"""However a record comes in, and whatever ends a run, the tables are the same."""

import gzip
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lab.settings import REPOSITORY
from streamapp.analytics.bronze.ingest import Ingest, Ingested, bronze
from streamapp.analytics.build import Build, gold, silver
from streamapp.analytics.expire import Keep, remove_old
from streamapp.analytics.progress import Stages
from streamapp.analytics.synthetic.fleet import Fleet
from streamapp.analytics.synthetic.generate import write_record
from streamapp.analytics.tables.bronze_schemas import QUARANTINE, TABLES
from streamapp.analytics.tables.derived_schemas import GOLD, SILVER
from tests.analytics.conftest import NOW, Whole
from tests.analytics.support.killed import AMID, environment
from tests.analytics.support.reading import rows

pytestmark = [pytest.mark.analytics, pytest.mark.timeout(1800)]
ALL = (*TABLES.values(), *SILVER, *GOLD)


def take(spark: SparkSession, root: Path, files: Iterable[Path]) -> Ingested:
    """Ingest and build."""
    done = Ingest(spark, bronze(root), Stages(), NOW).run(list(files))
    Build(spark, root, Stages()).run()
    return done


def assert_same(one: Path, other: Path) -> None:
    for table in ALL:
        assert rows(one, table) == rows(other, table), table


def test_late_and_doubled_files_and_lines_in_several_runs_give_the_same_tables(
    spark: SparkSession, whole: Whole, tmp_path: Path
) -> None:
    root, files = tmp_path / "tables", whole.files
    take(spark, root, files[:10])
    take(spark, root, files[12:20])
    copy = tmp_path / "under-another-name.jsonl.gz"
    shutil.copy(files[3], copy)
    lines = b"".join(gzip.decompress(files[n].read_bytes()) for n in (10, 11, 4))
    again = tmp_path / "lines-again.jsonl.gz"
    again.write_bytes(gzip.compress(lines + lines))
    done = take(spark, root, [*files[8:12], copy, again, *files[20:]])
    assert done.known_files == 3
    assert done.doubled == lines.count(b"\n") * 2
    assert_same(root, whole.root)
    versions = [layer(root).current().number for layer in (bronze, silver, gold)]
    assert take(spark, root, files).files == 0
    assert [layer(root).current().number for layer in (bronze, silver, gold)] == versions


def test_days_that_bronze_has_removed_stay_and_are_gone_on_from(
    spark: SparkSession, whole: Whole, tmp_path: Path
) -> None:
    root, late = tmp_path / "tables", tmp_path / "late.jsonl.gz"
    shutil.copytree(whole.root, root)
    last = max(bronze(root).current().days(QUARANTINE))
    assert remove_old(root, Keep(bronze=1)).days == (1, 0, 0)
    lines = gzip.decompress(whole.files[0].read_bytes())
    late.write_bytes(gzip.compress(lines + b"\n"))
    done = Ingest(spark, bronze(root), Stages(), NOW).run([late])
    assert (done.kept, done.too_old) == (0, lines.count(b"\n"))
    assert Build(spark, root, Stages(), full=True).run().days == (last,)
    for table in (*SILVER, *GOLD):
        assert rows(root, table) == rows(whole.root, table), table


STAGES = (
    "bronze: read lines",
    "bronze: judge",
    "bronze: write tables",
    "bronze: commit",
    "silver: configuration",
    "silver: leaders",
    "silver: samples",
    "silver: states",
    "silver: learners and holds",
    "silver: steps",
    "silver: commit",
    "gold: figures by day",
    "gold: commit",
)


def run_until_killed(record: Path, root: Path, stage: str, *more: str, **environment: str) -> None:
    """Start a run that dies; see that it did."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.analytics.support.killed", str(record), str(root), stage, *more],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": "operator:.", **environment},
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert ran.returncode == -signal.SIGKILL, (stage, ran.stderr[-2000:])


def test_a_run_killed_at_any_stage_and_started_again_gives_the_same_tables(spark: SparkSession, tmp_path: Path) -> None:
    record, root = tmp_path / "record", tmp_path / "killed"
    list(write_record(Fleet(apps=3, tasks=4, file_seconds=43_200), record))
    stages = Stages()
    Ingest(spark, bronze(tmp_path / "whole"), stages, NOW).run([record])
    Build(spark, tmp_path / "whole", stages).run()
    assert (*stages.took,) == ("bronze: find files", *STAGES)
    run_until_killed(record, root, "bronze: write tables", AMID)
    assert list(root.glob("*/*/run=*/_temporary/**/*.parquet")) != []
    for stage in STAGES:
        run_until_killed(record, root, stage, **environment(spark))
    take(spark, root, [record])
    assert_same(root, tmp_path / "whole")
    assert [layer(root).current().number for layer in (bronze, silver, gold)] == [1, 1, 1]
