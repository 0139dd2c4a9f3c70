"""The key queue: one pass per key at a time, however many events there were, retried with growing pauses.

kopf runs a handler for every single event and never again after an error; so its handlers only call `add`. Keys do not
wait for each other: each has a task of its own while it is due, and what bounds the load is the API client.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long a key waits before its next pass."""

    gap_seconds: float
    """Between the starts of two passes, events or not."""
    first_seconds: float
    """After a failure."""
    longest_seconds: float

    def after_failures(self, count: int) -> float:
        """Doubled with each failure in a row, with a tenth of jitter, so that keys which failed together spread."""
        pause = min(self.first_seconds * 2.0 ** min(count - 1, 32), self.longest_seconds)
        return pause * random.uniform(0.9, 1.0)  # noqa: S311 (spreads load, protects nothing)


class QueueObserver(Protocol):
    """What the queue tells of itself."""

    def added(self) -> None:
        """A key was marked dirty."""

    def failed(self, key: str, error: Exception, again_in_seconds: float) -> None:
        """A pass raised; it is tried again."""

    def finished(self, seconds: float, result: str) -> None:
        """A pass ended, as `success` or `error`."""


@dataclass(slots=True)
class _KeyState:
    """What is known of one key."""

    due_at: float | None = None
    """When the next pass is wanted, on the loop's clock; None where none is."""
    timer: asyncio.TimerHandle | None = None
    task: asyncio.Task[None] | None = None
    started_at: float = float("-inf")
    failures: int = 0


class KeyQueue(Generic[K]):
    """Runs `work(key)`, which gives the seconds after which the key wants to be looked at again, or None for never."""

    def __init__(self, work: Callable[[K], Awaitable[float | None]], pauses: Pauses, observer: QueueObserver) -> None:
        self._work = work
        self._pauses = pauses
        self._observer = observer
        self._places: dict[K, _KeyState] = {}
        self._closed = False

    def __len__(self) -> int:
        """Keys that are due or in a pass."""
        now = asyncio.get_running_loop().time()
        return sum(1 for since in self._waiting_since() if since <= now)

    def add(self, key: K, after_seconds: float = 0.0) -> None:
        """Ask for a pass in so many seconds at the latest; the same key twice is one pass."""
        if self._closed:
            return
        self._observer.added()
        self._want(key, self._places.setdefault(key, _KeyState()), after_seconds)

    def oldest_seconds(self) -> float:
        """How long the key that is due longest has waited or run; 0 where none is."""
        now = asyncio.get_running_loop().time()
        return max(0.0, now - min(self._waiting_since(), default=now))

    async def close(self, patience_seconds: float = 0.0) -> None:
        """Start nothing more, let what runs end for a while, cancel the rest, and wait for its end."""
        self._closed = True
        for place in self._places.values():
            if place.timer is not None:
                place.timer.cancel()
        tasks = [place.task for place in self._places.values() if place.task is not None]
        if tasks and patience_seconds:
            await asyncio.wait(tasks, timeout=patience_seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._places.clear()

    def _waiting_since(self) -> list[float]:
        places = self._places.values()
        running = [place.started_at for place in places if place.task is not None]
        return running + [place.due_at for place in places if place.task is None and place.due_at is not None]

    def _want(self, key: K, place: _KeyState, after_seconds: float) -> None:
        now = asyncio.get_running_loop().time()
        due_at = max(now + after_seconds, place.started_at + self._pauses.gap_seconds)
        if place.due_at is None or due_at < place.due_at:
            place.due_at = due_at
        if place.task is None:
            self._arm(key, place, place.due_at)

    def _arm(self, key: K, place: _KeyState, due_at: float) -> None:
        if place.timer is not None:
            place.timer.cancel()
        place.timer = asyncio.get_running_loop().call_at(due_at, self._start, key, place)

    def _start(self, key: K, place: _KeyState) -> None:
        place.timer, place.due_at = None, None
        place.started_at = asyncio.get_running_loop().time()
        place.task = asyncio.create_task(self._pass(key, place), name=f"pass {key}")

    async def _pass(self, key: K, place: _KeyState) -> None:
        again: float | None = None
        try:
            again = await self._work(key)
            place.failures = 0
            self._finished(place, "success")
        except Exception as error:  # noqa: BLE001 (whatever it was, the key is tried again)
            place.failures += 1
            again = self._pauses.after_failures(place.failures)
            self._finished(place, "error")
            self._observer.failed(str(key), error, again)
        finally:
            place.task = None
            self._after(key, place, again)

    def _finished(self, place: _KeyState, result: str) -> None:
        self._observer.finished(asyncio.get_running_loop().time() - place.started_at, result)

    def _after(self, key: K, place: _KeyState, again: float | None) -> None:
        if self._closed:
            return
        if again is not None:
            self._want(key, place, again)
        elif place.due_at is not None:
            self._arm(key, place, place.due_at)
        else:
            del self._places[key]
