"""Lines of the record as columns, with the rule that a bad one breaks.

Called by the ingest. Nearly all lines are samples: each is read as one first, with few columns and few rules, and only
what is none is read once more, with all of them. Pure.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from functools import reduce
from operator import add
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, MapType, StringType, StructField, StructType

from streamapp.analytics.bronze_schemas import EXTRA, LINE, OWN, camel, columns, in_line
from streamapp.analytics.quality import CORRUPT, rule

SAMPLE: Final = "sample"
BAD: Final = "bad"
REST: Final = "rest"
"""What is to be read once more."""
GAPS: Final = (" ", "\t", "\n", "\r")
_OPTIONS: Final = {"columnNameOfCorruptRecord": CORRUPT, "allowNonNumericNumbers": "false"}


def as_samples(lines: DataFrame, now: datetime) -> DataFrame:
    """Lines (`value`, `file`, `position`) with a sample's columns and `part`: `sample`, `bad`, or `rest`.

    `raw` holds the line of the latter two, `rule` what a bad sample breaks; what is `rest` has no other columns.
    """
    names = _own(SAMPLE)
    read = lines.withColumn("line", F.from_json("value", _shape(sorted(names)), _OPTIONS))
    known = columns()
    fields = [F.col(f"line.{camel(name)}").cast(known[name]).alias(name) for name in names]
    judged = read.select(*lines.columns, *fields, F.col(f"line.{CORRUPT}").alias(CORRUPT))
    mine = F.coalesce(F.col("kind") == SAMPLE, F.lit(False))
    judged = judged.withColumn("rule", F.when(mine, rule(F.lit(now), (SAMPLE,))))
    part = F.when(~mine, REST).when(F.col("rule").isNotNull(), BAD).otherwise(SAMPLE)
    return _told(judged.withColumn("part", part), (SAMPLE,))


def as_any(lines: DataFrame, now: datetime) -> DataFrame:
    """Lines with the columns of all kinds and `part`: their kind, or `bad`; `raw` and `rule` as above."""
    known = columns()
    read = lines.withColumn("line", F.from_json("value", _shape(known), _OPTIONS))
    fields = [F.col(f"line.{camel(name)}").cast(kind).alias(name) for name, kind in known.items()]
    judged = read.select(*lines.columns, *fields, F.col(f"line.{CORRUPT}").alias(CORRUPT))
    judged = judged.withColumn("rule", rule(F.lit(now), tuple(OWN)))
    part = F.when(F.col("rule").isNotNull(), BAD).otherwise(F.col("kind"))
    return _told(judged.withColumn("part", part), tuple(OWN))


def _told(judged: DataFrame, kinds: Collection[str]) -> DataFrame:
    good = F.col("part").isin(*kinds)
    return judged.select(
        *[name for name in judged.columns if name not in {CORRUPT, "value", "kind", "part"}],
        F.when(~good, F.col("value")).alias("raw"),
        F.when(good & _has_more(kinds), _extra(kinds)).alias(EXTRA),
        "part",
    )


def staged_schema(kinds: Collection[str]) -> StructType:
    """The columns of what `as_samples` or `as_any` gave, as they are read again."""
    known = columns()
    names = dict.fromkeys(name for kind in kinds for name in _own(kind) if name != "kind")
    texts = [StructField(name, StringType()) for name in ("file", "rule", "raw", "part")]
    more = (StructField("position", LongType()), StructField(EXTRA, MapType(StringType(), StringType())))
    return StructType([*texts, *(StructField(name, known[name]) for name in names), *more])


def _shape(names: Iterable[str]) -> StructType:
    known = columns()
    shape = [StructField(camel(name), in_line(known[name])) for name in names]
    return StructType([*shape, StructField(CORRUPT, StringType())])


def _own(kind: str) -> list[str]:
    return [field.name for field in (*LINE, *OWN[kind])] + ["kind"]


def _by_kind(kinds: Collection[str], value: dict[str, Column]) -> Column:
    """The value for the line's kind, where there are several."""
    if len(kinds) == 1:
        return value[next(iter(kinds))]
    chosen = F.lit(None)
    for kind in reversed(tuple(kinds)):
        chosen = F.when(F.col("kind") == kind, value[kind]).otherwise(chosen)
    return chosen


def _has_more(kinds: Collection[str]) -> Column:
    """Whether a line may have more fields than those of its kind that are filled.

    Each field has a quote and a colon after its name, unless there is a gap between them; nested fields and texts can
    only have more of these. So nothing is missed, and what is counted in excess is looked at closely in vain.
    """
    filled = {kind: reduce(add, [F.col(name).isNotNull().cast("int") for name in _own(kind)]) for kind in kinds}
    value = F.col("value")
    named = F.octet_length(value) - F.octet_length(F.replace(value, F.lit('":'), F.lit("")))
    gaps = reduce(lambda one, other: one | other, [value.contains(f'"{gap}') for gap in GAPS])
    return (named != 2 * _by_kind(kinds, filled)) | gaps


def _extra(kinds: Collection[str]) -> Column:
    """The fields that are not of the line's kind; null where there is none."""
    names = _by_kind(kinds, {kind: F.array(*[F.lit(camel(name)) for name in _own(kind)]) for kind in kinds})
    every = F.from_json("value", "map<string,string>")
    found = F.map_filter(every, lambda name, _: ~F.array_contains(names, name))
    return F.when(F.size(found) > 0, found)
