"""One Kafka broker as a bare process on a loopback address, for as long as the matrix runs."""

import base64
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.errors import LabError
from lab.matrix.processes import LOOPBACK, Process, free_ports, started

PARTITIONS = 6
START_SECONDS = 60.0
_ANSWER_SECONDS = 20.0
_APPEND_TIMES = {"message.timestamp.type": "LogAppendTime"}
_PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers={host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={data}
num.partitions=6
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=5000
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=16777216
"""
"""Processes that start together shall begin in one generation, which a busy machine needs some seconds for."""


@dataclass
class Broker:
    """A broker that answers."""

    bootstrap: str
    process: Process
    _admin: AdminClient = field(init=False)

    def __post_init__(self) -> None:
        """Connect with the first question; the answers need the client to live on."""
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create(self, *topics: str) -> None:
        """Make topics whose records carry the time of their append."""
        wanted = [NewTopic(topic, PARTITIONS, 1, config=_APPEND_TIMES) for topic in topics]
        self._done(self._admin.create_topics(wanted).values())

    def delete_all(self) -> None:
        """Delete every topic but the broker's own, and wait until the names are free again."""
        until = time.monotonic() + START_SECONDS
        while left := self._foreign():
            if time.monotonic() > until:
                raise LabError(f"topics {', '.join(left)}: still there", "the broker has not deleted them", "run anew")
            self._done(self._admin.delete_topics(left).values(), forgiving=True)
            time.sleep(0.2)

    def _foreign(self) -> list[str]:
        return [name for name in self.topics(_ANSWER_SECONDS) if not name.startswith("__")]

    def topics(self, timeout_seconds: float) -> list[str]:
        """Name all topics; KafkaException where the broker does not answer."""
        return list(self._admin.list_topics(timeout=timeout_seconds).topics)

    def _done(self, answers: Iterable[object], *, forgiving: bool = False) -> None:
        for answer in answers:
            try:
                answer.result(_ANSWER_SECONDS)  # type: ignore[attr-defined]  # a Future, by the documentation
            except KafkaException as error:
                if not forgiving:
                    raise LabError("topics: the broker refuses", str(error), f"read {self.process.log}") from error


@contextmanager
def running(jars: Path, java: Path, folder: Path) -> Iterator[Broker]:
    """Format and start a broker in a folder of its own; it answers when the block begins, and ends with it."""
    port, controller = free_ports(2)
    properties = folder / "server.properties"
    text = _PROPERTIES.format(host=LOOPBACK, port=port, controller=controller, data=folder / "data")
    properties.write_text(text)
    run = [str(java / "bin" / "java"), "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    identity = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    format_it = ["kafka.tools.StorageTool", "format", "--standalone", f"--cluster-id={identity}", "-c", str(properties)]
    with started(
        "broker's formatting", [*run, "-cp", f"{jars}/*", *format_it], {}, folder / "format.log"
    ) as formatting:
        code = formatting.wait(START_SECONDS)
    if code != 0:
        raise LabError("broker: its folder cannot be formatted", formatting.last_words(), f"look at {folder}")
    command = [*run, "-Xmx384m", "-cp", f"{jars}/*", "kafka.Kafka", str(properties)]
    with started("broker", command, {}, folder / "broker.log") as process:
        broker = Broker(f"{LOOPBACK}:{port}", process)
        _wait(broker)
        yield broker


def _wait(broker: Broker) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        broker.process.require_life()
        try:
            broker.topics(timeout_seconds=2)
        except KafkaException as error:
            if time.monotonic() > until:
                raise LabError("broker: does not answer", str(error), f"read {broker.process.log}") from error
            time.sleep(0.2)
        else:
            return
