"""Sends the flight record to a Kafka topic, beside the passes: an unreachable broker costs lines and nothing else.

Created by `record.setup`. Unsent lines are tried again; later lines wait in the queue, which drops the oldest. A line
can arrive twice; readers recognise it by its recorder and sequence number.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import structlog

from streamapp.controller.metrics import Metrics
from streamapp.controller.record.backoff import pause_seconds
from streamapp.controller.record.queue import QueuedLine, RecordQueue
from streamapp.kafka.connection.errors import InvalidSettingsError, KafkaAccessError, RecordsTooLargeError
from streamapp.kafka.producer.frames import Message
from streamapp.kafka.secret_properties import SecretContent, client_properties

log = structlog.get_logger()

PIECE = 500_000
"""Bytes of lines in one request: half of a broker's default limit. A topic can have a lower limit."""
EVERY_SECONDS = 1.0


class Outlet(Protocol):
    """Where lines are sent."""

    async def send(self, messages: Sequence[Message]) -> Sequence[KafkaAccessError | None]:
        """Write these, within a bound of its own.

        Gives for each None if it is written, or why it is not, or maybe not; KafkaAccessError where that is not known.
        """

    async def close(self) -> None:
        """Drop every connection."""


class TopicWriter:
    """Sends what is in a queue until it is closed."""

    def __init__(self, outlet: Outlet, queue: RecordQueue, metrics: Metrics) -> None:
        self._outlet = outlet
        self._queue = queue
        self._metrics = metrics
        self._pending: deque[QueuedLine] = deque()
        self._most_bytes = PIECE
        self._failures = 0
        self._dropped_counted = 0
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._task = asyncio.create_task(self._run(), name="flight record")

    async def close(self, patience_seconds: float) -> None:
        """Send what is left for so long at most, after the queue was closed."""
        self._closing.set()
        if self._task is not None:
            # What is on its way is waited for: sent anew it would be there twice.
            await asyncio.wait([self._task], timeout=patience_seconds)
            if not self._task.done():
                log.warning("flight record not sent", why=f"no answer within {patience_seconds:g} s")
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._queue.drop_all()
        self._count_dropped()
        self._metrics.record_dropped.labels("topic").inc(len(self._pending))
        await self._outlet.close()

    async def _run(self) -> None:
        while not self._closing.is_set():
            is_sent = await self._send()
            try:
                async with asyncio.timeout(EVERY_SECONDS if is_sent else pause_seconds(self._failures)):
                    await self._closing.wait()
            except TimeoutError:
                continue
        await self._send()

    async def _send(self) -> bool:
        """Send all there is, piece by piece; False where it has to be tried again."""
        try:
            while self._has_pending():
                await self._send_some()
        except Exception as error:  # noqa: BLE001 (only this task sends lines)
            self._failed(error)
            return False
        self._failures = 0
        return True

    def _has_pending(self) -> bool:
        if not self._pending:
            self._pending.extend(self._queue.take(0))
            self._count_dropped()
        return bool(self._pending)

    def _count_dropped(self) -> None:
        dropped = self._queue.dropped_in_all
        self._metrics.record_dropped.labels("topic").inc(dropped - self._dropped_counted)
        self._dropped_counted = dropped

    async def _send_some(self) -> None:
        piece = self._piece()
        errors = await self._outlet.send([Message(one.key, one.text.rstrip(b"\n")) for one in piece])
        failures = [(one, error) for one, error in zip(piece, errors, strict=True) if error is not None]
        for _ in piece:
            self._pending.popleft()
        self._pending.extendleft(one for one, _ in reversed(failures))
        self._metrics.record_lines.labels("topic").inc(len(piece) - len(failures))
        for _, error in failures:
            if not isinstance(error, RecordsTooLargeError):
                raise error
        if failures:
            self._make_smaller([one for one, _ in failures], failures[0][1])

    def _make_smaller(self, piece: list[QueuedLine], error: KafkaAccessError) -> None:
        """Take less at a time; a single line that is too large is lost, lest all others wait behind it for ever."""
        if len(piece) > 1:
            self._most_bytes = sum(_size(one) for one in piece) // 2
            return
        lost = self._pending.popleft()
        # The line that says so is small, and has the lost one's number, as after lines that had no room.
        marker = self._queue.dropped_marker(lost.seq, 1)
        if _size(marker) < _size(lost):
            self._pending.appendleft(marker)
        self._metrics.record_dropped.labels("topic").inc()
        self._metrics.record_errors.labels("topic").inc()
        log.warning("line of the flight record not sent", seq=lost.seq, bytes=_size(lost), error=str(error))

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        if isinstance(error, InvalidSettingsError):
            # Only a person can change that, and is alerted by lines that are dropped.
            self._queue.drop_all()
            self._count_dropped()
        self._metrics.record_errors.labels("topic").inc()
        if self._failures == 1:
            trace = None if isinstance(error, KafkaAccessError) else error
            log.warning("flight record not sent", error=str(error), exc_info=trace)

    def _piece(self) -> list[QueuedLine]:
        piece: list[QueuedLine] = []
        size = 0
        for entry in self._pending:
            size += _size(entry)
            if piece and size > self._most_bytes:
                break
            piece.append(entry)
        return piece


def _size(entry: QueuedLine) -> int:
    return len(entry.text) + len(entry.key)


def properties_in(folder: str) -> Mapping[str, str]:
    """Read client properties, one file each, as a mounted Secret has them.

    OSError where they cannot be read; InvalidSettingsError for a property that is no text, and where there is none.
    """
    if not folder:
        return {}
    files = (path for path in Path(folder).iterdir() if not path.name.startswith(".") and path.is_file())
    return client_properties([SecretContent(folder, {path.name: path.read_bytes() for path in files})], {})
