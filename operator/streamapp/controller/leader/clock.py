"""The process's clocks: one that measures ages, and a wall clock that is never set.

The first one continues while the machine sleeps; `reconcile.gather` and `reconcile.apply` use it for both ends of an
age. `process` gives the second one to every part that dates what it sees.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

SLEW = 0.02
"""How much faster or slower than time the steady clock runs while it is off: 60 s take 50 minutes."""


def seconds_since_boot() -> float:
    """Give the seconds since the machine was started, those in which it was suspended included.

    `time.monotonic` leaves those out on Linux: a judgement made before a suspension would pass for new after it.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class SteadyClock:
    """The wall clock without its jumps: it never goes back, and a second on it is a second, to two in a hundred.

    The time between two readings of a group, the age of a position and the length of a hold are differences of dates. A
    clock that is set forward by a minute would make two readings of one moment look like readings a minute apart. So
    this one follows a wall clock that was set only slowly.
    """

    def __init__(
        self,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = seconds_since_boot,
    ) -> None:
        """Begin with what the wall clock shows."""
        self._wall, self._monotonic = wall, monotonic
        self._last = monotonic(), wall()
        self._turn = threading.Lock()  # the recorder and predictions have threads

    def __call__(self) -> datetime:
        """Give the time, with its zone."""
        with self._turn:
            at, shown = self._last
            now = self._monotonic()
            passed = timedelta(seconds=max(0.0, now - at))
            due, most = shown + passed, SLEW * passed
            off = self._wall() - due
            due += most if off > most else max(off, -most)
            self._last = now, due
            return due

    def offset(self) -> timedelta:
        """How far the wall clock is ahead of this one; negative where it is behind."""
        return self._wall() - self()


def earliest(now: Callable[[], datetime]) -> datetime:
    """The time by the clock that is behind: what other machines date later than this is dated by us."""
    return now() + min(offset_of(now), timedelta(0))


def latest(now: Callable[[], datetime]) -> datetime:
    """The time by the clock that is ahead: nothing of ours was before what another machine dates later than this."""
    return now() + max(offset_of(now), timedelta(0))


def offset_of(now: Callable[[], datetime]) -> timedelta:
    """How far the wall clock is ahead of a steady clock; zero where there is only one."""
    return now.offset() if isinstance(now, SteadyClock) else timedelta(0)
