"""Revoke-being-learned: the rebalance that the first drafts of KIP-429 describe and that Kafka never built.

A learner marks its task as being learned. At every later rebalance the task's owner gives it up before it joins, so a
ready learner takes the task over at once. An owner whose learner is not ready gets its task back in the same rebalance.
So a move needs one rebalance, not two; but each rebalance stops every task that is being learned.

The draft leaves two things open. Here, a joining worker learns the first task of the most loaded worker, and tasks of a
leaving one are dealt in turn over the others, in the order of their names; that is what the draft's tables show.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """What causes a rebalance."""

    JOINS = "joins"
    LEAVES = "will be leaving"
    IS_READY = "finishes its replay"
    CRASHES = "crashes"


@dataclass(frozen=True, slots=True)
class Event:
    """One cause, and the worker that it is about."""

    kind: Kind
    worker: str


@dataclass(frozen=True, slots=True)
class Share:
    """What one worker joins with, or gets."""

    assigned: frozenset[str] = frozenset()
    revoked: frozenset[str] = frozenset()
    """When it joins: given up before. In an assignment: given up and now another worker's."""
    learning: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DraftRound:
    """One rebalance."""

    event: Event
    joined: Mapping[str, Share]
    assigned: Mapping[str, Share]

    def interrupted(self) -> frozenset[str]:
        """Tasks that stop for this rebalance."""
        return frozenset(task for share in self.joined.values() for task in share.revoked)


@dataclass(slots=True)
class DraftGroup:
    """A group under this protocol."""

    owned: dict[str, set[str]]
    """Active tasks by worker."""
    learning: dict[str, set[str]] = field(default_factory=dict)
    leaving: set[str] = field(default_factory=set)
    _ready: set[str] = field(default_factory=set)
    """Workers that have finished their replay."""

    def rebalance(self, event: Event) -> DraftRound:
        """Play one event; ValueError if it is about an unknown worker."""
        orphans = self._apply(event)
        being_learned = {task for tasks in self.learning.values() for task in tasks}
        joined = {
            name: Share(frozenset(tasks - being_learned), frozenset(tasks & being_learned), self._learned_by(name))
            for name, tasks in self.owned.items()
        }
        if event.kind is Kind.LEAVES:
            self._announce(event.worker)
        moved = self._take_over()
        self._place(orphans)
        self._balance()
        assigned = {
            name: Share(frozenset(tasks), joined[name].revoked & moved, self._learned_by(name))
            for name, tasks in self.owned.items()
        }
        return DraftRound(event, joined, assigned)

    def _learned_by(self, worker: str) -> frozenset[str]:
        return frozenset(self.learning.get(worker, ()))

    def _apply(self, event: Event) -> set[str]:
        """Change the membership; return the tasks that nobody has."""
        if (event.worker in self.owned) == (event.kind is Kind.JOINS):
            raise ValueError(f"worker {event.worker} {event.kind.value}, but that does not fit the group")
        if event.kind is Kind.JOINS:
            self.owned[event.worker] = set()
        elif event.kind is Kind.IS_READY:
            self._ready.add(event.worker)
        elif event.kind is Kind.CRASHES:
            self.learning.pop(event.worker, None)
            return self.owned.pop(event.worker)
        return set()

    def _announce(self, worker: str) -> None:
        """Deal the tasks of a leaving worker to learners."""
        self.leaving.add(worker)
        staying = [name for name in sorted(self.owned) if name not in self.leaving]
        for number, task in enumerate(sorted(self.owned[worker])):
            self.learning.setdefault(staying[number % len(staying)], set()).add(task)

    def _take_over(self) -> frozenset[str]:
        """Give tasks to ready learners."""
        moved: set[str] = set()
        for worker in sorted(self._ready):
            for task in self.learning.pop(worker, set()):
                for tasks in self.owned.values():
                    tasks.discard(task)
                self.owned[worker].add(task)
                moved.add(task)
        self._ready.clear()
        return frozenset(moved)

    def _place(self, orphans: set[str]) -> None:
        """To whoever learns the task, ready or not; else to the worker with the fewest."""
        for task in sorted(orphans):
            learners = [name for name, tasks in self.learning.items() if task in tasks]
            for worker in learners[:1]:
                self.learning[worker].discard(task)
                self.owned[worker].add(task)
        placed = {task for tasks in self.owned.values() for task in tasks}
        for task in sorted(orphans - placed):
            self.owned[min(self._staying(), key=lambda name: (len(self.owned[name]), name))].add(task)

    def _staying(self) -> list[str]:
        return [name for name in sorted(self.owned) if name not in self.leaving]

    def _balance(self) -> None:
        """Let a worker learn from the most loaded one while that helps; learners that have begun go on."""
        while True:
            loads = {name: self._load(name) for name in self._staying()}
            heavy = min(loads, key=lambda name: (-loads[name], name))
            light = min(loads, key=lambda name: (loads[name], name))
            free = sorted(self.owned[heavy] - {task for tasks in self.learning.values() for task in tasks})
            if loads[heavy] - loads[light] < 2 or not free:
                return
            self.learning.setdefault(light, set()).add(free[0])

    def _load(self, worker: str) -> int:
        """Active tasks once every learner has taken over."""
        given = sum(task in self.owned[worker] for tasks in self.learning.values() for task in tasks)
        return len(self.owned[worker]) - given + len(self.learning.get(worker, ()))
