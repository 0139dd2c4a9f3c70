"""Lines of the flight record on their way to a disk or a broker: bounded, and adding a line never blocks.

If lines are not taken in time, the oldest are dropped. The next take then begins with a marker line that has their
number; its sequence number is that of the last dropped line. The lock is held for moves in memory only, never while
anything is written.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

MOST_BYTES = 16 * 1024 * 1024
"""Lines that wait."""


class QueuedLine(NamedTuple):
    """One line."""

    seq: int
    text: bytes
    key: bytes = b""
    """What it is about, as `namespace/name`."""
    is_of_samples: bool = False
    """Files have these apart from all others."""


class RecordQueue:
    """Keeps lines until they are taken, in the order of their numbers."""

    def __init__(self, dropped_marker: Callable[[int, int], QueuedLine], most_bytes: int = MOST_BYTES) -> None:
        """Begin empty.

        Args:
            dropped_marker: Makes the line with this sequence number that reports so many dropped lines.
            most_bytes: Limit on the bytes that wait.
        """
        self.dropped_marker = dropped_marker
        self._most_bytes = most_bytes
        self._changed = threading.Condition()
        self._entries: deque[QueuedLine] = deque()
        self._bytes = 0
        self._last_dropped = 0
        self._dropped = 0
        self._is_closed = False
        self.dropped_in_all = 0
        """Lines that were lost."""

    @property
    def is_closed(self) -> bool:
        """Whether nothing more will come."""
        return self._is_closed

    def add(self, entries: Iterable[QueuedLine]) -> None:
        """Keep these; the oldest go where there is no room."""
        with self._changed:
            for entry in entries:
                self._entries.append(entry)
                self._bytes += len(entry.text)
            while self._bytes > self._most_bytes:
                lost = self._entries.popleft()
                self._bytes -= len(lost.text)
                self._last_dropped = lost.seq
                self._dropped += 1
                self.dropped_in_all += 1
            if self._is_much():
                self._changed.notify()

    def drop_all(self) -> None:
        """Drop what waits, where nothing can be done with it."""
        with self._changed:
            if self._entries:
                self._last_dropped = self._entries[-1].seq
                self._dropped += len(self._entries)
                self.dropped_in_all += len(self._entries)
            self._entries.clear()
            self._bytes = 0

    def close(self) -> None:
        """Wake the waiting writer: no more lines will come."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def take(self, patience: float) -> list[QueuedLine]:
        """Wait until there is much to do, or so many seconds; then give all there is."""
        with self._changed:
            if not self._is_closed and not self._is_much():
                self._changed.wait(patience)
            lines = list(self._entries)
            if self._dropped:
                lines.insert(0, self.dropped_marker(self._last_dropped, self._dropped))
            self._entries.clear()
            self._bytes = self._dropped = 0
            return lines

    def pause(self, seconds: float) -> None:
        """Wait so long, or until it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, seconds)

    def _is_much(self) -> bool:
        return self._bytes >= self._most_bytes // 8
