"""Which recorder followed which: what a new leader cannot know, and by how much the clocks of two leaders differ.

Called by `build`. A leader writes nothing after another one leads, so all lines of a later term are later, whatever
their times say. Without terms, and where clocks differ by more than ten minutes, lines keep their times.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamapp.analytics.tables.derived_schemas import KEY
from streamapp.analytics.tables.store import Store, Version

SKEW: Final = timedelta(minutes=10)
"""Between two clocks, at most; a line from further ahead of the ingest's clock is bad."""
OF_LOOKS: Final = ("b_decision", "b_group", "b_pod", "b_config")
"""Tables whose times are those of the operator's looks."""

App = tuple[str, ...]
"""The values of `KEY`."""


class Extent(NamedTuple):
    """The times of a recorder's lines about one application."""

    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class Handover:
    """A recorder that looks at an application which another one looked at before."""

    app: App
    recorder: str
    first: datetime
    """Its first line about the application."""
    before: datetime
    """The last line of the former recorders about it."""

    @property
    def is_behind(self) -> bool:
        """Whether its clock is behind that of a former leader: lines up to `before` are no earlier than that."""
        return self.before > self.first

    @property
    def days(self) -> set[str]:
        """The days that a difference of the clocks touches."""
        return {f"{at:%Y-%m-%d}" for at in (self.first, self.before)} if self.is_behind else set()


@dataclass(frozen=True, slots=True)
class Handovers:
    """Those of some days that change what lines mean."""

    every: tuple[Handover, ...] = ()

    @property
    def are_behind(self) -> bool:
        """Whether any clock was behind."""
        return any(one.is_behind for one in self.every)

    def reached(self, changed: Collection[str]) -> set[str]:
        """The changed days, with those that a difference of clocks joins to them over midnight."""
        return {*changed, *(day for one in self.every if one.days & {*changed} for day in one.days)}

    def frame(self, spark: SparkSession) -> DataFrame:
        """`KEY`, `recorder`, `t_before`, `is_behind`."""
        # No `createDataFrame`: it would start Python workers on every machine of a cluster.
        rows = [
            F.struct(
                *(F.lit(value).alias(name) for name, value in zip(KEY, one.app, strict=True)),
                F.lit(one.recorder).alias("recorder"),
                F.timestamp_micros(F.lit(_micros(one.before))).alias("t_before"),
                F.lit(one.is_behind).alias("is_behind"),
            )
            for one in self.every or (_NONE,)
        ]
        frame = spark.range(1).select(F.inline(F.array(*rows)))
        return frame if self.every else frame.where(F.lit(False))

    def in_order(self, lines: DataFrame) -> DataFrame:
        """Lines of which none is earlier than the last of a former leader; with `dt` as their time says."""
        late = self.frame(lines.sparkSession).where("is_behind").drop("is_behind")
        ts = F.greatest("ts", F.col("t_before") + F.expr("INTERVAL 0.000001 SECONDS"))  # after its last line
        told = lines.join(F.broadcast(late), [*KEY, "recorder"], "left").withColumn("ts", ts)
        return told.withColumn("dt", F.date_format("ts", "yyyy-MM-dd")).select(*lines.columns)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NONE: Final = Handover(("",) * len(KEY), "", _EPOCH, _EPOCH)


def _micros(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1)


def handovers(bronze: Store, version: Version, days: Collection[str]) -> Handovers:
    """Those that begin on some days and are of any consequence: a clock was behind, or a gap began before.

    Args:
        bronze: with the lines.
        version: of bronze.
        days: and the day before each.
    """
    wider = {*days, *(f"{date.fromisoformat(day) - timedelta(days=1)}" for day in days)}
    extents: dict[App, dict[str, Extent]] = defaultdict(dict)
    for table in OF_LOOKS:
        for app, recorder, found in _rows(bronze, version, table, wider):
            known = extents[app].get(recorder, found)
            extents[app][recorder] = Extent(min(found.first, known.first), max(found.last, known.last))
    terms = _terms(bronze, version)
    begun = _begun(bronze, version, {*days})
    each = (one for app, of_app in extents.items() for one in following(app, of_app, terms))
    return Handovers(tuple(one for one in each if one.is_behind or (*one.app, one.recorder) in begun))


def following(app: App, extents: Mapping[str, Extent], terms: Mapping[str, int]) -> Iterator[Handover]:
    """Each recorder of an application that follows others.

    Terms count only in the order of the first lines: a Lease that was created again counts from 0.
    """
    for recorder, own in extents.items():
        former = []
        for other, its in extents.items():
            if its.first < own.first:
                is_led = other in terms and recorder in terms and terms[other] < terms[recorder]
                limit = own.first + SKEW if is_led else own.first
                former += [its.last] if its.last <= limit else []
        if former:
            yield Handover(app, recorder, own.first, max(former))


def _terms(bronze: Store, version: Version) -> dict[str, int]:
    rows = bronze.arrow(version, "b_recorder", but=_but(bronze, "b_recorder", ("recorder", "term"))).to_pylist()
    return {row["recorder"]: row["term"] for row in rows if row["term"] is not None}


def _begun(bronze: Store, version: Version, days: Collection[str]) -> set[tuple[str, ...]]:
    """Recorders, each after its application, with gaps that began before their first look."""
    rows = _of_days(bronze, version, "b_gap", days, (*KEY, "recorder", "began_before")).to_pylist()
    return {(*(row[name] for name in KEY), row["recorder"]) for row in rows if row["began_before"]}


def _rows(bronze: Store, version: Version, table: str, days: Collection[str]) -> Iterator[tuple[App, str, Extent]]:
    names = [*KEY, "recorder"]
    rows = _of_days(bronze, version, table, days, (*names, "ts"))
    if not len(rows):
        return
    plain = pa.table(
        {name: rows[name].cast(pa.string()) for name in names} | {"ts": rows["ts"].cast(pa.timestamp("us", "UTC"))}
    )
    for row in plain.group_by(names).aggregate([("ts", "min"), ("ts", "max")]).to_pylist():
        yield tuple(row[name] for name in KEY), row["recorder"], Extent(row["ts_min"], row["ts_max"])


def _of_days(bronze: Store, version: Version, table: str, days: Collection[str], names: tuple[str, ...]) -> pa.Table:
    live = {day: runs for day, runs in version.tables.get(table, {}).items() if day in days}
    cut = replace(version, tables={table: live})
    return bronze.arrow(cut, table, but=_but(bronze, table, names))


def _but(bronze: Store, table: str, names: Collection[str]) -> set[str]:
    return {*bronze.schemas[table].names} - {*names}
