"""The values that go into an assignment and come out of it, for every assignor.

A client is one Kafka Streams process, as in Kafka's `ClientState`.
A lag is in records, summed over a task's changelogs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from streamapp.core.facts.ids import ProcessId, TaskId

RUNNING = -2
"""The lag of an active task that processes: Kafka's `Task.LATEST_OFFSET`."""
UNKNOWN = -3
"""An offset sum that the member could not give: Kafka's `UNKNOWN_OFFSET_SUM`. Other negative lags mean the same."""

NO_TASKS: frozenset[TaskId] = frozenset()


@dataclass(frozen=True, slots=True)
class Task:
    """One task of the application."""

    id: TaskId
    is_stateful: bool = True
    """Whether it has a store with a changelog, so that it can have copies."""
    weight: int = 1
    """Its share of a process's load; only our own assignor knows weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientState:
    """What the members of one process reported when they joined."""

    process: ProcessId
    threads: int = 1
    """Members of this process: Kafka's capacity."""
    actives: frozenset[TaskId] = NO_TASKS
    """Active tasks, restoring ones included."""
    copies: frozenset[TaskId] = NO_TASKS
    """Tasks with state but without the active: standbys, warm-ups and unused directories."""
    standbys: frozenset[TaskId] = NO_TASKS
    """Those of the copies that the process had as standbys; only the broker's assignor looks at them."""
    lags: Mapping[TaskId, int] = field(default_factory=dict)
    """`RUNNING`, or records; of every stateful task with state here, and of those that `changelogs` does not have."""
    changelogs: Mapping[TaskId, int] = field(default_factory=dict)
    """Records of whole changelogs, the lags of tasks without state here; all clients of a group share one mapping."""
    cold_millis: int = 0
    """In how many milliseconds the process counts as warm; only our own assignor looks at it."""

    def lag(self, task: TaskId) -> int:
        """The lag of a stateful task: `RUNNING`, records, or `UNKNOWN`."""
        lag = self.lags.get(task)
        return self.changelogs.get(task, UNKNOWN) if lag is None else lag


class Copy(NamedTuple):
    """A task at a process."""

    task: TaskId
    process: ProcessId


@dataclass(frozen=True, slots=True)
class Placement:
    """What one process gets; warm-ups and learners are among the standbys, as they are on the wire."""

    actives: frozenset[TaskId] = NO_TASKS
    standbys: frozenset[TaskId] = NO_TASKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The answer of an assignor."""

    placements: Mapping[ProcessId, Placement]
    """Of every process of the group."""
    learners: frozenset[Copy] = frozenset()
    """Copies for a later move: warm-ups of the stock assignor, learners of ours."""
    is_final: bool = True
    """Whether nothing is left to move; else the assignor asks for another rebalance."""

    def owners(self) -> dict[TaskId, ProcessId]:
        """The process of each active task."""
        return {task: process for process, placed in self.placements.items() for task in placed.actives}

    def holders(self) -> dict[TaskId, frozenset[ProcessId]]:
        """The processes of each task's standbys, learners among them."""
        found: dict[TaskId, set[ProcessId]] = {}
        for process, placed in self.placements.items():
            for task in placed.standbys:
                found.setdefault(task, set()).add(process)
        return {task: frozenset(processes) for task, processes in found.items()}


class RackAwarenessNotModelledError(ValueError):
    """The application places tasks by rack or tag, which no model here does."""

    def __init__(self, setting: str) -> None:
        super().__init__(
            f"{setting} is set: rack awareness is not modelled, so no assignment can be predicted; "
            "leave the setting out to see what would happen without racks"
        )


def in_order(tasks: Iterable[Task]) -> list[Task]:
    """Tasks in Kafka's order: sub-topology, then partition."""
    return sorted(tasks, key=lambda task: task.id)
