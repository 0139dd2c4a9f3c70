"""Bronze: files of the record become typed tables, each file and each line once.

Called by the command line. A run that fails, or is killed, leaves no row that counts; the same files again give the
same tables, in whatever portions they come.
"""

import gzip
import hashlib
import os
import re
import shutil
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from streamapp.analytics.bronze_schemas import QUARANTINE, SCHEMAS, TABLES
from streamapp.analytics.failures import AnalyticsError
from streamapp.analytics.parsing import BAD
from streamapp.analytics.progress import Stages
from streamapp.analytics.session import first_line
from streamapp.analytics.staging import Staging
from streamapp.analytics.store import Input, Store, Version, merged, new_run

SUFFIX: Final = ".jsonl.gz"
HIDDEN: Final = (".", "_")
"""Names that begin so are of drafts and of other programs."""
MOST_BAD: Final = 0.01
"""Share of bad lines above which a run fails: the recorder is broken, or not this one."""
MERGE_AT: Final = 24
"""Runs of a day from which on they are written together with what is new."""
WRITERS: Final = 4
_PATTERN: Final = r"([][{}*?\\])"
"""Characters of a path that Spark would take for a pattern."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What a run took in."""

    files: int
    known_files: int
    """Read before, under this or another name."""
    rows: int
    """Lines read."""
    kept: int
    bad: int
    """In the quarantine."""
    doubled: int
    """Lines whose recorder and number are there already."""
    version: Version
    too_old: int = 0
    """Lines of days that bronze has removed."""


def bronze(root: Path) -> Store:
    """The store of bronze."""
    return Store(root, "bronze", SCHEMAS)


def record_files(places: Iterable[Path]) -> list[Path]:
    """Finished files of the record in some folders, however deep, or named one by one; in order of their names.

    Raises:
        AnalyticsError: a place does not exist, or there is no such file in any.
    """
    found: set[Path] = set()
    places = list(places)
    for place in places:
        if not place.exists():
            raise AnalyticsError(str(place), "there is no such file or folder", "name the folder of the flight record")
        if place.is_file() and place.name.startswith(HIDDEN):
            raise AnalyticsError(str(place), "Spark passes over names that begin with . or _", "give it another name")
        inside = (path for path in place.rglob(f"*{SUFFIX}") if not path.name.startswith(HIDDEN))
        found |= set(inside) if place.is_dir() else {place}
    if not found:
        where = ", ".join(map(str, places))
        raise AnalyticsError(where, f"no file *{SUFFIX} is in it", "name the folder that the operator's recorder fills")
    return sorted(found)


@dataclass(frozen=True, slots=True)
class Ingest:
    """One run of the ingest."""

    spark: SparkSession
    store: Store
    stages: Stages
    now: datetime
    """Lines from after it are bad."""
    most_bad: float = MOST_BAD

    def run(self, places: Sequence[Path]) -> Ingested:
        """Take in the files that were not read before.

        Raises:
            AnalyticsError: nothing to read, a damaged file, too many bad lines, another run at the same time.
        """
        with self.stages.stage("bronze: find files"):
            before = self.store.current()
            fresh, known = self._fresh(record_files(places), before)
        if not fresh:
            return Ingested(0, known, 0, 0, 0, 0, before)
        names = {f"file://{_as_spark_has_it(path)}": digest for digest, path in fresh.items()}
        inputs = {digest: Input(str(path), 0, {}) for digest, path in fresh.items()}
        done = self._take(lambda staging: self._stage(fresh, staging), before, inputs, lambda uri: names[uri])
        return replace(done, files=len(fresh), known_files=known)

    def take(self, lines: DataFrame, name: str) -> Ingested:
        """Take in lines from elsewhere: `value`, `file` (begins with `kafka:`), `position`, all of them one input.

        Raises:
            AnalyticsError: too many bad lines, another run at the same time.
        """
        key = f"{name} {new_run()}"
        inputs = {key: Input(name, 0, {})}
        return self._take(lambda staging: staging.write(lines, self.now), self.store.current(), inputs, lambda _: key)

    def _take(
        self,
        stage: Callable[[Staging], None],
        before: Version,
        inputs: dict[str, Input],
        digest_of: Callable[[str], str],
    ) -> Ingested:
        """Stage, judge, write and commit; whatever happens before the last of these changes nothing."""
        run = new_run()
        staging = Staging(self.spark, self.store.folder / "staging" / f"run={run}")
        try:
            with self.stages.stage("bronze: read lines"):
                stage(staging)
            with self.stages.stage("bronze: judge"):
                counts = staging.counts(before.kept_from)
                rows = _fill_in(inputs, counts, digest_of)
                bad = self._judge(staging, counts, rows)
                too_old = sum(row["old"] for row in counts)
                repeated = {row["recorder"] for row in counts if row["good"] != row["different"]}
                suspects = suspicious(list(inputs.values()), list(before.inputs.values()), repeated)
            with self.stages.stage("bronze: write tables"):
                there = {part for row in counts for part, lines in row["kinds"].items() if lines}
                after, kept = self._tables(staging, before, run, suspects, there)
        finally:
            shutil.rmtree(staging.folder, ignore_errors=True)
        with self.stages.stage("bronze: commit"):
            version = self.store.commit(replace(after, inputs={**before.inputs, **inputs}))
        return Ingested(0, 0, rows, kept, bad, rows - bad - too_old - kept, version, too_old)

    def _fresh(self, files: list[Path], before: Version) -> tuple[dict[str, Path], int]:
        """Files by digest that were not read before; one without a byte is a copy that has only begun."""
        found: dict[str, Path] = {}
        files = [path for path in files if path.stat().st_size]
        for path in files:
            with path.open("rb") as file:
                found.setdefault(hashlib.file_digest(file, "sha256").hexdigest(), path)
        fresh = {digest: path for digest, path in found.items() if digest not in before.inputs}
        return fresh, len(files) - len(fresh)

    def _stage(self, fresh: Mapping[str, Path], staging: Staging) -> None:
        """Read every line of the files once."""
        paths = [re.sub(_PATTERN, r"\\\1", _as_spark_has_it(path)) for path in fresh.values()]
        lines = self.spark.read.text(paths).select(
            "value",
            F.col("_metadata.file_path").alias("file"),
            F.monotonically_increasing_id().alias("position"),
        )
        try:
            staging.write(lines, self.now)
        except PySparkException as error:
            damaged = next((path for path in fresh.values() if not _is_whole(path)), None)
            if damaged is None:
                raise
            why = f"it is damaged: {first_line(error)}"
            raise AnalyticsError(str(damaged), why, "move it away, and look at the disk it came from") from error

    def _judge(self, staging: Staging, counts: Sequence[Row], rows: int) -> int:
        """The number of bad lines.

        Raises:
            AnalyticsError: they are too many.
        """
        bad = sum(row["kinds"][BAD] for row in counts)
        if bad > self.most_bad * rows:
            lines = staging.bad()
            worst = lines.groupBy("rule", "file").agg(F.count(F.lit(1)).alias("n"), F.min("line").alias("line"))
            most = worst.orderBy(F.desc("n"), "rule", "file").collect()[0]
            why = (
                f"{bad} of {rows} lines are bad ({bad / rows:.1%}, allowed {self.most_bad:.1%}); "
                f"most break the rule {most['rule']}: {most['n']} in this file, first in line {most['line']}"
            )
            step = "nothing was taken in; look at that line, and at the version of the operator that wrote it"
            raise AnalyticsError(_plain_uri(most["file"]).removeprefix("file://"), why, step)
        return int(bad)

    def _tables(
        self, staging: Staging, before: Version, run: str, suspects: set[str], there: set[str]
    ) -> tuple[Version, int]:
        """Write the tables of the kinds that are there, a few at a time; also give how many rows are new."""

        def one(kind: str) -> tuple[str, dict[str, tuple[str, ...]], dict[str, int], int]:
            table = TABLES[kind]
            frame = staging.good(kind).select(SCHEMAS[table].names)
            frame = frame.withColumn("dt", F.date_format("ts", "yyyy-MM-dd")).where(F.col("dt") >= before.kept_from)
            if suspects:
                frame = self._once(frame, before, table, suspects)
            return self._append(frame, before, table, run)

        def quarantine() -> tuple[str, dict[str, tuple[str, ...]], dict[str, int], int]:
            frame = staging.bad().withColumn("dt", F.lit(f"{self.now:%Y-%m-%d}"))
            name, days, rows, _ = self._append(frame, before, QUARANTINE, run)
            return name, days, rows, 0

        jobs: list[Callable[[], tuple[str, dict[str, tuple[str, ...]], dict[str, int], int]]]
        jobs = [partial(one, kind) for kind in TABLES if kind in there]
        jobs += [quarantine] if BAD in there else []
        kept, after = 0, before
        for table in {*SCHEMAS} - {*before.tables}:
            after = after.with_table(table, {}, {})
        with ThreadPoolExecutor(WRITERS) as pool:
            for table, days, rows, new in pool.map(lambda job: job(), jobs):
                after = after.with_table(table, days, rows)
                kept += new
        return after, kept

    def _once(self, frame: DataFrame, before: Version, table: str, suspects: Collection[str]) -> DataFrame:
        """Without lines that are there already or come twice; only of recorders that can have such."""
        suspect = F.col("recorder").isin(*suspects)
        there = self.store.read(self.spark, before, table).where(suspect).select("recorder", "seq")
        single = frame.where(suspect).dropDuplicates(["recorder", "seq"]).join(there, ["recorder", "seq"], "left_anti")
        return frame.where(~suspect).unionByName(single)

    def _append(
        self, frame: DataFrame, before: Version, table: str, run: str
    ) -> tuple[str, dict[str, tuple[str, ...]], dict[str, int], int]:
        """Write; give the table, its days, the rows of the new run, and how many of them are new."""
        live = before.tables.get(table, {})
        full = {day for day, runs in live.items() if len(runs) >= MERGE_AT}
        if full:
            frame = frame.unionByName(self.store.read(self.spark, before, table, full))
        days, rows = self.store.write(frame.sortWithinPartitions(*_order(frame)), table, run)
        gone = {day for day in full if day in days}
        moved = sum(before.rows[table][f"{old}/{day}"] for day in gone for old in live[day])
        stays = [(day, runs) for day, runs in live.items() if day not in gone]
        return table, merged(stays, days.items()), rows, sum(rows.values()) - moved


def _order(frame: DataFrame) -> list[Column]:
    """Rows of one copy together, in their time: they compress best so.

    Names are told apart by hashes: Spark sorts by the first eight bytes as long as it can, and names begin alike.
    """
    if "task" in frame.columns:
        app = F.shiftleft(F.hash("cluster", "namespace", "app", "uid").cast("long"), 32)
        task = F.hash("task").cast("long").bitwiseAND(F.lit(0xFFFFFFFF))
        return [app.bitwiseOR(task), F.col("ts"), F.col("seq")]
    return [F.hash("app"), F.col("ts"), F.col("seq")] if "app" in frame.columns else [F.col("file"), F.col("line")]


def _fill_in(inputs: dict[str, Input], counts: Iterable[Row], digest_of: Callable[[str], str]) -> int:
    """Put what each input holds into it; give the number of all lines."""
    for row in counts:
        digest = digest_of(_plain_uri(row["file"]))
        one, recorder = inputs[digest], row["recorder"]
        spans = dict(one.recorders)
        if recorder and row["low"] is not None:
            low, high = spans.get(recorder, (row["low"], row["high"]))
            spans[recorder] = (min(row["low"], low), max(row["high"], high))
        inputs[digest] = Input(one.name, one.rows + sum(row["kinds"].values()), spans)
    return sum(one.rows for one in inputs.values())


def suspicious(fresh: Sequence[Input], known: Sequence[Input], repeated: Iterable[str]) -> set[str]:
    """Recorders whose numbers may be there twice: twice in one file, or in files whose numbers overlap."""
    found = set(repeated)
    spans: dict[str, list[tuple[int, int, bool]]] = {}
    for new, inputs in ((True, fresh), (False, known)):
        for one in inputs:
            for recorder, (low, high) in one.recorders.items():
                spans.setdefault(recorder, []).append((low, high, new))
    for recorder, of_one in spans.items():
        reach, reached_new = -1, False
        for low, high, new in sorted(of_one):
            if low <= reach and (new or reached_new):
                found.add(recorder)
            if high > reach:
                reach, reached_new = high, new
    return found


def _plain_uri(told: str) -> str:
    """As `file:///x`, where Spark writes `file:/x` or `file:///x`, and any character as itself: it encodes some."""
    return "file:///" + unquote(told.split(":", 1)[1]).lstrip("/") if told.startswith("file:") else told


def _as_spark_has_it(path: Path) -> str:
    """Absolute and without dots; links stay links, or the name would not be known again."""
    return os.path.abspath(path)  # noqa: PTH100 - Path's own way follows links


def _is_whole(path: Path) -> bool:
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error):
        return False
    return True
