"""Have the volumes of the pods that stay room for the learners of those that leave?

The largest tasks count. Assignors know no disks, so those that come to a volume can be the largest ones that may come;
as many as come to it need no more than those. Each disk is judged by itself: free bytes of one volume are of no use to
a pod with another.

What an agent does not tell of its tasks one by one, as an older one does not, counts as one task that is as large as
all of it: so many tasks need that at most, and one can. No volume is filled by that, and no hold lasts for ever: a
volume has room where it can take the whole state of a pod that leaves. Where an agent does not tell its state at all,
nothing is checked, and a warning says so; a hold is never kept by what nobody knows. Called by `announcement`,
`drain_gates` and `decide`.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from streamapp.core.evidence.refusal import first_few
from streamapp.core.facts.agent_reports import AgentReport, TaskState
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown

RUNNING = TaskState.RUNNING
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
    untold: Ordinal | None = None
    """Whose agent does not tell the bytes of each task, so that less may be needed; None: that is no part of it."""

    @property
    def is_enough(self) -> bool:
        """Tell whether all of them fit."""
        return self.needed * (100 + SPARE) <= self.free * 100

    def __str__(self) -> str:
        """For people, in megabytes."""
        pods = f"ordinal{'s' if len(self.ordinals) > 1 else ''} {first_few(self.ordinals)}"
        shared = " together, on one disk" if len(self.ordinals) > 1 else ""
        whole = "" if self.untold is None else f"; the agent of ordinal {self.untold} does not tell bytes of each task"
        return f"{pods}{shared}: {self.needed // 1_000_000} MB are needed, {self.free // 1_000_000} MB are free{whole}"


@dataclass(frozen=True, slots=True)
class RoomUnknown:
    """An agent does not tell."""

    ordinal: Ordinal


class _Piece(NamedTuple):
    """Bytes that one task takes, and all of these together not more than."""

    size: int
    tasks: frozenset[TaskId]
    untold: Ordinal | None = None
    """Whose agent does not tell them one by one."""


def room_for_learners(
    reports: Mapping[Ordinal, AgentReport], leaving: Collection[Ordinal], task_set: TaskSet | TopologyUnknown
) -> Room | RoomUnknown:
    """Judge the disk that has the least room for its share of the tasks that have no copy yet on a pod that stays.

    Assignors spread tasks by their number and know no disks, so each volume must have room for an even share of these
    tasks, the largest ones.

    Args:
        reports: The newest of every pod.
        leaving: Who leaves.
        task_set: Which tasks have state; where that is unknown all are taken to have some.
    """
    staying = {ordinal: report for ordinal, report in reports.items() if ordinal not in leaving}
    copied = {task.id for report in staying.values() for task in report.tasks or ()}
    gone = [reports[ordinal] for ordinal in sorted(leaving) if ordinal in reports]
    coming = dict[TaskId, int]()
    for report in gone:
        held = {task.id for task in report.tasks or () if task.is_active and has_state(task.id, task_set)}
        if held - copied and report.state_bytes is None:
            return RoomUnknown(report.ordinal)
        coming |= dict.fromkeys(held - copied, 1)
    shares = tasks_per_pod(staying, len(coming), task_set)
    return _tightest(staying, shares, coming, _pieces(gone, coming), _largest(reports.values()))


def room_for_standbys(
    reports: Mapping[Ordinal, AgentReport],
    task_set: TaskSet | TopologyUnknown,
    standbys: int,
    staying: int,
    judged: int | None = None,
) -> Room | RoomUnknown:
    """Judge the tightest disk for so many standbys of each task, when the other pods have left.

    Brokers spread copies by their number alone, so each volume must have room for an even share of all of them, the
    largest ones that it lacks. No pod has two copies of a task.

    Args:
        reports: The newest of every pod; at least two.
        task_set: Which tasks have state; where that is unknown nothing is known, as where no pod has one of them now.
        standbys: Of each task.
        staying: Pods that are left in the end; at least one.
        judged: Pods below this ordinal are judged; None: all, since those that leave get copies before.
    """
    if isinstance(task_set, TopologyUnknown) or len(reports) < 2:
        return RoomUnknown(min(reports, default=Ordinal(0)))
    untold = [ordinal for ordinal, report in sorted(reports.items()) if report.state_bytes is None]
    somewhere = {task.id for report in reports.values() for task in report.tasks or ()}
    if untold or not task_set.stateful_ids <= somewhere:
        return RoomUnknown(min(untold or reports))
    coming = dict.fromkeys(task_set.stateful_ids, min(1 + standbys, staying))
    share = -(-sum(coming.values()) // staying)
    held = held_tasks(reports, task_set)
    filled = {ordinal: one for ordinal, one in reports.items() if judged is None or ordinal < judged}
    shares = {ordinal: max(0, share - held[ordinal]) for ordinal in filled}
    return _tightest(filled, shares, coming, _pieces(reports.values(), coming), _largest(reports.values()))


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


def _pieces(reports: Collection[AgentReport], tasks: Collection[TaskId]) -> list[_Piece]:
    """What these tasks take by their largest copies, the largest first; each task is in one piece."""
    told = {task: size for task, size in _largest(reports).items() if task in tasks}
    pieces = [_Piece(size, frozenset({task})) for task, size in told.items()]
    counted = set(told)
    # The larger rest first: a task that two of them have may be behind on the other.
    for rest, one in sorted(((_rest(one), one) for one in reports), key=lambda found: found[0], reverse=True):
        untold = frozenset(task.id for task in one.tasks or () if task.id in tasks) - counted
        if untold:
            pieces.append(_Piece(rest, untold, one.ordinal))
            counted |= untold
    return sorted(pieces, key=lambda piece: piece.size, reverse=True)


def _largest(reports: Collection[AgentReport]) -> Mapping[TaskId, int]:
    """The bytes of the largest copy of each task, where agents tell them."""
    told = dict[TaskId, int]()
    for task in (task for one in reports for task in one.tasks or ()):
        if task.state_bytes is not None:
            told[task.id] = max(told.get(task.id, 0), task.state_bytes)
    return told


def _still_to_come(pods: Collection[AgentReport], largest: Mapping[TaskId, int]) -> int:
    """What copies that have begun on these pods will take beside what they take now."""
    copies = (task for one in pods for task in one.tasks or () if not (task.is_active and task.state is RUNNING))
    return sum(max(0, largest[one.id] - one.state_bytes) for one in copies if one.state_bytes is not None)


def _rest(report: AgentReport) -> int:
    """What all tasks take at most whose bytes the agent does not tell."""
    return max(0, (report.state_bytes or 0) - sum(task.state_bytes or 0 for task in report.tasks or ()))


def _tightest(
    reports: Mapping[Ordinal, AgentReport],
    shares: Mapping[Ordinal, int],
    coming: Mapping[TaskId, int],
    pieces: list[_Piece],
    largest: Mapping[TaskId, int],
) -> Room | RoomUnknown:
    """The disk with the least space beside its need. Volumes of one disk have its free bytes once, and all shares."""
    disks: dict[str | Ordinal, list[AgentReport]] = {}
    for ordinal, report in sorted(reports.items()):
        if report.free_bytes is None:
            return RoomUnknown(ordinal)
        disks.setdefault(report.file_system or ordinal, []).append(report)
    rooms = [
        _room(pods, sum(shares[one.ordinal] for one in pods), coming, pieces, _still_to_come(pods, largest))
        for pods in disks.values()
    ]
    return min(rooms, key=_left, default=Room(sum(piece.size for piece in pieces), 0, ()))


def _room(
    pods: list[AgentReport], share: int, coming: Mapping[TaskId, int], pieces: list[_Piece], still_to_come: int
) -> Room:
    """For the largest copies that may come to the pods of one disk, so many of them; no pod gets one that it has.

    Where any comes, what is still to come of those that have begun takes its place, too.
    """
    held = Counter(task.id for one in pods for task in one.tasks or ())
    needed, left, untold = 0, share, None
    for piece in pieces:
        if not left:
            break
        copies = min(left, max(min(coming[task], len(pods) - held[task]) for task in piece.tasks))
        needed, left = needed + copies * piece.size, left - copies
        if copies and piece.size and untold is None:
            untold = piece.untold
    free = min(one.free_bytes or 0 for one in pods)
    needed += still_to_come if needed else 0
    return Room(needed, free, tuple(one.ordinal for one in pods), untold)


def _left(room: Room) -> int:
    return room.free * 100 - room.needed * (100 + SPARE)


def has_state(task: TaskId, task_set: TaskSet | TopologyUnknown) -> bool:
    """Whether a task has state; one that nobody knows is taken to have some."""
    if isinstance(task_set, TopologyUnknown):
        return True
    facts = task_set.get(task)
    return facts is None or facts.stateful
