"""Lines of the record as columns, with the rule that a bad one breaks.

Called by the ingest. Nearly all that is in the record are samples: each line is read as one first, with few columns and
few rules, and only what is none is read once more, with all of them. Pure.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from functools import reduce
from operator import add
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType, MapType, StringType, StructField, StructType, TimestampType

from streamapp.analytics.bronze.quality import CORRUPT, rule, rule_of_samples
from streamapp.analytics.tables.bronze_schemas import (
    EXTRA,
    FIELDS,
    FIRST,
    LINE,
    OWN,
    SAMPLE,
    SAMPLES,
    camel,
    columns,
    in_line,
)
from streamapp.flightrecord.schema import SampledCopies

BAD: Final = "bad"
REST: Final = "rest"
"""What is to be read once more."""
LEFT: Final[dict[str, DataType]] = {
    "value": StringType(),
    "rule": StringType(),
    "file": StringType(),
    "line": LongType(),
}
"""What is kept of a line that goes into no table: itself, the rule it breaks, and where it stood."""
CLOCK: Final = len("2026-11-21T10:00:00.000000Z")
GAPS: Final = (" ", "\t", "\n", "\r")
_OPTIONS: Final = {"columnNameOfCorruptRecord": CORRUPT, "allowNonNumericNumbers": "false"}


def as_samples(lines: DataFrame, now: datetime) -> DataFrame:
    """Lines (`value`, `file`, `line`) with the columns of a sample's table, and `part`: `sample`, `bad`, or `rest`.

    A good line of samples is a row for each copy. `dt` is the day of good samples, so that they lie as the table's own
    files do. The columns of all others say nothing; their line, its place and the rule that a bad sample breaks stand
    in `extra`: see `LEFT`.
    """
    names = _own(SAMPLE)
    judged = _read(lines, [*names, "copies"])
    one, many = F.col("kind") == SAMPLE, F.col("kind") == SAMPLES
    found = F.when(one, rule(F.lit(now), (SAMPLE,))).when(many, rule_of_samples(F.lit(now)))
    part = F.when(~F.coalesce(one | many, F.lit(False)), REST).when(F.col("rule").isNotNull(), BAD).otherwise(SAMPLE)
    left = F.create_map(*[column for name in LEFT for column in (F.lit(name), F.col(name).cast("string"))])
    good = F.col("part") == SAMPLE
    more = F.when(one & ~_is_plain(names) & _has_more((SAMPLE,)), _extra((SAMPLE,)))
    more = more.when(many & _has_more((SAMPLES,)), _extra((SAMPLES,)))
    told = judged.withColumn("rule", found).withColumn("part", part)
    return _each_copy(
        told.select(
            *[name for name in names if name != "kind"],
            F.when(good & many, F.col("copies")).alias("copies"),
            F.when(good, more).otherwise(left).alias(EXTRA),
            "part",
        )
    )


def _each_copy(lines: DataFrame) -> DataFrame:
    """A row for each of the `copies` of a line, and one for a line without; with `FIRST`, and with the day as `dt`."""
    alike = lines.select("*", F.posexplode_outer("copies").alias("group", "alike"))
    each = alike.select("*", F.posexplode_outer("alike.tasks").alias("nth", "one"))
    many = F.col("one").isNotNull()
    own = {name: F.col(f"alike.{name}") for name in ("process_id", "ordinal", "role", "state", "source")}
    own |= {"interval_seconds": F.col("alike.interval_seconds"), "ts": F.col("alike.at"), "task": F.col("one")}
    for name, every in (("offset", "alike.offsets"), ("end_offset", "alike.end_offsets")):
        own[name] = F.get(every, F.col("nth"))
    names = [name for name in lines.columns if name not in {"copies", "part"}]
    chosen = each.select(
        *[F.when(many, own[name]).otherwise(F.col(name)).alias(name) if name in own else name for name in names],
        F.when(many, (F.col("group") == 0) & (F.col("nth") == 0)).alias(FIRST),
        "part",
    )
    return chosen.withColumn("dt", F.when(F.col("part") == SAMPLE, F.to_date("ts")))


def left(samples: DataFrame) -> DataFrame:
    """What stands in `extra` of what is no good sample, as columns."""
    return samples.select(*[F.col(EXTRA)[one].cast(type_).alias(one) for one, type_ in LEFT.items()])


def as_any(lines: DataFrame, now: datetime) -> DataFrame:
    """Lines that are no samples with the columns of all kinds, `dt`, and `part`: their kind, or `bad`, with `LEFT`."""
    known, kinds = columns(), tuple(kind for kind in OWN if kind != SAMPLE)
    judged = _read(lines, known).withColumn("rule", rule(F.lit(now), kinds))
    good = F.col("rule").isNull()
    return judged.select(
        *[name for name in known if name != "kind"],
        F.when(good & _has_more(kinds), _extra(kinds)).alias(EXTRA),
        *[F.when(~good, F.col(name)).alias(name) for name in LEFT],
        F.when(good, F.col("kind")).otherwise(BAD).alias("part"),
        F.date_format("ts", "yyyy-MM-dd").alias("dt"),
    )


def staged_schema() -> StructType:
    """The columns of what `as_any` gave, as they are read again."""
    found = {name: type_ for name, type_ in columns().items() if name != "kind"}
    found |= {EXTRA: MapType(StringType(), StringType())} | LEFT | {"part": StringType(), "dt": StringType()}
    return StructType([StructField(name, type_) for name, type_ in found.items()])


def _read(lines: DataFrame, names: Collection[str]) -> DataFrame:
    """Lines with these columns beside their own, and `CORRUPT` where the JSON or a type of it is broken."""
    known = columns() | {field.name: field.dataType for field in FIELDS[SAMPLES]}
    shape = [StructField(camel(name), in_line(known[name])) for name in names]
    told = F.from_json("value", StructType([*shape, StructField(CORRUPT, StringType())]), _OPTIONS)
    fields = [F.col(f"told.{camel(name)}").cast(known[name]).alias(name) for name in names]
    return lines.withColumn("told", told).select(*lines.columns, *fields, F.col(f"told.{CORRUPT}").alias(CORRUPT))


def _own(kind: str) -> list[str]:
    return [field.name for field in (*LINE, *FIELDS[kind])] + ["kind"]


def _by_kind(kinds: Collection[str], value: dict[str, Column]) -> Column:
    """The value for the line's kind, where there are several."""
    if len(kinds) == 1:
        return value[next(iter(kinds))]
    chosen = F.lit(None)
    for kind in reversed(tuple(kinds)):
        chosen = F.when(F.col("kind") == kind, value[kind]).otherwise(chosen)
    return chosen


def _is_plain(names: Iterable[str]) -> Column:
    """Whether a line is written as the recorder writes it and has these fields alone, as far as they are filled.

    Told by its length, which costs next to nothing and follows from the values then: JSON knows no shorter way to
    write them. But for times, so that the text of the line's one time is measured.
    """
    value, known, length = F.col("value"), columns(), F.lit(1)
    for name in names:
        length = length + F.coalesce(_length(F.col(name), known[name]) + len(f',"{camel(name)}":'), F.lit(0))
    time = F.instr(value, '"ts":"')
    behind = F.call_function("locate", F.lit('"'), value, time + len('"ts":"'))
    return (F.octet_length(value) == length) & (behind - time == len('"ts":"') + CLOCK)


def _length(column: Column, type_: DataType) -> Column:
    """Bytes that the recorder writes for a value; null of none."""
    if isinstance(type_, TimestampType):
        return F.when(column.isNotNull(), CLOCK + len('""'))
    quotes = len('""') if isinstance(type_, StringType) else 0
    return F.octet_length(column.cast("string")) + quotes


def _has_more(kinds: Collection[str]) -> Column:
    """Whether a line may have more fields than those of its kind that are filled.

    Each field has a quote and a colon after its name, unless there is a gap between them; nested fields and texts can
    only have more of these. So nothing is missed, and what is counted in excess is looked at closely in vain.
    """
    filled = {kind: reduce(add, [F.col(name).isNotNull().cast("int") for name in _own(kind)]) for kind in kinds}
    if SAMPLES in kinds:  # else each of their lines would be looked at closely
        filled[SAMPLES] = filled[SAMPLES] + F.aggregate("copies", F.lit(0), lambda sum_, one: sum_ + _filled(one))
    value = F.col("value")
    named = F.octet_length(value) - F.octet_length(F.replace(value, F.lit('":'), F.lit("")))
    gaps = reduce(lambda one, other: one | other, [value.contains(f'"{gap}') for gap in GAPS])
    return (named != 2 * _by_kind(kinds, filled)) | gaps


def _filled(copies: Column) -> Column:
    """How many fields some copies have."""
    return reduce(add, [copies[name].isNotNull().cast("int") for name in SampledCopies.model_fields])


def _extra(kinds: Collection[str]) -> Column:
    """The fields that are not of the line's kind; null where there is none."""
    names = _by_kind(kinds, {kind: F.array(*[F.lit(camel(name)) for name in _own(kind)]) for kind in kinds})
    every = F.from_json("value", "map<string,string>")
    found = F.map_filter(every, lambda name, _: ~F.array_contains(names, name))
    return F.when(F.size(found) > 0, found)
