"""The flight record on its way to a topic: a broker that is away costs lines, and nobody waits for it."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from streamapp.controller.metrics import Metrics
from streamapp.controller.record import backoff, topic_writer
from streamapp.controller.record.queue import QueuedLine, RecordQueue
from streamapp.controller.record.setup import recording
from streamapp.controller.record.topic_writer import TopicWriter, properties_in
from streamapp.controller.settings import Settings
from streamapp.kafka.connection.errors import KafkaAccessError, RecordsTooLargeError
from streamapp.kafka.producer import Message


def told(seq: int, dropped: int) -> QueuedLine:
    return QueuedLine(seq, json.dumps({"seq": seq, "dropped": dropped}).encode() + b"\n")


class Broker:
    """Takes lines while it is there."""

    def __init__(self) -> None:
        self.is_there = True
        self.most_bytes = 1_000_000
        self.taken: list[Message] = []
        self.is_closed = False

    async def send(self, messages: Sequence[Message], deadline_seconds: float) -> None:
        assert deadline_seconds <= 5
        await asyncio.sleep(0)
        if not self.is_there:
            raise KafkaAccessError("topic records: write", "it is away", "wait")
        if sum(len(one.value) for one in messages) > self.most_bytes:
            raise RecordsTooLargeError("topic records: write", "the broker answers message_too_large", "raise it")
        self.taken += messages

    def close(self) -> None:
        self.is_closed = True

    def seqs(self) -> list[int]:
        return [json.loads(one.value)["seq"] for one in self.taken]


def line(seq: int) -> QueuedLine:
    return QueuedLine(seq, json.dumps({"seq": seq}).encode() + b"\n", b"shop/orders")


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_writer, "EVERY_SECONDS", 0.005)
    for name in ("FIRST_PAUSE", "LONGEST_PAUSE"):
        monkeypatch.setattr(backoff, name, 0.005)


def counted(metrics: Metrics, name: str) -> float:
    return metrics.registry.get_sample_value(f"streamapp_record_{name}_total", {"to": "topic"}) or 0.0


def test_lines_arrive_in_their_order_under_the_name_of_their_application(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_writer, "PIECE", 100)

    async def run() -> None:
        broker, queue, metrics = Broker(), RecordQueue(told), Metrics()
        writer = TopicWriter(broker, queue, metrics)
        writer.start()
        for seq in range(50):
            queue.add([line(seq)])
            if seq % 10 == 0:
                await asyncio.sleep(0.01)
        queue.close()
        await writer.close(1)
        assert broker.seqs() == list(range(50))
        assert {one.key for one in broker.taken} == {b"shop/orders"}
        assert broker.is_closed
        assert (counted(metrics, "lines"), counted(metrics, "dropped")) == (50, 0)

    asyncio.run(run())


def test_while_the_broker_is_away_the_oldest_are_dropped_and_that_is_told() -> None:
    async def run() -> None:
        broker, queue, metrics = Broker(), RecordQueue(told, most_bytes=200), Metrics()
        writer = TopicWriter(broker, queue, metrics)
        broker.is_there = False
        writer.start()
        queue.add([line(0)])
        await asyncio.sleep(0.05)
        for seq in range(1, 100):
            queue.add([line(seq)])
            await asyncio.sleep(0.001)
        assert counted(metrics, "errors") > 1
        broker.is_there = True
        await asyncio.sleep(0.1)
        queue.close()
        await writer.close(1)
        seqs = broker.seqs()
        lost = [json.loads(one.value)["dropped"] for one in broker.taken if b"dropped" in one.value]
        assert seqs[0] == 0, "what was tried is tried again"
        assert lost == [seqs[1] - seqs[0]]
        assert seqs[1:] == list(range(seqs[1], 100))
        assert counted(metrics, "dropped") == lost[0]

    asyncio.run(run())


def test_a_topic_that_takes_less_gets_less_at_a_time() -> None:
    async def run() -> None:
        broker, queue, metrics = Broker(), RecordQueue(told), Metrics()
        broker.most_bytes = 100
        writer = TopicWriter(broker, queue, metrics)
        writer.start()
        queue.add([line(seq) for seq in range(200)])
        queue.close()
        await writer.close(1)
        assert broker.seqs() == list(range(200))
        assert (counted(metrics, "lines"), counted(metrics, "dropped")) == (200, 0)

    asyncio.run(run())


@pytest.mark.parametrize(("most_bytes", "what_is_told"), [(100, [1]), (15, [])])
def test_a_line_that_is_too_large_for_the_topic_is_lost_and_told_and_others_do_not_wait_for_it(
    most_bytes: int, what_is_told: list[int]
) -> None:
    async def run() -> None:
        broker, queue, metrics = Broker(), RecordQueue(told), Metrics()
        broker.most_bytes = most_bytes
        writer = TopicWriter(broker, queue, metrics)
        writer.start()
        large = QueuedLine(1, json.dumps({"seq": 1, "detail": "x" * 200}).encode() + b"\n", b"shop/orders")
        queue.add([line(0), large, line(2)])
        queue.close()
        with capture_logs() as lines:
            await writer.close(1)
        found = [json.loads(one.value) for one in broker.taken]
        assert [one["seq"] for one in found if "dropped" not in one] == [0, 2]
        assert [one["dropped"] for one in found if one["seq"] == 1] == what_is_told
        assert counted(metrics, "dropped") >= 1
        assert "line of the flight record not sent" in [one["event"] for one in lines]

    asyncio.run(run())


def test_a_broker_that_is_away_at_the_end_keeps_nobody() -> None:
    async def run() -> None:
        broker, queue, metrics = Broker(), RecordQueue(told), Metrics()
        broker.is_there = False
        writer = TopicWriter(broker, queue, metrics)
        writer.start()
        queue.add([line(seq) for seq in range(5)])
        await asyncio.sleep(0.02)
        queue.close()
        await asyncio.wait_for(writer.close(0.2), 2)
        assert counted(metrics, "dropped") == 5

    asyncio.run(run())


def test_properties_are_files_as_a_mounted_secret_has_them(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "security.protocol").write_text("SASL_SSL\n")
    assert properties_in(str(tmp_path)) == {"security.protocol": "SASL_SSL"}
    assert properties_in("") == {}


@pytest.mark.parametrize(("properties", "warned"), [({}, 1), ({"client.id": "flight"}, 0)])
def test_without_the_properties_of_a_secret_nothing_is_sent_and_every_line_is_counted(
    tmp_path: Path, properties: dict[str, str], warned: int
) -> None:
    for name, value in properties.items():
        (tmp_path / name).write_text(value)
    settings = replace(Settings(), record_bootstrap="127.0.0.1:1", record_config_folder=str(tmp_path))
    metrics = Metrics()
    with capture_logs() as lines:
        made = recording(settings, metrics)
    assert (made.topic is None) == bool(warned)
    if warned:
        made.recorder.queues[0].add([QueuedLine(1, b"one")])
        assert (counted(metrics, "errors"), counted(metrics, "dropped")) == (1, 1)
    told_of_it = [one for one in lines if one["event"] == "flight record without client properties"]
    assert [(one["folder"], one["log_level"]) for one in told_of_it] == [(str(tmp_path), "warning")] * warned


@pytest.mark.parametrize(
    ("bootstrap", "properties"),
    [
        ("127.0.0.1:1", {"security.protocol": "NONSENSE"}),
        ("no port", {}),
        ("127.0.0.1:1", {"security.protocol": "SASL_SSL", "sasl.mechanism": "NONSENSE"}),
    ],
)
def test_settings_of_the_topic_that_cannot_be_used_are_told_and_do_not_end_the_operator(
    tmp_path: Path, bootstrap: str, properties: dict[str, str]
) -> None:
    for name, value in properties.items():
        (tmp_path / name).write_text(value)
    settings = replace(
        Settings(),
        record_bootstrap=bootstrap,
        record_config_folder=str(tmp_path) if properties else "",
        record_folder=str(tmp_path / "record"),
    )
    metrics = Metrics()
    with capture_logs() as lines:
        made = recording(settings, metrics)
    assert made.topic is None
    assert made.writer is not None, "files are written all the same"
    assert counted(metrics, "errors") == 1
    for queue in made.recorder.queues:
        queue.add([QueuedLine(1, b"one"), QueuedLine(2, b"two")])
    assert counted(metrics, "dropped") == 2, "an alert rests on it"
    told_of_it = [one for one in lines if one["event"] == "flight record not sent to its topic"]
    assert len(told_of_it) == 1
    assert told_of_it[0]["next"]
