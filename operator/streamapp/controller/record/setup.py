"""Creates the parts of the flight record that the settings ask for: the recorder and its writers.

Called by `process`, which also closes them.
"""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import structlog

from streamapp.controller.leader.leadership import ALONE, Alone, Leadership
from streamapp.controller.metrics import Metrics
from streamapp.controller.record.file_writer import RecordFiles, RecordWriter
from streamapp.controller.record.files import RecordLimits
from streamapp.controller.record.queue import QueuedLine, RecordQueue
from streamapp.controller.record.recorder import PassRecorder, RecorderIdentity
from streamapp.controller.record.topic_writer import TopicWriter, properties_in
from streamapp.controller.settings import Settings
from streamapp.flightrecord.schema import Mark
from streamapp.kafka.connection.allowed_brokers import AllowedBrokers
from streamapp.kafka.connection.errors import InvalidSettingsError, ProducerEndedError, cause
from streamapp.kafka.connection.settings import KafkaSettings, read_settings
from streamapp.kafka.producer.producer import Producer

log = structlog.get_logger()

PATIENCE_SECONDS = 5.0
"""For the last lines, when the process ends; a disk that hangs does not keep it longer."""


@dataclass(slots=True)
class Recording:
    """Everything that keeps the record."""

    recorder: PassRecorder
    writer: RecordWriter | None = None
    topic: TopicWriter | None = None

    def start(self) -> None:
        """Begin to write; from within the event loop."""
        if self.writer is not None:
            self.writer.start()
        if self.topic is not None:
            self.topic.start()

    async def close(self) -> None:
        """Write what is left, for a few seconds at most; the event loop goes on meanwhile."""
        self.recorder.stop()
        if self.topic is not None:
            await self.topic.close(PATIENCE_SECONDS)
        if self.writer is not None and not await asyncio.to_thread(self.writer.wait, PATIENCE_SECONDS):
            log.warning("flight record not closed", why=f"its disk has not answered for {PATIENCE_SECONDS:g} s")


def term_of(leadership: Leadership) -> Callable[[], int | None]:
    """What gives the number of a leader's term; None without a Lease."""
    return lambda: None if isinstance(leadership, Alone) else leadership.transitions


def recording(
    settings: Settings,
    metrics: Metrics,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    leadership: Leadership = ALONE,
) -> Recording:
    """Put the parts together; nothing is recorded where no folder and no broker is named."""
    name = RecorderIdentity(_made_up(settings.instance), settings.cluster_name, metadata.version("streamapp-operator"))

    def dropped_marker(seq: int, dropped: int) -> QueuedLine:
        return name.mark(seq, Mark.DROPPED, now(), dropped)

    queues: list[RecordQueue] = []
    writer, topic = None, None
    if settings.record_folder:
        queues.append(RecordQueue(dropped_marker))
        writer = RecordWriter(_place(settings, name), queues[-1], metrics, now)
    if settings.record_bootstrap:
        queues.append(RecordQueue(dropped_marker))
        topic = TopicWriter(_producer(settings, metrics), queues[-1], metrics)
    recorder = PassRecorder(name, tuple(queues), now, term_of(leadership), metrics.record_errors.labels("pass").inc)
    return Recording(recorder, writer, topic)


def _place(settings: Settings, name: RecorderIdentity) -> RecordFiles:
    return RecordFiles(
        folder=Path(settings.record_folder),
        recorder=name.recorder,
        limits=RecordLimits(settings.record_bytes, settings.record_age_seconds),
        close_seconds=settings.record_close_seconds,
        close_bytes=settings.record_close_bytes,
    )


def _producer(settings: Settings, metrics: Metrics) -> Producer:
    def ended(error: ProducerEndedError) -> None:
        metrics.record_producer_ends.inc()
        log.warning("flight record's producer ended", error=str(error))

    return Producer(lambda: _settings_of_topic(settings), settings.record_topic, ended)


def _settings_of_topic(settings: Settings) -> KafkaSettings:
    """Read them as they are now, so that a rotated Secret is used; InvalidSettingsError if they cannot be used."""
    folder = settings.record_config_folder
    try:
        properties = properties_in(folder)
    except OSError as error:
        next_step = "see that the Secret is there and has a key for each property; it is read again"
        raise InvalidSettingsError(f"client properties in {folder}", cause(error), next_step) from error
    return read_settings(settings.record_bootstrap, properties, AllowedBrokers(settings.allowed_brokers))


def _made_up(instance: str) -> str:
    """The pod, and something that no other process of it has; fit to be the name of a file."""
    return f"{instance.replace('/', '-')}_{secrets.token_hex(4)}"
