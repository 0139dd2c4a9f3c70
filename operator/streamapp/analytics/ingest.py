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
from functools import reduce
from operator import add
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, MapType, StringType, StructField, StructType

from streamapp.analytics.bronze_schemas import (
    EXTRA,
    LINE,
    OWN,
    QUARANTINE,
    SCHEMAS,
    TABLES,
    camel,
    columns,
    in_line,
)
from streamapp.analytics.failures import AnalyticsError
from streamapp.analytics.progress import Stages
from streamapp.analytics.quality import CORRUPT, rule
from streamapp.analytics.session import first_line
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
BAD: Final = "bad"
KAFKA: Final = "kafka:"
"""What the names of partitions begin with, where files have their own."""


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


def _shape(names: Iterable[str]) -> StructType:
    known = columns()
    shape = [StructField(camel(name), in_line(known[name])) for name in names]
    return StructType([*shape, StructField(CORRUPT, StringType())])


def parsed(lines: DataFrame, now: datetime) -> DataFrame:
    """Lines (`value`) as columns of all kinds, with `kind`, `rule`, `raw` of bad ones, and `extra`.

    Nearly all lines are samples: each is read as one first, and only those that are none once more, with all columns.
    """
    known, options = columns(), {"columnNameOfCorruptRecord": CORRUPT, "allowNonNumericNumbers": "false"}
    of_sample = set(_own("sample"))
    first = lines.withColumn("first", F.from_json("value", _shape(sorted(of_sample)), options))
    is_sample = F.coalesce(F.col("first.kind") == "sample", F.lit(False))
    whole = F.when(~is_sample, F.from_json("value", _shape(known), options))
    read = first.withColumn("whole", whole).withColumn("is_sample", is_sample)

    def column(name: str, *, shared: bool) -> Column:
        other = F.col(f"whole.{name}")
        return F.when(F.col("is_sample"), F.col(f"first.{name}")).otherwise(other) if shared else other

    fields = [column(camel(name), shared=name in of_sample).cast(kind).alias(name) for name, kind in known.items()]
    flat = read.select(*lines.columns, *fields, column(CORRUPT, shared=True).alias(CORRUPT))
    judged = flat.withColumn("rule", rule(F.lit(now)))
    return judged.select(
        *[name for name in judged.columns if name not in {CORRUPT, "value"}],
        F.when(F.col("rule").isNotNull(), F.col("value")).alias("raw"),
        F.when(F.col("rule").isNull() & _has_more(), _extra()).alias(EXTRA),
    )


def _own(kind: str) -> list[str]:
    return [field.name for field in (*LINE, *OWN[kind])] + ["kind"]


def _has_more() -> Column:
    """Whether a line has more fields than those of its kind that are filled; cheaper than to compare the names."""
    filled = F.lit(0)
    for kind in reversed(OWN):
        count = reduce(add, [F.col(name).isNotNull().cast("int") for name in _own(kind)])
        filled = F.when(F.col("kind") == kind, count).otherwise(filled)
    return F.size(F.json_object_keys("value")) != filled


def _extra() -> Column:
    """The fields that are not of the line's kind; null where there is none."""
    names = F.lit(None).cast("array<string>")
    for kind in reversed(OWN):
        names = F.when(F.col("kind") == kind, F.array(*[F.lit(camel(name)) for name in _own(kind)])).otherwise(names)
    every = F.from_json("value", "map<string,string>")
    found = F.map_filter(every, lambda name, _: ~F.array_contains(names, name))
    return F.when(F.size(found) > 0, found)


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
        write = lambda staging: self._write(lines, staging)  # noqa: E731 - it is a function for a moment
        return self._take(write, self.store.current(), {key: Input(name, 0, {})}, lambda _: key)

    def _take(
        self,
        stage: Callable[[Path], None],
        before: Version,
        inputs: dict[str, Input],
        digest_of: Callable[[str], str],
    ) -> Ingested:
        """Stage, judge, write and commit; whatever happens before the last of these changes nothing."""
        run = new_run()
        staging = self.store.folder / "staging" / f"run={run}"
        try:
            with self.stages.stage("bronze: read lines"):
                stage(staging)
            with self.stages.stage("bronze: judge"):
                staged = self.spark.read.schema(_staging_schema()).parquet(str(staging))
                rows = self._count(staged, inputs, digest_of)
                bad = self._judge(staged, rows)
                too_old = _too_old(staged, before)
                suspects = suspicious(list(inputs.values()), list(before.inputs.values()), self._repeats(staged))
            with self.stages.stage("bronze: write tables"):
                after, kept = self._tables(staged, before, run, suspects)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
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

    def _stage(self, fresh: Mapping[str, Path], staging: Path) -> None:
        """Read every line once: one file set for each kind, one for what is bad."""
        paths = [re.sub(_PATTERN, r"\\\1", _as_spark_has_it(path)) for path in fresh.values()]
        lines = self.spark.read.text(paths).select(
            "value",
            F.col("_metadata.file_path").alias("file"),
            F.monotonically_increasing_id().alias("position"),
        )
        try:
            self._write(lines, staging)
        except PySparkException as error:
            damaged = next((path for path in fresh.values() if not _is_whole(path)), None)
            if damaged is None:
                raise
            why = f"it is damaged: {first_line(error)}"
            raise AnalyticsError(str(damaged), why, "move it away, and look at the disk it came from") from error

    def _write(self, lines: DataFrame, staging: Path) -> None:
        frame = parsed(lines.where(F.length("value") > 0), self.now)
        part = F.when(F.col("rule").isNotNull(), BAD).otherwise(F.col("kind"))
        frame.withColumn("part", part).drop("kind").write.option("compression", "lz4").option(
            "maxRecordsPerFile", 0
        ).partitionBy("part").parquet(str(staging))

    def _count(self, staged: DataFrame, inputs: dict[str, Input], digest_of: Callable[[str], str]) -> int:
        """Fill in what each input holds; give the number of all lines."""
        counts = staged.groupBy("file", "recorder").agg(F.count(F.lit(1)), F.min("seq"), F.max("seq")).collect()
        for file, recorder, count, low, high in counts:
            digest = digest_of(_plain_uri(file))
            one = inputs[digest]
            spans = dict(one.recorders)
            if recorder and low is not None:
                known = spans.get(recorder, (low, high))
                spans[recorder] = (min(low, known[0]), max(high, known[1]))
            inputs[digest] = Input(one.name, one.rows + count, spans)
        return sum(one.rows for one in inputs.values())

    def _judge(self, staged: DataFrame, rows: int) -> int:
        """The number of bad lines.

        Raises:
            AnalyticsError: they are too many.
        """
        broken = staged.where(F.col("part") == BAD)
        found = broken.groupBy("rule", "file").count().orderBy(F.desc("count"), "rule", "file").collect()
        bad = sum(int(row["count"]) for row in found)
        if bad > self.most_bad * rows:
            worst = found[0]
            example = _with_line_numbers(staged).where(F.col("file") == worst["file"]).orderBy("line").first()
            at = f", first in line {example['line']}" if example is not None else ""
            why = (
                f"{bad} of {rows} lines are bad ({bad / rows:.1%}, allowed {self.most_bad:.1%}); "
                f"most break the rule {worst['rule']}: {worst['count']} in this file{at}"
            )
            step = "nothing was taken in; look at that line, and at the version of the operator that wrote it"
            raise AnalyticsError(_plain_uri(worst["file"]).removeprefix("file://"), why, step)
        return bad

    def _repeats(self, staged: DataFrame) -> set[str]:
        """Recorders of which a file holds one number twice: exact, by bitmaps of 4 kB for 32,768 numbers."""
        good = staged.where(F.col("part") != BAD)
        # All partitions of a topic are one input.
        good = good.withColumn("file", F.when(_of_kafka(), KAFKA).otherwise(F.col("file")))
        bucket = F.bitmap_bucket_number("seq")
        bits = F.bitmap_count(F.bitmap_construct_agg(F.bitmap_bit_position("seq")))
        counts = good.groupBy("file", "recorder", bucket.alias("bucket")).agg(
            F.count(F.lit(1)).alias("n"), bits.alias("d")
        )
        return {row[0] for row in counts.where("n <> d").select("recorder").distinct().collect()}

    def _tables(self, staged: DataFrame, before: Version, run: str, suspects: set[str]) -> tuple[Version, int]:
        """Write all tables, a few at a time."""

        def one(kind: str) -> tuple[str, dict[str, tuple[str, ...]], dict[str, int], int]:
            table = TABLES[kind]
            frame = staged.where(F.col("part") == kind).select(SCHEMAS[table].names)
            frame = frame.withColumn("dt", F.date_format("ts", "yyyy-MM-dd")).where(F.col("dt") >= before.kept_from)
            if suspects:
                frame = self._once(frame, before, table, suspects)
            return self._append(frame, before, table, run)

        def quarantine() -> tuple[str, dict[str, tuple[str, ...]], dict[str, int], int]:
            frame = _with_line_numbers(staged).withColumn("dt", F.lit(f"{self.now:%Y-%m-%d}"))
            name, days, rows, _ = self._append(frame, before, QUARANTINE, run)
            return name, days, rows, 0

        jobs: list[Callable[[], tuple[str, dict[str, tuple[str, ...]], dict[str, int], int]]]
        jobs = [lambda kind=kind: one(kind) for kind in TABLES] + [quarantine]
        kept, after = 0, before
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
        order = [name for name in ("dt", "cluster", "namespace", "app", "task", "ts", "seq") if name in frame.columns]
        days, rows = self.store.write(frame.sortWithinPartitions(*order), table, run)
        gone = {day for day in full if day in days}
        moved = sum(before.rows[table][f"{old}/{day}"] for day in gone for old in live[day])
        stays = [(day, runs) for day, runs in live.items() if day not in gone]
        return table, merged(stays, days.items()), rows, sum(rows.values()) - moved


def _staging_schema() -> StructType:
    known = [StructField(name, kind) for name, kind in columns().items() if name != "kind"]
    texts = [StructField(name, StringType()) for name in ("file", "rule", "raw")]
    more = (StructField("position", LongType()), StructField(EXTRA, MapType(StringType(), StringType())))
    return StructType([*texts, *known, *more, StructField("part", StringType())])


def _with_line_numbers(staged: DataFrame) -> DataFrame:
    """The bad lines with their number in their file, or their offset in their partition.

    A file is read in one piece, so positions rise by one.
    """
    first = staged.groupBy("file").agg(F.min("position").alias("first"))
    bad = staged.where(F.col("part") == BAD).join(F.broadcast(first), "file")
    return bad.select("raw", "rule", "file", _number().alias("line"))


def _too_old(staged: DataFrame, before: Version) -> int:
    """Good lines of days that were removed: taken in, they would make days of little that look whole."""
    if not before.kept_from:
        return 0
    return staged.where((F.col("part") != BAD) & (F.date_format("ts", "yyyy-MM-dd") < before.kept_from)).count()


def _of_kafka() -> Column:
    return F.col("file").startswith(KAFKA)


def _number() -> Column:
    return F.when(_of_kafka(), F.col("position")).otherwise(F.col("position") - F.col("first") + 1)


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
