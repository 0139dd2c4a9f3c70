"""Have the volumes of the pods that stay room for the learners of those that leave?

An estimate: a task takes its share of what the leaving pod's state takes. Each disk is judged by itself: assignors know
none, and free bytes of one volume are of no use to a pod with another. Where an agent does not tell, nothing is
checked, and a warning says so; a hold is never kept by what nobody knows. Called by `announcement`, `drain_gates` and
`decide`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from streamapp.core.evidence.refusal import first_few
from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown

SPARE = 10
"""Percent: a store that is being restored takes more than one that is compacted."""


@dataclass(frozen=True, slots=True)
class Room:
    """What copies will take on one disk, and what there is: the tightest of all that were judged."""

    needed: int
    """Bytes."""
    free: int
    ordinals: tuple[Ordinal, ...]
    """The pods whose volumes lie on this disk."""

    @property
    def is_enough(self) -> bool:
        """Tell whether all of them fit."""
        return self.needed * (100 + SPARE) <= self.free * 100

    def __str__(self) -> str:
        """For people, in megabytes."""
        pods = f"ordinal{'s' if len(self.ordinals) > 1 else ''} {first_few(self.ordinals)}"
        shared = " together, on one disk" if len(self.ordinals) > 1 else ""
        return f"{pods}{shared}: {self.needed // 1_000_000} MB are needed, {self.free // 1_000_000} MB are free"


@dataclass(frozen=True, slots=True)
class RoomUnknown:
    """An agent does not tell."""

    ordinal: Ordinal


def room_for_learners(
    reports: Mapping[Ordinal, AgentReport], leaving: Collection[Ordinal], task_set: TaskSet | TopologyUnknown
) -> Room | RoomUnknown:
    """Judge the disk that has the least room for its share of the tasks that have no copy yet on a pod that stays.

    Assignors spread tasks by their number and know no disks, so each volume must have room for an even share of the
    largest of these tasks.

    Args:
        reports: The newest of every pod.
        leaving: Who leaves.
        task_set: Which tasks have state; where that is unknown all are taken to have some.
    """
    staying = {ordinal: report for ordinal, report in reports.items() if ordinal not in leaving}
    copied = {task.id for report in staying.values() for task in report.tasks or ()}
    moving, size = 0, 0.0
    for report in (reports[ordinal] for ordinal in sorted(leaving) if ordinal in reports):
        held = {task.id for task in report.tasks or () if has_state(task.id, task_set)}
        uncopied = {task.id for task in report.tasks or () if task.is_active and task.id in held} - copied
        if uncopied and report.state_bytes is None:
            return RoomUnknown(report.ordinal)
        moving += len(uncopied)
        size = max(size, (report.state_bytes or 0) / len(held)) if uncopied else size
    return _tightest(staying, tasks_per_pod(staying, moving, task_set), size, most=moving)


def room_for_standbys(
    reports: Mapping[Ordinal, AgentReport],
    task_set: TaskSet | TopologyUnknown,
    standbys: int,
    staying: int,
    judged: int | None = None,
) -> Room | RoomUnknown:
    """Judge the tightest disk for so many standbys of each task, when the other pods have left.

    Brokers spread copies by their number alone, so each volume must have room for an even share of all of them. No pod
    has two copies of a task.

    Args:
        reports: The newest of every pod; at least two.
        task_set: Which tasks have state; where that is unknown nothing is known.
        standbys: Of each task.
        staying: Pods that are left in the end; at least one.
        judged: Pods below this ordinal are judged; None: all, since those that leave get copies before.
    """
    if isinstance(task_set, TopologyUnknown) or len(reports) < 2:
        return RoomUnknown(min(reports, default=Ordinal(0)))
    copies = len(task_set.stateful) * min(1 + standbys, staying)
    share = -(-copies // staying)
    held = held_tasks(reports, task_set)
    sizes = []
    for ordinal, report in sorted(reports.items()):
        if report.state_bytes is None:
            return RoomUnknown(ordinal)
        sizes.append(report.state_bytes / max(1, held[ordinal]))
    filled = {ordinal: one for ordinal, one in reports.items() if judged is None or ordinal < judged}
    shares = {ordinal: max(0, share - held[ordinal]) for ordinal in filled}
    return _tightest(filled, shares, max(sizes), most=copies)


def tasks_per_pod(
    staying: Mapping[Ordinal, AgentReport], moving: int, task_set: TaskSet | TopologyUnknown
) -> Mapping[Ordinal, int]:
    """How many tasks may come to each pod at most, whether an assignor spreads these tasks or all tasks evenly."""
    held = held_tasks(staying, task_set)
    even = -(-moving // max(1, len(staying)))
    level = -(-(sum(held.values()) + moving) // max(1, len(staying)))
    return {ordinal: min(moving, max(even, level - held[ordinal])) for ordinal in staying}


def held_tasks(reports: Mapping[Ordinal, AgentReport], task_set: TaskSet | TopologyUnknown) -> Mapping[Ordinal, int]:
    """How many copies of tasks with state each pod has."""
    return {ordinal: sum(has_state(task.id, task_set) for task in one.tasks or ()) for ordinal, one in reports.items()}


def _tightest(
    reports: Mapping[Ordinal, AgentReport], shares: Mapping[Ordinal, int], size: float, *, most: int
) -> Room | RoomUnknown:
    """The disk with the least space beside its need. Volumes of one disk have its free bytes once, and all shares."""
    disks: dict[str | Ordinal, list[AgentReport]] = {}
    for ordinal, report in sorted(reports.items()):
        if report.free_bytes is None:
            return RoomUnknown(ordinal)
        disks.setdefault(report.file_system or ordinal, []).append(report)
    rooms = [
        Room(
            needed=round(min(most, sum(shares[one.ordinal] for one in pods)) * size),
            free=min(one.free_bytes or 0 for one in pods),
            ordinals=tuple(one.ordinal for one in pods),
        )
        for pods in disks.values()
    ]
    return min(rooms, key=_left, default=Room(round(most * size), 0, ()))


def _left(room: Room) -> int:
    return room.free * 100 - room.needed * (100 + SPARE)


def has_state(task: TaskId, task_set: TaskSet | TopologyUnknown) -> bool:
    """Whether a task has state; one that nobody knows is taken to have some."""
    if isinstance(task_set, TopologyUnknown):
        return True
    facts = task_set.get(task)
    return facts is None or facts.stateful
