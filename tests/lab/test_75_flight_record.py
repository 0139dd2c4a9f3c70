"""The record from its Kafka topic, read by Spark's own connector, beside the same record from files.

Needs `KAFKA_BOOTSTRAP`; makes a topic of its own and deletes it. The connector's jars come from the lab's cache, or by
Maven where its registry is reached.
"""

import asyncio
import gzip
import json
import os
import time
import uuid
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from lab.build.cache import Cache
from lab.build.maven import connector_jars as fetched
from lab.settings import Settings
from streamapp.analytics.bronze.ingest import Ingest, Ingested, bronze
from streamapp.analytics.bronze.kafka import Topic, connector_jars, identified, ingest_topic
from streamapp.analytics.build import Build
from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.progress import Stages
from streamapp.analytics.spark.session import Engine, open_session
from streamapp.analytics.synthetic.fleet import Fleet
from streamapp.analytics.synthetic.generate import write_record
from streamapp.analytics.tables.derived_schemas import GOLD, SILVER
from streamapp.kafka.connection.settings import read_settings
from streamapp.kafka.producer.frames import Message
from streamapp.kafka.producer.producer import Producer
from tests.analytics.support.reading import records, rows

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(420)]

NOW = datetime(2026, 12, 1, tzinfo=UTC)
FLEET = Fleet(apps=4, days=1, tasks=4, pods=3, file_seconds=7200)
PIECE = 500


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    settings = Settings.from_environment()
    jars = connector_jars(fetched(settings.versions, Cache(settings.cache)))
    engine = Engine(master="local[2]", cores=1, memory="1g", quick_start=True, conf={"spark.jars": jars})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        session = open_session(engine)
        yield session
        session.stop()


@pytest.fixture
def topic() -> Iterator[Topic]:
    bootstrap = os.environ["KAFKA_BOOTSTRAP"]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    name = f"record-{uuid.uuid4().hex[:8]}"
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(30)
    yield Topic(bootstrap, name, portion=800)
    admin.delete_topics([name])[name].result(30)


def recreate(admin: AdminClient, name: str) -> None:
    """Make a topic again, as soon as the broker has forgotten the one that was deleted."""
    for _ in range(60):
        try:
            admin.create_topics([NewTopic(name, 3, 1)])[name].result(30)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            time.sleep(0.5)
        else:
            return
    raise AssertionError(f"{name} is still there")


def send(topic: Topic, lines: Sequence[bytes]) -> None:
    """Write lines as the operator does, those of one application into one partition."""

    async def main() -> None:
        producer = Producer(lambda: read_settings(topic.bootstrap, {}), topic.name, ended.append)
        try:
            messages = [Message(json.loads(line)["app"].encode(), line) for line in lines]
            for at in range(0, len(messages), PIECE):
                piece = messages[at : at + PIECE]
                assert await producer.send(piece) == [None] * len(piece)
        finally:
            await producer.close()

    ended: list[object] = []
    asyncio.run(main())
    assert ended == []


def at(topic: Topic, partition: int, offset: int) -> bytes | None:
    """What lies there."""
    consumer = Consumer({"bootstrap.servers": topic.bootstrap, "group.id": topic.name, "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic.name, partition, offset)])
        message = consumer.poll(20)
        assert message is not None
        return message.value()
    finally:
        consumer.close()


def made(folder: Path) -> tuple[list[Path], list[bytes]]:
    """A made-up record: its files, and all its lines."""
    files = [path for path, _ in write_record(FLEET, folder)]
    return files, [line for path in files for line in gzip.decompress(path.read_bytes()).splitlines()]


def ingested(spark: SparkSession, root: Path, topic: Topic) -> Ingested:
    return ingest_topic(Ingest(spark, bronze(root), Stages(), NOW), topic)


def test_the_topic_gives_the_same_tables_as_the_files(spark: SparkSession, topic: Topic, tmp_path: Path) -> None:
    files, lines = made(tmp_path / "record")
    of_files, of_topic = tmp_path / "files", tmp_path / "topic"
    Ingest(spark, bronze(of_files), Stages(), NOW).run(files)
    Build(spark, of_files, Stages()).run()

    half = len(lines) // 2
    send(topic, lines[:half])
    first = ingested(spark, of_topic, topic)
    assert (first.rows, first.kept, first.doubled, first.bad) == (half, half, 0, 0)
    # What could not be acknowledged is sent again.
    send(topic, lines[half - 700 :])
    second = ingested(spark, of_topic, topic)
    assert (second.kept, second.doubled, second.bad) == (len(lines) - half, 700, 0)
    assert ingested(spark, of_topic, topic).rows == 0
    Build(spark, of_topic, Stages()).run()
    for table in (*SILVER, *GOLD):
        assert rows(of_topic, table) == rows(of_files, table), table
    assert rows(of_topic, "s_scale_episode")


def test_a_portion_that_is_read_again_after_a_kill_counts_once(
    spark: SparkSession, topic: Topic, tmp_path: Path
) -> None:
    send(topic, made(tmp_path / "record")[1][:1000])
    assert ingested(spark, tmp_path / "t", topic).kept == 1000
    # As if the manifest had been written and Spark's checkpoint not any more.
    for commit in (identified(spark, topic).checkpoint(bronze(tmp_path / "t").folder) / "commits").iterdir():
        commit.unlink()
    again = ingested(spark, tmp_path / "t", topic)
    assert (again.rows, again.kept, again.doubled) == (1000, 0, 1000)
    told = [record for table in ("b_sample", "b_pod", "b_group") for record in records(tmp_path / "t", table)]
    names = ("recorder", "seq", "task", "ordinal", "role")
    assert len(told) == len({tuple(record.get(name) for name in names) for record in told}) > 0


def test_a_topic_that_was_made_anew_under_its_name_is_read_from_its_beginning(
    spark: SparkSession, topic: Topic, tmp_path: Path
) -> None:
    lines = made(tmp_path / "record")[1][:1500]
    send(topic, lines[:1000])
    assert ingested(spark, tmp_path / "t", topic).kept == 1000
    before = identified(spark, topic).identity
    admin = AdminClient({"bootstrap.servers": topic.bootstrap})
    admin.delete_topics([topic.name])[topic.name].result(30)
    recreate(admin, topic.name)
    # The first of them were in the former topic too, and all have lower offsets than it had.
    send(topic, lines[900:1200])
    done = ingested(spark, tmp_path / "t", topic)
    assert (done.rows, done.kept, done.doubled) == (300, 200, 100)
    send(topic, lines[1200:])
    assert ingested(spark, tmp_path / "t", topic).kept == 300
    assert identified(spark, topic).identity != before


def test_bad_lines_fail_the_run_or_lie_in_quarantine_with_partition_and_offset(
    spark: SparkSession, topic: Topic, tmp_path: Path
) -> None:
    good = made(tmp_path / "record")[1][:150]
    surprise = b'{"app":"","v":1,"kind":"surprise"}'
    send(topic, [*good, surprise])
    with pytest.raises(AnalyticsError, match="unknownKind"):
        ingest_topic(Ingest(spark, bronze(tmp_path / "t"), Stages(), NOW, most_bad=0.001), topic)
    assert not bronze(tmp_path / "t").current().number
    done = ingest_topic(Ingest(spark, bronze(tmp_path / "t"), Stages(), NOW, most_bad=0.1), topic)
    assert (done.kept, done.bad) == (150, 1)
    (bad,) = records(tmp_path / "t", "b_quarantine")
    assert bad["rule"] == "unknownKind"
    assert bad["file"].startswith(f"kafka:{topic.name}/")
    assert at(topic, int(bad["file"].rsplit("/")[-1]), bad["line"]) == bad["raw"].encode() == surprise


def test_a_topic_that_is_not_there_is_named(spark: SparkSession, topic: Topic, tmp_path: Path) -> None:
    with pytest.raises(AnalyticsError, match="rights to read it") as failed:
        ingested(spark, tmp_path / "t", replace(topic, name="nowhere"))
    assert failed.value.what.startswith("topic nowhere at ")
    assert "UnknownTopicOrPartition" in failed.value.why
