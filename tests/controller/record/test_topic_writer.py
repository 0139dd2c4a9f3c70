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
from streamapp.kafka.connection.errors import InvalidSettingsError, KafkaAccessError, RecordsTooLargeError
from streamapp.kafka.connection.settings import KafkaSettings, Tls
from streamapp.kafka.producer.frames import Message
from streamapp.kafka.producer.producer import Producer


def told(seq: int, dropped: int) -> QueuedLine:
    return QueuedLine(seq, json.dumps({"seq": seq, "dropped": dropped}).encode() + b"\n")


class Broker:
    """Takes lines while it is there."""

    def __init__(self) -> None:
        self.is_there = True
        self.has_settings = True
        self.refusals: list[KafkaAccessError | None] = []
        """For the next lines, one each."""
        self.most_bytes = 1_000_000
        self.taken: list[Message] = []
        self.is_closed = False

    async def send(self, messages: Sequence[Message]) -> Sequence[KafkaAccessError | None]:
        await asyncio.sleep(0)
        if not self.has_settings:
            raise InvalidSettingsError("client properties", "there are none", "see that the Secret is there")
        if not self.is_there:
            raise KafkaAccessError("topic records: write", "it is away", "wait")
        if sum(len(one.value) for one in messages) > self.most_bytes:
            error = RecordsTooLargeError("topic records: write", "the broker answers message_too_large", "raise it")
            return [error] * len(messages)
        results = [self.refusals.pop(0) if self.refusals else None for _ in messages]
        self.taken += [one for one, error in zip(messages, results, strict=True) if error is None]
        return results

    async def close(self) -> None:
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


@pytest.mark.slow  # real time
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


def test_lines_that_were_refused_are_sent_again_and_no_other() -> None:
    async def run() -> None:
        broker, queue, metrics = Broker(), RecordQueue(told), Metrics()
        refusal = KafkaAccessError("topic records: write", "not now", "wait")
        broker.refusals = [None, refusal, None, refusal]
        writer = TopicWriter(broker, queue, metrics)
        queue.add([line(seq) for seq in range(5)])
        writer.start()
        await asyncio.sleep(0.1)
        queue.close()
        await writer.close(1)
        assert broker.seqs() == [0, 2, 4, 1, 3]
        assert (counted(metrics, "lines"), counted(metrics, "errors")) == (5, 1)

    asyncio.run(run())


def test_at_the_end_what_is_on_its_way_is_waited_for_and_not_sent_twice() -> None:
    class Slow(Broker):
        async def send(self, messages: Sequence[Message]) -> Sequence[KafkaAccessError | None]:
            self.taken += messages
            await asyncio.sleep(0.1)
            return [None] * len(messages)

    async def run() -> None:
        broker, queue, metrics = Slow(), RecordQueue(told), Metrics()
        writer = TopicWriter(broker, queue, metrics)
        queue.add([line(0)])
        writer.start()
        await asyncio.sleep(0.02)
        queue.add([line(1)])
        queue.close()
        await writer.close(2)
        assert (broker.seqs(), broker.is_closed, counted(metrics, "lines")) == ([0, 1], True, 2)

    asyncio.run(run())


def test_without_usable_settings_lines_are_dropped_and_counted_until_there_are_some() -> None:
    async def run() -> None:
        broker, queue, metrics = Broker(), RecordQueue(told), Metrics()
        broker.has_settings = False
        writer = TopicWriter(broker, queue, metrics)
        writer.start()
        for seq in range(20):
            queue.add([line(seq)])
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        dropped = counted(metrics, "dropped")
        assert dropped >= 1, "an alert rests on it"
        assert broker.taken == []
        broker.has_settings = True
        queue.add([line(20)])
        queue.close()
        await writer.close(1)
        found = [json.loads(one.value) for one in broker.taken]
        lost = sum(one.get("dropped", 0) for one in found)
        assert (lost, counted(metrics, "dropped")) == (dropped, dropped)
        assert lost + sum("dropped" not in one for one in found) == 21

    asyncio.run(run())


# What the settings of the process give


def read(settings: Settings) -> KafkaSettings:
    """What the producer of this process would be started with now."""
    made = recording(settings, Metrics())
    assert made.topic is not None
    outlet = made.topic._outlet
    assert isinstance(outlet, Producer)
    return outlet._read()


def test_the_properties_of_a_secret_are_read_again_each_time(tmp_path: Path) -> None:
    settings = replace(Settings(), record_bootstrap="127.0.0.1:1", record_config_folder=str(tmp_path / "secret"))
    with pytest.raises(InvalidSettingsError, match="No such file"):
        read(settings)
    (tmp_path / "secret").mkdir()
    with pytest.raises(InvalidSettingsError, match="there are none"):
        read(settings)  # in the clear, to any listener, it would go otherwise
    (tmp_path / "secret" / "security.protocol").write_text("SSL\n")
    (tmp_path / "secret" / "user.p12").write_bytes(b"\x82")
    assert read(settings).tls == Tls()
    (tmp_path / "secret" / "ssl.truststore.certificates").write_text("PEM")
    assert read(settings).tls == Tls(trusted="PEM")


@pytest.mark.parametrize(
    ("bootstrap", "properties", "allowed", "why"),
    [
        ("127.0.0.1:1", {"security.protocol": "NONSENSE"}, (), "NONSENSE"),
        ("no port", {}, (), "no port"),
        ("127.0.0.1:1", {"security.protocol": "SASL_SSL", "sasl.mechanism": "NONSENSE"}, (), "NONSENSE"),
        ("127.0.0.1:1", {}, ("*.kafka.svc:9092",), "the administrator did not allow this address"),
    ],
)
def test_settings_that_cannot_be_used_are_named(
    tmp_path: Path, bootstrap: str, properties: dict[str, str], allowed: tuple[str, ...], why: str
) -> None:
    for name, value in properties.items():
        (tmp_path / name).write_text(value)
    settings = replace(
        Settings(),
        record_bootstrap=bootstrap,
        record_config_folder=str(tmp_path) if properties else "",
        allowed_brokers=allowed,
    )
    with pytest.raises(InvalidSettingsError, match=why):
        read(settings)


def test_without_the_properties_of_a_secret_no_process_is_started_and_the_log_says_so(tmp_path: Path) -> None:
    settings = replace(Settings(), record_bootstrap="127.0.0.1:1", record_config_folder=str(tmp_path))

    async def run() -> None:
        metrics = Metrics()
        made = recording(settings, metrics)
        made.start()
        for seq in range(10):
            made.recorder.queues[0].add([line(seq)])
            await asyncio.sleep(0.01)
        assert made.topic is not None
        assert isinstance(made.topic._outlet, Producer)
        assert made.topic._outlet._child is None
        await made.close()
        assert counted(metrics, "errors") >= 1
        assert counted(metrics, "dropped") == 10

    with capture_logs() as logged:
        asyncio.run(run())
    (found,) = [one for one in logged if one["event"] == "flight record not sent"]
    assert found["log_level"] == "warning"
    assert str(tmp_path) in found["error"]
    assert "no key says how to connect; there are none" in found["error"]
