"""Coverage: which stateful tasks would be left without a good copy if some pods were gone.

Asked for *every stateful task of the universe*, not only for those of the pods that leave: a pod that stays may be
restoring a task from nothing while the only good copy is a standby on the pod that leaves.

Called by the gates and by `convergence`. It trusts a copy only where the member holds it now, took part in the join
that was watched, and sits in a container that has run ever since.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from streamapp.core.group import Applied, Join, Member, NoOffsets
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


@dataclass(frozen=True, slots=True)
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
    """All copies of all stateful tasks, as one reading shows them; made by `map_copies`."""

    universe: Universe
    join: Join
    ends: EndOffsets
    """Read right after that join."""
    earlier: tuple[Join, EndOffsets] | None
    """The join before, to tell the input rate."""
    copies: Mapping[TaskId, tuple[Copy, ...]]
    """Every copy that counts, wherever it is: running actives and standbys, best first."""
    restoring: Mapping[TaskId, tuple[Ordinal, ...]]
    """Where tasks are assigned as active, but not known to run."""

    def waits(self, stays: Callable[[Ordinal], bool], limit: int) -> tuple[TaskWait, ...]:
        """The stateful tasks that no pod which stays could take over at once, in the order of their IDs."""
        waits = (self._wait(task, stays, limit) for task in self.universe.stateful)
        return tuple(wait for wait in waits if wait is not None)

    def behind(self, limit: int, ordinal: Ordinal | None = None) -> tuple[TaskWait, ...]:
        """The stateful tasks that a pod restores, or has a standby of that is not caught up; of all pods or of one."""
        waits = []
        for task in self.universe.stateful:
            for copy in self.copies.get(task.id, ()):
                if ordinal in (None, copy.ordinal) and not is_caught_up(copy.lag, limit):
                    left = copy.lag.records - limit if isinstance(copy.lag, Measured) else None
                    waits.append(TaskWait(task.id, Reason.LearnersCatchingUp, copy, left))
            restoring = [where for where in self.restoring.get(task.id, ()) if ordinal in (None, where)]
            waits += [TaskWait(task.id, Reason.TasksRestoring, None, self._whole(task)) for _ in restoring]
        return tuple(waits)

    def standbys_caught_up(self, limit: int) -> int:
        """How many standbys could take over at once."""
        lags = (copy.lag for copies in self.copies.values() for copy in copies)
        return sum(1 for lag in lags if isinstance(lag, Measured) and is_caught_up(lag, limit))

    def _wait(self, task: TaskFacts, stays: Callable[[Ordinal], bool], limit: int) -> TaskWait | None:
        best = next((copy for copy in self.copies.get(task.id, ()) if stays(copy.ordinal)), None)
        if best is None:
            return TaskWait(task.id, Reason.NoLearners, None, self._whole(task))
        if is_caught_up(best.lag, limit):
            return None
        if not isinstance(best.lag, Measured):
            return TaskWait(task.id, Reason.LagUnknown, best, None)
        return TaskWait(task.id, self._why_behind(task, best.lag.records, limit), best, best.lag.records - limit)

    def _whole(self, task: TaskFacts) -> int | None:
        whole = restore_size(task, self.ends)
        return whole.records if isinstance(whole, Measured) else None

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


def map_copies(
    universe: Universe,
    attribution: Attribution,
    workload: Workload,
    join: Join,
    ends: EndOffsets,
    earlier: tuple[Join, EndOffsets] | None,
) -> CopyMap:
    """Find every copy that counts.

    An active that restores is no copy: it blocks the task while it does, however near it is. Nor is a directory that
    merely lies on a disk.
    """
    copies: dict[TaskId, list[Copy]] = defaultdict(list)
    restoring: dict[TaskId, list[Ordinal]] = defaultdict(list)
    for pod in workload.pods:
        for member in attribution.members(pod.ordinal):
            counts = _has_run_since(pod, join) and member.id in join.rejoined
            for task, lag in _held(member, universe, ends):
                if counts and lag is not None:
                    copies[task].append(Copy(pod.ordinal, lag))
                elif lag is None or isinstance(lag, RunningActive):
                    restoring[task].append(pod.ordinal)
    return CopyMap(
        universe=universe,
        join=join,
        ends=ends,
        earlier=earlier,
        copies={task: tuple(sorted(found, key=_nearness)) for task, found in copies.items()},
        restoring={task: tuple(found) for task, found in restoring.items()},
    )


def is_caught_up(lag: TaskLag, limit: int) -> bool:
    """Tell whether a copy could take over without a long restore; an unknown lag never is."""
    return isinstance(lag, RunningActive) or (isinstance(lag, Measured) and lag.records <= limit)


def _has_run_since(pod: Pod, join: Join) -> bool:
    since = pod.container.running_since
    return pod.is_running and since is not None and since <= join.settled_at


def _held(member: Member, universe: Universe, ends: EndOffsets) -> Iterator[tuple[TaskId, TaskLag | None]]:
    """The stateful tasks that a member was given, each with its lag; None for an active not known to run."""
    if member.subscription is None or member.assignment is None:
        return
    for task in member.assignment.active | member.assignment.standby:
        facts = universe.get(task)
        if facts is None or not facts.stateful:
            continue
        offsets = member.subscription.offsets.get(task)
        if task in member.assignment.active:
            yield task, RunningActive() if offsets is NoOffsets.RUNNING else None
        elif isinstance(offsets, Applied):
            yield task, task_lag(facts, offsets.offset_sum, ends)
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
