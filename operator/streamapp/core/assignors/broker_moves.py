"""Where the brokers would put tasks if some members of a streams group left: the broker's own assignor, played.

Asked by `coverage_gates` before a pod of a group of the streams protocol goes. A copy on a pod that stays is not enough
there: the sticky assignor gives a task to one previous holder if that one is below its quota, and else to the least
loaded process, without any state.

What nobody can know is played in several ways, and a move counts in every one of them: in which order the threads of a
pod leave, and how ties fall, which Java's hash tables decide by the names of members and processes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from streamapp.core.assignors.group import Placement, Task
from streamapp.core.assignors.sticky import BrokerRelease, StickySettings, StreamsMember, assign
from streamapp.core.facts.group import Applied, GroupDescription, Member, StreamsGroup
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.core.facts.tasks import TaskSet

STICKY = "sticky"
"""The assignor that is modelled, by its name in `group.streams.assignors`."""

_RELEASES = {
    "4.2": (BrokerRelease.FROM_4_2, BrokerRelease.FROM_4_2_2),
    "4.3": (BrokerRelease.FROM_4_2, BrokerRelease.FROM_4_2_2),
    "4.4": (BrokerRelease.FROM_4_4,),
}
"""How brokers of a release assign; a broker does not tell its patch, so each of its releases is played."""

_LARGE = 500
"""Tasks; from here on fewer ties are played, since each play takes a tenth of a second for thousands."""


Moves = Mapping[TaskId, frozenset[ProcessId]]
"""By task that moves, the processes that it can go to."""


@dataclass(frozen=True, slots=True)
class AssignorUnknown:
    """The assignor of this broker is not modelled, so nothing can be predicted."""

    why: str


def moves_without(group: GroupDescription, task_set: TaskSet, leaving: frozenset[str]) -> Moves | AssignorUnknown:
    """Predict which tasks get another process if these members leave.

    Args:
        group: A settled group of the streams protocol.
        task_set: The tasks there are.
        leaving: IDs of the members that leave; at least one other stays.

    Returns:
        For each task that moves, every process that any of the plays gives it to.
    """
    streams = group.streams
    if streams is None:
        return AssignorUnknown("the group does not use the streams protocol")
    doubt = _why_unknown(streams)
    if doubt:
        return AssignorUnknown(doubt)
    owners = {task: member.process_id for member in group.members for task in _actives(member)}
    found: dict[TaskId, set[ProcessId]] = {}
    for play in _plays(streams, group.members, task_set, leaving):
        for task, process in play.owners():
            if owners.get(task) != process:
                found.setdefault(task, set()).add(process)
    return {task: frozenset(processes) for task, processes in found.items()}


def _why_unknown(streams: StreamsGroup) -> str:
    if streams.assignor not in (None, STICKY):
        return f"the group's assignor is `{streams.assignor}`"
    if streams.broker_release not in _RELEASES:
        return "the coordinator is of another release than 4.2, 4.3 and 4.4"
    return ""


@dataclass(frozen=True, slots=True)
class _Play:
    """One way in which it can go: a release, names, and the order in which members leave."""

    release: BrokerRelease
    naming: int
    """0: the true names; else names that fall elsewhere in hash tables."""
    departures: tuple[frozenset[str], ...]
    """Who leaves before each assignment."""
    members: tuple[Member, ...]
    tasks: tuple[Task, ...]
    standbys: int

    def owners(self) -> Iterator[tuple[TaskId, ProcessId]]:
        """Each task with the process that has it in the end."""
        left = {self._name(member.id): self._member(member) for member in self.members}
        process_of = {self._name(member.id): member.process_id for member in self.members}
        settings = StickySettings(release=self.release, num_standby_replicas=self.standbys)
        given: Mapping[str, Placement] = {}
        for gone in self.departures:
            for member in gone:
                left.pop(self._name(member), None)
            given = assign(self.tasks, left.values(), settings)
            left = {
                name: replace(member, actives=given[name].actives, standbys=given[name].standbys)
                for name, member in left.items()
            }
        for name, placed in given.items():
            process = process_of[name]
            if process is not None:
                yield from ((task, process) for task in placed.actives)

    def _member(self, member: Member) -> StreamsMember:
        said = {} if member.subscription is None else member.subscription.offsets
        return StreamsMember(
            id=self._name(member.id),
            process=self._name(str(member.process_id)),
            actives=_actives(member),
            standbys=frozenset() if member.assignment is None else member.assignment.standby,
            offsets={task: offset.offset_sum for task, offset in said.items() if isinstance(offset, Applied)},
        )

    def _name(self, name: str) -> str:
        return name if self.naming == 0 else sha256(f"{self.naming}/{name}".encode()).hexdigest()[:22]


def _plays(
    streams: StreamsGroup, members: Sequence[Member], task_set: TaskSet, leaving: frozenset[str]
) -> Iterator[_Play]:
    tasks = tuple(Task(task.id, is_stateful=task.stateful) for task in task_set.tasks)
    one_by_one = tuple(frozenset({member}) for member in sorted(leaving))
    orders = [(leaving,)] if len(leaving) < 2 else [(leaving,), one_by_one, one_by_one[::-1]]
    releases = _RELEASES[streams.broker_release or ""]
    for naming in range(3 if len(tasks) > _LARGE else 8):
        for departures in orders:
            # The releases differ in standbys alone, which a single assignment of actives does not look at.
            for release in releases if len(departures) > 1 else releases[:1]:
                yield _Play(release, naming, departures, tuple(members), tasks, _standbys(members, task_set))


def _standbys(members: Iterable[Member], task_set: TaskSet) -> int:
    """How many standbys a task has: the most of any, since the group's setting is not always known."""
    counts = dict.fromkeys(task_set.stateful_ids, 0)
    for member in members:
        for task in frozenset() if member.assignment is None else member.assignment.standby & counts.keys():
            counts[task] += 1
    return max(counts.values(), default=0)


def _actives(member: Member) -> frozenset[TaskId]:
    return frozenset() if member.assignment is None else member.assignment.active
