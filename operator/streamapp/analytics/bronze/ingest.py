"""Bronze: files of the record become typed tables, each file and each line once.

Called by the command line. A run that fails, or is killed, leaves no row that counts; the same files again give the
same tables, in whatever portions they come.
"""

import hashlib
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from streamapp.analytics.bronze.parsing import BAD
from streamapp.analytics.bronze.quality import CONTRACT, NEWER
from streamapp.analytics.bronze.salvage import is_whole, salvage
from streamapp.analytics.bronze.staging import Staging, order
from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.progress import Stages
from streamapp.analytics.spark.session import first_line
from streamapp.analytics.tables.bronze_schemas import FIRST, QUARANTINE, SAMPLE, SCHEMAS, TABLES
from streamapp.analytics.tables.store import Days, Spans, Store, Version, merged, new_run

SUFFIX: Final = ".jsonl.gz"
HIDDEN: Final = (".", "_")
"""Names that begin so are of drafts and of other programs."""
MOST_BAD: Final = 0.01
"""Share of bad lines above which a run fails: the recorder is broken, or not this one."""
MERGE_AT: Final = 24
"""Runs of a day from which on they are written together with what is new."""
WRITERS: Final = 4
PIECE: Final = 4 << 20
"""Bytes of packed record that are sorted together: some hundred megabytes of rows."""
_ROWS: Final = (1 << 33) - 1
"""Spark's numbers of rows have the partition's above these bits."""
COPY: Final = ("task", "ordinal", "process_id", "role", "ts")
"""What tells rows of one line of samples apart."""
_Written = tuple[str, dict[str, tuple[str, ...]], dict[str, int], int]
"""A table, its runs by day, the rows by `run/day` of the new run, and how many are new."""
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
    damaged: tuple[str, ...] = ()
    """Files that could be read in part only, each with what was taken in of it."""


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
            AnalyticsError: nothing to read, too many bad lines, another run at the same time.
        """
        with self.stages.stage("bronze: find files"):
            before = self.store.current()
            fresh, known = self._fresh(record_files(places), before)
        if not fresh:
            return Ingested(0, known, 0, 0, 0, 0, before)
        inputs = {digest: str(path) for digest, path in fresh.items()}
        damaged: dict[str, str] = {}
        done = self._take(lambda staging: damaged.update(self._stage(fresh, staging)), before, inputs, damaged)
        return replace(done, files=len(fresh), known_files=known, damaged=tuple(damaged.values()))

    def take(self, lines: DataFrame, before: Version | None = None) -> Ingested:
        """Take in lines from elsewhere: `value`, `file` (begins with `kafka:`), `line`.

        Args:
            lines: Each with its place.
            before: The version that they are added to; the newest unless given.

        Raises:
            AnalyticsError: too many bad lines, another run at the same time.
        """
        return self._take(lambda staging: staging.write(lines, self.now), before or self.store.current(), {}, {})

    def again(self) -> Ingested | None:
        """Judge the lines in quarantine again, once for each contract; None if this program judged them already.

        A field, a word or a kind that a newer operator writes is bad for an older program, and good after its upgrade.

        Raises:
            AnalyticsError: another run at the same time.
        """
        before = self.store.current()
        if before.contract == CONTRACT or not before.tables.get(QUARANTINE):
            return None
        lines = self.store.read(self.spark, before, QUARANTINE)
        lines = lines.select(F.col("raw").alias("value"), "file", "line")
        # Their numbers are known, so that those which are there by now under another file do not come in twice.
        without = replace(before.with_table(QUARANTINE, {}, {}), lines=before.lines - before.count(QUARANTINE))
        return replace(self, most_bad=1.0).take(lines, without)

    def _take(
        self,
        stage: Callable[[Staging], None],
        before: Version,
        inputs: Mapping[str, str],
        damaged: Mapping[str, str],
    ) -> Ingested:
        """Stage, judge, write and commit; whatever happens before the last of these changes nothing.

        `damaged` is filled by `stage`.
        """
        run = new_run()
        staging = Staging(self.spark, self.store.folder / "staging" / f"run={run}")
        try:
            with self.stages.stage("bronze: read lines"):
                stage(staging)
            with self.stages.stage("bronze: judge"):
                counts = staging.counts(before.kept_from)
                numbered = [row for row in counts if row["recorder"] and row["low"] is not None]
                holed = [row for row in numbered if row["high"] - row["low"] >= row["numbers"]]
                solid = [row for row in numbered if row["high"] - row["low"] < row["numbers"]]
                found = _told(counts, [*solid, *(staging.whole(holed) if holed else ())])
                self._judge(staging, found)
                suspects = suspicious(found.spans, before.recorders, found.repeated)
            with self.stages.stage("bronze: write tables"):
                after, kept = self._tables(staging, before, run, suspects, found)
        finally:
            shutil.rmtree(staging.folder, ignore_errors=True)
        with self.stages.stage("bronze: commit"):
            after = replace(
                after,
                inputs={**before.inputs, **inputs},
                damaged={**before.damaged, **damaged},
                recorders={**before.recorders, **_joined(before.recorders, found.spans)},
                lines=before.lines + found.rows,
                contract=before.contract if before.tables.get(QUARANTINE) else CONTRACT,
            )
            version = self.store.commit(after)
        doubled = found.rows - found.bad - found.too_old - kept
        return Ingested(0, 0, found.rows, kept, found.bad, doubled, version, found.too_old)

    def _fresh(self, files: list[Path], before: Version) -> tuple[dict[str, Path], int]:
        """Files by digest that were not read before; one without a byte is a copy that has only begun."""
        found: dict[str, Path] = {}
        files = [path for path in files if path.stat().st_size]
        for path in files:
            with path.open("rb") as file:
                found.setdefault(hashlib.file_digest(file, "sha256").hexdigest(), path)
        fresh = {digest: path for digest, path in found.items() if digest not in before.inputs}
        return fresh, len(files) - len(fresh)

    def _stage(self, fresh: Mapping[str, Path], staging: Staging) -> dict[str, str]:
        """Read every line of the files once; give the damaged files by digest, each with what is wrong.

        Of a damaged file the whole lines before the damage are read: one torn file must not stop all others.
        """
        try:
            self._read(list(fresh.values()), staging)
        except (PySparkException, Py4JJavaError) as error:
            torn = {digest: path for digest, path in fresh.items() if not is_whole(path)}
            if not torn:
                raise
            shutil.rmtree(staging.folder)
            why = first_line(error) if len(torn) == 1 else "it cannot be read to its end"
            return self._stage_rest(fresh, torn, why, staging)
        return {}

    def _stage_rest(
        self, fresh: Mapping[str, Path], torn: Mapping[str, Path], why: str, staging: Staging
    ) -> dict[str, str]:
        place = staging.folder / "salvaged"
        place.mkdir(parents=True)
        readable, told = [path for digest, path in fresh.items() if digest not in torn], {}
        for digest, path in torn.items():
            whole = place / f"{digest[:12]}-{path.name}"
            lines = salvage(path, whole)
            told[digest] = f"{path}: {lines} whole lines were read before the damage: {why}"
            readable.append(whole)
        self._read(readable, staging)
        return told

    def _read(self, files: Sequence[Path], staging: Staging) -> None:
        paths = [re.sub(_PATTERN, r"\\\1", _as_spark_has_it(path)) for path in files]
        # Where each file is a partition, the number of a row there is that of its line.
        number = F.monotonically_increasing_id().bitwiseAND(F.lit(_ROWS)) + 1
        lines = self.spark.read.text(paths).select(
            "value", F.col("_metadata.file_path").alias("file"), number.alias("line")
        )
        pieces = sum(path.stat().st_size for path in files) // PIECE + 2 * self.spark.sparkContext.defaultParallelism
        with _a_partition_each(self.spark):
            staging.write(lines.coalesce(pieces), self.now)

    def _judge(self, staging: Staging, found: "_Told") -> None:
        """See that not too many lines are bad, and that none is of a version that this program does not know.

        Raises:
            AnalyticsError: they are too many. Or one is of a newer version: in the quarantine good lines would be lost.
        """
        if not found.bad:
            return
        places = staging.bad().groupBy("rule", "file").agg(F.count(F.lit(1)).alias("n"), F.min("line").alias("line"))
        worst = places.orderBy(F.col("rule") != NEWER, F.desc("n"), "rule", "file").collect()[0]
        place = _plain_uri(worst["file"]).removeprefix("file://")
        if worst["rule"] == NEWER:
            why = f"{worst['n']} lines have a version that this program does not know, first line {worst['line']}"
            raise AnalyticsError(place, why, "nothing was taken in; upgrade streamapp-analytics and start it again")
        if found.bad > self.most_bad * found.rows:
            why = (
                f"{found.bad} of {found.rows} lines are bad ({found.bad / found.rows:.1%}, allowed "
                f"{self.most_bad:.1%}); most break the rule {worst['rule']}: {worst['n']} in this file, first in line "
                f"{worst['line']}"
            )
            step = "nothing was taken in; look at that line, and at the version of the operator that wrote it"
            raise AnalyticsError(place, why, step)

    def _tables(
        self, staging: Staging, before: Version, run: str, suspects: set[str], found: "_Told"
    ) -> tuple[Version, int]:
        """Write the tables of the kinds that are there, a few at a time; also give how many lines are new."""

        def one(kind: str) -> _Written:
            table = TABLES[kind]
            if kind == SAMPLE and not (suspects or self._full(before, table)):
                parts = [part for part in staging.samples() if part.name.removeprefix("dt=") >= before.kept_from]
                told = self._merged(self.store.adopt(parts, table, run), before, table, set())
                return self._in_lines(told, before, run)
            frame = staging.good(kind).where(F.col("dt") >= before.kept_from)
            if suspects:
                frame = self._once(frame, before, table, suspects)
            told = self._append(frame, before, table, run)
            return self._in_lines(told, before, run) if kind == SAMPLE else told

        def quarantine() -> _Written:
            frame = staging.bad().withColumn("dt", F.lit(f"{self.now:%Y-%m-%d}"))
            name, days, rows, _ = self._append(frame, before, QUARANTINE, run)
            return name, days, rows, 0

        jobs: list[Callable[[], _Written]]
        jobs = [partial(one, kind) for kind in TABLES if kind in found.kinds]
        jobs += [quarantine] if found.bad else []
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
        row = ["recorder", "seq", *(COPY if table == TABLES[SAMPLE] else ())]
        single = frame.where(suspect).dropDuplicates(row).join(there, ["recorder", "seq"], "left_anti")
        return frame.where(~suspect).unionByName(single)

    def _in_lines(self, told: _Written, before: Version, run: str) -> _Written:
        """The same of samples, of which several rows can be one line: how many of the lines are new."""
        table, days, rows, _ = told
        fresh = {day: (run,) for day, runs in days.items() if run in runs}
        moved = {day: before.tables[table][day] for day in self._full(before, table) & {*fresh}}
        return table, days, rows, self._count_lines(table, fresh) - self._count_lines(table, moved)

    def _count_lines(self, table: str, days: Days) -> int:
        others = {*self.store.schemas[table].names} - {FIRST}
        first = self.store.arrow(Version(tables={table: days}), table, but=others)[FIRST]
        return pc.sum(pc.fill_null(first.cast(pa.bool_()), True).cast(pa.int64())).as_py() or 0

    @staticmethod
    def _full(before: Version, table: str) -> set[str]:
        """Days of so many runs that they are to be written together."""
        return {day for day, runs in before.tables.get(table, {}).items() if len(runs) >= MERGE_AT}

    def _append(self, frame: DataFrame, before: Version, table: str, run: str) -> _Written:
        """Write; give the table, its days, the rows of the new run, and how many of them are new."""
        full = self._full(before, table)
        if full:
            frame = frame.unionByName(self.store.read(self.spark, before, table, full))
        written = self.store.write(frame.sortWithinPartitions(*order(frame)), table, run)
        return self._merged(written, before, table, full)

    @staticmethod
    def _merged(
        written: tuple[dict[str, tuple[str, ...]], dict[str, int]], before: Version, table: str, full: set[str]
    ) -> _Written:
        """What was written beside what was there, but for the days that it has in it."""
        days, rows = written
        live = before.tables.get(table, {})
        gone = {day for day in full if day in days}
        moved = sum(before.rows[table][f"{old}/{day}"] for day in gone for old in live[day])
        stays = [(day, runs) for day, runs in live.items() if day not in gone]
        return table, merged(stays, days.items()), rows, sum(rows.values()) - moved


@dataclass(frozen=True, slots=True)
class _Told:
    """What is in the lines of a run."""

    rows: int
    bad: int
    too_old: int
    kinds: frozenset[str]
    """That there is a good line of."""
    spans: Spans
    repeated: frozenset[str]
    """Recorders with a number that is there twice."""


def _told(counts: Sequence[Row], whole: Iterable[Row]) -> _Told:
    """The counts of all lines, and the spans of numbers between which none is missing."""
    kinds: Counter[str] = Counter()
    spans: dict[str, list[tuple[int, int]]] = {}
    for row in counts:
        kinds.update(row["kinds"])
    for row in whole:
        spans.setdefault(row["recorder"], []).append((row["low"], row["high"]))
    return _Told(
        rows=kinds.total(),
        bad=kinds[BAD],
        too_old=sum(row["old"] for row in counts),
        kinds=frozenset(kind for kind, lines in kinds.items() if lines and kind != BAD),
        spans={recorder: together(of_one) for recorder, of_one in spans.items()},
        repeated=frozenset(row["recorder"] for row in counts if row["good"] != row["different"]),
    )


def together(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Spans in order, those that meet as one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def _joined(known: Spans, fresh: Spans) -> Spans:
    """The spans of each recorder in `fresh` with those that are known of it."""
    return {recorder: together((*known.get(recorder, ()), *spans)) for recorder, spans in fresh.items()}


def suspicious(fresh: Spans, known: Spans, repeated: Iterable[str]) -> set[str]:
    """Recorders whose numbers are there twice: in these lines, or in these and in what was read before."""
    found = set(repeated)
    for recorder, spans in fresh.items():
        before = known.get(recorder, ())
        if any(low <= known_high and known_low <= high for low, high in spans for known_low, known_high in before):
            found.add(recorder)
    return found


@contextmanager
def _a_partition_each(spark: SparkSession) -> Iterator[None]:
    """Have Spark make a partition of each file that is read meanwhile, where it would put several into one."""
    name = "spark.sql.files.openCostInBytes"
    before = spark.conf.get(name)
    spark.conf.set(name, str(1 << 40))
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def _plain_uri(told: str) -> str:
    """As `file:///x`, where Spark writes `file:/x` or `file:///x`, and any character as itself: it encodes some."""
    return "file:///" + unquote(told.split(":", 1)[1]).lstrip("/") if told.startswith("file:") else told


def _as_spark_has_it(path: Path) -> str:
    """Absolute and without dots; links stay links, or the name would not be known again."""
    return os.path.abspath(path)  # noqa: PTH100 - Path's own way follows links
