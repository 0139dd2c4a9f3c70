"""What the judge asks of raises (guarantee 3): how long each took, by what went wrong meanwhile, and whether too long.

A raise needs the StreamApp and the StatefulSet, so nothing that befalls pods, brokers or agents excuses a delay.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from tests.prove.calls import Switchboard
from tests.prove.story import Disturbance


class During(StrEnum):
    """What went wrong from shortly before the raise until it was made; the name of a distribution."""

    NOTHING = "the leader leads, the event is delivered"
    ERROR = "a request fails"
    DENIAL = "a policy denies the StatefulSet"
    DEATH = "the leader dies or freezes"
    SILENCE = "the event is lost or late"


WITHIN = {
    During.NOTHING: 2.0,
    During.ERROR: 15.0,
    During.DENIAL: 17.0,
    During.DEATH: 20.0,
    During.SILENCE: 60.0,
}
"""Seconds within which a raise is made, counted from the last thing that went wrong; and two answers of the server."""
ANSWERS = 2
"""Answers of the server that a raise waits for: a read and the write."""
ANSWERS_OF_A_TAKE_OVER = 6
"""Where a replica takes over first: it looks at the Lease, takes it and lists all StreamApps."""
ANSWERS_OF_LATE_WATCHES = 3
"""Where the watch of StatefulSets is behind, one more: the first write rests on an old version and is refused."""
FIRST_READS = 10.0
"""Seconds that a process reads all StreamApps after its start, at most; so long where a namespace is silent."""
USUAL_ANSWER = 0.05
"""Seconds that one answer takes at most where nothing makes the server slow: before a write and after it."""
ECHO = 30.0
"""Seconds after which something that went wrong before the raise has no effect any more."""

Delay = tuple[During, float]


def during(one: Disturbance) -> During:
    """What a disturbance does to a raise."""
    if one.what.startswith(("crash", "freeze", "leader-", "standby-")) or one.what in {"die", "all-die", "cut"}:
        return During.DEATH
    if one.site == "lease":
        return During.DEATH
    if one.site == "event" and one.what != "doubled":
        return During.SILENCE
    is_error = one.what[0].isdigit() or one.what in {"stale", "timeout-before", "timeout-after"}
    return During.ERROR if is_error and one.site in {"read", "write"} else During.NOTHING


@dataclass(slots=True)
class Raise:
    """One that is not made yet."""

    at: float
    to_replicas: int


class RaiseJudge:
    """One story's."""

    def __init__(self, board: Switchboard, now: Callable[[], float], wrong: Callable[[int, str], None]) -> None:
        self._board, self._now, self._wrong = board, now, wrong
        self._open: Raise | None = None
        self._struck: dict[During, float] = {}
        self.delays: list[Delay] = []
        self.answers = ANSWERS
        """How many answers of a slow server a raise may wait for."""
        self._silent_until = self._reads_late_until = self._denied_until = float("-inf")
        self.replicas = 2
        """Of the operator: while all of them are frozen or cut off, no other can take over."""
        self._out_until: list[float] = []

    def struck(self, one: Disturbance) -> None:
        """Something went wrong, or the user did something."""
        befell = during(one)
        if befell is not During.NOTHING:
            self._struck[befell] = max(self._struck.get(befell, float("-inf")), self._back_at(one))

    @property
    def is_alone(self) -> bool:
        """Whether there is one replica."""
        return self.replicas == 1

    def _back_at(self, one: Disturbance) -> float:
        """When the first replica is there again, if this puts the last one out; else now."""
        now = self._now()
        if "freeze" not in one.what and "cut" not in one.what:
            return now
        self._out_until = [until for until in self._out_until if until > now] + [now + one.which]
        return min(self._out_until) if len(self._out_until) >= self.replicas else now

    def silent_for(self, seconds: float) -> None:
        """Nothing of its namespace can be read or written for so long."""
        self._silent_until = self._now() + seconds

    def denied_for(self, seconds: float) -> None:
        """No write of its StatefulSet is accepted for so long; the operator tries again every 15 s."""
        self._denied_until = max(self._denied_until, self._now() + seconds)

    def reads_late_for(self, seconds: float) -> None:
        """A process that begins within so many seconds must wait for the list of a silent namespace."""
        self._reads_late_until = self._now() + seconds

    def wished(self, replicas: int, current: int) -> float | None:
        """The user wants so many; give the seconds after which to look, where that is a raise."""
        is_same = self._open is not None and self._open.to_replicas == replicas
        if replicas <= current:
            self._open = None
        elif not is_same:
            self._open = Raise(self._now(), replicas)
            return self._due() - self._now()
        return None

    def stopped(self) -> None:
        """The user wants no raise for now: the StreamApp is paused, or deleted."""
        self._open = None

    def written(self, replicas: int) -> None:
        """The StatefulSet has so many replicas now."""
        one = self._open
        if one is not None and replicas >= one.to_replicas:
            self._open, seconds = None, self._now() - one.at
            self.delays.append((self._circumstances(one)[0], round(seconds, 3)))
            if self._now() > self._due_of(one):
                self._late(one, f"was made after {seconds:.2f} s")

    def look(self) -> float | None:
        """Look whether a raise is overdue; give the seconds after which to look again."""
        one = self._open
        if one is None:
            return None
        left = self._due_of(one) - self._now()
        if left > 0:
            return left + 0.001
        self._open = None
        self._late(one, "is not made")
        return None

    def _due(self) -> float:
        return 0.0 if self._open is None else self._due_of(self._open) + 0.001

    def _due_of(self, one: Raise) -> float:
        answer = USUAL_ANSWER + self._board.slowest(one.at - ECHO)
        befell = self._befell(one)
        due = max(max(one.at, at) + WITHIN[what] for what, at in befell.items()) + self.answers * answer
        is_read_late = During.DEATH in befell and befell[During.DEATH] <= self._reads_late_until
        return due + (FIRST_READS if is_read_late else 0.0)

    def _circumstances(self, one: Raise) -> tuple[During, float]:
        """The worst that befell it, and when last."""
        return max(self._befell(one).items(), key=lambda each: WITHIN[each[0]])

    def _befell(self, one: Raise) -> dict[During, float]:
        befell: dict[During, float] = {During.NOTHING: one.at}
        befell.update((what, at) for what, at in self._struck.items() if at >= one.at - ECHO)
        if self._denied_until > one.at:
            befell[During.DENIAL] = self._denied_until
        if self._silent_until >= one.at - ECHO:
            befell[During.SILENCE] = max(self._silent_until, befell.get(During.SILENCE, one.at))
        return befell

    def _late(self, one: Raise, what: str) -> None:
        befell = self._circumstances(one)[0]
        self._wrong(3, f"the raise to {one.to_replicas} of {one.at:.2f} s {what} ({befell})")
