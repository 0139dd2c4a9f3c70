"""Coverage: which stateful tasks would be left without a good copy if some pods were gone.

Asked for *every stateful task of the universe*, not only for those of the pods that leave: a pod that stays may be
restoring a task from nothing while the only good copy is a standby on the pod that leaves.

Called by the gates and by `convergence`. It trusts a copy only where the member holds it now, took part in the join
that was watched, and sits in a container that has run ever since.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.facts.group import Applied, Member, NoOffsets, ObservedRebalance
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.lag import (
    EndOffsets,
    Measured,
    RunningActive,
    TaskLag,
    Unknown,
    restore_size,
    tail_doubt,
    task_lag,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyMap:
    """All copies of all stateful tasks, as one reading shows them; made by `map_copies` or `map_copies_by_agents`."""

    task_set: TaskSet
    since: ReadSince
    earlier: ReadSince | None
    """The reading before, to tell the input rate."""
    copies: Mapping[TaskId, tuple[Copy, ...]]
    """Every copy that counts, wherever it is: running actives and standbys, best first."""
    restoring: Mapping[TaskId, tuple[Copy, ...]]
    """Where tasks are assigned as active, but not known to run; how far they are is an upper bound."""

    @property
    def ends(self) -> EndOffsets:
        """Read after the positions were told."""
        return self.since.ends

    def best(self, task: TaskId, stays: Callable[[Ordinal], bool]) -> Copy | None:
        """The nearest copy of a task on a pod that stays."""
        return next((copy for copy in self.copies.get(task, ()) if stays(copy.ordinal)), None)

    def waits(self, stays: Callable[[Ordinal], bool], limit: int) -> tuple[TaskWait, ...]:
        """The stateful tasks that no pod which stays could take over at once, in the order of their IDs."""
        waits = (self._wait(task, stays, limit) for task in self.task_set.stateful)
        return tuple(wait for wait in waits if wait is not None)

    def behind(self, limit: int, ordinal: Ordinal | None = None) -> tuple[TaskWait, ...]:
        """The stateful tasks that a pod restores, or has a standby of that is not caught up; of all pods or of one."""
        waits: list[TaskWait] = []
        for task in self.task_set.stateful:
            restoring = self.restoring.get(task.id, ())
            waits.extend(TaskWait(task.id, Reason.TasksRestoring, copy, self._left(task, copy)) for copy in restoring)
            lagging = (copy for copy in self.copies.get(task.id, ()) if not is_caught_up(copy.lag, limit))
            waits.extend(self._lagging(task, copy, limit) for copy in lagging)
        return tuple(wait for wait in waits if wait.best is not None and ordinal in (None, wait.best.ordinal))

    def standbys_caught_up(self, limit: int) -> int:
        """How many standbys could take over at once."""
        lags = (copy.lag for copies in self.copies.values() for copy in copies)
        return sum(1 for lag in lags if isinstance(lag, Measured) and is_caught_up(lag, limit))

    def _wait(self, task: TaskFacts, stays: Callable[[Ordinal], bool], limit: int) -> TaskWait | None:
        best = self.best(task.id, stays)
        if best is None:
            return self._without_copy(task, stays)
        return None if is_caught_up(best.lag, limit) else self._lagging(task, best, limit)

    def _without_copy(self, task: TaskFacts, stays: Callable[[Ordinal], bool]) -> TaskWait:
        """Nobody could take over; if a pod that stays has been given the task, it only has to be seen running there."""
        restoring = next((copy for copy in self.restoring.get(task.id, ()) if stays(copy.ordinal)), None)
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
    """Find every copy that counts.

    An active that restores is no copy: it blocks the task while it does, however near it is. Nor is a directory that
    merely lies on a disk.
    """
    copies: dict[TaskId, list[Copy]] = defaultdict(list)
    restoring: dict[TaskId, list[Copy]] = defaultdict(list)
    for pod in workload.pods:
        for member in placement.members(pod.ordinal):
            counts = _has_run_since(pod, rebalance) and member.id in rebalance.rejoined_members
            for task, lag in _held(member, task_set, ends):
                is_active = member.assignment is not None and task in member.assignment.active
                if counts and (isinstance(lag, RunningActive) or not is_active):
                    copies[task].append(Copy(pod.ordinal, lag))
                elif is_active:
                    restoring[task].append(Copy(pod.ordinal, lag))
    return CopyMap(
        task_set=task_set,
        since=ReadSince(rebalance.began_at, ends),
        earlier=earlier,
        copies={task: nearest_first(found) for task, found in copies.items()},
        restoring={task: tuple(found) for task, found in restoring.items()},
    )


def nearest_first(copies: list[Copy]) -> tuple[Copy, ...]:
    """Order copies by how soon each could take over; unknown ones come last."""
    return tuple(sorted(copies, key=_nearness))


def is_caught_up(lag: TaskLag, limit: int) -> bool:
    """Tell whether a copy could take over without a long restore; an unknown lag never is."""
    return isinstance(lag, RunningActive) or (isinstance(lag, Measured) and lag.records <= limit)


def _has_run_since(pod: Pod, rebalance: ObservedRebalance) -> bool:
    since = pod.container.running_since
    return pod.is_running and since is not None and since <= rebalance.settled_at


def _held(member: Member, task_set: TaskSet, ends: EndOffsets) -> Iterator[tuple[TaskId, TaskLag]]:
    """The stateful tasks that a member was given, each with how far it says it is."""
    if member.subscription is None or member.assignment is None:
        return
    for task in member.assignment.active | member.assignment.standby:
        facts = task_set.get(task)
        if facts is None or not facts.stateful:
            continue
        offsets = member.subscription.offsets.get(task)
        if isinstance(offsets, Applied):
            yield task, task_lag(facts, offsets.offset_sum, ends)
        elif offsets is NoOffsets.RUNNING and task in member.assignment.active:
            yield task, RunningActive()
        else:
            yield task, Unknown("its holder reports no offsets for it")


def _nearness(copy: Copy) -> tuple[int, int, Ordinal]:
    match copy.lag:
        case RunningActive():
            return 0, 0, copy.ordinal
        case Measured(records):
            return 1, records, copy.ordinal
        case Unknown():
            return 2, 0, copy.ordinal
