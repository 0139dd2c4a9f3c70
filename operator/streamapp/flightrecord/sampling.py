"""Which copies are worth a sample in the flight record: those that are behind often, those that changed at once.

All others only so often that one sees that they are still there. Times are those of what was seen, not those of the
passes: a pass that comes late makes no sample look younger. A `Sampler` belongs to one application; it remembers what
was told of each copy and nothing else.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.flightrecord.copies import NOWHERE, Position, SeenCopy

SHORTEST = timedelta(seconds=5)
"""Between two samples of a copy that is behind."""
LONGEST = timedelta(seconds=15)
"""The same where very many are behind."""
MANY = 5_000
"""Copies behind for which the longest pause is right."""
HEARTBEAT = timedelta(minutes=5)
"""Between two samples of a copy with which all is well."""
BEHIND = 0.1
"""Share of the lag limit from which on a copy is behind."""
MOST_AT_ONCE = 2_000
"""Samples of one look; the others have their turn at the next ones."""

_HEARTBEAT_SECONDS = int(HEARTBEAT.total_seconds())
_Key = tuple[TaskId, Ordinal]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Taken(NamedTuple):
    """A copy that is to be recorded."""

    copy: SeenCopy
    position: Position
    at: datetime
    interval: timedelta
    """Until the next one, if nothing changes."""


@dataclass(slots=True)
class _Known:
    """What was last recorded of a copy."""

    copy: SeenCopy
    at: datetime
    lag: int | None
    """The last one that was known."""
    due: datetime
    beat: datetime


class _Candidate(NamedTuple):
    """A copy that is worth a sample now."""

    is_change: bool
    due: datetime
    copy: SeenCopy
    position: Position
    at: datetime


class Sampler:
    """Chooses the samples of one application."""

    def __init__(self) -> None:
        self._known: dict[_Key, _Known] = {}
        self._is_behind: set[_Key] = set()
        self.has_more = False
        """Whether the last look had more to record than there was room for."""

    def choose(
        self, seen: Iterable[SeenCopy], limit: int, position: Callable[[SeenCopy], Position]
    ) -> tuple[Taken, ...]:
        """Give what is to be recorded of one look, and take it for recorded.

        Args:
            seen: Every copy there is; whoever is not among them is forgotten.
            limit: Records; a copy no further behind is caught up.
            position: Tells how far a copy is.
        """
        keys, found = set(), []
        for copy in seen:
            key = (copy.task, copy.ordinal)
            if key in keys:
                continue  # two members of one pod say that they have it
            keys.add(key)
            candidate = self._candidate(copy, self._known.get(key), limit, position)
            if candidate is not None:
                found.append(candidate)
        for gone in self._known.keys() - keys:
            del self._known[gone]
            self._is_behind.discard(gone)
        self.has_more = len(found) > MOST_AT_ONCE
        if self.has_more:
            found.sort(key=lambda one: (not one.is_change, one.due))
        return tuple(self._take(one, limit) for one in found[:MOST_AT_ONCE])

    def _candidate(
        self, copy: SeenCopy, known: _Known | None, limit: int, position: Callable[[SeenCopy], Position]
    ) -> _Candidate | None:
        if known is None or copy.at < known.at - HEARTBEAT:
            return _new(copy, position)  # or the clock was set back
        was = known.copy
        is_change = copy.ordinal != was.ordinal or copy.process != was.process or copy.role is not was.role
        # That a state is not known is no change: members tell it only when they join.
        is_change |= copy.state is not None and copy.state is not was.state
        told_at = copy.told_at
        is_news = copy.told is not None and told_at is not None and told_at > known.at
        is_due = copy.at >= known.beat
        if not is_change and not is_due and not (is_news and copy.ends is not None):
            return None
        where = position(copy) if is_news else NOWHERE
        at = told_at if is_news and told_at is not None else copy.at
        if at <= known.at:
            return None
        is_change |= _crosses(known.lag, where.lag, limit)
        due = min(known.due, known.at + self._pause()) if _is_behind(where.lag, limit) else known.due
        is_due |= at >= due and (_is_behind(where.lag, limit) or _is_behind(known.lag, limit))
        return _Candidate(is_change, known.due, copy, where, at) if is_change or is_due else None

    def _take(self, one: _Candidate, limit: int) -> Taken:
        key = (one.copy.task, one.copy.ordinal)
        known = self._known.get(key)
        same = known is not None and known.copy.process == one.copy.process
        lag = one.position.lag
        if lag is None and known is not None and same:
            lag = known.lag
        beat = _next_beat(one.copy, one.at)
        if _is_behind(lag, limit):
            self._is_behind.add(key)
            due = one.at + self._pause()
        else:
            self._is_behind.discard(key)
            due = beat
        self._known[key] = _Known(one.copy, one.at, lag, due, beat)
        return Taken(one.copy, one.position, one.at, due - one.at)

    def _pause(self) -> timedelta:
        return SHORTEST + (LONGEST - SHORTEST) * min(1.0, len(self._is_behind) / MANY)


def _new(copy: SeenCopy, position: Callable[[SeenCopy], Position]) -> _Candidate:
    is_told = copy.told is not None and copy.told_at is not None
    at = copy.told_at if is_told and copy.told_at is not None else copy.at
    return _Candidate(True, at, copy, position(copy) if is_told else NOWHERE, at)


def _is_behind(lag: int | None, limit: int) -> bool:
    return lag is not None and lag > BEHIND * limit


def _crosses(before: int | None, now: int | None, limit: int) -> bool:
    return before is not None and now is not None and (before <= limit) is not (now <= limit)


def _next_beat(copy: SeenCopy, at: datetime) -> datetime:
    """The next instant that belongs to this copy, half a heartbeat away at least, so that they spread by themselves."""
    number = copy.process.value.int + 7919 * copy.task.partition + 104_729 * copy.task.subtopology
    earliest = at + HEARTBEAT / 2
    second = int((earliest - _EPOCH).total_seconds()) + 1
    return _EPOCH + timedelta(seconds=second + (number - second) % _HEARTBEAT_SECONDS)
