"""Coverage: which stateful tasks would be left without a good copy if some pods were gone.

Asked for *every stateful task of the application*, not only for those of the pods that leave: a pod that stays may be
restoring a task from nothing while the only good copy is a standby on the pod that leaves.

A copy counts only if two sources agree that it is there: `map_copies` believes a member that holds the task now, took
part in the rebalance that was watched, and sits in a container that has run ever since; `map_copies_by_agents` believes
an agent whose tasks the brokers have assigned to that pod. How far a copy is is worked out only when it is asked for:
of thousands of tasks nearly all run on a pod that stays.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from streamapp.core.evidence.agent_views import AgentView
from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.evidence.running_tasks import holders_of
from streamapp.core.facts.agent_reports import TaskState
from streamapp.core.facts.group import Applied, NoOffsets, ObservedRebalance, OffsetSum
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.lag import (
    BeyondEnd,
    EndOffsets,
    Measured,
    RunningActive,
    TaskLag,
    Unknown,
    copy_lag,
    is_made_anew,
    lag_to,
    records_left,
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
    """`LearnersCatchingUp`, `LagLimitBelowRate`, `LagUnknown`, `NoLearners`, `LearnersNotPlaced`, `TasksRestoring`,
    `WouldMoveCold`."""
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


Position = OffsetSum | Mapping[str, int]
"""How far a holder says that its copy of one task is: as a sum of offsets, or as positions by store."""

Holder = tuple[Ordinal, Mapping[TaskId, Position]]
"""A pod, and how far its copies are; a task that is missing there has no known position."""


class CopyMap:
    """All copies of all stateful tasks, as one reading shows them; made by `map_copies` or `map_copies_by_agents`.

    Attributes:
        task_set: The tasks there are.
        since: From when the positions are, and the ends that were read after them.
        earlier: The same of the reading before, to derive the input rate and to see whether a log was made anew.
    """

    def __init__(self, task_set: TaskSet, since: ReadSince, earlier: ReadSince | None) -> None:
        self.task_set = task_set
        self.since = since
        self.earlier = earlier
        self._running: list[tuple[frozenset[TaskId], Ordinal]] = []
        self._standbys: list[tuple[frozenset[TaskId], Holder]] = []
        self._restoring: list[tuple[frozenset[TaskId], Holder]] = []
        self._lagging_by_limit: dict[int, tuple[int, frozenset[TaskId]]] = {}

    def add_running(self, ordinal: Ordinal, tasks: frozenset[TaskId]) -> None:
        """Add the tasks that are active on a pod, and known to run."""
        if tasks:
            self._running.append((tasks, ordinal))

    def add_standbys(self, ordinal: Ordinal, tasks: frozenset[TaskId], positions: Mapping[TaskId, Position]) -> None:
        """Add the standbys and warm-ups of a pod that count."""
        if tasks:
            self._standbys.append((tasks, (ordinal, positions)))

    def add_restoring(self, ordinal: Ordinal, tasks: frozenset[TaskId], positions: Mapping[TaskId, Position]) -> None:
        """Add the tasks that are active on a pod, but not known to run; how far they are is an upper bound."""
        if tasks:
            self._restoring.append((tasks, (ordinal, positions)))

    @property
    def ends(self) -> EndOffsets:
        """Read after the positions were reported."""
        return self.since.ends

    def copies(self, task: TaskFacts) -> tuple[Copy, ...]:
        """Every copy of a task that counts, running or standby, the nearest first; unknown ones come last."""
        running = (Copy(ordinal, RunningActive()) for ordinal in self._running_on.get(task.id, ()))
        return tuple(sorted((*running, *self._standby_copies(task)), key=_nearness))

    def _standby_copies(self, task: TaskFacts) -> tuple[Copy, ...]:
        """Every standby; where positions and ends are not of the same logs, none is at a known distance."""
        copies = tuple(Copy(holder[0], self._lag(task, holder)) for holder in self._standby_on.get(task.id, ()))
        doubt = self._contradiction(task, copies)
        if not doubt:
            return copies
        return tuple(copy if isinstance(copy.lag, Unknown) else Copy(copy.ordinal, Unknown(doubt)) for copy in copies)

    def _contradiction(self, task: TaskFacts, standbys: tuple[Copy, ...]) -> str:
        """Why a task's positions and ends are not of the same logs; empty if nothing says so.

        A log that was made anew grows past the positions of the old one, and a sum of positions that has a changelog
        too many can come near a sum of ends by chance: then a copy looks caught up that is not.
        """
        if self.earlier is not None and is_made_anew(task, self.earlier.ends, self.ends):
            return "the end of its changelog fell since the look before: its topic was made anew"
        known = (*standbys, *self.restores(task))
        beyond = next((copy.ordinal for copy in known if isinstance(copy.lag, BeyondEnd)), None)
        return "" if beyond is None else f"the copy on ordinal {beyond} lies beyond the end"

    def _made_anew(self) -> set[TaskId]:
        """The tasks of which a changelog ends earlier than at the reading before."""
        if self.earlier is None or self.earlier.ends is self.ends:
            return set()
        before = self.earlier.ends
        return {task.id for task in self.task_set.stateful if is_made_anew(task, before, self.ends)}

    def _restored_beyond_end(self) -> set[TaskId]:
        """The tasks of which a pod restores from a position beyond the end."""
        restored = (self.task_set[task] for task in self._restoring_on if task in self.task_set.stateful_ids)
        return {task.id for task in restored if any(isinstance(one.lag, BeyondEnd) for one in self.restores(task))}

    def restores(self, task: TaskFacts) -> tuple[Copy, ...]:
        """Where a task is assigned as active, but not known to run."""
        holders = self._restoring_on.get(task.id, ())
        return tuple(Copy(holder[0], self._lag(task, holder, is_active=True)) for holder in holders)

    def best(self, task: TaskFacts, stays: Callable[[Ordinal], bool]) -> Copy | None:
        """The nearest copy of a task on a pod that stays."""
        return next((copy for copy in self.copies(task) if stays(copy.ordinal)), None)

    def waits(self, stays: Callable[[Ordinal], bool], limit: int) -> tuple[TaskWait, ...]:
        """The stateful tasks that no pod which stays could take over at once, in the order of their IDs."""
        run_on = frozenset[TaskId]().union(*(tasks for tasks, ordinal in self._running if stays(ordinal)))
        doubtful = (task for task in self.task_set.stateful if task.id not in run_on)
        waits = (self._wait(task, stays, limit) for task in doubtful)
        return tuple(wait for wait in waits if wait is not None)

    def places(self, task: TaskFacts, stays: Callable[[Ordinal], bool], limit: int) -> frozenset[Ordinal]:
        """The pods that stay on which a task runs, or has a caught-up copy."""
        if task.id in self._lagging_standbys(limit)[1]:
            found = [copy.ordinal for copy in self.copies(task) if is_caught_up(copy.lag, limit)]
        else:
            standbys = (holder[0] for holder in self._standby_on.get(task.id, ()))
            found = [*self._running_on.get(task.id, ()), *standbys]
        return frozenset(ordinal for ordinal in found if stays(ordinal))

    def with_fewer_places(self, least: int, stays: Callable[[Ordinal], bool], limit: int) -> tuple[TaskWait, ...]:
        """The stateful tasks that run, or have a caught-up copy, on fewer pods that stay; in the order of their IDs.

        Args:
            least: How many pods it should be.
            stays: Whether a pod stays.
            limit: Records; a copy no further behind is caught up.
        """
        waits = (self._next_place(task, least, stays, limit) for task in self.task_set.stateful)
        return tuple(wait for wait in waits if wait is not None)

    def _next_place(self, task: TaskFacts, least: int, stays: Callable[[Ordinal], bool], limit: int) -> TaskWait | None:
        """What is missing until one more pod could take over."""
        places = self.places(task, stays, limit)
        if len(places) >= least:
            return None

        def is_other(ordinal: Ordinal) -> bool:
            return stays(ordinal) and ordinal not in places

        best = self.best(task, is_other)
        return self._without_copy(task, is_other) if best is None else self._lagging(task, best, limit)

    def cold_moves(self, moves: Mapping[TaskId, Collection[Ordinal | None]], limit: int) -> tuple[TaskWait, ...]:
        """The stateful tasks that would get a pod without a caught-up copy, in the order of their IDs.

        Args:
            moves: Every pod that a task could get; None for one that is not known.
            limit: Records; a copy no further behind is caught up.
        """
        cold: list[TaskWait] = []
        for task in self.task_set.stateful:
            warm = {copy.ordinal for copy in self.copies(task) if is_caught_up(copy.lag, limit)}
            if not warm.issuperset(moves.get(task.id, ())):
                cold.append(TaskWait(task.id, Reason.WouldMoveCold, None, self._whole(task)))
        return tuple(cold)

    def behind(self, limit: int, ordinal: Ordinal | None = None) -> tuple[TaskWait, ...]:
        """The stateful tasks that a pod restores, or has a standby of that is not caught up; of all pods or of one."""
        waits: list[TaskWait] = []
        lagging_tasks = self._lagging_standbys(limit)[1]
        for task in self.task_set.stateful:
            if task.id in self._restoring_on:
                copies = self.restores(task)
                waits.extend(TaskWait(task.id, Reason.TasksRestoring, copy, self._left(task, copy)) for copy in copies)
            if task.id in lagging_tasks:
                lagging = (copy for copy in self.copies(task) if not is_caught_up(copy.lag, limit))
                waits.extend(self._lagging(task, copy, limit) for copy in lagging)
        return tuple(wait for wait in waits if wait.best is not None and ordinal in (None, wait.best.ordinal))

    def standbys_caught_up(self, limit: int) -> int:
        """How many standbys could take over at once."""
        return self._lagging_standbys(limit)[0]

    def _lagging_standbys(self, limit: int) -> tuple[int, frozenset[TaskId]]:
        """How many standbys are caught up; the tasks with one that is not, or of unknown lag."""
        if limit not in self._lagging_by_limit:
            count, lagging = 0, self._made_anew() | self._restored_beyond_end()
            for tasks, holder in self._standbys:
                stateful = tasks & self.task_set.stateful_ids
                behind = self._lagging_of(stateful, holder, limit)
                count += len(stateful) - len(behind)
                lagging.update(behind)
            self._lagging_by_limit[limit] = count, frozenset(lagging)
        return self._lagging_by_limit[limit]

    def _lagging_of(self, tasks: Iterable[TaskId], holder: Holder, limit: int) -> list[TaskId]:
        """The tasks of which a holder's standby is not caught up, without a value for the lag of each of thousands."""
        lagging, positions = list[TaskId](), holder[1]
        ends, sole_changelog = self.ends.partitions, self.task_set.sole_changelog
        for task in tasks:
            position, changelog = positions.get(task), sole_changelog.get(task)
            if changelog is not None and isinstance(position, Applied):
                left = records_left(ends.get(changelog), position.offset_sum)
                if left is None or left > limit:
                    lagging.append(task)
            elif not is_caught_up(self._lag(self.task_set[task], holder), limit):
                lagging.append(task)
        return lagging

    @cached_property
    def _running_on(self) -> Mapping[TaskId, tuple[Ordinal, ...]]:
        return holders_of(self._running)

    @cached_property
    def _standby_on(self) -> Mapping[TaskId, tuple[Holder, ...]]:
        return holders_of(self._standbys)

    @cached_property
    def _restoring_on(self) -> Mapping[TaskId, tuple[Holder, ...]]:
        return holders_of(self._restoring)

    def _lag(self, task: TaskFacts, holder: Holder, *, is_active: bool = False) -> TaskLag:
        position = holder[1].get(task.id)
        if isinstance(position, Applied):
            return lag_to(task_target(task, self.ends), position.offset_sum)
        if isinstance(position, Mapping):
            by_changelog = task.by_changelog(position)
            if by_changelog is None:
                return Unknown("its agent does not tell all of its positions")
            return copy_lag(task, by_changelog, self.ends)
        if is_active and position is NoOffsets.RUNNING:
            return RunningActive()
        return Unknown("its holder reports no offsets for it")

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
    copies = CopyMap(task_set, ReadSince(rebalance.began_at, ends), earlier)
    for pod in workload.pods:
        has_run = has_run_since(pod, rebalance)
        for member in placement.members(pod.ordinal):
            if member.subscription is None or member.assignment is None:
                continue
            active, offsets = member.assignment.active, member.subscription.offsets
            if not has_run or member.id not in rebalance.rejoined_members:
                copies.add_restoring(pod.ordinal, active, offsets)
                if pod.is_running and not has_run:
                    # Perhaps said by the run before: another join tells, and none would come for a copy that is none.
                    copies.add_standbys(pod.ordinal, member.assignment.standby - active, {})
                continue
            running = active & member.subscription.running
            copies.add_running(pod.ordinal, running)
            copies.add_restoring(pod.ordinal, active - running, offsets)
            copies.add_standbys(pod.ordinal, member.assignment.standby - active, offsets)
    return copies


def map_copies_by_agents(task_set: TaskSet, placement: MemberPlacement, view: AgentView) -> CopyMap:
    """Find every copy that counts, by what each JVM says of its own tasks now.

    If the ends were not read since, standbys are there all the same, each at an unknown distance.
    """
    ends = view.ends
    if not isinstance(ends, EndOffsets):
        ends = EndOffsets(read_at=view.as_of, partitions={}, committed={})
    copies = CopyMap(task_set, ReadSince(view.as_of, ends), None)
    for ordinal, report in view.reports.items():
        given = [one.assignment for one in placement.members(ordinal) if one.assignment is not None]
        active = frozenset[TaskId]().union(*(one.active for one in given))
        standby = frozenset[TaskId]().union(*(one.standby for one in given))
        tasks = report.tasks or ()
        as_active = {task.id: task.positions for task in tasks if task.is_active}
        as_standby = {task.id: task.positions for task in tasks if not task.is_active}
        running = active & {task.id for task in tasks if task.is_active and task.state is TaskState.RUNNING}
        copies.add_running(ordinal, running)
        copies.add_restoring(ordinal, (active & as_active.keys()) - running, as_active)
        copies.add_standbys(ordinal, standby & as_standby.keys(), as_standby)
    return copies


def is_caught_up(lag: TaskLag, limit: int) -> bool:
    """Tell whether a copy could take over without a long restore; an unknown lag never is."""
    return isinstance(lag, RunningActive) or (isinstance(lag, Measured) and lag.records <= limit)


def has_run_since(pod: Pod, rebalance: ObservedRebalance) -> bool:
    """Tell whether the container ran when the rebalance began: only then has it said itself what its members said.

    A rebalance is seen settled later than it settled, and a container can end and start in between, while what its
    members said before is still shown.
    """
    since = pod.container.known_since
    return pod.is_running and since is not None and since <= rebalance.began_at


def _nearness(copy: Copy) -> tuple[int, int, Ordinal]:
    match copy.lag:
        case RunningActive():
            return 0, 0, copy.ordinal
        case Measured(records):
            return 1, records, copy.ordinal
        case Unknown():
            return 2, 0, copy.ordinal
