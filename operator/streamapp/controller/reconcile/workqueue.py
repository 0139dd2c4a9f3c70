"""The work queue: one pass per key at a time, whatever the number of events, retried with growing pauses.

kopf calls a handler for each event and never again after an error, so its handlers only call `add`. Keys do not wait
for each other: each due key has a task of its own, and the API client limits the load.
"""

import asyncio
import math
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

    def after_failures(self, count: int, longest_seconds: float = math.inf) -> float:
        """Doubled with each failure in a row, with a tenth of jitter, so that keys which failed together spread."""
        pause = min(self.first_seconds * 2.0 ** min(count - 1, 32), self.longest_seconds, longest_seconds)
        return pause * random.uniform(0.9, 1.0)  # noqa: S311 (spreads load, protects nothing)


class QueueObserver(Protocol):
    """Receives the queue's events."""

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
    asked_at: float = float("-inf")
    asked_seconds: float = 0.0
    """How long the API server wanted to be left alone, and when it said so."""


class KeyQueue(Generic[K]):
    """Runs `work(key)`, which gives the seconds after which the key wants to be looked at again, or None for never."""

    def __init__(
        self,
        work: Callable[[K], Awaitable[float | None]],
        pauses: Pauses,
        observer: QueueObserver,
        longest_pause: Callable[[K], float] = lambda _: math.inf,
    ) -> None:
        """Start nothing yet.

        Args:
            work: One pass.
            pauses: How long a key waits.
            observer: Receives the queue's events.
            longest_pause: Asked after each failure; seconds that this key can wait at most.
        """
        self._work = work
        self._longest_pause = longest_pause
        self._pauses = pauses
        self._observer = observer
        self._states: dict[K, _KeyState] = {}
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
        self._schedule(key, self._states.setdefault(key, _KeyState()), after_seconds)

    def leave_alone(self, key: K, seconds: float) -> None:
        """Begin no pass of a key for so long, whatever asks for one, or only for as long as the key can wait."""
        if seconds > 0 and not self._closed:
            self._note_asked(self._states.setdefault(key, _KeyState()), seconds)

    def oldest_seconds(self) -> float:
        """How long the key that is due longest has waited or run; 0 where none is."""
        now = asyncio.get_running_loop().time()
        return max(0.0, now - min(self._waiting_since(), default=now))

    async def close(self, patience_seconds: float = 0.0) -> None:
        """Start nothing more, let what runs end for a while, cancel the rest, and wait for its end."""
        self._closed = True
        for state in self._states.values():
            if state.timer is not None:
                state.timer.cancel()
        tasks = [state.task for state in self._states.values() if state.task is not None]
        if tasks and patience_seconds:
            await asyncio.wait(tasks, timeout=patience_seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._states.clear()

    def _waiting_since(self) -> list[float]:
        states = self._states.values()
        running = [state.started_at for state in states if state.task is not None]
        return running + [state.due_at for state in states if state.task is None and state.due_at is not None]

    def _schedule(self, key: K, state: _KeyState, after_seconds: float) -> None:
        now = asyncio.get_running_loop().time()
        due_at = max(now + after_seconds, state.started_at + self._pauses.gap_seconds)
        if state.due_at is None or due_at < state.due_at:
            state.due_at = due_at
        if state.task is None:
            self._set_timer(key, state, state.due_at)

    def _set_timer(self, key: K, state: _KeyState, due_at: float) -> None:
        if state.timer is not None:
            state.timer.cancel()
        due_at = max(due_at, self._quiet_until(key, state))
        state.timer = asyncio.get_running_loop().call_at(due_at, self._start, key, state)

    def _quiet_until(self, key: K, state: _KeyState) -> float:
        """Until when the API server wants to be left alone, as far as this key can wait; asked anew each time."""
        return state.asked_at + min(state.asked_seconds, self._longest_pause(key)) if state.asked_seconds else -math.inf

    def _start(self, key: K, state: _KeyState) -> None:
        if asyncio.get_running_loop().time() < self._quiet_until(key, state):
            self._set_timer(key, state, state.due_at or 0.0)  # it was asked for after the timer was set
            return
        state.timer, state.due_at = None, None
        state.started_at = asyncio.get_running_loop().time()
        state.task = asyncio.create_task(self._pass(key, state), name=f"pass {key}")

    async def _pass(self, key: K, state: _KeyState) -> None:
        again: float | None = None
        try:
            again = await self._work(key)
            state.failures = 0
            if state.asked_at < state.started_at:
                state.asked_seconds = 0.0
            self._finished(state, "success")
        except Exception as error:  # noqa: BLE001 (whatever it was, the key is tried again)
            state.failures += 1
            longest = self._longest_pause(key)
            again = self._pauses.after_failures(state.failures, longest)
            asked: float = getattr(error, "retry_after_seconds", 0.0)
            if asked > 0:
                self._note_asked(state, asked)
            again = max(again, min(longest, asked))
            self._finished(state, "error")
            self._observer.failed(str(key), error, again)
        finally:
            state.task = None
            self._after(key, state, again)

    def _note_asked(self, state: _KeyState, seconds: float) -> None:
        state.asked_at, state.asked_seconds = asyncio.get_running_loop().time(), seconds

    def _finished(self, state: _KeyState, result: str) -> None:
        self._observer.finished(asyncio.get_running_loop().time() - state.started_at, result)

    def _after(self, key: K, state: _KeyState, again: float | None) -> None:
        if self._closed:
            return
        if again is not None:
            self._schedule(key, state, again)
        elif state.due_at is not None:
            self._set_timer(key, state, state.due_at)
        else:
            del self._states[key]
