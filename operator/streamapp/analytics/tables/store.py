"""Tables as Parquet files, and the manifest that says which of them count.

`<root>/<layer>/<table>/run=<id>/dt=<day>/part-*.parquet` holds rows; `<root>/<layer>/manifest/<n>.json` names, for all
tables of a layer at once, the runs that count. A run writes new folders and then the next manifest, created only if it
is absent: a reader sees whole versions, of two runs at once one loses, and one that was killed leaves rubbish that no
manifest names. `CURRENT` names the newest manifest for people and other programs; the number is what counts here.
"""

import errno
import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from streamapp.analytics.errors import AnalyticsError

LAYOUT: Final = 2
"""Version of the layout of folders and manifests."""
KEPT: Final = 3
"""Versions that stay readable."""
RUBBISH_AGE: Final = 24 * 3600
"""Seconds after which a folder that no manifest names any more is removed: no run takes that long, and no reader."""

NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
"""What a file system says that cannot link."""

Days = Mapping[str, tuple[str, ...]]
"""Runs that hold a day's rows, by day."""


Spans = Mapping[str, tuple[tuple[int, int], ...]]
"""Numbers of lines, by recorder: the first and last of each span without a hole, in order."""


@dataclass(frozen=True, slots=True)
class Version:
    """What counts of one layer."""

    number: int = 0
    tables: Mapping[str, Days] = field(default_factory=dict)
    rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By table and `run/day`."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Names of the files that were read, by the SHA-256 of their content; bronze only."""
    damaged: Mapping[str, str] = field(default_factory=dict)
    """Files that could be read in part only, as in `inputs`, with their names and what is wrong; bronze only."""
    recorders: Spans = field(default_factory=dict)
    """Which lines of each recorder were read, good or bad; bronze only."""
    lines: int = 0
    """Lines of all that was read; bronze only."""
    contract: str = ""
    """Digest of the contract that the lines in quarantine were judged by; bronze only."""
    built_from: Days = field(default_factory=dict)
    """Runs of bronze by day that this version was computed from; silver and gold only."""
    definitions: int = 0
    """Version of the definitions that the rows follow; silver and gold only."""
    kept_from: str = ""
    """First day whose rows are kept; earlier ones were removed for good, and come in no more."""
    leaving: Mapping[str, float] = field(default_factory=dict)
    """Folders that were named once and are not any more, with the time since when, in seconds since 1970."""
    layout: int = LAYOUT

    def days(self, but: str) -> dict[str, tuple[str, ...]]:
        """The runs of each day that is kept, over all tables but one."""
        found: dict[str, set[str]] = {}
        for table, days in self.tables.items():
            if table != but:
                for day, runs in days.items():
                    if day >= self.kept_from:
                        found.setdefault(day, set()).update(runs)
        return {day: tuple(sorted(found[day])) for day in sorted(found)}

    def with_table(self, table: str, days: Days, rows: Mapping[str, int]) -> "Version":
        """The same with other runs for a table, whose row counts replace what is known of those runs."""
        live = {f"{run}/{day}" for day, runs in days.items() for run in runs}
        known = {**self.rows.get(table, {}), **rows}
        return replace(
            self,
            tables={**self.tables, table: dict(days)},
            rows={**self.rows, table: {at: known[at] for at in sorted(live)}},
        )

    def only(self, chosen: Callable[[str, str], bool]) -> "Version":
        """The same without the rows of each table and day that are not chosen."""
        found = self
        for table, days in self.tables.items():
            found = found.with_table(table, {day: runs for day, runs in days.items() if chosen(table, day)}, {})
        return found

    def named(self) -> set[str]:
        """Folders of a layer that hold its rows."""
        return {
            _place(table, run, day) for table, days in self.tables.items() for day, runs in days.items() for run in runs
        }

    def count(self, table: str) -> int:
        """Rows of a table."""
        return sum(self.rows.get(table, {}).values())


def new_run() -> str:
    """A name for a run: its start, and something that no other run has."""
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid4().hex[:8]}"


@dataclass(frozen=True, slots=True)
class Store:
    """One layer under a root folder."""

    root: Path
    layer: str
    schemas: Mapping[str, StructType]

    @property
    def folder(self) -> Path:
        """Where the layer lies."""
        return self.root / self.layer

    def current(self) -> Version:
        """The newest version; an empty one where nothing was written yet.

        Raises:
            AnalyticsError: it has another layout, or is damaged.
        """
        newest = self._newest()
        if not newest:
            return Version()
        path = self._manifest(newest)
        try:
            told = json.loads(path.read_text())
        except ValueError as error:
            step = "remove it: the version before it counts then, and what it named is read again"
            raise AnalyticsError(str(path), f"it is damaged: {error}", step) from error
        if told["layout"] != LAYOUT:
            why = f"it has layout {told['layout']}, this program reads {LAYOUT}"
            raise AnalyticsError(str(path), why, "use the program that wrote it, or another --root")
        return Version(
            number=told["number"],
            tables={table: {day: tuple(runs) for day, runs in days.items()} for table, days in told["tables"].items()},
            rows=told["rows"],
            inputs=told["inputs"],
            damaged=told.get("damaged", {}),
            recorders={who: tuple((low, high) for low, high in spans) for who, spans in told["recorders"].items()},
            lines=told["lines"],
            contract=told.get("contract", ""),
            built_from={day: tuple(runs) for day, runs in told["built_from"].items()},
            definitions=told["definitions"],
            kept_from=told["kept_from"],
            leaving=told["leaving"],
        )

    def read(self, spark: SparkSession, version: Version, table: str, days: Collection[str] | None = None) -> DataFrame:
        """A table's rows as of a version, with `dt`; of the given days only, if some are given."""
        schema = _with_day(self.schemas[table])
        paths = [
            str(self._run(table, run) / f"dt={day}")
            for day, runs in sorted(version.tables.get(table, {}).items())
            if days is None or day in days
            for run in runs
        ]
        if not paths:
            return _nothing(spark, schema)
        read = spark.read.schema(schema).option("basePath", str(self.folder / table)).parquet(*paths)
        return read.select(schema.names)

    def arrow(self, version: Version, table: str, but: Collection[str] = ()) -> pa.Table:
        """The same without Spark, in no order: all rows, with `dt`; texts once each, and without some columns."""
        names = [name for name in self.schemas[table].names if name not in but]
        texts = [field.name for field in self.schemas[table] if isinstance(field.dataType, StringType)]
        parts = []
        for day, runs in sorted(version.tables.get(table, {}).items()):
            for file in (
                file for run in runs for file in sorted((self._run(table, run) / f"dt={day}").glob("*.parquet"))
            ):
                try:
                    there = set(pq.read_schema(file).names)
                    rows = pq.ParquetFile(file, read_dictionary=[name for name in texts if name in there]).read(names)
                except pa.ArrowException as error:
                    step = "look at the disk it lies on; `build --full` makes silver and gold anew from bronze"
                    raise AnalyticsError(str(file), f"it is damaged: {error}", step) from error
                parts.append(rows.append_column("dt", pa.repeat(day, len(rows)).dictionary_encode()))
        if not parts:
            return pa.table({name: [] for name in (*names, "dt")})
        # A file from before a column was added does not have it.
        found = pa.concat_tables(parts, promote_options="default")
        for name in names:
            found = found if name in found.column_names else found.append_column(name, pa.nulls(len(found)))
        return found

    def write(self, frame: DataFrame, table: str, run: str) -> tuple[dict[str, tuple[str, ...]], dict[str, int]]:
        """Write rows that have a column `dt`; give the run by day, and the rows by `run/day`."""
        folder = self._run(table, run)
        shutil.rmtree(folder, ignore_errors=True)
        shaped = frame.to(_with_day(self.schemas[table]))
        shaped.write.partitionBy("dt").parquet(str(folder))
        return self._written(folder, run)

    def adopt(self, parts: Iterable[Path], table: str, run: str) -> tuple[dict[str, tuple[str, ...]], dict[str, int]]:
        """Make folders `dt=…` that lie elsewhere in this layer, and hold what `write` would write, a run's own."""
        folder = self._run(table, run)
        folder.mkdir(parents=True)
        for part in parts:
            part.rename(folder / part.name)
        return self._written(folder, run)

    @staticmethod
    def _written(folder: Path, run: str) -> tuple[dict[str, tuple[str, ...]], dict[str, int]]:
        """The run by day, and the rows by `run/day`."""
        days: dict[str, tuple[str, ...]] = {}
        rows: dict[str, int] = {}
        for part in sorted(folder.glob("dt=*")):
            day = part.name.removeprefix("dt=")
            days[day] = (run,)
            files = list(part.glob("*.parquet"))
            rows[f"{run}/{day}"] = sum(pq.read_metadata(file).num_rows for file in files)
            for path in (*files, part):
                _to_disk(path)
        if not days:
            shutil.rmtree(folder, ignore_errors=True)  # Else it would look like that of a run which still works.
        return days, rows

    def commit(self, version: Version) -> Version:
        """Make a version the next one.

        Raises:
            AnalyticsError: another run was faster.
        """
        (self.folder / "manifest").mkdir(parents=True, exist_ok=True)
        with self._alone():
            if self._newest() != version.number:
                raise self._too_late(version)
            told = self._left(replace(version, number=version.number + 1))
            self._name(told)
            self._tidy(told)
        return told

    def publish(self, version: Version) -> Path:
        """Show a version's files alone, without folders of runs, under `current`: for programs that read a folder.

        `current` is replaced as a whole; who has listed the older one can read it until `KEPT` versions later.
        """
        views, pointer = self.folder / "views", self.folder / "current"
        place = views / str(version.number)
        draft = views / f".{uuid4().hex}"
        for table, days in version.tables.items():
            (draft / table).mkdir(parents=True)
            for day, runs in days.items():
                (draft / table / f"dt={day}").mkdir()
                for run in runs:
                    for file in (self._run(table, run) / f"dt={day}").glob("*.parquet"):
                        _same(file, draft / table / f"dt={day}" / f"{run}-{file.name}")
        shutil.rmtree(place, ignore_errors=True)
        draft.rename(place)
        _point(pointer, place)
        for old in views.glob("[0-9]*"):
            if int(old.name) <= version.number - KEPT:
                shutil.rmtree(old, ignore_errors=True)
        return pointer

    def _name(self, told: Version) -> None:
        """Write the manifest: all that it names is on the disk, and so is it before it has its name."""
        path = self._manifest(told.number)
        try:
            _create(path, json.dumps(asdict(told), indent=1, sort_keys=True))
        except FileExistsError:
            raise self._too_late(told) from None
        _to_disk(path.parent)
        pointer = self.folder / f".{uuid4().hex}"
        pointer.write_text(f"{told.number}\n")
        pointer.rename(self.folder / "CURRENT")

    def _too_late(self, version: Version) -> AnalyticsError:
        why = "another run finished while this one worked; nothing of this one counts"
        return AnalyticsError(str(self._manifest(version.number)), why, "start it again, one run at a time")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Of the commits of all processes, one at a time; where the file system has locks.

        The link alone would do if a number were never free again: but old manifests are removed.
        """
        with (self.folder / "manifest" / ".lock").open("w") as lock:
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _newest(self) -> int:
        """Number of the newest version; 0 where there is none."""
        return max((int(path.stem) for path in (self.folder / "manifest").glob("[0-9]*.json")), default=0)

    def works_on(self) -> Path | None:
        """A folder that some run fills, or filled when it was killed less than a day ago; None where there is none."""
        return next((folder for folder, is_old in self._unknown(self.current()) if not is_old), None)

    def _unknown(self, version: Version) -> Iterator[tuple[Path, bool]]:
        """Folders of runs that a version knows nothing of, and whether they are too old to be of one that works."""
        known = {place.rpartition("/")[0] for place in (*version.named(), *version.leaving)}
        for folder in sorted(self.folder.glob("*/run=*")):
            with suppress(FileNotFoundError):
                if f"{folder.parent.name}/{folder.name}" not in known:
                    yield folder, time.time() - folder.stat().st_mtime > RUBBISH_AGE

    def _left(self, version: Version) -> Version:
        """The same with the folders that the version before named and this one does not."""
        before = self.current()
        since = dict.fromkeys(before.named(), time.time()) | dict(before.leaving)
        there = {place: at for place, at in since.items() if (self.folder / place).exists()}
        return replace(version, leaving={place: there[place] for place in sorted({*there} - version.named())})

    def _tidy(self, version: Version) -> None:
        """Remove files that no process can read or write any more."""
        for place, since in version.leaving.items():
            if time.time() - since > RUBBISH_AGE:
                shutil.rmtree(self.folder / place, ignore_errors=True)
        for folder, is_old in self._unknown(version):
            if is_old:
                shutil.rmtree(folder, ignore_errors=True)
        for path in (self.folder / "manifest").glob("[0-9]*.json"):
            if int(path.stem) <= version.number - KEPT:
                path.unlink(missing_ok=True)

    def _manifest(self, number: int) -> Path:
        return self.folder / "manifest" / f"{number}.json"

    def _run(self, table: str, run: str) -> Path:
        return self.folder / table / f"run={run}"


def _place(table: str, run: str, day: str) -> str:
    """Where the rows of a run and day lie, in the layer's folder."""
    return f"{table}/run={run}/dt={day}"


def _nothing(spark: SparkSession, schema: StructType) -> DataFrame:
    """No rows. `createDataFrame` would start Python workers, on every machine of a cluster, to make none."""
    columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in schema]
    return spark.sql("SELECT 1 WHERE false").select(*columns)


def _with_day(schema: StructType) -> StructType:
    return StructType([*schema.fields, StructField("dt", StringType())])


def _create(path: Path, text: str) -> None:
    """Write a file that nobody can see half, or only under a lock where the file system has no hard links.

    Raises:
        FileExistsError: it is there already.
    """
    draft = path.with_name(f".{uuid4().hex}")
    draft.write_text(text)
    _to_disk(draft)
    try:
        os.link(draft, path)  # Fails where the name exists: the only step that makes rows count.
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # SMB and file systems on object stores. A run killed in here leaves a damaged manifest, which is named.
        with path.open("x") as file:
            file.write(text)
        _to_disk(path)
    finally:
        draft.unlink()


def _same(file: Path, name: Path) -> None:
    """Give a file another name, or copy it where the file system has no hard links."""
    try:
        os.link(file, name)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        shutil.copyfile(file, name)


def _point(pointer: Path, place: Path) -> None:
    """Make a name stand for a folder beside it; where the file system has no such names, put a copy there."""
    draft = pointer.with_name(f".{uuid4().hex}")
    try:
        draft.symlink_to(place.relative_to(pointer.parent))
        if pointer.is_dir() and not pointer.is_symlink():
            shutil.rmtree(pointer)  # A copy of the tables has a folder there, which no name can replace.
        draft.replace(pointer)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        shutil.rmtree(pointer, ignore_errors=True)
        shutil.copytree(place, pointer)


def _to_disk(path: Path) -> None:
    """Have a file, or the names in a folder, outlast the machine."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def changed_days(now: Days, before: Days) -> set[str]:
    """Days whose runs differ."""
    return {day for day in {*now, *before} if set(now.get(day, ())) != set(before.get(day, ()))}


def stale_days(bronze: Days, made: Version, kept_from: str) -> set[str]:
    """Days of bronze that silver or gold were not built from as they are now; those that bronze has removed stay."""
    return changed_days(bronze, {day: runs for day, runs in made.built_from.items() if day >= kept_from})


def merged(*parts: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """Runs by day, those of all parts together."""
    found: dict[str, tuple[str, ...]] = {}
    for part in parts:
        for day, runs in part:
            found[day] = tuple(sorted({*found.get(day, ()), *runs}))
    return found
