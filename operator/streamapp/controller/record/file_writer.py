"""The thread that writes the flight record to a disk, so that a slow or failing disk affects this thread alone.

Started by `record.setup`. If the disk is full or not writable, the thread keeps the lines it took and tries again;
later lines wait in the queue, which drops the oldest. If the disk hangs, the process ends without waiting for it.
Samples go into files of their own, which are closed together with the others: so a reader of both misses no number.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import structlog

from streamapp.controller.metrics import Metrics
from streamapp.controller.record.backoff import pause_seconds
from streamapp.controller.record.files import SAMPLES, OpenFile, RecordLimits, keep_within, recover
from streamapp.controller.record.queue import QueuedLine, RecordQueue

log = structlog.get_logger()

PIECE = 1024 * 1024
"""Bytes of lines that are written at once."""
LOOK_AROUND_SECONDS = 60.0
"""Between two looks at what lies there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFiles:
    """Where files go, and when they are closed."""

    folder: Path
    recorder: str
    limits: RecordLimits
    close_seconds: float
    close_bytes: int
    flush_seconds: float = 10.0
    """So much at most is lost when the process is killed."""


@dataclass(slots=True)
class _Part:
    """Lines that go into one file."""

    name: str
    """In the names of its files."""
    pending: deque[QueuedLine] = field(default_factory=deque)
    file: OpenFile | None = None


class RecordWriter:
    """Writes what is in a queue until that is closed."""

    def __init__(
        self,
        files: RecordFiles,
        queue: RecordQueue,
        metrics: Metrics,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = files
        self._queue = queue
        self._metrics = metrics
        self._now = now
        self._monotonic = monotonic
        self._rest, self._samples = self._parts = (_Part(""), _Part(SAMPLES))
        self._opened_at = self._looked_at = float("-inf")
        self._dropped_counted = 0
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="flight record", daemon=True)

    def start(self) -> None:
        """Begin, with what a process before this one left."""
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for the end after the queue was closed; False where the disk did not let it come in time."""
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._try("recover", self._recover)
        while True:
            # Taken before the look at the queue's end, so that nothing comes between.
            is_last = self._queue.is_closed
            if not any(part.pending for part in self._parts):
                self._sort(self._queue.take(self._patience()))
            is_done = self._try("write", self._write)
            self._try("look around", self._look_around)
            self._count()
            if is_last:
                self._end()
                return
            if not is_done:
                self._queue.pause(pause_seconds(self._failures))

    def _patience(self) -> float:
        """Until the next flush, or until the open file is due."""
        remaining = self._opened_at + self._files.close_seconds - self._monotonic()
        return max(0.01, min(self._files.flush_seconds, remaining)) if self._open_files() else self._files.flush_seconds

    def _open_files(self) -> list[OpenFile]:
        return [part.file for part in self._parts if part.file is not None]

    def _size(self) -> int:
        return sum(file.size for file in self._open_files())

    def _sort(self, lines: Iterable[QueuedLine]) -> None:
        for line in lines:
            (self._samples if line.is_of_samples else self._rest).pending.append(line)

    def _recover(self) -> None:
        if self._files.folder.is_dir():
            count = recover(self._files.folder)
            if count:
                log.info("flight record recovered", files=count, folder=str(self._files.folder))

    def _write(self) -> None:
        for part in self._parts:
            while part.pending:
                self._write_piece(part)
                if self._size() >= self._files.close_bytes:
                    self._close()
        if self._open_files() and self._monotonic() - self._opened_at >= self._files.close_seconds:
            self._close()

    def _write_piece(self, part: _Part) -> None:
        if part.file is None:
            if not self._open_files():
                self._opened_at = self._monotonic()
            first = part.pending[0].seq
            part.file = OpenFile(self._files.folder, self._files.recorder, first, self._now(), part.name)
        piece = _piece(part.pending)
        part.file.write(b"".join(entry.text for entry in piece))
        for _ in piece:
            part.pending.popleft()
        self._metrics.record_lines.labels("file").inc(len(piece))

    def _close(self) -> None:
        for part in self._parts:
            if part.file is not None:
                part.file.finish()
                part.file = None
                self._looked_at = float("-inf")

    def _look_around(self) -> None:
        if self._monotonic() - self._looked_at < LOOK_AROUND_SECONDS or not self._files.folder.is_dir():
            return
        self._looked_at = self._monotonic()
        room = self._size()
        cleanup = keep_within(self._files.folder, self._files.limits, self._now().timestamp(), room)
        self._metrics.record_bytes.set(cleanup.total_bytes + room)
        self._metrics.record_oldest_seconds.set(cleanup.oldest_seconds)
        self._metrics.record_files_removed.inc(cleanup.removed)

    def _count(self) -> None:
        dropped = self._queue.dropped_in_all
        self._metrics.record_dropped.labels("file").inc(dropped - self._dropped_counted)
        self._dropped_counted = dropped

    def _end(self) -> None:
        """Show what was written; what could not be is lost."""
        self._sort(self._queue.take(0))
        self._try("write", self._write)
        self._count()
        self._metrics.record_dropped.labels("file").inc(sum(len(part.pending) for part in self._parts))
        if not self._try("close", self._close):
            for file in self._open_files():
                file.leave()

    def _try(self, what: str, act: Callable[[], None]) -> bool:
        """Do it and return whether it succeeded. Only the first of several failures is logged."""
        try:
            act()
        except Exception as error:  # noqa: BLE001 (nothing may end this thread but the end of the process)
            self._failures += 1
            self._metrics.record_errors.labels("file").inc()
            if self._failures == 1:
                folder = str(self._files.folder)
                log.warning("flight record not written", what=what, folder=folder, error=str(error), next=_NEXT)
            self._let_go_of_a_lost_file(error)
            return False
        if what == "write" and self._failures:
            log.info("flight record written again", after_failures=self._failures)
            self._failures = 0
        return True

    def _let_go_of_a_lost_file(self, error: Exception) -> None:
        """Abandon a file that was removed, or that contains a partial write."""
        for part in self._parts:
            file = part.file
            if file is not None and (file.is_torn or isinstance(error, FileNotFoundError)):
                file.leave()
                part.file = None


def _piece(pending: Iterable[QueuedLine]) -> list[QueuedLine]:
    """The next lines; at least one, however long it is."""
    piece: list[QueuedLine] = []
    size = 0
    for entry in pending:
        size += len(entry.text)
        if piece and size > PIECE:
            break
        piece.append(entry)
    return piece


_NEXT = "see that the volume is there, writable and not full; the operator works on without, and counts what is lost"
