"""Places the configured standbys: `StandbyTaskPlacement`.

First the former owner, then other ready copies, then copies with a lag, then room.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from streamapp.simulator.learner.draft import NONE, Draft
from streamapp.simulator.learner.takeover import Takeover

_FORMER, _READY, _BEHIND = range(3)


class _Step(NamedTuple):
    task: int
    source: int
    to: int


@dataclass(slots=True)
class StandbyPlacement:
    """The standbys of one round."""

    draft: Draft
    takeover: Takeover
    holders: list[list[int]] = field(default_factory=list)
    """By task, the processes with a standby."""
    learners: list[tuple[int, int]] = field(default_factory=list)
    """Copies that learn beside a standby for the sake of balance: task and process."""
    _copies: list[int] = field(init=False)
    """By process, how many copies it has, actives among them; while standbys are chosen, it only grows."""
    _near_to: dict[int, list[int]] = field(default_factory=dict)
    _room: list[tuple[int, int]] = field(init=False)
    """A heap of the processes that stay: copies per thread, and the process."""

    def __post_init__(self) -> None:
        self._copies = [0] * len(self.draft.processes)

    def choose(self) -> None:
        """Choose the configured number for every stateful task, as far as there are processes that stay."""
        for process in self.draft.target:
            self._copies[process] += 1
        self._room = sorted((self._copies[one] * self.draft.scale[one], one) for one in self.draft.staying)
        for task in range(len(self.draft.tasks)):
            chosen: list[int] = []
            if self.draft.is_stateful(task):
                self._fill(task, chosen)
            self.holders.append(chosen)

    def keep_nearest(self) -> None:
        """Keep the nearest copies: the configured number, and one that may be a learner."""
        draft, most = self.draft, self.draft.settings.standbys + 1
        for task in range(len(draft.tasks)):
            kept = [one for one in draft.copies[task] if one != draft.active[task] and draft.stays[one]]
            kept.sort(key=lambda one, task=task: draft.lag(task, one))  # type: ignore[misc]
            self.holders.append(kept[:most] if draft.is_stateful(task) else [])

    def _fill(self, task: int, chosen: list[int]) -> None:
        is_borrowed = self._is_borrowed(task)
        for _ in range(self.draft.settings.standbys):
            process = self._next(task, chosen)
            if process == NONE or (is_borrowed and not self.draft.has_copy(task, process)):
                return
            chosen.append(process)
            self._copies[process] += 1

    def _is_borrowed(self, task: int) -> bool:
        """Whether a standby has become the learner of an owner that stays and will hold the standby after the move."""
        draft, target = self.draft, self.draft.target[task]
        is_learner = self.takeover.is_learner(task, target) and draft.has_copy(task, target)
        return is_learner and draft.stays[draft.active[task]]

    def _next(self, task: int, chosen: list[int]) -> int:
        """The best copy; without one the process with the fewest copies per thread."""
        draft, scale = self.draft, self.draft.scale
        taken = {draft.active[task], *chosen}
        if self.takeover.is_learner(task, draft.target[task]):
            taken.add(draft.target[task])
        held = [one for one in draft.copies[task] if draft.stays[one] and one not in taken]
        if held:
            return min(held, key=lambda one: (self._rank(task, one), self._copies[one] * scale[one]))
        return self._emptiest(taken)

    def _emptiest(self, taken: set[int]) -> int:
        """Of the processes that stay; the heap has an entry of each, which may be of an older count."""
        room, scale, passed, found = self._room, self.draft.scale, list[tuple[int, int]](), NONE
        while room and found == NONE:
            load, process = heappop(room)
            now = self._copies[process] * scale[process]
            if load != now:
                heappush(room, (now, process))
            else:
                passed.append((load, process))
                found = NONE if process in taken else process
        for one in passed:
            heappush(room, one)
        return found

    def _rank(self, task: int, process: int) -> tuple[int, int]:
        """Of a process with a copy."""
        draft = self.draft
        if not draft.is_ready(task, process):
            return _BEHIND, draft.lag(task, process)
        return (_FORMER if draft.owner[task] == process else _READY), 0

    def balance(self, free: int) -> bool:
        """Let standbys go from processes with many copies to those with few; return whether a part of this remains.

        At once to a ready copy, else by a copy beside the standby; `free` limits those copies.
        """
        is_pending, planned, extra = False, set[int](), list[_Step]()
        for _ in self.draft.tasks:
            step = self._step(planned)
            if step is None:
                break
            self._copies[step.source] -= 1
            self._copies[step.to] += 1
            if self.draft.is_ready(step.task, step.to):
                self.holders[step.task].remove(step.source)
                self.holders[step.task].append(step.to)
                continue
            is_pending = True
            planned.add(step.task)
            if len(extra) == free:
                break
            extra.append(step)
        self.learners = [(step.task, step.to) for step in extra]
        for step in extra:
            self.holders[step.task].append(step.to)
        return is_pending

    def _step(self, planned: set[int]) -> _Step | None:
        """A task that has, or needs, no further copy at its new place comes before all others."""
        to = self._least()
        near = self._near(to)
        return self._best(near, to, planned) or self._best(range(len(self.holders)), to, planned)

    def _near(self, to: int) -> list[int]:
        """Tasks with a copy at the process, and those that are ready there without one."""
        if to not in self._near_to:
            draft = self.draft
            self._near_to[to] = [
                task
                for task in range(len(self.holders))
                if draft.is_stateful(task) and (draft.has_copy(task, to) or draft.is_ready(task, to))
            ]
        return self._near_to[to]

    def _best(self, tasks: Iterable[int], to: int, planned: set[int]) -> _Step | None:
        best = None
        for task in tasks:
            for source in self.holders[task]:
                step = _Step(task, source, to)
                if task not in planned and self._may_go(step) and (best is None or self._is_better(step, best)):
                    best = step
        return best

    def _least(self) -> int:
        draft, least = self.draft, 0
        for process in range(1, len(draft.processes)):
            one = (self._copies[process] + 1) * draft.threads(least)
            if one < (self._copies[least] + 1) * draft.threads(process):
                least = process
        return least

    def _may_go(self, step: _Step) -> bool:
        draft, (task, source, to) = self.draft, step
        has = to in (draft.active[task], draft.target[task]) or to in self.holders[task]
        return not has and draft.relieves(self._copies, source, to, 1)

    def _is_better(self, step: _Step, than: _Step) -> bool:
        one, other = self._worth(step), self._worth(than)
        if one != other:
            return one > other
        draft = self.draft
        return self._copies[step.source] * draft.threads(than.source) > self._copies[than.source] * draft.threads(
            step.source
        )

    def _worth(self, step: _Step) -> tuple[bool, bool]:
        return self.draft.is_ready(step.task, step.to), self.draft.has_copy(step.task, step.to)
