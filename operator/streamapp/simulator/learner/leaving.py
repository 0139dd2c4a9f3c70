"""Chooses who takes over the stateful tasks of leaving processes: `LeavingPlan`.

Ready copies first, then other copies, then room. A holder is passed over only above the level of an even distribution.
"""

from dataclasses import dataclass

from streamapp.simulator.learner.draft import NONE, Draft
from streamapp.simulator.learner.room import Room


@dataclass(slots=True)
class _Level:
    """Load and threads of the fullest process of an even distribution, as a fraction."""

    load: int = 0
    threads: int = 1
    slack: int = 0
    """The heaviest task, less one."""


def plan_leaving(draft: Draft) -> None:
    """Aim every stateful task of a leaving process at one that stays."""
    leaving = [
        task for task in range(len(draft.tasks)) if draft.is_stateful(task) and not draft.stays[draft.active[task]]
    ]
    level = _fill(draft, leaving)
    scarce_first = sorted(leaving, key=lambda task: _choices(draft, task))
    taken = {task for task in scarce_first if _choose(draft, level, task, is_ready=True)}
    left = [task for task in leaving if task not in taken]
    left = [task for task in left if not _choose(draft, level, task, is_ready=False)]
    room = Room(draft, draft.load, is_aimed=True)
    for task in left:
        draft.set_target(task, room.find(task))


def _choices(draft: Draft, task: int) -> int:
    return sum(draft.stays[one] and draft.is_ready(task, one) for one in draft.copies[task])


def _fill(draft: Draft, leaving: list[int]) -> _Level:
    """Find the level by distributing the tasks by room alone."""
    loads, level = list(draft.load), _Level()
    room = Room(draft, loads, is_aimed=False)
    for task in leaving:
        process = room.find(task)
        loads[process] += draft.weight(task)
        if loads[process] * level.threads > level.load * draft.threads(process):
            level.load, level.threads = loads[process], draft.threads(process)
        level.slack = max(level.slack, draft.weight(task) - 1)
    return level


def _choose(draft: Draft, level: _Level, task: int, *, is_ready: bool) -> bool:
    best = NONE
    for process in draft.copies[task]:
        may = draft.stays[process] and _fits(draft, level, task, process) and draft.is_ready(task, process) == is_ready
        if may and (best == NONE or _is_better(draft, task, process, best, is_ready)):
            best = process
    if best != NONE:
        draft.set_target(task, best)
    return best != NONE


def _fits(draft: Draft, level: _Level, task: int, process: int) -> bool:
    load = draft.load[process] + draft.weight(task) - level.slack
    return load * level.threads <= level.load * draft.threads(process)


def _is_better(draft: Draft, task: int, process: int, than: int, is_ready: bool) -> bool:
    if is_ready:
        return draft.load[process] * draft.threads(than) < draft.load[than] * draft.threads(process)
    return draft.lag(task, process) < draft.lag(task, than)
