"""The only part of the meter that talks to a broker: offsets, topic settings and the records of a span.

Called by `lab.meter.measure` and `lab.meter.tail`. Never joins a consumer group, commits an offset or changes anything:
consumers are given their partitions by hand, and the group ID that librdkafka insists on is never used.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

# All three are public by the library's documentation; its package does not re-export them in a way mypy accepts.
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType  # type: ignore[attr-defined]

from lab.errors import LabError

REQUEST_S = 10.0
"""How long one question to the broker may take."""
STALL_S = 30.0
"""How long a reading may bring nothing new before it fails."""
APPEND_TIME_SETTING = "message.timestamp.type"
_BATCH = 10_000
_END_OF_LOG = "_PARTITION_EOF"

Ints = npt.NDArray[np.int64]


class Isolation(StrEnum):
    """Whose eyes to read with; the values are Kafka's."""

    COMMITTED = "read_committed"
    """What a consumer sees that skips aborted and unfinished transactions."""
    UNCOMMITTED = "read_uncommitted"


class Progress(Protocol):
    """Is told how far a reading is; called about every ten thousand records and at the end."""

    def __call__(self, topic: str, done: int, total: int, /) -> None:
        """Take the offsets passed and to pass in this reading."""


def in_silence(_topic: str, _done: int, _total: int, /) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Span:
    """Offsets [start, end) of one partition."""

    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Batch:
    """Some records of one topic, in the order of the log of each partition; one column per property."""

    topic: str
    messages: list[Message]
    partitions: Ints
    offsets: Ints

    @classmethod
    def of(cls, topic: str, messages: list[Message]) -> "Batch":
        """Take messages that are records, not errors."""
        # A million records take a second less with map than with a comprehension: no frame is entered for each.
        return cls(
            topic,
            messages,
            np.fromiter(map(Message.partition, messages), np.int64, len(messages)),
            np.fromiter(map(Message.offset, messages), np.int64, len(messages)),
        )

    def only(self, mask: npt.NDArray[np.bool_]) -> "Batch":
        """Leave the other records out."""
        if mask.all():
            return self
        return Batch.of(self.topic, [self.messages[index] for index in np.flatnonzero(mask)])

    def append_times(self) -> Ints:
        """Give the time of each record's append, in milliseconds since the epoch on the broker's clock.

        Raises:
            LabError: a record carries the time its producer chose instead.
        """
        pairs = chain.from_iterable(map(Message.timestamp, self.messages))
        stamps = np.fromiter(pairs, np.int64, 2 * len(self.messages)).reshape(-1, 2)
        foreign = np.flatnonzero(stamps[:, 0] != TIMESTAMP_LOG_APPEND_TIME)
        if foreign.size:
            raise LabError(
                f"{self.place(int(foreign[0]))}: does not carry the time of its append",
                f"it was written before {APPEND_TIME_SETTING}=LogAppendTime was set for the topic",
                "measure a window that begins at least the lead-in after the setting was made",
            )
        return stamps[:, 1]

    def keys(self) -> list[bytes]:
        """Give the key of each record; one without a key has the empty one, as the demo application counts it."""
        return [key or b"" for key in map(Message.key, self.messages)]

    def values(self) -> list[bytes | None]:
        """Give the value of each record; None: a tombstone."""
        return list(map(Message.value, self.messages))

    def place(self, index: int) -> str:
        """Name one record for an error."""
        return f"topic {self.topic} partition {self.partitions[index]} offset {self.offsets[index]}"


class Broker:
    """Questions to the cluster at `bootstrap`; the connection is made with the first one.

    Every method raises a LabError where the broker does not answer or refuses.
    """

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})

    def partitions(self, topic: str) -> list[int]:
        """List the partitions of a topic; a LabError too where there is no such topic."""
        with self._asking(f"the partitions of {topic}"):
            metadata = self._admin.list_topics(topic, timeout=REQUEST_S).topics[topic]
        if metadata.error is not None:
            raise LabError(
                f"topic {topic} at {self.bootstrap}: cannot be read",
                str(metadata.error),
                "check its name, and that the application's topics were created",
            )
        return sorted(metadata.partitions)

    def settings(self, topic: str) -> dict[str, str]:
        """Read the settings in force for a topic, defaults included."""
        self.partitions(topic)
        resource = ConfigResource(ResourceType.TOPIC, topic)
        with self._asking(f"the settings of {topic}"):
            answer = self._admin.describe_configs([resource], request_timeout=REQUEST_S)[resource]
            entries: Mapping[str, Any] = answer.result(timeout=2 * REQUEST_S)
        return {name: str(entry.value) for name, entry in entries.items()}

    def starts(self, topic: str) -> dict[int, int]:
        """Give the first offset of every partition that still exists."""
        return {number: span.start for number, span in self._spans(topic, Isolation.UNCOMMITTED).items()}

    def ends(self, topic: str, isolation: Isolation) -> dict[int, int]:
        """Give the end offset of every partition: of the log, or of what read_committed may read now."""
        return {number: span.end for number, span in self._spans(topic, isolation).items()}

    def offsets_at(self, topic: str, epoch_ms: int) -> dict[int, int | None]:
        """Give the first offset of every partition with this timestamp or a later one; None: no such record."""
        wanted = [TopicPartition(topic, number, epoch_ms) for number in self.partitions(topic)]
        with self._asking(f"the offsets of {topic}"), _consumer(self.bootstrap, Isolation.UNCOMMITTED) as consumer:
            found = consumer.offsets_for_times(wanted, timeout=REQUEST_S)
            for at in found:
                if at.error is not None:
                    raise KafkaException(at.error)
        return {at.partition: None if at.offset < 0 else at.offset for at in found}

    def newest_ms(self, topic: str) -> int | None:
        """Give the newest timestamp in a topic, with LogAppendTime that of the last append; None: it holds nothing."""
        # Public by the library's documentation, and without types.
        newest_of_all = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(topic, number): newest_of_all for number in self.partitions(topic)}
        with self._asking(f"the newest records of {topic}"):
            answers = self._admin.list_offsets(wanted, request_timeout=REQUEST_S).values()
            stamps = [int(answer.result(timeout=2 * REQUEST_S).timestamp) for answer in answers]
        newest = max(stamps)
        return None if newest < 0 else newest

    def _spans(self, topic: str, isolation: Isolation) -> dict[int, Span]:
        numbers = self.partitions(topic)
        with self._asking(f"the offsets of {topic}"), _consumer(self.bootstrap, isolation) as consumer:
            asked = {
                number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=REQUEST_S)
                for number in numbers
            }
        return {number: Span(*offsets) for number, offsets in asked.items()}

    @contextmanager
    def _asking(self, question: str) -> Iterator[None]:
        try:
            yield
        except (KafkaException, TimeoutError) as error:
            raise LabError(
                f"broker {self.bootstrap}: did not give {question}",
                str(error) or type(error).__name__,
                "check that the broker is up and that this address is reachable from here",
            ) from error


def read(
    bootstrap: str,
    topic: str,
    spans: Mapping[int, Span],
    isolation: Isolation,
    progress: Progress = in_silence,
    stall_s: float = STALL_S,
) -> Iterator[Batch]:
    """Read the records of `spans`, in batches in the order of the log of each partition.

    With read_committed aborted records are missing, and a span whose end lies behind an unfinished transaction is
    waited for.

    Args:
        bootstrap: address of the broker.
        topic: what to read.
        spans: by partition; empty ones can be left out.
        isolation: of the consumer.
        progress: receives how far the topic is read.
        stall_s: seconds without new records after which the read fails.

    Raises:
        LabError: nothing new came for `stall_s`, or the broker reported an error.
    """
    reading = _Reading(bootstrap, topic, {number: span for number, span in spans.items() if span.start < span.end})
    if not reading.positions:
        return
    with _consumer(bootstrap, isolation) as consumer:
        consumer.assign([TopicPartition(topic, number, start) for number, start in reading.positions.items()])
        last_message_at = time.monotonic()
        while reading.positions:
            batch, came = reading.consume_from(consumer)
            if came:
                last_message_at = time.monotonic()
                progress(topic, reading.done(), reading.total)
            elif time.monotonic() - last_message_at > stall_s:
                raise reading.stalled(isolation, stall_s)
            if batch.messages:
                yield batch


def _consumer(bootstrap: str, isolation: Isolation) -> Consumer:
    """Make a consumer that belongs to no group; the caller closes it."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "streamapp-lab-meter",
            "isolation.level": isolation.value,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 50,
            "log_level": 2,
        }
    )


class _Reading:
    """How far one reading is."""

    def __init__(self, bootstrap: str, topic: str, spans: Mapping[int, Span]) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.spans = spans
        self.positions = {number: span.start for number, span in spans.items()}
        """The next offset of each partition that is not finished."""
        self.total = sum(span.end - span.start for span in spans.values())

    def consume_from(self, consumer: Consumer) -> tuple[Batch, bool]:
        """Take what comes next, if it comes soon, and whether anything came; ask for no more of what is finished."""
        messages = consumer.consume(_BATCH, timeout=0.2)
        batch, finished = self.take(messages)
        if finished:
            consumer.pause([TopicPartition(self.topic, number) for number in finished])
        return batch, bool(messages)

    def take(self, messages: list[Message]) -> tuple[Batch, list[int]]:
        """Move on by what came; give the records that belong to the spans, and the partitions that are finished now."""
        signals = [message for message in messages if message.error() is not None]
        if signals:
            messages = [message for message in messages if message.error() is None]
        batch = Batch.of(self.topic, messages)
        kept = np.zeros(len(messages), np.bool_)
        for number in self.positions:
            mine = batch.partitions == number
            offsets = batch.offsets[mine]
            kept[mine] = offsets < self.spans[number].end
            self.positions[number] = max(self.positions[number], int(offsets.max(initial=-1)) + 1)
        self._take_signals(signals)
        finished = [number for number, position in self.positions.items() if position >= self.spans[number].end]
        for number in finished:
            del self.positions[number]
        return batch.only(kept), finished

    def _take_signals(self, signals: list[Message]) -> None:
        """Move on to the ends of the log that were met: a transaction's marker takes an offset but never comes."""
        for signal in signals:
            error, number, offset = signal.error(), signal.partition(), signal.offset()
            if error is not None and error.name() != _END_OF_LOG:
                raise self._failed(error)
            if number in self.positions and offset is not None:
                self.positions[number] = max(self.positions[number], offset)

    def done(self) -> int:
        """Count the offsets passed."""
        return self.total - sum(self.spans[number].end - position for number, position in self.positions.items())

    def stalled(self, isolation: Isolation, stall_s: float) -> LabError:
        """Say which partitions bring nothing more."""
        open_spans = ", ".join(
            f"partition {number} stands at {position} of {self.spans[number].end}"
            for number, position in sorted(self.positions.items())
        )
        committed = isolation is Isolation.COMMITTED
        return LabError(
            f"topic {self.topic} at {self.bootstrap}: nothing new for {stall_s:g} s",
            f"{open_spans}; " + ("a transaction may be open there" if committed else "the broker may be down"),
            "try again once the transaction has ended or timed out" if committed else "check the broker",
        )

    def _failed(self, error: KafkaError) -> LabError:
        return LabError(
            f"topic {self.topic} at {self.bootstrap}: reading failed",
            error.str(),
            "check the broker, and that the topic was not deleted or cut by its retention meanwhile",
        )
