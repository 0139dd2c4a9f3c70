"""Have the volumes of the pods that stay room for the learners of those that leave?

An estimate: a task takes its share of what the leaving pod's state takes. Where an agent does not tell, nothing is
checked, and a warning says so; a hold is never kept by what nobody knows. Called by `announcement`, `drain_gates` and
`decide`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown

SPARE = 10
"""Percent: a store that is being restored takes more than one that is compacted."""


@dataclass(frozen=True, slots=True)
class Room:
    """What learners will take, and what there is."""

    needed: int
    """Bytes."""
    free: int

    @property
    def is_enough(self) -> bool:
        """Tell whether all of them fit."""
        return self.needed * (100 + SPARE) <= self.free * 100

    def __str__(self) -> str:
        """For people, in megabytes."""
        return f"{self.needed // 1_000_000} MB are needed, {self.free // 1_000_000} MB are free"


@dataclass(frozen=True, slots=True)
class RoomUnknown:
    """An agent does not tell."""

    ordinal: Ordinal


def room_for_learners(
    reports: Mapping[Ordinal, AgentReport], leaving: Collection[Ordinal], task_set: TaskSet | TopologyUnknown
) -> Room | RoomUnknown:
    """What is needed for all tasks that have no copy yet on a pod that stays.

    Args:
        reports: The newest of every pod.
        leaving: Who leaves.
        task_set: Which tasks have state; where that is unknown all are taken to have some.
    """
    needed, free = 0.0, 0
    staying = [report for ordinal, report in reports.items() if ordinal not in leaving]
    copied = {task.id for report in staying for task in report.tasks or ()}
    for report in (reports[ordinal] for ordinal in sorted(leaving) if ordinal in reports):
        active = {task.id for task in report.tasks or () if task.is_active and _has_state(task.id, task_set)}
        held = {task.id for task in report.tasks or () if _has_state(task.id, task_set)}
        if active - copied and report.state_bytes is None:
            return RoomUnknown(report.ordinal)
        needed += (report.state_bytes or 0) * len(active - copied) / max(1, len(held))
    for report in staying:
        if report.free_bytes is None:
            return RoomUnknown(report.ordinal)
        free += report.free_bytes
    return Room(round(needed), free)


def room_for_standbys(
    reports: Mapping[Ordinal, AgentReport], task_set: TaskSet | TopologyUnknown, standbys: int
) -> Room | RoomUnknown:
    """What the tightest volume needs if each task has so many standbys, when one pod has left; and what it has.

    Brokers spread copies by their number alone, so each volume must have room for an even share of all of them.

    Args:
        reports: The newest of every pod; at least two.
        task_set: Which tasks have state; where that is unknown nothing is known.
        standbys: Of each task.
    """
    if isinstance(task_set, TopologyUnknown) or len(reports) < 2:
        return RoomUnknown(min(reports, default=Ordinal(0)))
    share = -(-len(task_set.stateful) * (1 + standbys) // (len(reports) - 1))
    held = {ordinal: sum(_has_state(task.id, task_set) for task in one.tasks or ()) for ordinal, one in reports.items()}
    sizes = []
    for ordinal, report in sorted(reports.items()):
        if report.state_bytes is None or report.free_bytes is None:
            return RoomUnknown(ordinal)
        sizes.append(report.state_bytes / max(1, held[ordinal]))
    rooms = [
        Room(round(max(0, share - held[ordinal]) * max(sizes)), report.free_bytes or 0)
        for ordinal, report in reports.items()
    ]
    return min(rooms, key=lambda room: room.free - room.needed)


def _has_state(task: TaskId, task_set: TaskSet | TopologyUnknown) -> bool:
    if isinstance(task_set, TopologyUnknown):
        return True
    facts = task_set.get(task)
    return facts is None or facts.stateful
