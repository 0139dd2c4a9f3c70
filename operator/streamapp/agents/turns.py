"""Whose turn it is to be asked: agents that do not answer take no turns from those that do.

Used by `client`. An agent that drops packets costs a whole deadline, and one tenant can have a thousand of them. So
agents that have answered their last request have turns of their own, each application has few turns at once, and an
agent that stayed silent twice is left alone for a while.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

AT_ONCE = 128
"""Requests under way together to agents that answered their last request."""
DOUBTFUL_AT_ONCE = 32
"""Requests under way together to all other agents: new ones and silent ones."""
OF_ONE_APPLICATION = 16
"""Of either kind."""
FIRST_PAUSE_SECONDS = 4.0
LONGEST_PAUSE_SECONDS = 30.0
"""For an agent that was silent; doubled with each silence in a row, from the second on."""
_MOST_REMEMBERED = 100_000
"""Pods; the one that was asked longest ago is forgotten first, and then counts as new."""


class NoTurnError(Exception):
    """The agent was not asked: it had no turn in time, or is left alone; says why."""


@dataclass(slots=True)
class _Record:
    """How one pod's agent answered."""

    is_proven: bool = False
    silences: int = 0
    """In a row; only those that took a whole deadline."""
    paused_until: float = float("-inf")
    why: str = ""
    """Of the last silence."""


@dataclass(slots=True)
class Turns:
    """The turns of all applications."""

    at_once: int = AT_ONCE
    doubtful_at_once: int = DOUBTFUL_AT_ONCE
    of_one_application: int = OF_ONE_APPLICATION
    monotonic: Callable[[], float] = time.monotonic
    _proven: asyncio.Semaphore = field(init=False)
    _doubtful: asyncio.Semaphore = field(init=False)
    _records: OrderedDict[str, _Record] = field(default_factory=OrderedDict, init=False)
    """By pod UID: a pod that was replaced is another one."""

    def __post_init__(self) -> None:
        """All turns are free."""
        self._proven = asyncio.Semaphore(self.at_once)
        self._doubtful = asyncio.Semaphore(self.doubtful_at_once)

    def begin(self, waiting_seconds: float) -> "ApplicationTurns":
        """Give the turns for one round of requests to the agents of one application."""
        return ApplicationTurns(self, waiting_seconds)

    def is_proven(self, pod_uid: str) -> bool:
        """Whether the agent answered its last request."""
        record = self._records.get(pod_uid)
        return record is not None and record.is_proven

    def check(self, pod_uid: str) -> None:
        """Raise NoTurnError, with the reason of the last silence, while the agent is left alone."""
        record = self._records.get(pod_uid)
        if record is not None and self.monotonic() < record.paused_until:
            raise NoTurnError(record.why)

    def answered(self, pod_uid: str) -> None:
        """The agent sent an answer, whatever it says."""
        self._record(pod_uid, _Record(is_proven=True))

    def silent(self, pod_uid: str, why: str) -> None:
        """The agent let a whole deadline pass."""
        before = self._records.get(pod_uid, _Record())
        silences = before.silences + 1
        pause = 0.0 if silences == 1 else min(FIRST_PAUSE_SECONDS * 2.0 ** min(silences - 2, 8), LONGEST_PAUSE_SECONDS)
        self._record(pod_uid, _Record(silences=silences, paused_until=self.monotonic() + pause, why=why))

    def lane(self, pod_uid: str) -> asyncio.Semaphore:
        """The turns that this agent shares."""
        return self._proven if self.is_proven(pod_uid) else self._doubtful

    def _record(self, pod_uid: str, record: _Record) -> None:
        self._records[pod_uid] = record
        self._records.move_to_end(pod_uid)
        while len(self._records) > _MOST_REMEMBERED:
            self._records.popitem(last=False)


class ApplicationTurns:
    """The turns of one application in one round of requests."""

    def __init__(self, turns: Turns, waiting_seconds: float) -> None:
        self._turns = turns
        self._waiting_seconds = waiting_seconds
        self._own = {is_proven: asyncio.Semaphore(turns.of_one_application) for is_proven in (True, False)}

    @asynccontextmanager
    async def turn(self, pod_uid: str) -> AsyncIterator[None]:
        """Wait for a turn; NoTurnError if the agent is left alone, or none came in time."""
        self._turns.check(pod_uid)
        own, lane = self._own[self._turns.is_proven(pod_uid)], self._turns.lane(pod_uid)
        try:
            async with asyncio.timeout(self._waiting_seconds):
                await own.acquire()
                try:
                    await lane.acquire()
                except BaseException:
                    own.release()
                    raise
        except TimeoutError:
            why = f"it was not asked within {self._waiting_seconds:g} s, since too many agents do not answer"
            raise NoTurnError(f"{why}; look at the agents of the other pods") from None
        try:
            yield
        finally:
            lane.release()
            own.release()
