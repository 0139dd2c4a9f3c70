"""Makes an assignment that moves a stateful task only to a process with a ready copy: `LearnerAssignment`.

What falls back in Java, because a part of it failed, is an error here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from streamapp.core.assignors.group import Assignment, ClientState, Copy, Placement, Task, in_order
from streamapp.core.facts.ids import TaskId
from streamapp.simulator.learner.actives import place_actives
from streamapp.simulator.learner.balance import plan_balance
from streamapp.simulator.learner.draft import Announcement, Draft, LearnerSettings, Leaving
from streamapp.simulator.learner.leaving import plan_leaving
from streamapp.simulator.learner.standbys import StandbyPlacement
from streamapp.simulator.learner.stateless import place_stateless
from streamapp.simulator.learner.takeover import Takeover

AFTER_EXPIRY_MILLIS = 1_000
_LONGEST_EXPIRY_MILLIS = 2**31 - 1


class Purpose(Enum):
    """Why the assignor asks for another rebalance."""

    LEARNING = "learning"
    UNKNOWN = "unknown"
    EXPIRY = "expiry"
    """The plan is complete until the announcement expires."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """When the assignor asks for another rebalance, and why."""

    millis: int
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class LearnerAnswer:
    """An assignment, which learners are ready and wait, and the follow-up."""

    assignment: Assignment
    waiting: frozenset[Copy]
    follow_up: FollowUp | None


def assign(
    tasks: Iterable[Task],
    clients: Iterable[ClientState],
    settings: LearnerSettings,
    announcement: Announcement,
    *,
    are_lags_known: bool = True,
) -> LearnerAnswer:
    """Return what the leader would answer; ValueError if there is no process."""
    processes = sorted(clients, key=lambda one: str(one.process))
    if not processes:
        raise ValueError("a group without processes has no assignment")
    draft = Draft(in_order(tasks), processes, settings, announcement)
    state = announcement.state
    is_frozen = state is Leaving.UNKNOWN or not are_lags_known
    is_balanced = state is Leaving.EMPTY and not is_frozen
    place_actives(draft, is_frozen=is_frozen)
    if state is Leaving.SET:
        plan_leaving(draft)
    elif is_balanced:
        plan_balance(draft)
    takeover = Takeover(draft, is_frozen)
    takeover.make()
    place_stateless(draft, is_frozen=is_frozen, is_balanced=is_balanced)
    standbys = StandbyPlacement(draft, takeover)
    is_pending = takeover.is_pending
    if is_frozen:
        standbys.keep_nearest()
    else:
        standbys.choose()
        if is_balanced and settings.levels_standbys:
            is_pending |= standbys.balance(takeover.free)
    soon = min(settings.follow_up_millis, takeover.warm_in_millis or settings.follow_up_millis)
    follow_up = _follow_up(soon, announcement, is_pending=is_pending or not are_lags_known)
    return _answer(draft, takeover, standbys, follow_up)


def _answer(draft: Draft, takeover: Takeover, standbys: StandbyPlacement, follow_up: FollowUp | None) -> LearnerAnswer:
    names = [one.process for one in draft.processes]
    learning = {
        Copy(draft.tasks[task].id, names[draft.target[task]]): is_ready for task, is_ready in takeover.learners.items()
    }
    learning |= {Copy(draft.tasks[task].id, names[process]): False for task, process in standbys.learners}
    actives = [set[TaskId]() for _ in names]
    copies = [set[TaskId]() for _ in names]
    for at, task in enumerate(draft.tasks):
        actives[draft.active[at]].add(task.id)
        for process in standbys.holders[at]:
            copies[process].add(task.id)
        if takeover.is_learner(at, draft.target[at]):
            copies[draft.target[at]].add(task.id)
    placements = {
        name: Placement(frozenset(active), frozenset(held))
        for name, active, held in zip(names, actives, copies, strict=True)
    }
    is_final = follow_up is None or follow_up.purpose is Purpose.EXPIRY
    return LearnerAnswer(
        Assignment(placements=placements, learners=frozenset(learning), is_final=is_final),
        frozenset(copy for copy, is_ready in learning.items() if is_ready),
        follow_up,
    )


def _follow_up(soon: int, announcement: Announcement, *, is_pending: bool) -> FollowUp | None:
    if announcement.state is Leaving.UNKNOWN:
        return FollowUp(soon, Purpose.UNKNOWN)
    if is_pending:
        return FollowUp(soon, Purpose.LEARNING)
    if announcement.state is Leaving.SET:
        expires = announcement.expires_in_millis
        millis = soon if expires < 0 else min(expires, _LONGEST_EXPIRY_MILLIS) + AFTER_EXPIRY_MILLIS
        return FollowUp(millis, Purpose.EXPIRY)
    return None
