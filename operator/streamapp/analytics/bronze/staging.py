"""What an ingest has read and not yet taken in: every line once, as files beside the tables that no manifest names.

Called by the ingest alone, which removes them whatever happens. Nearly all of it are samples: these are written as the
files of their table already, so that the ingest takes them in by giving them another name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from streamapp.analytics.bronze.parsing import BAD, LEFT, REST, as_any, as_samples, left, staged_schema
from streamapp.analytics.tables.bronze_schemas import FIRST, OWN, SAMPLE, table_schema

_NUMBERS: Final = ("recorder", "seq", "dt", "part")


@dataclass(frozen=True, slots=True)
class Staging:
    """The lines of one run, under a folder of its own."""

    spark: SparkSession
    folder: Path

    def write(self, lines: DataFrame, now: datetime) -> None:
        """Read every line (`value`, `file`, `line`) once; what is no sample, once more from here."""
        samples = as_samples(lines.where(F.length("value") > 0), now)
        samples.sortWithinPartitions(*order(samples)).write.partitionBy("part", "dt").parquet(self._place("first"))
        rest = left(self._first(REST)).drop("rule")
        as_any(rest, now).write.partitionBy("part").parquet(self._place("second"))

    def samples(self) -> list[Path]:
        """Folders `dt=…` with the good samples of a day each, as files of their table."""
        return sorted(self.folder.glob(f"first/part={SAMPLE}/dt=*"))

    def good(self, kind: str) -> DataFrame:
        """The good lines of a kind, with `dt`."""
        found = self._first(SAMPLE) if kind == SAMPLE else self._second().where(F.col("part") == kind)
        return found.select(*table_schema(kind).names, "dt")

    def bad(self) -> DataFrame:
        """`raw` and `rule` of each bad line, with its file and its number there, or its offset in its partition."""
        names = [F.col("value").alias("raw"), *[F.col(name) for name in LEFT if name != "value"]]
        second = self._second().where(F.col("part") == BAD).select(names)
        return left(self._first(BAD)).select(names).unionByName(second)

    def counts(self, kept_from: str) -> list[Row]:
        """Lines by `recorder` and `bucket` of 32,768 numbers: the `low`est and `high`est, and lines by part as `kinds`.

        `good` lines are more than there are `different` numbers among them where one is there twice, and there are
        holes between `low` and `high` where `numbers`, those of all lines, are fewer: exact, by bitmaps.
        `old` lines are good ones of days before `kept_from`, which were removed: they would make days of little.
        """
        good = F.when(F.col("part") != BAD, F.col("seq"))
        kinds = F.create_map(*[part for one in (*OWN, BAD) for part in (F.lit(one), F.count_if(F.col("part") == one))])
        buckets = (
            self._numbered()
            .groupBy("recorder", "bucket")
            .agg(
                F.count(good).alias("good"),
                _different(good).alias("different"),
                _different(F.col("seq")).alias("numbers"),
                F.min("seq").alias("low"),
                F.max("seq").alias("high"),
                kinds.alias("kinds"),
                F.count_if((F.col("part") != BAD) & (F.col("dt") < kept_from)).alias("old"),
            )
        )
        return buckets.collect()

    def whole(self, counts: Sequence[Row]) -> list[Row]:
        """`recorder`, `low` and `high` of the numbers between which none is missing, of some counts."""
        named = [f"{row['bucket']} {row['recorder']}" for row in counts]
        lines = self._numbered().where(F.concat_ws(" ", "bucket", "recorder").isin(*named))
        each = lines.select("recorder", "bucket", "seq").where(F.col("seq").isNotNull()).distinct()
        nth = F.row_number().over(Window.partitionBy("recorder", "bucket").orderBy("seq"))
        spans = each.withColumn("shift", F.col("seq") - nth).groupBy("recorder", "bucket", "shift")
        return spans.agg(F.min("seq").alias("low"), F.max("seq").alias("high")).collect()

    def _numbered(self) -> DataFrame:
        """All lines, with what says which they are: of a line with several rows the first."""
        first = self._first(SAMPLE, BAD).where(F.coalesce(F.col(FIRST), F.lit(True)))
        lines = first.select(*_NUMBERS).unionByName(self._second().select(*_NUMBERS))
        return lines.withColumn("bucket", F.bitmap_bucket_number("seq"))

    def _place(self, name: str) -> str:
        return str(self.folder / name)

    def _first(self, *parts: str) -> DataFrame:
        more = [StructField(name, StringType()) for name in ("part", "dt")]
        schema = StructType([*table_schema(SAMPLE), *more])
        return self.spark.read.schema(schema).parquet(self._place("first")).where(F.col("part").isin(*parts))

    def _second(self) -> DataFrame:
        return self.spark.read.schema(staged_schema()).parquet(self._place("second"))


def _different(number: Column) -> Column:
    """How many different ones, within one bucket."""
    return F.bitmap_count(F.bitmap_construct_agg(F.bitmap_bit_position(number)))


def order(frame: DataFrame) -> list[Column]:
    """Rows of one copy together, as silver needs them; by one number, which Spark sorts fastest.

    Names are told apart by hashes: Spark sorts by the first eight bytes as long as it can, and names begin alike.
    """
    if "task" in frame.columns:
        app = F.shiftleft(F.hash("cluster", "namespace", "app", "uid").cast("long"), 32)
        task = F.hash("task").cast("long").bitwiseAND(F.lit(0xFFFFFFFF))
        return [app.bitwiseOR(task)]
    return [F.hash("app"), F.col("ts"), F.col("seq")] if "app" in frame.columns else [F.col("file"), F.col("line")]
