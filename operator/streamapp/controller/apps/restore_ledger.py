"""Who may make learners now: a few places for each Kafka cluster, and a queue in which the longest waiting is next.

Values and functions of time alone: it asks nothing and remembers what passes book. A place is held from the first
announcement until the pods that leave are empty. Learners without progress give their place back and go on: no
application can keep others waiting for ever, and nothing that has begun is called off. Used by `restore_places`.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from streamapp.core.actions.decision import RestoreClaim, RestoreNeed
from streamapp.core.facts.hold_record import NOISE
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.snapshot import RestorePlace
from streamapp.kube.client.kinds import Key

STALLED_SECONDS = 600.0
"""Learners that came no nearer for so long give their place back."""
LONGEST_SECONDS = 21_600.0
"""As do those that take longer than this, whatever their agents report."""
ASKS_SECONDS = 20.0
"""An application that has not asked for so long lets others pass; one that waits asks every five seconds."""
REMEMBERED_SECONDS = 120.0
"""For so long it finds its turn again."""

Cluster = Hashable


@dataclass(slots=True)
class _Phase:
    """The learners of one application."""

    cluster: Cluster
    since: float
    improved_at: float
    leaving: frozenset[Ordinal] = frozenset()
    least: int | None = None
    """The least number of records that was missing since these pods leave."""
    is_counted: bool = True
    """Its place was not given back."""
    is_granted: bool = False
    """The place was free when it was taken. What was only found to be under way goes on, and begins nothing more."""

    def note(self, claim: RestoreClaim, now: float) -> None:
        """How far they are."""
        missing = claim.records_to_go
        if claim.leaving != self.leaving:
            self.leaving, self.least, self.improved_at = claim.leaving, missing, now
        elif missing is not None and (self.least is None or missing < self.least * (1 - NOISE)):
            self.least, self.improved_at = missing, now

    def review(self, now: float) -> None:
        """Give the place back, for good, if it was held for too long."""
        if now - self.improved_at >= STALLED_SECONDS or now - self.since >= LONGEST_SECONDS:
            self.is_counted = False


@dataclass(slots=True)
class _Turn:
    """The turn of one application in the queue of its cluster."""

    cluster: Cluster
    number: int
    """Turns are in the order of their numbers."""
    asked_at: float


class RestoreLedger:
    """Of one process."""

    def __init__(self, most: int) -> None:
        self.most = most
        """Places of each cluster."""
        self._phases: dict[Key, _Phase] = {}
        self._turns: dict[Key, _Turn] = {}
        self._number = 0

    def place(self, cluster: Cluster, key: Key, now: float) -> RestorePlace:
        """What there is for an application: its place, a free one, or how many are ahead."""
        self._review(now)
        used = sum(one.is_counted for other, one in self._phases.items() if one.cluster == cluster and other != key)
        own = self._turns.get(key)
        ahead = used + sum(
            one.cluster == cluster and now - one.asked_at <= ASKS_SECONDS and (own is None or one.number < own.number)
            for other, one in self._turns.items()
            if other != key
        )
        phase = self._phases.get(key)
        is_granted = phase is not None and phase.is_granted
        is_free = is_granted or (ahead if phase is None else used) < self.most
        return RestorePlace(
            is_held=phase is not None, is_granted=is_granted, is_free=is_free, ahead=ahead, most=self.most
        )

    def book(self, cluster: Cluster, key: Key, claim: RestoreClaim, now: float, *, is_free: bool) -> None:
        """Book what a decision wants. One that learns already keeps its place, even if there is none left.

        Args:
            cluster: The application's.
            key: The application.
            claim: What the decision wants.
            now: On the clock of all these questions, seconds.
            is_free: Whether the decision was told that it can have a place.
        """
        self._review(now)
        if claim.need is RestoreNeed.LEARNING:
            self._turns.pop(key, None)
            phase = self._phases.setdefault(key, _Phase(cluster, now, now))
            phase.cluster = cluster
            phase.is_granted |= is_free
            phase.note(claim, now)
            return
        self._phases.pop(key, None)
        if claim.need is RestoreNeed.WAITING:
            turn = self._turns.get(key)
            if turn is None or turn.cluster != cluster:
                self._number += 1
                turn = self._turns[key] = _Turn(cluster, self._number, now)
            turn.asked_at = now

    def forget(self, key: Key) -> None:
        """Drop an application that is gone."""
        self._phases.pop(key, None)
        self._turns.pop(key, None)

    def in_use(self, now: float) -> Mapping[Cluster, int]:
        """The places that are held, by cluster."""
        self._review(now)
        return Counter(one.cluster for one in self._phases.values() if one.is_counted)

    def waiting(self, now: float) -> Mapping[Cluster, int]:
        """The applications that wait, by cluster."""
        return Counter(one.cluster for one in self._turns.values() if now - one.asked_at <= ASKS_SECONDS)

    def _review(self, now: float) -> None:
        for phase in self._phases.values():
            phase.review(now)
        for key in [key for key, one in self._turns.items() if now - one.asked_at > REMEMBERED_SECONDS]:
            del self._turns[key]
