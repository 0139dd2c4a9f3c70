"""Places the configured standbys: `StandbyTaskPlacement`.

First the former owner, then other ready copies, then copies with a lag, then room.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from streamapp.simulator.learner.draft import NONE, Draft
from streamapp.simulator.learner.takeover import Takeover

_FORMER, _READY, _BEHIND, _WITHOUT = range(4)


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
    """By process, how many copies it has, actives among them."""

    def __post_init__(self) -> None:
        self._copies = [0] * len(self.draft.processes)

    def choose(self) -> None:
        """Choose the configured number for every stateful task, as far as there are processes that stay."""
        for process in self.draft.target:
            self._copies[process] += 1
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
        draft, best = self.draft, NONE
        for process in range(len(draft.processes)):
            is_free = draft.stays[process] and process != draft.active[task] and process not in chosen
            if is_free and not self.takeover.is_learner(task, process) and self._is_next(task, process, best):
                best = process
        return best

    def _is_next(self, task: int, process: int, than: int) -> bool:
        if than == NONE:
            return True
        own, other = self._rank(task, process), self._rank(task, than)
        if own != other:
            return own < other
        return self._copies[process] * self.draft.threads(than) < self._copies[than] * self.draft.threads(process)

    def _rank(self, task: int, process: int) -> tuple[int, int]:
        draft = self.draft
        if not draft.has_copy(task, process):
            return _WITHOUT, 0
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
        to = self._least()
        best = None
        for task, holders in enumerate(self.holders):
            for source in holders:
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
