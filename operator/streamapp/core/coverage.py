"""Coverage: which stateful tasks would be left without a good copy if some pods were gone.

Asked for *every stateful task of the universe*, not only for those of the pods that leave: a pod that stays may be
restoring a task from nothing while the only good copy is a standby on the pod that leaves.

Called by the gates and by `convergence`. It trusts a copy only where the member holds it now, took part in the join
that was watched, and sits in a container that has run ever since.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from streamapp.core.group import Applied, Join, Member
from streamapp.core.identity import Ordinal, TaskId
from streamapp.core.lag import (
    EndOffsets,
    Measured,
    RunningActive,
    TaskLag,
    Unknown,
    restore_size,
    task_lag,
    written_to,
)
from streamapp.core.membership import Attribution
from streamapp.core.reasons import Reason
from streamapp.core.universe import TaskFacts, Universe
from streamapp.core.workload import Pod, Workload


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a task, and how far it is."""

    ordinal: Ordinal
    lag: TaskLag


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWait:
    """A stateful task that is waited for, and why."""

    task: TaskId
    reason: Reason
    """`LearnersCatchingUp`, `LagLimitBelowRate`, `LagUnknown`, `NoLearners`; of a pod's own tasks `TasksRestoring`."""
    best: Copy | None
    """The nearest copy that could take over; None where there is none."""
    in_the_way: int | None
    """Records between that copy and the limit; without a copy, all there is to read. None: unknown."""

    @property
    def copy_key(self) -> tuple[TaskId, Ordinal | None]:
        """Which copy it is, to find it again in another reading."""
        return self.task, None if self.best is None else self.best.ordinal


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyMap:
    """All copies of all stateful tasks, as one reading shows them."""

    universe: Universe
    attribution: Attribution
    workload: Workload
    join: Join
    ends: EndOffsets
    """Read right after that join."""
    earlier: tuple[Join, EndOffsets] | None = None
    """The join before, to tell the input rate."""

    def copies(self, task: TaskFacts) -> tuple[Copy, ...]:
        """Every copy that counts, wherever it is: running actives and standbys, best first.

        An active that restores is no copy: it blocks the task while it does, however near it is. Nor is a directory
        that merely lies on a disk.
        """
        found = [
            Copy(pod.ordinal, lag)
            for pod in self.workload.pods
            if self._has_run_since_the_join(pod)
            for member in self.attribution.members(pod.ordinal)
            if member.id in self.join.rejoined
            for lag in _held(task, member, self.ends)
        ]
        return tuple(sorted(found, key=lambda copy: (_rank(copy.lag), copy.ordinal)))

    def waits(self, stays: Callable[[Ordinal], bool], limit: int) -> tuple[TaskWait, ...]:
        """The stateful tasks that no pod which stays could take over at once, in the order of their IDs."""
        waits = (self._wait(task, stays, limit) for task in self.universe.stateful)
        return tuple(wait for wait in waits if wait is not None)

    def behind(self, ordinal: Ordinal, limit: int) -> tuple[TaskWait, ...]:
        """The stateful tasks that one ordinal restores as active, or has a standby of that is not caught up."""
        waits = []
        for task in self.universe.stateful:
            own = [copy for copy in self.copies(task) if copy.ordinal == ordinal]
            lag = own[0].lag if own else None
            if lag is not None and not is_caught_up(lag, limit):
                left = lag.records - limit if isinstance(lag, Measured) else None
                waits.append(TaskWait(task=task.id, reason=Reason.LearnersCatchingUp, best=own[0], in_the_way=left))
            elif lag is None and self._is_assigned(task.id, ordinal):
                whole = restore_size(task, self.ends)
                left = whole.records if isinstance(whole, Measured) else None
                waits.append(TaskWait(task=task.id, reason=Reason.TasksRestoring, best=None, in_the_way=left))
        return tuple(waits)

    def standbys_caught_up(self, limit: int) -> int:
        """How many standbys could take over at once."""
        copies = (copy for task in self.universe.stateful for copy in self.copies(task))
        return sum(1 for copy in copies if isinstance(copy.lag, Measured) and is_caught_up(copy.lag, limit))

    def _is_assigned(self, task: TaskId, ordinal: Ordinal) -> bool:
        members = self.attribution.members(ordinal)
        return any(member.assignment is not None and task in member.assignment.active for member in members)

    def _wait(self, task: TaskFacts, stays: Callable[[Ordinal], bool], limit: int) -> TaskWait | None:
        best = next((copy for copy in self.copies(task) if stays(copy.ordinal)), None)
        if best is None:
            whole = restore_size(task, self.ends)
            left = whole.records if isinstance(whole, Measured) else None
            return TaskWait(task=task.id, reason=Reason.NoLearners, best=None, in_the_way=left)
        if is_caught_up(best.lag, limit):
            return None
        if not isinstance(best.lag, Measured):
            return TaskWait(task=task.id, reason=Reason.LagUnknown, best=best, in_the_way=None)
        reason = self._why_behind(task, best.lag.records, limit)
        return TaskWait(task=task.id, reason=reason, best=best, in_the_way=best.lag.records - limit)

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
        before, now = written_to(task, self.earlier[1]), written_to(task, self.ends)
        between = (self.ends.read_at - self.earlier[1].read_at).total_seconds()
        if before is None or now is None or between <= 0:
            return None
        return (now - before) / between * (self.ends.read_at - self.join.began_at).total_seconds()

    def _has_run_since_the_join(self, pod: Pod) -> bool:
        since = pod.container.running_since
        return pod.is_running and since is not None and since <= self.join.settled_at


def is_caught_up(lag: TaskLag, limit: int) -> bool:
    """Tell whether a copy could take over without a long restore; an unknown lag never is."""
    return isinstance(lag, RunningActive) or (isinstance(lag, Measured) and lag.records <= limit)


def _held(task: TaskFacts, member: Member, ends: EndOffsets) -> Iterator[TaskLag]:
    if member.subscription is None or member.assignment is None:
        return
    if member.runs(task.id, frozenset(task.source_partitions), stateful=task.stateful):
        yield RunningActive()
    elif task.id in member.assignment.standby:
        offsets = member.subscription.offsets.get(task.id)
        if isinstance(offsets, Applied):
            yield task_lag(task, offsets.offset_sum, ends)
        else:
            yield Unknown("its holder reports no offsets for it")


def _rank(lag: TaskLag) -> tuple[int, int]:
    match lag:
        case RunningActive():
            return 0, 0
        case Measured(records):
            return 1, records
        case Unknown():
            return 2, 0
