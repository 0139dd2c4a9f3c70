"""Draining: with learners on demand a pod goes only when it holds no task at all, by the agents' and the brokers' word.

Says how far that is, for the gates, for the reason of a hold and for the next triggered rebalance: it is worth its
moment only when something moves by it. Called by `evaluate` and, for what settles outside holds, by `convergence`.
"""

from collections.abc import Callable
from dataclasses import replace

from streamapp.core.evidence.capacity.container_memory import MemoryUnknown, declared_need
from streamapp.core.evidence.capacity.disk_space import RoomUnknown, room_for_learners, room_for_standbys
from streamapp.core.evidence.coverage import CopyMap, TaskWait
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import announced_pods, is_on_demand
from streamapp.core.evidence.refusal import Refusal, first_few
from streamapp.core.facts.agent_reports import Rebalance
from streamapp.core.facts.hold_record import RaisedStandbys, RaiseState
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.tasks import TaskFacts
from streamapp.core.gates.agent_gates import (
    announcement_is_followed,
    announcement_is_heard,
    holds_no_task,
    last_round,
)
from streamapp.core.gates.candidates import RemovalCandidate, RemovalKind, is_drained
from streamapp.core.gates.case import GateInput, input_now
from streamapp.core.gates.coverage_gates import (
    refusal_of,
)
from streamapp.core.reasons import Reason


def pods_are_drained(case: GateInput) -> Refusal | None:
    """Every pod that goes holds no task; else how far all those that leave are from it."""
    placement = case.placement()
    if isinstance(placement, Refusal):
        return placement
    workload, ordinals = case.snapshot.workload, case.candidate.ordinals
    if all(is_drained(one, placement, workload) and holds_no_task(case, one) for one in ordinals):
        return None
    return _how_far(case)


def learners_have_room(case: GateInput) -> Refusal | None:
    """The volumes of the pods that stay have room for what is to be learned, as far as agents tell."""
    reports = {} if case.view is None else case.view.reports
    room = room_for_learners(reports, _leaving(case), case.snapshot.task_set)
    if isinstance(room, RoomUnknown) or room.is_enough:
        return None
    return Refusal(Reason.NoRoomForLearners, str(room), needs_rebalance=False)


def raised_standbys_have_room(case: GateInput) -> Refusal | None:
    """The volumes of the pods that are left in the end have room for the standbys that the operator raised.

    They were raised for as many pods as were desired then; with fewer, each pod has more copies.
    """
    raised, candidate = _raised(case.evidence), case.candidate
    if raised is None or case.view is None or candidate.kind is not RemovalKind.ONE:
        return None
    left = max(1, candidate.target)
    room = room_for_standbys(case.view.reports, case.snapshot.task_set, raised.to, left, judged=left)
    if isinstance(room, RoomUnknown) or room.is_enough:
        return None
    return Refusal(Reason.NoRoomForLearners, str(room), needs_rebalance=False)


def _raised(evidence: Evidence) -> RaisedStandbys | None:
    """The raise that is in force, or on its way; None where none is, or another hand's value counts."""
    record = evidence.hold_record
    raised = None if record is None else record.standbys
    return raised if raised is not None and raised.state in {RaiseState.WANTED, RaiseState.SEEN} else None


def tasks_fit_into_memory(case: GateInput) -> Refusal | None:
    """The containers of the pods that stay have memory for the tasks that come, by what the user says of a task."""
    is_drained, kind = is_on_demand(case.evidence), case.candidate.kind
    if (
        case.policy.memory_per_task is None
        or kind is RemovalKind.IDLE
        or (kind is RemovalKind.RESTART and not is_drained)
    ):
        return None
    leaving = _leaving(case) if is_drained else frozenset(case.candidate.ordinals)
    if case.view is None:
        return Refusal(Reason.MemoryUnknown, "not every agent reports", needs_rebalance=False)
    need = declared_need(case.evidence, leaving)
    if isinstance(need, MemoryUnknown):
        return Refusal(Reason.MemoryUnknown, f"ordinal {need.ordinal}", needs_rebalance=False)
    return None if need is None or need.is_enough else Refusal(Reason.MemoryTooSmall, str(need), needs_rebalance=False)


def restore_place_is_free(case: GateInput) -> Refusal | None:
    """The cluster's budget has a place for the learners of the pods that go, or agents know them to leave already."""
    if case.snapshot.place.is_free:
        return None
    waiting = _without_copies(case, _leaving(case)).intersection(case.candidate.ordinals)
    return budget_used(case.evidence) if waiting - announced_pods(case.evidence) else None


def budget_used(evidence: Evidence) -> Refusal:
    """The refusal of an application that has no place."""
    place = evidence.snapshot.place
    return Refusal(Reason.RestoreBudgetUsed, f"{place.ahead} ahead, {place.most} at once", needs_rebalance=False)


def pods_without_copies(evidence: Evidence, leaving: frozenset[Ordinal]) -> frozenset[Ordinal]:
    """Those of the leaving pods whose tasks still need learners on the others; all if copies are not known."""
    latest = evidence.snapshot.latest
    if latest is None or not leaving:
        return leaving
    together = RemovalCandidate(RemovalKind.RESTART, tuple(sorted(leaving, reverse=True)))
    return _without_copies(input_now(evidence, together, latest), leaving)


def progress(case: GateInput) -> Refusal | None:
    """The first thing that is missing until the pods are drained, whatever the group is busy with."""
    if case.view is None:
        return None
    heard = learners_have_room(case) or restore_place_is_free(case) or announcement_is_heard(case)
    return heard or announcement_is_followed(case) or pods_are_drained(case)


def settling(case: GateInput, copies: CopyMap, follow_up: Refusal) -> Refusal:
    """What a follow-up outside a hold waits for: learners, a process that has just joined, or only its moment.

    Args:
        case: The latest reading, with what the agents say.
        copies: All copies.
        follow_up: What the group shows.
    """
    behind = copies.behind(case.policy.acceptable_recovery_lag)
    made = last_round(() if case.view is None else case.view.reports.values())
    warm_at = None if made is None else made.warm_at
    is_warming = warm_at is not None and case.snapshot.now < warm_at
    is_eager = case.policy.rebalance is Rebalance.EAGER and not is_warming
    if is_eager and made is not None and len(behind) < made.learning:
        return Refusal(Reason.TasksReadyToMove, follow_up.detail, behind)
    if behind:
        return replace(refusal_of(behind), needs_rebalance=False)
    if is_warming:
        return Refusal(Reason.ProcessWarmsUp, f"until {warm_at:%H:%M:%S} UTC", needs_rebalance=False)
    return Refusal(Reason.TasksReadyToMove, follow_up.detail)


def _how_far(case: GateInput) -> Refusal:
    copies = case.copies()
    if isinstance(copies, Refusal):
        return copies
    leaving = _leaving(case)
    held = {ordinal: _held(case, ordinal) for ordinal in leaving}
    tasks = {task for active, _ in held.values() for task in active}
    waits = _waits(copies, tasks, lambda one: one not in leaving, case.policy.acceptable_recovery_lag)
    there = tasks - {wait.task for wait in waits}
    ready = [task for task in copies.task_set.stateful if task.id in there]
    if ready and _moves(case.policy.rebalance, copies, ready, waits, leaving):
        return Refusal(Reason.TasksReadyToMove, f"task {first_few([task.id for task in ready])}", waits)
    if waits:
        worst = refusal_of(waits)
        return replace(worst, needs_rebalance=worst.reason is Reason.LearnersNotPlaced)
    left = [ordinal for ordinal, (active, standby) in sorted(held.items()) if active or standby]
    return Refusal(Reason.Draining, f"ordinal {first_few(left or sorted(case.candidate.ordinals))}")


def _without_copies(case: GateInput, leaving: frozenset[Ordinal]) -> frozenset[Ordinal]:
    copies = case.copies()
    if isinstance(copies, Refusal):
        return leaving
    held = {ordinal: _held(case, ordinal)[0] for ordinal in leaving}
    tasks = {task for active in held.values() for task in active}
    waits = _waits(copies, tasks, lambda one: one not in leaving, case.policy.acceptable_recovery_lag)
    missing = {wait.task for wait in waits}
    return frozenset(ordinal for ordinal, active in held.items() if active & missing)


def _leaving(case: GateInput) -> frozenset[Ordinal]:
    """The pods that are announced: all above the target, or the one that restarts."""
    candidate = case.candidate
    if candidate.kind is RemovalKind.RESTART:
        return frozenset(candidate.ordinals)
    lowest = max(candidate.target, candidate.drained_from, 1)
    return frozenset({pod.ordinal for pod in case.snapshot.workload.pods if pod.ordinal >= lowest})


def _held(case: GateInput, ordinal: Ordinal) -> tuple[frozenset[TaskId], frozenset[TaskId]]:
    """The tasks of a pod, active and standby, whoever says so."""
    placement = case.placement()
    members = () if isinstance(placement, Refusal) else placement.members(ordinal)
    given = [member.assignment for member in members if member.assignment is not None]
    report = None if case.view is None else case.view.reports.get(ordinal)
    tasks = () if report is None else report.tasks or ()
    return (
        frozenset({task.id for task in tasks if task.is_active}).union(*(one.active for one in given)),
        frozenset({task.id for task in tasks if not task.is_active}).union(*(one.standby for one in given)),
    )


def _waits(copies: CopyMap, tasks: set[TaskId], stays: Callable[[Ordinal], bool], limit: int) -> tuple[TaskWait, ...]:
    waits = [wait for wait in copies.waits(stays, limit) if wait.task in tasks]
    return tuple(
        replace(wait, reason=Reason.LearnersNotPlaced) if wait.reason is Reason.NoLearners else wait for wait in waits
    )


def _moves(
    rebalance: Rebalance,
    copies: CopyMap,
    ready: list[TaskFacts],
    waits: tuple[TaskWait, ...],
    leaving: frozenset[Ordinal],
) -> bool:
    """Tell whether the next rebalance moves anything: a process takes over with all its learners, or with each."""
    if rebalance is Rebalance.EAGER:
        return True
    learning = {wait.best.ordinal for wait in waits if wait.best is not None}
    bests = [copies.best(task, lambda one: one not in leaving) for task in ready]
    return any(best is not None and best.ordinal not in learning for best in bests)
