"""Chooses the copies that get a sample in the flight record.

A copy that changed gets a sample at once, a copy behind gets samples often, and any other copy a heartbeat. Times are
those of readings and reports, not those of passes: a late pass makes no sample look younger. A `Sampler` belongs to one
application and remembers the last sample of each copy.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.flightrecord.copies import UNKNOWN_POSITION, ObservedCopy, Position

SHORTEST = timedelta(seconds=5)
"""Between two samples of a copy that is behind."""
LONGEST = timedelta(seconds=15)
"""Between two samples of a copy, if `MANY` copies are behind."""
MANY = 5_000
"""Number of copies behind from which the pause is `LONGEST`."""
HEARTBEAT = timedelta(minutes=5)
"""Between two samples of a copy that is not behind."""
BEHIND = 0.1
"""Share of the lag limit from which on a copy is behind."""
MOST_AT_ONCE = 2_000
"""Samples of one pass; later passes take the rest."""

_HEARTBEAT_SECONDS = int(HEARTBEAT.total_seconds())
_Key = tuple[TaskId, Ordinal]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ChosenSample(NamedTuple):
    """A copy that gets a sample."""

    copy: ObservedCopy
    position: Position
    at: datetime
    interval: timedelta
    """Until the next sample, if nothing changes."""


@dataclass(slots=True)
class _LastSample:
    """The last sample of a copy."""

    copy: ObservedCopy
    at: datetime
    lag: int | None
    """The last lag that was known."""
    due: datetime
    beat: datetime


class _Candidate(NamedTuple):
    """A copy whose sample is due."""

    is_change: bool
    due: datetime
    copy: ObservedCopy
    position: Position
    at: datetime


class Sampler:
    """Chooses the samples of one application."""

    def __init__(self) -> None:
        self._last: dict[_Key, _LastSample] = {}
        self._is_behind: set[_Key] = set()
        self.has_more = False
        """Whether the last pass had more candidates than `MOST_AT_ONCE`."""

    def choose(
        self, observed: Iterable[ObservedCopy], limit: int, position: Callable[[ObservedCopy], Position]
    ) -> tuple[ChosenSample, ...]:
        """Give the samples of one pass, and remember them as recorded.

        Args:
            observed: All copies; the sampler drops every other copy from its memory.
            limit: Records; a copy no further behind is caught up.
            position: Computes the position of a copy.
        """
        keys, candidates = set(), []
        for copy in observed:
            key = (copy.task, copy.ordinal)
            if key in keys:
                continue  # two members of one pod hold it
            keys.add(key)
            candidate = self._candidate(copy, self._last.get(key), limit, position)
            if candidate is not None:
                candidates.append(candidate)
        for gone in self._last.keys() - keys:
            del self._last[gone]
            self._is_behind.discard(gone)
        self.has_more = len(candidates) > MOST_AT_ONCE
        if self.has_more:
            candidates.sort(key=lambda candidate: (not candidate.is_change, candidate.due))
        return tuple(self._record(candidate, limit) for candidate in candidates[:MOST_AT_ONCE])

    def _candidate(
        self, copy: ObservedCopy, last: _LastSample | None, limit: int, position: Callable[[ObservedCopy], Position]
    ) -> _Candidate | None:
        if last is None or copy.at < last.at - HEARTBEAT:
            return _new(copy, position)  # or the clock was set back
        was = last.copy
        is_change = copy.ordinal != was.ordinal or copy.process != was.process or copy.role is not was.role
        # An unknown state is no change: members report it only when they join.
        is_change |= copy.state is not None and copy.state is not was.state
        positions_at = copy.positions_at
        is_news = copy.positions is not None and positions_at is not None and positions_at > last.at
        is_due = copy.at >= last.beat
        if not is_change and not is_due and not (is_news and copy.ends is not None):
            return None
        now = position(copy) if is_news else UNKNOWN_POSITION
        at = positions_at if is_news and positions_at is not None else copy.at
        if at <= last.at:
            return None
        is_change |= _crosses(last.lag, now.lag, limit)
        due = min(last.due, last.at + self._pause()) if _is_behind(now.lag, limit) else last.due
        is_due |= at >= due and (_is_behind(now.lag, limit) or _is_behind(last.lag, limit))
        return _Candidate(is_change, last.due, copy, now, at) if is_change or is_due else None

    def _record(self, candidate: _Candidate, limit: int) -> ChosenSample:
        copy, at = candidate.copy, candidate.at
        key = (copy.task, copy.ordinal)
        last = self._last.get(key)
        lag = candidate.position.lag
        if lag is None and last is not None and last.copy.process == copy.process:
            lag = last.lag
        beat = _next_beat(copy, at)
        if _is_behind(lag, limit):
            self._is_behind.add(key)
            due = at + self._pause()
        else:
            self._is_behind.discard(key)
            due = beat
        self._last[key] = _LastSample(copy, at, lag, due, beat)
        return ChosenSample(copy, candidate.position, at, due - at)

    def _pause(self) -> timedelta:
        return SHORTEST + (LONGEST - SHORTEST) * min(1.0, len(self._is_behind) / MANY)


def _new(copy: ObservedCopy, position: Callable[[ObservedCopy], Position]) -> _Candidate:
    if copy.positions is None or copy.positions_at is None:
        return _Candidate(True, copy.at, copy, UNKNOWN_POSITION, copy.at)
    return _Candidate(True, copy.positions_at, copy, position(copy), copy.positions_at)


def _is_behind(lag: int | None, limit: int) -> bool:
    return lag is not None and lag > BEHIND * limit


def _crosses(before: int | None, now: int | None, limit: int) -> bool:
    return before is not None and now is not None and (before <= limit) is not (now <= limit)


def _next_beat(copy: ObservedCopy, at: datetime) -> datetime:
    """The next heartbeat of this copy, at least half of `HEARTBEAT` away.

    All copies of a process have theirs together, since one line says them shortest; processes spread over all seconds.
    """
    earliest = at + HEARTBEAT / 2
    second = int((earliest - _EPOCH).total_seconds()) + 1
    return _EPOCH + timedelta(seconds=second + (copy.process.value.int - second) % _HEARTBEAT_SECONDS)
