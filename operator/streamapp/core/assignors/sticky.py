"""The broker's assignor of the streams group protocol (KIP-1071): `StickyTaskAssignor`, by release.

A task stays with its member while the member is below its quota. Else it goes to one previous holder of a copy if that
one is below its quota, and else to the least loaded process, without state: the broker warms nothing up.
Sources: the branches 4.2, 4.3 and 4.4 of Kafka, and the jars of `tests/model`.
Ties fall by the order of Java's hash tables, which depends on the names of members and processes.

4.1 had another algorithm, and trunk balances stateful tasks on their own; neither is modelled.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from streamapp.core.assignors.group import NO_TASKS, Placement, RackAwarenessNotModelledError, Task
from streamapp.core.assignors.java_order import HashOrder, PriorityQueue, string_hash
from streamapp.core.assignors.sticky_process import StickyProcess
from streamapp.core.facts.ids import TaskId


class BrokerRelease(Enum):
    """The brokers between which the answers differ."""

    FROM_4_2 = "4.2.0, 4.2.1, 4.3.0, 4.3.1"
    """A standby is not kept if the first of its previous holders has the active task (KAFKA-20899)."""
    FROM_4_2_2 = "4.2.2, 4.3.2"
    """Previous holders with the task are passed over."""
    FROM_4_4 = "4.4"
    """Previous standbys with more records come first, and reported state on disk counts after them."""

    @classmethod
    def of(cls, version: str) -> "BrokerRelease":
        """The release of a version such as `4.2.1`; ValueError for one that is not modelled."""
        major, minor, patch = (int(part) for part in f"{version}.0".split(".")[:3])
        if (major, minor) == (4, 4):
            return cls.FROM_4_4
        if (major, minor) in ((4, 2), (4, 3)):
            return cls.FROM_4_2_2 if patch >= 2 else cls.FROM_4_2
        raise ValueError(f"Kafka {version}: the broker's sticky assignor is modelled for 4.2, 4.3 and 4.4")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMember:
    """One member of a streams group: a stream thread, with its target assignment so far."""

    id: str
    process: str
    actives: frozenset[TaskId] = NO_TASKS
    standbys: frozenset[TaskId] = NO_TASKS
    offsets: Mapping[TaskId, int] = field(default_factory=dict)
    """Reported offset sums of tasks with state on disk, in records; from 4.4 on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StickySettings:
    """Settings of the group, at the broker."""

    release: BrokerRelease = BrokerRelease.FROM_4_2
    num_standby_replicas: int = 0
    """`streams.num.standby.replicas` of the group."""
    rack_aware_tags: tuple[str, ...] = ()
    """`streams.rack.aware.assignment.tags`: refused."""


def assign(tasks: Iterable[Task], members: Iterable[StreamsMember], settings: StickySettings) -> dict[str, Placement]:
    """Return what the broker would answer, by member.

    Raises:
        RackAwarenessNotModelledError: tags are configured.
        ValueError: there is no member.
    """
    if settings.rack_aware_tags:
        raise RackAwarenessNotModelledError("streams.rack.aware.assignment.tags")
    known = list(tasks)
    group = _Group(list(members), known, settings)
    if not group.processes:
        raise ValueError("a group without members has no assignment")
    group.assign_actives([task.id for task in known])
    if settings.num_standby_replicas:
        group.assign_standbys([task.id for task in known if task.is_stateful])
    return {
        member: Placement(frozenset(process.actives[member]), frozenset(process.standbys[member]))
        for process in group.processes.values()
        for member in process.counts
    }


def _by_partition(task: TaskId) -> tuple[int, str]:
    """Partition first; the broker knows sub-topologies by name."""
    return task.partition, str(task.subtopology)


def _by_subtopology(task: TaskId) -> tuple[str, int]:
    return str(task.subtopology), task.partition


class _Quota:
    """How many tasks a member can have; it is computed anew when a member has reached it."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self.most = self._per_member()

    def _per_member(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0

    def count(self, tasks_of_member: int) -> None:
        if tasks_of_member == self.most:
            self._members -= 1
            self._tasks -= tasks_of_member
            self.most = self._per_member()


class _Group:
    """One assignment in the making."""

    def __init__(self, members: Sequence[StreamsMember], tasks: Sequence[Task], settings: StickySettings) -> None:
        by_id = {member.id: member for member in members}
        order = HashOrder[str](string_hash)
        for member in members:
            order.put(member.id)
        self._standbys = settings.num_standby_replicas
        self._release = settings.release
        self._actives = _Quota(len(tasks), len(by_id))
        copies = sum(task.is_stateful for task in tasks) * self._standbys
        self._all = _Quota(len(tasks) + copies, len(by_id))
        self.processes: dict[str, StickyProcess] = {}
        self._process_of = {member.id: member.process for member in members}
        self._owner: dict[TaskId, str] = {}
        listed = [by_id[name] for name in order]
        self._process_order = self._add_processes(listed)
        for member in listed:
            self._owner |= dict.fromkeys(member.actives, member.id)
        self._holders = _holders(listed, settings.release)

    def _add_processes(self, listed: Sequence[StreamsMember]) -> list[str]:
        order = HashOrder[str](string_hash, len(listed))
        for member in listed:
            order.compute(member.process) if self._release is BrokerRelease.FROM_4_4 else order.put(member.process)
            self.processes.setdefault(member.process, StickyProcess()).add_member(member.id)
        return list(order)

    def _process(self, member: str) -> StickyProcess:
        return self.processes[self._process_of[member]]

    def _queue(self) -> PriorityQueue[StickyProcess]:
        return PriorityQueue(lambda process: process.load, (self.processes[name] for name in self._process_order))

    def assign_actives(self, tasks: Sequence[TaskId]) -> None:
        left = self._keep(sorted(tasks, key=_by_partition), self._owner.get)
        left = self._keep(left, lambda task: self._emptiest(self._holders.get(task, ()), None))
        queue = self._queue()
        for task in sorted(left, key=_by_subtopology):
            process = queue.poll()
            self._count_active(process.add_to_emptiest(task, is_active=True))
            queue.add(process)

    def _keep(self, tasks: Iterable[TaskId], member_for: Callable[[TaskId], str | None]) -> list[TaskId]:
        """Give each task to that member if it is below its quota; return the others."""
        left = []
        for task in tasks:
            member = member_for(task)
            if member is not None and self._process(member).counts[member] < self._actives.most:
                self._count_active(self._process(member).add(member, task, is_active=True))
            else:
                left.append(task)
        return left

    def _count_active(self, tasks_of_member: int) -> None:
        self._actives.count(tasks_of_member)
        self._all.count(tasks_of_member)

    def _emptiest(self, members: Sequence[str], standby: TaskId | None) -> str | None:
        """Of previous holders, one with less on its process and on itself than the one before."""
        has_task = [standby is not None and standby in self._process(member).tasks for member in members]
        if self._release is BrokerRelease.FROM_4_2 and members:
            return self._emptiest_but_first(members, has_task)
        able = [member for member, has in zip(members, has_task, strict=True) if not has]
        found = None
        for member in able:
            if found is None or self._is_emptier(member, found):
                found = member
        return found

    def _emptiest_but_first(self, members: Sequence[str], has_task: Sequence[bool]) -> str | None:
        """None if the first holder has the task, even where another was found."""
        if has_task[0]:
            return None
        found = 0
        for at, member in enumerate(members):
            if not has_task[at] and self._is_emptier(member, members[found]):
                found = at
        return members[found]

    def _is_emptier(self, member: str, than: str) -> bool:
        one, other = self._process(member), self._process(than)
        return one.load < other.load and one.counts[member] < other.counts[than]

    def assign_standbys(self, tasks: Sequence[TaskId]) -> None:
        left: list[tuple[TaskId, int]] = []
        for task in sorted(tasks, key=_by_partition, reverse=True):
            placed = 0
            while placed < self._standbys and self._keep_standby(task):
                placed += 1
            if placed < self._standbys:
                left.append((task, self._standbys - placed))
        queue = self._queue()
        for task, replicas in sorted(left, key=lambda one: _by_subtopology(one[0]), reverse=True):
            for _ in range(replicas):
                if not self._place_standby(queue, task):
                    break

    def _keep_standby(self, task: TaskId) -> bool:
        """To the previous owner of the active task, else to one previous holder, below the quota."""
        owner = self._owner.get(task)
        if owner is not None and task not in self._process(owner).tasks and self._has_room(owner):
            return self._give_standby(owner, task)
        holder = self._emptiest(self._holders.get(task, ()), task)
        return holder is not None and self._has_room(holder) and self._give_standby(holder, task)

    def _has_room(self, member: str) -> bool:
        return self._process(member).counts[member] < self._all.most

    def _give_standby(self, member: str, task: TaskId) -> bool:
        self._all.count(self._process(member).add(member, task, is_active=False))
        return True

    def _place_standby(self, queue: PriorityQueue[StickyProcess], task: TaskId) -> bool:
        """To the least loaded process without the task; those above it go back in the reverse order."""
        passed: list[StickyProcess] = []
        found = False
        while queue and not found:
            process = queue.poll()
            passed.append(process)
            if task not in process.tasks:
                self._all.count(process.add_to_emptiest(task, is_active=False))
                found = True
        for process in reversed(passed):
            queue.add(process)
        return found


def _holders(listed: Sequence[StreamsMember], release: BrokerRelease) -> dict[TaskId, list[str]]:
    """Members with a copy of each task: standbys first; from 4.4 on by offset, and then reported state."""
    found: dict[TaskId, list[tuple[bool, int, str]]] = {}
    for member in listed:
        for task in member.standbys:
            found.setdefault(task, []).append((False, -member.offsets.get(task, 0), member.id))
        if release is BrokerRelease.FROM_4_4:
            for task, offset in member.offsets.items():
                if task not in member.standbys:
                    found.setdefault(task, []).append((True, -offset, member.id))
    if release is BrokerRelease.FROM_4_4:
        for candidates in found.values():
            candidates.sort(key=lambda one: one[:2])
    return {task: [member for _, _, member in candidates] for task, candidates in found.items()}
