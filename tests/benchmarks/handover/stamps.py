"""Reads the moments of one task's move out of the logs of its two processes. Pure; the lines are those of Kafka 4.2.

All moments are milliseconds since the epoch: logs and broker are on one machine and have one clock.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

_LINE = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(?:Z|[+-]\d\d:\d\d)) +[A-Z]+ (.*)$")
STAMPS = ("revoke", "committed", "rejoin", "last_join", "assigned", "recycled", "restored", "running")
"""In the order in which they happen."""


@dataclass(frozen=True)
class Line:
    """What a log says at one moment; lines without a time belong to the one before."""

    at_ms: int
    text: str


def read_log(text: str) -> list[Line]:
    """Split a log; what precedes its first time is left out."""
    lines: list[Line] = []
    for raw in text.splitlines():
        found = _LINE.match(raw)
        if found:
            lines.append(Line(round(datetime.fromisoformat(found[1]).timestamp() * 1000), found[2]))
        elif lines:
            lines[-1] = Line(lines[-1].at_ms, f"{lines[-1].text}\n{raw}")
    return lines


@dataclass(frozen=True)
class Hop:
    """A task that went from one process to another within a window."""

    task: str
    source: int
    destination: int
    start_ms: int
    end_ms: int


def stamps(logs: Mapping[int, Sequence[Line]], hop: Hop) -> dict[str, int]:
    """Give the moments by name; empty if the logs do not show the move."""
    old = _within(logs[hop.source], hop)
    new = _within(logs[hop.destination], hop)
    task = f"task [{hop.task}]"
    suspended = _first(old, task, "Suspended from RUNNING")
    running = _last(new, task, "Restored and ready to run")
    if suspended is None or running is None:
        return {}
    assigned = _last(
        [one for one in new if _gives(one.text, hop.task) and one.at_ms <= running], "Handle new assignment"
    )
    joins = (_last(_until(_within(lines, hop), assigned), "(Re-)joining group") for lines in logs.values())
    found = {
        "revoke": _last(_until(old, suspended), "State transition from RUNNING to PARTITIONS_REVOKED"),
        "committed": _first(_since(old, suspended), "partition revocation took"),
        "rejoin": _first(_since(old, suspended), "(Re-)joining group"),
        "last_join": max((at for at in joins if at is not None), default=None),
        "assigned": assigned,
        "recycled": _last(_until(new, running), f"{task} Initialized"),
        "restored": _last(_until(new, running), f"active task {hop.task} completed restoration"),
        "running": running,
    }
    return {name: at for name, at in found.items() if at is not None}


def _gives(text: str, task: str) -> bool:
    given = re.search(r"New active tasks: \[([^]]*)]", text)
    return given is not None and task in given[1].split(", ")


def _within(lines: Iterable[Line], hop: Hop) -> list[Line]:
    return [line for line in lines if hop.start_ms <= line.at_ms <= hop.end_ms]


def _until(lines: Iterable[Line], at_ms: int | None) -> list[Line]:
    return [line for line in lines if at_ms is None or line.at_ms <= at_ms]


def _since(lines: Iterable[Line], at_ms: int) -> list[Line]:
    return [line for line in lines if line.at_ms >= at_ms]


def _first(lines: Iterable[Line], *words: str) -> int | None:
    return next((line.at_ms for line in lines if all(word in line.text for word in words)), None)


def _last(lines: Sequence[Line], *words: str) -> int | None:
    return _first(reversed(lines), *words)
