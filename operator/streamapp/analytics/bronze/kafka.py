"""The record from its Kafka topic, by Spark's own connector: all that is there now, then it ends.

Called by the command line. Spark's checkpoint says how far the topic was read, the manifest which lines count. They are
not written at one instant: a run that is killed in between reads a portion again, and its lines are known by recorder
and number. So every line is taken once, as from files. The checkpoint is of the topic's ID, not of its name alone.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streamapp.analytics.bronze.ingest import Ingest, Ingested
from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.spark.session import first_line, spark_jars

JARS_VARIABLE: Final = "STREAMAPP_KAFKA_JARS"
CONNECTOR: Final = "spark-sql-kafka"
KAFKA: Final = "kafka:"
"""What the names of partitions begin with, where files have their own."""
PEM: Final = {
    "ssl.truststore.type": ("ssl.truststore.certificates",),
    "ssl.keystore.type": ("ssl.keystore.certificate.chain", "ssl.keystore.key"),
}
"""Kinds of stores, each with the properties that only PEM has; Java's client takes JKS for granted."""
SUMMED: Final = ("rows", "kept", "bad", "doubled", "too_old")
"""Counts of a portion that add up."""
DEADLINES: Final = {"default.api.timeout.ms": "60000", "request.timeout.ms": "20000"}
PORTION: Final = 1_000_000
"""Records that are taken in and committed at once."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Where the record is."""

    bootstrap: str
    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    """Of the consumer, for TLS and SASL."""
    portion: int = PORTION

    identity: str = ""
    """Kafka's ID of the topic: one that was made anew under its name has another. Empty: the broker gives none."""

    def checkpoint(self, store: Path) -> Path:
        """Where Spark keeps how far this topic was read; another cluster or topic has another place."""
        named = re.sub("[^A-Za-z0-9._-]", "_", self.name)
        which = f"{self.bootstrap}/{self.name}" + (f"/{self.identity}" if self.identity else "")
        return store / "kafka" / f"{named}-{sha256(which.encode()).hexdigest()[:12]}"


def connector_jars(folder: Path | None) -> str:
    """The connector's jars as `spark.jars` wants them; empty where no folder is named and Spark has them among its own.

    Raises:
        AnalyticsError: there is no connector in the folder, or none is named.
    """
    told = str(folder or os.environ.get(JARS_VARIABLE, ""))
    if not told and any(jar.name.startswith(CONNECTOR) for jar in spark_jars()):
        return ""
    step = f"fetch them once as docs/analytics.md says, and name their folder with --jars or {JARS_VARIABLE}"
    if not told:
        raise AnalyticsError("Spark's Kafka connector", "pyspark does not bring it, and no folder is named", step)
    jars = sorted(Path(told).glob("*.jar"))
    if not any(jar.name.startswith(CONNECTOR) for jar in jars):
        raise AnalyticsError(told, f"no {CONNECTOR}-*.jar is in it", step)
    return ",".join(str(jar.resolve()) for jar in jars)


def properties_in(folder: Path | None) -> dict[str, str]:
    """Properties, one file each, as a mounted Secret has them: none of them stands on a command line.

    Raises:
        AnalyticsError: there is no such folder, or nothing in it.
    """
    if folder is None:
        return {}
    if not folder.is_dir():
        raise AnalyticsError(str(folder), "there is no such folder", "name one with a file for each property")
    files = (path for path in folder.iterdir() if not path.name.startswith(".") and path.is_file())
    given = {path.name: path.read_text().strip() for path in files}
    if not given:
        step = "put a file for each into it; where a Secret is mounted there, see that it exists"
        raise AnalyticsError(str(folder), "no property is in it", step)
    # As the operator reads the same Secret: where certificates stand in it as text, the stores are PEM.
    for store, texts in PEM.items():
        if any(text in given for text in texts):
            given.setdefault(store, "PEM")
    return given


def identified(spark: SparkSession, topic: Topic) -> Topic:
    """The topic with its ID, as the brokers tell it now.

    Raises:
        AnalyticsError: the topic cannot be described.
    """
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no other way to the client that its connector brings
    assert jvm is not None  # noqa: S101 - only a session of Spark Connect has none
    given = jvm.java.util.Properties()
    for name, value in {**topic.properties, "bootstrap.servers": topic.bootstrap, **DEADLINES}.items():
        given.setProperty(name, value)
    try:
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(given)
        try:
            names = jvm.java.util.Collections.singleton(topic.name)
            found = admin.describeTopics(names).allTopicNames().get().get(topic.name).topicId()
        finally:
            admin.close()
    except Py4JJavaError as error:
        step = "look at the broker's address, the topic's name and the rights to read it"
        raise AnalyticsError(f"topic {topic.name} at {topic.bootstrap}", _why(error), step) from error
    known = found.getMostSignificantBits() or found.getLeastSignificantBits()
    return replace(topic, identity=found.toString() if known else "")


def ingest_topic(ingest: Ingest, topic: Topic) -> Ingested:
    """Take in what the topic holds beyond what was read before; a topic that was made anew is read from its beginning.

    Raises:
        AnalyticsError: the topic cannot be read, too many bad lines, another run at the same time.
        PySparkException: what was read cannot be written.
    """
    topic = identified(ingest.spark, topic)
    done = Ingested(0, 0, 0, 0, 0, 0, ingest.store.current())
    failed: list[AnalyticsError | PySparkException] = []

    def take(batch: DataFrame, _: int) -> None:
        nonlocal done
        kept = batch.persist()
        try:
            if not kept.isEmpty():
                new = ingest.take(kept)
                sums = {name: getattr(done, name) + getattr(new, name) for name in SUMMED}
                done = replace(done, version=new.version, **sums)
        except (AnalyticsError, PySparkException) as error:
            if not _is_of_kafka(error):
                failed.append(error)
            raise
        finally:
            kept.unpersist()

    # What fails is told once, by what is raised here: Spark would write two stack traces beside it.
    ingest.spark.sparkContext.setLogLevel("OFF")
    try:
        _take_all(ingest, topic, take)
    except PySparkException as error:
        if failed:
            raise failed[0] from error
        step = "look at the broker's address, the topic's name and the rights to read it"
        raise AnalyticsError(f"topic {topic.name} at {topic.bootstrap}", _why(error), step) from error
    finally:
        ingest.spark.sparkContext.setLogLevel("ERROR")
    return done


def _take_all(ingest: Ingest, topic: Topic, take: Callable[[DataFrame, int], None]) -> None:
    """Run the query to its end; its session is another one, so it receives the frame and not a name."""
    query = (
        _lines(ingest, topic)
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(topic.checkpoint(ingest.store.folder)))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _lines(ingest: Ingest, topic: Topic) -> DataFrame:
    options = {f"kafka.{name}": value for name, value in topic.properties.items()}
    # What retention took away before it was read is lost anyway; what is there is read all the same.
    options |= {"startingOffsets": "earliest", "failOnDataLoss": "false", "maxOffsetsPerTrigger": str(topic.portion)}
    options |= {"kafka.bootstrap.servers": topic.bootstrap, "subscribe": topic.name}
    return (
        ingest.spark.readStream.format("kafka")
        .options(**options)
        .load()
        .select(
            F.col("value").cast("string").alias("value"),
            F.concat(F.lit(KAFKA), "topic", F.lit("/"), F.col("partition").cast("string")).alias("file"),
            F.col("offset").alias("line"),
        )
    )


def _is_of_kafka(error: Exception) -> bool:
    """Whether the topic's client said it, and neither the tables nor Spark: rows are read where they are written."""
    return isinstance(error, PySparkException) and "org.apache.kafka" in str(error)


def _why(error: PySparkException | Py4JJavaError) -> str:
    """What the Kafka client said, where Spark passes it on."""
    causes = re.findall(r"org\.apache\.kafka\.[\w.]*?(\w+Exception: [^\n]*)", str(error))
    return (causes[-1].split(" SQLSTATE")[0] if causes else first_line(error))[:300]
