"""What an ingest has read and not yet taken in: every line once, as files beside the tables that no manifest names.

Called by the ingest alone, which removes them whatever happens.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from streamapp.analytics.bronze_schemas import OWN
from streamapp.analytics.parsing import BAD, REST, SAMPLE, as_any, as_samples, staged_schema

KAFKA: Final = "kafka:"
"""What the names of partitions begin with, where files have their own."""


@dataclass(frozen=True, slots=True)
class Staging:
    """The lines of one run, under a folder of its own."""

    spark: SparkSession
    folder: Path

    def write(self, lines: DataFrame, now: datetime) -> None:
        """Read every line (`value`, `file`, `position`) once; what is no sample, once more from here."""
        self._put(as_samples(lines.where(F.length("value") > 0), now), "first")
        rest = self._first().where(F.col("part") == REST).select(F.col("raw").alias("value"), "file", "position")
        self._put(as_any(rest, now), "second")

    def good(self, kind: str) -> DataFrame:
        """The good lines of a kind."""
        found = self._second().where(F.col("part") == kind)
        if kind != SAMPLE:
            return found
        first = self._first().where(F.col("part") == SAMPLE)
        return first.unionByName(found.select(first.columns))

    def bad(self) -> DataFrame:
        """`raw` and `rule` of each bad line, with its file and its number there, or its offset in its partition.

        A file is read in one piece, so positions rise by one.
        """
        first = self._first().groupBy("file").agg(F.min("position").alias("first"))
        bad = self._every().where(F.col("part") == BAD).join(F.broadcast(first), "file")
        return bad.select("raw", "rule", "file", _number().alias("line"))

    def counts(self, kept_from: str) -> list[Row]:
        """Lines by `file`, `recorder` and 32,768 numbers: the `low`est and `high`est number, lines by part as `kinds`.

        `good` lines are more than there are `different` numbers among them where one is there twice: exact, by bitmaps.
        `old` lines are good ones of days before `kept_from`, which were removed: they would make days of little.
        """
        good = F.when(F.col("part") != BAD, F.col("seq"))
        # All partitions of a topic are one input.
        lines = self._every().withColumn("file", F.when(_of_kafka(), KAFKA).otherwise(F.col("file")))
        bits = F.bitmap_count(F.bitmap_construct_agg(F.bitmap_bit_position(good)))
        kinds = F.create_map(*[part for one in (*OWN, BAD) for part in (F.lit(one), F.count_if(F.col("part") == one))])
        buckets = lines.groupBy("file", "recorder", F.bitmap_bucket_number("seq").alias("bucket")).agg(
            F.count(good).alias("good"),
            bits.alias("different"),
            F.min("seq").alias("low"),
            F.max("seq").alias("high"),
            kinds.alias("kinds"),
            F.count_if(good.isNotNull() & (F.date_format("ts", "yyyy-MM-dd") < kept_from)).alias("old"),
        )
        return buckets.collect()

    def _put(self, frame: DataFrame, name: str) -> None:
        frame.write.option("compression", "lz4").option("maxRecordsPerFile", 0).partitionBy("part").parquet(
            str(self.folder / name)
        )

    def _first(self) -> DataFrame:
        return self.spark.read.schema(staged_schema((SAMPLE,))).parquet(str(self.folder / "first"))

    def _second(self) -> DataFrame:
        return self.spark.read.schema(staged_schema(tuple(OWN))).parquet(str(self.folder / "second"))

    def _every(self) -> DataFrame:
        names = ("file", "recorder", "seq", "ts", "rule", "raw", "position", "part")
        return self._first().where(F.col("part") != REST).select(*names).unionByName(self._second().select(*names))


def _of_kafka() -> Column:
    return F.col("file").startswith(KAFKA)


def _number() -> Column:
    return F.when(_of_kafka(), F.col("position")).otherwise(F.col("position") - F.col("first") + 1)
