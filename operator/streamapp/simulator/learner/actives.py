"""Gives every stateful task an active process now: `ActiveTaskPlacement`.

The previous owner, or else the copy that is nearest to ready.
"""

from collections.abc import Callable, Iterable

from streamapp.simulator.learner.draft import FARTHEST, NONE, Draft


def place_actives(draft: Draft, *, is_frozen: bool) -> None:
    """Set active and target of every stateful task; `is_frozen`: no task leaves its owner."""
    orphans = []
    for task in filter(draft.is_stateful, range(len(draft.tasks))):
        if draft.owner[task] == NONE:
            orphans.append(task)
        elif not is_frozen and draft.restores(task, draft.owner[task]):
            _rescue(draft, task)
        else:
            _settle(draft, task, draft.owner[task])
    # Tasks without a choice come first, so that the loads are known for the others.
    orphans = _without_placed(orphans, lambda task: _place(draft, task, _ready(draft, task, draft.staying)))
    if not is_frozen:
        orphans = _without_placed(orphans, lambda task: _is_nearly_ready(draft, task) and _place_nearest(draft, task))
    everywhere = range(len(draft.processes))
    orphans = _without_placed(orphans, lambda task: _place(draft, task, _ready(draft, task, everywhere)))
    orphans = _without_placed(orphans, lambda task: _place_nearest(draft, task))
    for task in orphans:
        _place(draft, task, draft.staying)


def _without_placed(tasks: Iterable[int], place: Callable[[int], bool]) -> list[int]:
    return [task for task in tasks if not place(task)]


def _ready(draft: Draft, task: int, among: Iterable[int]) -> list[int]:
    return [process for process in among if draft.is_ready(task, process)]


def _rescue(draft: Draft, task: int) -> None:
    """The owner restores, so a ready copy takes over at once."""
    able = [one for one in _ready(draft, task, draft.copies[task]) if draft.stays[one]]
    process = draft.roomiest(task, draft.load, able)
    _settle(draft, task, draft.owner[task] if process == NONE else process)


def _place(draft: Draft, task: int, among: Iterable[int]) -> bool:
    process = draft.roomiest(task, draft.load, among)
    if process != NONE:
        _settle(draft, task, process)
    return process != NONE


def _is_nearly_ready(draft: Draft, task: int) -> bool:
    """Whether a copy that stays is within twice the limit."""
    least = min((draft.lag(task, one) for one in draft.copies[task] if draft.stays[one]), default=FARTHEST)
    return least < FARTHEST and least // 2 <= draft.settings.acceptable_lag


def _place_nearest(draft: Draft, task: int) -> bool:
    lags = {one: draft.lag(task, one) for one in draft.copies[task] if draft.stays[one]}
    least = min(lags.values(), default=0)
    return _place(draft, task, [one for one, lag in lags.items() if lag == least])


def _settle(draft: Draft, task: int, process: int) -> None:
    draft.active[task] = process
    draft.set_target(task, process)
