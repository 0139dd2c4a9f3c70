"""An event loop whose time passes only when nobody has anything to do, and then at once.

Everything that the operator waits for by the loop's clock (pauses, timeouts, its queue) takes no real time, and two
runs of the same story are the same to the last step. There is no network in here: nothing else ever wakes the loop.
"""

import asyncio
import heapq
from asyncio.base_events import BaseEventLoop
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from datetime import datetime, timedelta
from typing import Any, TypeVar, TypeVarTuple

from tests.support.example import NOW

T = TypeVar("T")
Given = TypeVarTuple("Given")


class NothingLeftToDoError(AssertionError):
    """Everybody waits for somebody else, for ever."""


class _NoNetwork:
    """Stands where a loop waits for sockets: waiting is moving the clock."""

    def __init__(self, loop: "VirtualLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise NothingLeftToDoError
        self._loop.elapsed += timeout
        return []

    def close(self) -> None:
        """Nothing is open."""


class VirtualLoop(BaseEventLoop):
    """The loop."""

    _ready: deque[asyncio.Handle]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0
        """Seconds since the beginning of the world."""
        self.broken: BaseException | None = None
        """What a callback of the world raised: no story that had one counts."""
        self._timers: list[tuple[float, asyncio.TimerHandle]] = []
        """A heap. Each timer stands behind its time, so that times are compared and no method of timers is called."""
        self._clock_resolution = 1e-9
        self._selector = _NoNetwork(self)

    def time(self) -> float:
        """The loop's clock, and everybody's monotonic one."""
        return self.elapsed

    def now(self) -> datetime:
        """The wall clock; each look is a little later, as it is everywhere else."""
        self.elapsed += 1e-6
        return NOW + timedelta(seconds=self.elapsed)

    get_debug = staticmethod(bool)
    """Never: each future and each task asks, and a function of Python would cost more than the rest of the future."""

    def _run_once(self) -> None:
        """One round, as in the base class, but for the sockets: nothing waits there, and a sweep has millions."""
        ready = self._ready
        self._wait()
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _wait(self) -> None:
        """Let time pass until something is due."""
        ready, timers = self._ready, self._timers
        while timers and timers[0][1]._cancelled:
            heapq.heappop(timers)
        if not ready and not self._stopping:
            if not timers:
                raise NothingLeftToDoError
            self.elapsed = max(self.elapsed, timers[0][0])
        end = self.elapsed + self._clock_resolution
        while timers and timers[0][0] < end:
            ready.append(heapq.heappop(timers)[1])

    # As in the base class, without its checks for closed loops and other threads: a sweep has millions of these.

    def call_soon(
        self, callback: Callable[[*Given], object], *args: *Given, context: Context | None = None
    ) -> asyncio.Handle:
        """Have it run in the next round."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*Given], object], *args: *Given, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Have it run after so many seconds."""
        return self.call_at(self.elapsed + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Given], object], *args: *Given, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Have it run at this time of the loop's clock."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, timer))
        return timer

    def run_in_executor(self, executor: Any, func: Callable[[*Given], T], *args: *Given) -> asyncio.Future[T]:  # noqa: ARG002 (the base class's)
        """Make it here and now: a thread would end at any time of this clock, and no two runs would be the same."""
        made: asyncio.Future[T] = self.create_future()
        try:
            made.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 (whoever waits for it is told, as of a thread)
            made.set_exception(error)
        return made

    def end_processes(self) -> None:
        """The story is over; nothing is held back any more."""

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is left out when its time comes."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Remember what a callback raised; what ends with a task is the product's own to handle."""
        if "handle" in context:
            self.broken = self.broken or context["exception"]
        super().call_exception_handler(context)

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody waits in a system call."""


def run(loop: VirtualLoop, main: Coroutine[Any, Any, T]) -> T:
    """Run to the end, cancel whatever is left, and close."""
    try:
        return loop.run_until_complete(main)
    finally:
        loop.end_processes()
        while left := asyncio.all_tasks(loop):
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()
