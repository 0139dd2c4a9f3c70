"""Moves tasks from full processes to empty ones while a move helps: `BalancePlan` and `TaskBalancer`.

Existing copies come first, learners of the last round among them.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from streamapp.simulator.learner.draft import FARTHEST, NONE, Draft


class _Offer(NamedTuple):
    task: int
    to: int


def plan_balance(draft: Draft) -> None:
    """Set new targets for stateful tasks of overloaded processes."""
    _CopyFollower(draft).follow()
    stateful = [task for task in range(len(draft.tasks)) if draft.is_stateful(task)]
    Balancer(draft, draft.load, stateful, draft.set_target).balance()


class _CopyFollower:
    """Tasks go where copies are, from processes above their fair share to processes that stay within theirs."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._total = sum(draft.load)
        self._threads = sum(one.threads for one in draft.processes)

    def follow(self) -> None:
        """The fullest gives first."""
        draft = self._draft
        by_giver: list[deque[_Offer]] = [deque() for _ in draft.processes]
        for offer in self._offers():
            by_giver[draft.target[offer.task]].append(offer)
        while (giver := self._fullest(by_giver)) != NONE:
            task, to = by_giver[giver].popleft()
            is_there = draft.target[task] == giver
            if is_there and self._has_room(to, task) and draft.relieves(draft.load, giver, to, draft.weight(task)):
                draft.set_target(task, to)

    def _offers(self) -> list[_Offer]:
        draft = self._draft
        offers = [
            _Offer(task, process)
            for task in range(len(draft.tasks))
            if draft.is_stateful(task) and self._is_above(draft.target[task])
            for process in draft.copies[task]
            if self._has_room(process, task)
        ]
        return sorted(offers, key=lambda offer: (-1 if draft.is_ready(*offer) else draft.lag(*offer), offer))

    def _fullest(self, by_giver: Sequence[deque[_Offer]]) -> int:
        draft, best = self._draft, NONE
        for process, offers in enumerate(by_giver):
            is_giver = bool(offers) and self._is_above(process)
            if is_giver and (best == NONE or _is_fuller(draft, draft.load, process, best)):
                best = process
        return best

    def _is_above(self, process: int) -> bool:
        return self._draft.load[process] * self._threads > self._total * self._draft.threads(process)

    def _has_room(self, process: int, task: int) -> bool:
        load = self._draft.load[process] + self._draft.weight(task)
        return load * self._threads <= self._total * self._draft.threads(process)


def _is_fuller(draft: Draft, loads: Sequence[int], process: int, than: int) -> bool:
    return loads[process] * draft.threads(than) > loads[than] * draft.threads(process)


@dataclass(slots=True)
class Balancer:
    """Moves single tasks while one move helps by more than the tolerance."""

    draft: Draft
    load: list[int]
    """By process; `move` keeps it in step."""
    movable: Sequence[int]
    """Tasks that may go, in order."""
    move: Callable[[int, int], None]
    _aimed: dict[int, list[int]] = field(default_factory=dict)
    """By process, the movable tasks with this target, in order; only processes that have one."""
    _lightest: dict[int, int] = field(default_factory=dict)
    """By process, the least weight of these tasks."""

    def balance(self) -> None:
        """Move until nothing helps."""
        for task in self.movable:
            self._aimed.setdefault(self.draft.target[task], []).append(task)
        for process in self._aimed:
            self._weigh(process)
        most = 4 * len(self.draft.tasks) if len(self.draft.processes) > 1 else 0
        for _ in range(most):
            if not self._move_one():
                break

    def _move_one(self) -> bool:
        tried: set[int] = set()
        while (source := self._fullest(tried)) != NONE:
            tried.add(source)
            to = self._emptiest(source, self._lightest[source])
            if self.draft.relieves(self.load, source, to, self._lightest[source]):
                self._move(self._choose(source, to), source, to)
                return True
        return False

    def _move(self, task: int, source: int, to: int) -> None:
        self.move(task, to)
        self._aimed[source].remove(task)
        insort(self._aimed.setdefault(to, []), task)
        self._weigh(source)
        self._weigh(to)

    def _weigh(self, process: int) -> None:
        tasks = self._aimed[process]
        if tasks:
            self._lightest[process] = min(map(self.draft.weight, tasks))
        else:
            del self._aimed[process], self._lightest[process]

    def _fullest(self, tried: set[int]) -> int:
        load, scale = self.load, self.draft.scale
        return max(self._lightest.keys() - tried, key=lambda one: (load[one] * scale[one], -one), default=NONE)

    def _emptiest(self, source: int, weight: int) -> int:
        load, scale = self.load, self.draft.scale
        others = (process for process in range(len(load)) if process != source)
        return min(others, key=lambda one: (load[one] + weight) * scale[one], default=NONE)

    def _choose(self, source: int, to: int) -> int:
        able = [
            task for task in self._aimed[source] if self.draft.relieves(self.load, source, to, self.draft.weight(task))
        ]
        return min(able, key=lambda task: self._rank(task, source, to))

    def _rank(self, task: int, source: int, to: int) -> tuple[bool, bool, int, int, int]:
        """What is on its way anyway; then ready, near to ready, crowded at the old place, and heavy."""
        draft = self.draft
        return (
            draft.active[task] == source,
            not draft.is_ready(task, to),
            draft.lag(task, to) if draft.has_copy(task, to) else FARTHEST,
            draft.alike(task, to) - draft.alike(task, source),
            -draft.weight(task),
        )
