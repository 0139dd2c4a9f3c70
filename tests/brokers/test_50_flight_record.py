"""The flight record's topic on real brokers: every way to authenticate, and a process or a broker that fails."""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from zlib import crc32

import pytest
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from streamapp.controller.metrics import Metrics
from streamapp.controller.record import topic_writer
from streamapp.controller.record.queue import QueuedLine, RecordQueue
from streamapp.controller.record.topic_writer import TopicWriter
from streamapp.kafka.connection.allowed_brokers import AllowedBrokers
from streamapp.kafka.connection.errors import (
    InvalidSettingsError,
    KafkaAccessError,
    NotAuthenticatedError,
    NotAuthorisedError,
    ProducerEndedError,
    TopicUnknownError,
)
from streamapp.kafka.connection.settings import KafkaSettings, read_settings
from streamapp.kafka.producer import frames
from streamapp.kafka.producer.producer import Producer
from tests.brokers import secured
from tests.brokers.access import Properties, mutual, oauth, plain, scram
from tests.brokers.secured import PASSWORD, USER, Cluster, Right

pytestmark = [pytest.mark.brokers, pytest.mark.timeout(300)]

TOPIC = "flights"
PARTITIONS = 6
PATIENCE_SECONDS = 60.0

WAYS: dict[str, tuple[str, Callable[[Cluster], Properties]]] = {
    "nothing": ("ADMIN", lambda _: {}),
    "mutual TLS": ("MTLS", lambda cluster: mutual(cluster, cluster.clients.issue(USER))),
    "PLAIN": ("PLAIN", plain),
    "SCRAM-SHA-256": ("SCRAM", lambda cluster: scram(cluster, 256)),
    "SCRAM-SHA-512": ("SCRAM", scram),
    "OAUTHBEARER": ("OAUTH", oauth),
}


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    """The topic, on which the operator has no right but to write."""
    cluster.create(TOPIC)
    cluster.allow(USER, Right("WRITE", "topic", TOPIC))
    return TOPIC


def lines(count: int, start: int = 0) -> list[QueuedLine]:
    return [
        QueuedLine(seq, json.dumps({"recorder": "one", "seq": seq}).encode() + b"\n", f"shop/app-{seq % 7}".encode())
        for seq in range(start, start + count)
    ]


def records(cluster: Cluster, topic: str = TOPIC) -> list[Message]:
    """Everything that lies in the topic, by partition and offset."""
    consumer = Consumer({"bootstrap.servers": cluster.at("ADMIN"), "group.id": "reader", "log_level": 0})
    found: list[Message] = []
    try:
        for number in range(PARTITIONS):
            place = TopicPartition(topic, number, 0)
            end = _end(consumer, place)
            consumer.assign([place])
            read = 0
            while read < end:
                message = consumer.poll(PATIENCE_SECONDS)
                assert message is not None
                assert message.error() is None
                found.append(message)
                read = (message.offset() or 0) + 1
    finally:
        consumer.close()
    return found


def _end(consumer: Consumer, place: TopicPartition) -> int:
    """Ask until the broker leads what it leads: on a busy machine it loses itself for a moment."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return consumer.get_watermark_offsets(place, timeout=PATIENCE_SECONDS)[1]
        except KafkaException:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def values(found: Sequence[Message]) -> list[dict[str, int]]:
    return [json.loads(one.value() or b"") for one in found]


async def sent(settings: KafkaSettings, batch: Sequence[QueuedLine], topic: str = TOPIC) -> Sequence[object]:
    ended: list[ProducerEndedError] = []
    one = Producer(lambda: settings, topic, ended.append)
    try:
        return await one.send([frames.Message(entry.key, entry.text.rstrip()) for entry in batch])
    finally:
        await one.close()
        assert ended == []


def settings(cluster: Cluster, listener: str, properties: Properties) -> KafkaSettings:
    return read_settings(cluster.at(listener), properties)


@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize(("listener", "properties"), WAYS.values(), ids=WAYS.keys())
def test_every_way_to_authenticate_writes_each_line_into_its_partition_in_order(
    cluster: Cluster, listener: str, properties: Callable[[Cluster], Properties]
) -> None:
    before = len(records(cluster))
    batch = lines(500)
    assert asyncio.run(sent(settings(cluster, listener, properties(cluster)), batch)) == [None] * 500
    found = records(cluster)
    assert len(found) - before == 500
    assert all(one.partition() == crc32(one.key() or b"") % PARTITIONS for one in found)
    for number in range(7):
        of_key = [one["seq"] for one in values([one for one in found if one.key() == f"shop/app-{number}".encode()])]
        assert of_key[-len(range(number, 500, 7)) :] == [*range(number, 500, 7)]


REFUSED: dict[str, tuple[Callable[[Cluster], KafkaSettings], str, type[KafkaAccessError], str]] = {
    "a wrong password": (
        lambda c: settings(c, "SCRAM", scram(c, password="wrong-password")),
        TOPIC,
        NotAuthenticatedError,
        "invalid credentials",
    ),
    "a wrong secret of the token's client": (
        lambda c: settings(c, "OAUTH", oauth(c, "wrong-password")),
        TOPIC,
        NotAuthenticatedError,
        "OIDC|token",
    ),
    "no right": (lambda c: settings(c, "SCRAM", scram(c)), "secret-topic", NotAuthorisedError, "WRITE and DESCRIBE"),
    "no topic": (lambda c: settings(c, "ADMIN", {}), "nowhere", TopicUnknownError, "create the topic"),
    "a broker that metadata names and the administrator did not allow": (
        lambda c: read_settings(c.at("ADMIN").replace("127.0.0.1", "localhost"), {}, AllowedBrokers(("localhost:*",))),
        TOPIC,
        InvalidSettingsError,
        "did not allow the broker 127.0.0.1:",
    ),
}


@pytest.mark.parametrize(("made", "name", "kind", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_is_named_and_writes_nothing(
    cluster: Cluster,
    topic: str,
    made: Callable[[Cluster], KafkaSettings],
    name: str,
    kind: type[KafkaAccessError],
    text: str,
) -> None:
    if name == "secret-topic":
        cluster.create(name)
    before = len(records(cluster, topic))
    results = asyncio.run(sent(made(cluster), lines(10), name))
    assert {type(one) for one in results} == {kind}
    with pytest.raises(kind, match=text):
        raise next(one for one in results if isinstance(one, kind))
    assert "wrong-password" not in str(results[0])
    assert len(records(cluster, topic)) == before


# The writer, while something fails


class Flight:
    """A record's writer on its way, and how long the event loop stood still."""

    def __init__(self, read: Callable[[], KafkaSettings], topic: str = TOPIC) -> None:
        self.ended: list[ProducerEndedError] = []
        self.producer = Producer(read, topic, self.ended.append)
        self.queue = RecordQueue(lambda seq, dropped: QueuedLine(seq, b'{"dropped":%d}' % dropped))
        self.metrics = Metrics()
        self.writer = TopicWriter(self.producer, self.queue, self.metrics)
        self.added = 0
        self.longest_pause = 0.0

    def add(self, count: int) -> None:
        self.queue.add(lines(count, self.added))
        self.added += count

    def counted(self, name: str) -> float:
        return self.metrics.registry.get_sample_value(f"streamapp_record_{name}_total", {"to": "topic"}) or 0.0

    @property
    def process(self) -> int | None:
        return None if self.producer._child is None else self.producer._child.number

    async def until(self, is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + 4 * PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < end
            await asyncio.sleep(0.05)

    async def until_all_are_written(self) -> None:
        await self.until(lambda: self.counted("lines") == self.added)

    async def until_more_are_written(self) -> None:
        before = self.counted("lines")
        await self.until(lambda: self.counted("lines") > before)

    async def until_it_is_replaced(self, process: int) -> None:
        await self.until(lambda: self.process not in {None, process})

    async def beat(self) -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.01)
            self.longest_pause = max(self.longest_pause, time.monotonic() - began - 0.01)


@asynccontextmanager
async def flight(read: Callable[[], KafkaSettings], topic: str = TOPIC) -> AsyncIterator[Flight]:
    one = Flight(read, topic)
    beating = asyncio.create_task(one.beat())
    one.writer.start()
    try:
        yield one
    finally:
        one.queue.close()
        await one.writer.close(5)
        beating.cancel()


@pytest.fixture
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_writer, "EVERY_SECONDS", 0.05)
    monkeypatch.setattr(topic_writer, "PIECE", 50_000)


def without_twins(found: Sequence[Message]) -> list[int]:
    """Sequence numbers as the pipeline takes them: each once."""
    return sorted({one["seq"] for one in values(found)})


@pytest.mark.usefixtures("_often")
def test_a_process_that_is_killed_in_the_middle_of_batches_loses_no_line(cluster: Cluster) -> None:
    cluster.create("killed")

    async def play() -> Flight:
        async with flight(lambda: settings(cluster, "ADMIN", {}), "killed") as one:
            for _ in range(5):
                one.add(5000)
                # After some batches, and before the last one.
                await one.until_more_are_written()
                process = one.process
                assert process is not None
                os.kill(process, signal.SIGKILL)
                await one.until_it_is_replaced(process)
            await one.until_all_are_written()
        return one

    one = asyncio.run(play())
    found = records(cluster, "killed")
    assert without_twins(found) == [*range(25_000)]
    assert [error.why.split(";")[0] for error in one.ended] == ["it ended by SIGKILL"] * 5
    assert one.counted("dropped") == 0


@pytest.mark.usefixtures("_often")
def test_a_broker_that_is_stopped_and_continued_costs_neither_a_line_nor_the_operator(tmp_path: Path) -> None:
    """Longer than a message's time, in the middle of batches; librdkafka's admin client aborts its process here."""

    async def play(cluster: Cluster) -> Flight:
        process = cluster.brokers[0].process.running.pid
        async with flight(lambda: settings(cluster, "ADMIN", {})) as one:
            for seconds in (0.5, 12.0, 20.0):
                one.add(5000)
                await one.until_more_are_written()
                os.kill(process, signal.SIGSTOP)
                one.add(1000)
                await asyncio.sleep(seconds)
                os.kill(process, signal.SIGCONT)
                await asyncio.sleep(1)
            await one.until_all_are_written()
        return one

    with secured.running(tmp_path) as cluster:
        cluster.create(TOPIC)
        one = asyncio.run(play(cluster))
        found = records(cluster)
    assert one.ended == []
    assert without_twins(found) == [*range(18_000)]
    assert one.counted("dropped") == 0
    assert one.counted("errors") >= 1, "it was stopped for longer than a message waits"


@pytest.mark.usefixtures("topic", "_often")
def test_a_rotated_password_is_used_without_a_restart_of_the_operator(cluster: Cluster) -> None:
    secret = {"password": PASSWORD}

    def read() -> KafkaSettings:
        return settings(cluster, "SCRAM", scram(cluster, password=secret["password"]))

    async def play() -> Flight:
        async with flight(read) as one:
            one.add(10)
            await one.until_all_are_written()
            first = one.process
            await asyncio.to_thread(cluster.set_password, USER, "another")
            secret["password"] = "another"
            one.add(10)
            await one.until_all_are_written()
            assert one.process != first
            secret["password"] = "wrong"
            one.add(10)
            await one.until(lambda: one.counted("errors") >= 1)
            assert one.counted("lines") == 20
            secret["password"] = "another"
            await one.until_all_are_written()
        return one

    try:
        one = asyncio.run(play())
    finally:
        cluster.set_password(USER, PASSWORD)
    assert (one.ended, one.counted("dropped")) == ([], 0)
