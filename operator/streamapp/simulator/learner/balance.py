"""Moves tasks from full processes to empty ones while a move helps: `BalancePlan` and `TaskBalancer`.

Existing copies come first, learners of the last round among them.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streamapp.simulator.learner.draft import FARTHEST, NONE, Draft


class _Offer(NamedTuple):
    task: int
    to: int


def plan_balance(draft: Draft) -> None:
    """Set new targets for stateful tasks of overloaded processes."""
    _CopyFollower(draft).follow()
    Balancer(draft, draft.load, draft.is_stateful, draft.set_target).balance()


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
    is_movable: Callable[[int], bool]
    move: Callable[[int, int], None]

    def balance(self) -> None:
        """Move until nothing helps."""
        most = 4 * len(self.draft.tasks) if len(self.draft.processes) > 1 else 0
        for _ in range(most):
            if not self._move_one():
                break

    def _move_one(self) -> bool:
        lightest = self._lightest()
        tried: set[int] = set()
        while (source := self._fullest(lightest, tried)) != NONE:
            tried.add(source)
            to = self._emptiest(source, lightest[source])
            if self.draft.relieves(self.load, source, to, lightest[source]):
                self.move(self._choose(source, to), to)
                return True
        return False

    def _lightest(self) -> dict[int, int]:
        """By process, the weight of its lightest task that may go."""
        found: dict[int, int] = {}
        for task in filter(self.is_movable, range(len(self.draft.tasks))):
            at, weight = self.draft.target[task], self.draft.weight(task)
            found[at] = min(found.get(at, weight), weight)
        return found

    def _fullest(self, lightest: dict[int, int], tried: set[int]) -> int:
        best = NONE
        for process in sorted(lightest.keys() - tried):
            if best == NONE or _is_fuller(self.draft, self.load, process, best):
                best = process
        return best

    def _emptiest(self, source: int, weight: int) -> int:
        draft, load, best = self.draft, self.load, NONE
        for process in range(len(draft.processes)):
            if process != source and (
                best == NONE
                or (load[process] + weight) * draft.threads(best) < (load[best] + weight) * draft.threads(process)
            ):
                best = process
        return best

    def _choose(self, source: int, to: int) -> int:
        able = [
            task
            for task in filter(self.is_movable, range(len(self.draft.tasks)))
            if self.draft.target[task] == source and self.draft.relieves(self.load, source, to, self.draft.weight(task))
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
