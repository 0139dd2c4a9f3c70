"""Coverage: which stateful tasks would be left without a good copy if some pods were gone.

Asked for *every stateful task of the application*, not only for those of the pods that leave: a pod that stays may be
restoring a task from nothing while the only good copy is a standby on the pod that leaves.

A copy counts only if two sources agree that it is there: `map_copies` believes a member that holds the task now, took
part in the rebalance that was watched, and sits in a container that has run ever since; `map_copies_by_agents` believes
an agent whose tasks the brokers have assigned to that pod. How far a copy is is worked out only when it is asked for:
of thousands of tasks nearly all run on a pod that stays.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from streamapp.core.evidence.agent_views import AgentView
from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.facts.agent_reports import LocalTask, TaskState
from streamapp.core.facts.group import Applied, Assignment, Member, NoOffsets, ObservedRebalance, OffsetSum
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.lag import (
    EndOffsets,
    Measured,
    RunningActive,
    TaskLag,
    TaskTarget,
    Unknown,
    copy_lag,
    lag_to,
    restore_size,
    tail_doubt,
    task_target,
    written_to,
)
from streamapp.core.facts.tasks import TaskFacts, TaskSet
from streamapp.core.facts.workload import Pod, Workload
from streamapp.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a task, and how far it is."""

    ordinal: Ordinal
    lag: TaskLag


@dataclass(frozen=True, slots=True)
class TaskWait:
    """A stateful task that is waited for, and why."""

    task: TaskId
    reason: Reason
    """`LearnersCatchingUp`, `LagLimitBelowRate`, `LagUnknown`, `NoLearners`, `LearnersNotPlaced`, `TasksRestoring`."""
    best: Copy | None
    """The nearest copy that could take over; None where there is none."""
    records_to_go: int | None
    """At most so many records between that copy and the limit; without a copy, all there is to read. None: unknown."""

    @property
    def copy_key(self) -> tuple[TaskId, Ordinal | None]:
        """Which copy it is, to find it again in another reading."""
        return self.task, None if self.best is None else self.best.ordinal


@dataclass(frozen=True, slots=True)
class ReadSince:
    """From when positions are at the earliest, and the ends that were read after them."""

    began_at: datetime
    ends: EndOffsets


Position = OffsetSum | Mapping[str, int] | None
"""What a holder reports of one task: a sum of offsets, positions by store, or nothing."""

Holders = Mapping[TaskId, Sequence[tuple[Ordinal, Position]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyMap:
    """All copies of all stateful tasks, as one reading shows them; made by `map_copies` or `map_copies_by_agents`."""

    task_set: TaskSet
    since: ReadSince
    earlier: ReadSince | None
    """The reading before, to tell the input rate."""
    running: Mapping[TaskId, Sequence[Ordinal]]
    """Where each task is active and known to run."""
    standbys: Holders
    """Every standby and warm-up that counts."""
    restoring: Holders
    """Where tasks are assigned as active, but not known to run; how far they are is an upper bound."""
    _targets: dict[TaskId, TaskTarget | Unknown] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def ends(self) -> EndOffsets:
        """Read after the positions were reported."""
        return self.since.ends

    def copies(self, task: TaskFacts) -> tuple[Copy, ...]:
        """Every copy of a task that counts, running or standby, the nearest first; unknown ones come last."""
        running = (Copy(ordinal, RunningActive()) for ordinal in self.running.get(task.id, ()))
        holders = self.standbys.get(task.id, ())
        standbys = (Copy(ordinal, self._lag(task, position)) for ordinal, position in holders)
        return tuple(sorted((*running, *standbys), key=_nearness))

    def restores(self, task: TaskFacts) -> tuple[Copy, ...]:
        """Where a task is assigned as active, but not known to run."""
        holders = self.restoring.get(task.id, ())
        return tuple(
            Copy(ordinal, RunningActive() if position is NoOffsets.RUNNING else self._lag(task, position))
            for ordinal, position in holders
        )

    def best(self, task: TaskFacts, stays: Callable[[Ordinal], bool]) -> Copy | None:
        """The nearest copy of a task on a pod that stays."""
        return next((copy for copy in self.copies(task) if stays(copy.ordinal)), None)

    def waits(self, stays: Callable[[Ordinal], bool], limit: int) -> tuple[TaskWait, ...]:
        """The stateful tasks that no pod which stays could take over at once, in the order of their IDs."""
        ordinals = {ordinal for running in self.running.values() for ordinal in running}
        staying = frozenset(ordinal for ordinal in ordinals if stays(ordinal))
        running = self.running
        doubtful = (task for task in self.task_set.stateful if staying.isdisjoint(running.get(task.id, ())))
        waits = (self._wait(task, stays, limit) for task in doubtful)
        return tuple(wait for wait in waits if wait is not None)

    def behind(self, limit: int, ordinal: Ordinal | None = None) -> tuple[TaskWait, ...]:
        """The stateful tasks that a pod restores, or has a standby of that is not caught up; of all pods or of one."""
        waits: list[TaskWait] = []
        for task in self.task_set.stateful:
            if task.id in self.restoring:
                copies = self.restores(task)
                waits.extend(TaskWait(task.id, Reason.TasksRestoring, copy, self._left(task, copy)) for copy in copies)
            if self._caught_up(task, limit) < len(self.standbys.get(task.id, ())):
                lagging = (copy for copy in self.copies(task) if not is_caught_up(copy.lag, limit))
                waits.extend(self._lagging(task, copy, limit) for copy in lagging)
        return tuple(wait for wait in waits if wait.best is not None and ordinal in (None, wait.best.ordinal))

    def standbys_caught_up(self, limit: int) -> int:
        """How many standbys could take over at once."""
        return sum(self._caught_up(task, limit) for task in self.task_set.stateful)

    def _caught_up(self, task: TaskFacts, limit: int) -> int:
        """How many standbys of one task are caught up."""
        count = 0
        for _, position in self.standbys.get(task.id, ()):
            if isinstance(position, Applied):
                target = self._target(task)
                left = target.records_left(position.offset_sum) if isinstance(target, TaskTarget) else None
            else:
                lag = self._lag(task, position)
                left = lag.records if isinstance(lag, Measured) else None
            count += left is not None and left <= limit
        return count

    def _lag(self, task: TaskFacts, position: Position) -> TaskLag:
        if isinstance(position, Applied):
            return lag_to(self._target(task), position.offset_sum)
        if isinstance(position, Mapping):
            by_changelog = task.by_changelog(position)
            if by_changelog is None:
                return Unknown("its agent does not tell all of its positions")
            return copy_lag(task, by_changelog, self.ends)
        return Unknown("its holder reports no offsets for it")

    def _target(self, task: TaskFacts) -> TaskTarget | Unknown:
        known = self._targets.get(task.id)
        if known is None:
            known = self._targets[task.id] = task_target(task, self.ends)
        return known

    def _wait(self, task: TaskFacts, stays: Callable[[Ordinal], bool], limit: int) -> TaskWait | None:
        best = self.best(task, stays)
        if best is None:
            return self._without_copy(task, stays)
        return None if is_caught_up(best.lag, limit) else self._lagging(task, best, limit)

    def _without_copy(self, task: TaskFacts, stays: Callable[[Ordinal], bool]) -> TaskWait:
        """No pod could take over; if one that stays has been given the task, it only has to be seen running there."""
        restoring = next((copy for copy in self.restores(task) if stays(copy.ordinal)), None)
        if restoring is None:
            return TaskWait(task.id, Reason.NoLearners, None, self._whole(task))
        return TaskWait(task.id, Reason.TasksRestoring, restoring, self._left(task, restoring))

    def _lagging(self, task: TaskFacts, copy: Copy, limit: int) -> TaskWait:
        if not isinstance(copy.lag, Measured):
            return TaskWait(task.id, Reason.LagUnknown, copy, None)
        doubt = tail_doubt(task, self.ends)
        if doubt is not None:
            why = f"{copy.lag.records} records before the end, of which nobody can tell how many count: {doubt.why}"
            return TaskWait(task.id, Reason.LagUnknown, Copy(copy.ordinal, Unknown(why)), copy.lag.records - limit)
        return TaskWait(task.id, self._why_behind(task, copy.lag.records, limit), copy, copy.lag.records - limit)

    def _whole(self, task: TaskFacts) -> int | None:
        whole = restore_size(task, self.ends)
        return whole.records if isinstance(whole, Measured) else None

    def _left(self, task: TaskFacts, copy: Copy) -> int | None:
        """Records until a restoring task runs; without a known position, all there is to read."""
        return copy.lag.records if isinstance(copy.lag, Measured) else self._whole(task)

    def _why_behind(self, task: TaskFacts, records: int, limit: int) -> Reason:
        """Tell a copy that is behind from one that only cannot be seen caught up.

        Between a copy's word and the reading of the end, input goes on; where that alone is more than the limit, no
        reading of this kind can ever show coverage.
        """
        unseen = self._input_during_reading(task)
        if unseen is not None and unseen > limit and records - unseen <= limit:
            return Reason.LagLimitBelowRate
        return Reason.LearnersCatchingUp

    def _input_during_reading(self, task: TaskFacts) -> float | None:
        if self.earlier is None:
            return None
        before, now = written_to(task, self.earlier.ends), written_to(task, self.ends)
        between = (self.ends.read_at - self.earlier.ends.read_at).total_seconds()
        if before is None or now is None or between <= 0:
            return None
        return (now - before) / between * (self.ends.read_at - self.since.began_at).total_seconds()


def map_copies(
    task_set: TaskSet,
    placement: MemberPlacement,
    workload: Workload,
    rebalance: ObservedRebalance,
    ends: EndOffsets,
    earlier: ReadSince | None,
) -> CopyMap:
    """Find every copy that counts, by what members said when they joined.

    An active that restores is no copy: it blocks the task while it does, however near it is. Nor is a directory that
    merely lies on a disk.
    """
    running: dict[TaskId, list[Ordinal]] = defaultdict(list)
    standbys: dict[TaskId, list[tuple[Ordinal, Position]]] = defaultdict(list)
    restoring: dict[TaskId, list[tuple[Ordinal, Position]]] = defaultdict(list)
    for pod in workload.pods:
        has_run = _has_run_since(pod, rebalance)
        for member in placement.members(pod.ordinal):
            counts = has_run and member.id in rebalance.rejoined_members
            _sort_tasks(member, pod.ordinal, running if counts else None, standbys if counts else None, restoring)
    return CopyMap(
        task_set=task_set,
        since=ReadSince(rebalance.began_at, ends),
        earlier=earlier,
        running=running,
        standbys=standbys,
        restoring=restoring,
    )


def _sort_tasks(
    member: Member,
    ordinal: Ordinal,
    running: dict[TaskId, list[Ordinal]] | None,
    standbys: dict[TaskId, list[tuple[Ordinal, Position]]] | None,
    restoring: dict[TaskId, list[tuple[Ordinal, Position]]],
) -> None:
    """Put the tasks that a member was given where they belong; None: the member's word does not count."""
    if member.subscription is None or member.assignment is None:
        return
    offsets, active = member.subscription.offsets, member.assignment.active
    for task in active:
        position = offsets.get(task)
        if running is not None and position is NoOffsets.RUNNING:
            running[task].append(ordinal)
        else:
            restoring[task].append((ordinal, position))
    if standbys is not None:
        for task in member.assignment.standby:
            if task not in active:
                standbys[task].append((ordinal, offsets.get(task)))


def map_copies_by_agents(task_set: TaskSet, placement: MemberPlacement, view: AgentView) -> CopyMap:
    """Find every copy that counts, by what each JVM says of its own tasks now.

    If the ends were not read since, standbys are there all the same, each at an unknown distance.
    """
    ends = view.ends
    if not isinstance(ends, EndOffsets):
        ends = EndOffsets(read_at=view.as_of, partitions={}, committed={})
    running: dict[TaskId, list[Ordinal]] = defaultdict(list)
    standbys: dict[TaskId, list[tuple[Ordinal, Position]]] = defaultdict(list)
    restoring: dict[TaskId, list[tuple[Ordinal, Position]]] = defaultdict(list)
    for ordinal, report in view.reports.items():
        given = [one.assignment for one in placement.members(ordinal) if one.assignment is not None]
        for task in report.tasks or ():
            if not _is_given(task, given):
                continue
            if task.is_active and task.state is TaskState.RUNNING:
                running[task.id].append(ordinal)
            else:
                (restoring if task.is_active else standbys)[task.id].append((ordinal, task.positions))
    return CopyMap(
        task_set=task_set,
        since=ReadSince(view.as_of, ends),
        earlier=None,
        running=running,
        standbys=standbys,
        restoring=restoring,
    )


def _is_given(task: LocalTask, given: list[Assignment]) -> bool:
    return any(task.id in (one.active if task.is_active else one.standby) for one in given)


def is_caught_up(lag: TaskLag, limit: int) -> bool:
    """Tell whether a copy could take over without a long restore; an unknown lag never is."""
    return isinstance(lag, RunningActive) or (isinstance(lag, Measured) and lag.records <= limit)


def _has_run_since(pod: Pod, rebalance: ObservedRebalance) -> bool:
    since = pod.container.running_since
    return pod.is_running and since is not None and since <= rebalance.settled_at


def _nearness(copy: Copy) -> tuple[int, int, Ordinal]:
    match copy.lag:
        case RunningActive():
            return 0, 0, copy.ordinal
        case Measured(records):
            return 1, records, copy.ordinal
        case Unknown():
            return 2, 0, copy.ordinal
