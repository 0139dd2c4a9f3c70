"""What the meter in the image prints: how long inputs waited for outputs, by the append times of the broker. Pure."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Wait:
    """One line of the meter, of one second."""

    clock_ms: int
    """The broker's time of the newest input."""
    ended_ms: int
    """The longest wait of a partition that ended within this second."""
    open_ms: int
    """The longest wait that has not ended."""
    answered: int
    """Inputs so far that are behind an output."""
    passed: int
    """Of these, inputs without an output of their own."""


def read_waits(log: bytes) -> tuple[Wait, ...]:
    """Read the lines of the meter; other lines and a line that was cut are left out."""
    return tuple(wait for line in log.decode(errors="replace").splitlines() if (wait := _wait(line)) is not None)


def _wait(line: str) -> Wait | None:
    try:
        told: dict[str, Any] = json.loads(line)
        return Wait(
            *(int(told[field]) for field in ("clockMs", "endedMs", "openMs", "answered", "passed")),
        )
    except (ValueError, TypeError, KeyError):
        return None


def worst_seconds(waits: tuple[Wait, ...], since_ms: int) -> float | None:
    """The longest wait in the lines after a time of the broker; None if there is none.

    A wait that began before that time counts in full, so the figure is never too small.
    """
    within = [wait for wait in waits if wait.clock_ms > since_ms]
    if not within:
        return None
    return max(*(wait.ended_ms for wait in within), within[-1].open_ms) / 1000
