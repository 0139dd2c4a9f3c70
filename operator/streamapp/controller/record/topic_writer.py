"""Sends the flight record to a Kafka topic, beside the passes: a broker that is away costs lines and nothing else.

Put together by `recording`. Lines that could not be sent are tried again; what comes meanwhile waits in the queue,
which drops the oldest. A line may arrive twice, and is known again by its recorder and number.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import structlog

from streamapp.controller.metrics import Metrics
from streamapp.controller.record.backoff import pause_seconds
from streamapp.controller.record.queue import Entry, RecordQueue
from streamapp.kafka.connection.errors import KafkaAccessError, RecordsTooLargeError
from streamapp.kafka.producer import Message

log = structlog.get_logger()

PIECE = 500_000
"""Bytes of lines in one request: half of what a broker takes unless it is told otherwise. A topic may take less."""
EVERY_SECONDS = 1.0
DEADLINE_SECONDS = 5.0


class Outlet(Protocol):
    """Where lines are sent."""

    async def send(self, messages: list[Message], deadline_seconds: float) -> None:
        """Write all of these; KafkaAccessError where some may be missing."""

    def close(self) -> None:
        """Drop every connection."""


class TopicWriter:
    """Sends what is in a queue until it is closed."""

    def __init__(self, outlet: Outlet, queue: RecordQueue, metrics: Metrics) -> None:
        self._outlet = outlet
        self._queue = queue
        self._metrics = metrics
        self._taken: deque[Entry] = deque()
        self._most_bytes = PIECE
        self._failures = 0
        self._dropped_told = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._task = asyncio.create_task(self._run(), name="flight record")

    async def close(self, patience_seconds: float) -> None:
        """Send what is left for so long at most, after the queue was closed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            try:
                async with asyncio.timeout(patience_seconds):
                    await self._send()
            except TimeoutError:
                log.warning("flight record not sent", why=f"no answer within {patience_seconds:g} s")
        lost = len(self._taken) + len(self._queue.take(0))
        self._metrics.record_dropped.labels("topic").inc(lost)
        self._outlet.close()

    async def _run(self) -> None:
        while True:
            is_sent = await self._send()
            await asyncio.sleep(EVERY_SECONDS if is_sent else pause_seconds(self._failures))

    async def _send(self) -> bool:
        """Send all there is, piece by piece; False where it has to be tried again."""
        if not self._taken:
            self._taken.extend(self._queue.take(0))
            dropped = self._queue.dropped_in_all
            self._metrics.record_dropped.labels("topic").inc(dropped - self._dropped_told)
            self._dropped_told = dropped
        try:
            while self._taken:
                await self._send_some()
        except Exception as error:  # noqa: BLE001 (nobody else would ever send anything again)
            self._failed(error)
            return False
        self._failures = 0
        return True

    async def _send_some(self) -> None:
        piece = self._piece()
        try:
            await self._outlet.send([Message(one.key, one.text.rstrip(b"\n")) for one in piece], DEADLINE_SECONDS)
        except RecordsTooLargeError as error:
            self._make_smaller(piece, error)
            return
        for _ in piece:
            self._taken.popleft()
        self._metrics.record_lines.labels("topic").inc(len(piece))

    def _make_smaller(self, piece: list[Entry], error: RecordsTooLargeError) -> None:
        """Take less at a time; a single line that is too large is lost, lest all others wait behind it for ever."""
        if len(piece) > 1:
            self._most_bytes = sum(_size(one) for one in piece) // 2
            return
        lost = self._taken.popleft()
        # The line that says so is small, and has the lost one's number, as after lines that had no room.
        told = self._queue.told_of_dropped(lost.seq, 1)
        if _size(told) < _size(lost):
            self._taken.appendleft(told)
        self._metrics.record_dropped.labels("topic").inc()
        self._metrics.record_errors.labels("topic").inc()
        log.warning("line of the flight record not sent", seq=lost.seq, bytes=_size(lost), error=str(error))

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._metrics.record_errors.labels("topic").inc()
        if self._failures == 1:
            trace = None if isinstance(error, KafkaAccessError) else error
            log.warning("flight record not sent", error=str(error), exc_info=trace)

    def _piece(self) -> list[Entry]:
        found: list[Entry] = []
        size = 0
        for entry in self._taken:
            size += _size(entry)
            if found and size > self._most_bytes:
                break
            found.append(entry)
        return found


def _size(entry: Entry) -> int:
    return len(entry.text) + len(entry.key)


def properties_in(folder: str) -> Mapping[str, str]:
    """Read client properties, one file each, as a mounted Secret has them; OSError where they cannot be read."""
    if not folder:
        return {}
    files = (path for path in Path(folder).iterdir() if not path.name.startswith(".") and path.is_file())
    return {path.name: path.read_text().strip() for path in files}
