"""Has the memory of the pods that stay room for the tasks of those that leave?

RocksDB allocates outside of the heap, for each store of each copy, so a pod that takes over tasks needs more memory.
The kernel kills a container that passes its limit. What a copy takes is not measured: Kafka's `rocksdb` gauges call
into a store that a rebalance may be closing, which ends the process (KAFKA-10025), so the agent does not read them. A
figure that the user declares decides; an estimate only warns. Called by `announcement`, `drain_gates` and `decide`.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from streamapp.core.evidence.capacity.disk_space import has_state, held_tasks, tasks_per_pod
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.facts.agent_reports import AgentReport, AsideKind
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """What new copies will take in one container, and what there is: the tightest of all that were judged."""

    ordinal: Ordinal
    needed: int
    """Bytes."""
    free: int

    @property
    def is_enough(self) -> bool:
        """Tell whether they fit."""
        return self.needed <= self.free

    def __str__(self) -> str:
        """For people, in megabytes."""
        return f"ordinal {self.ordinal}: {self.needed // 1_000_000} MB are needed, {self.free // 1_000_000} MB are free"


@dataclass(frozen=True, slots=True)
class MemoryUnknown:
    """An agent does not tell."""

    ordinal: Ordinal


def memory_for_tasks(
    reports: Mapping[Ordinal, AgentReport],
    leaving: Collection[Ordinal],
    task_set: TaskSet | TopologyUnknown,
    per_task: int,
) -> MemoryNeed | MemoryUnknown | None:
    """Judge the container that has the least memory for its share of the copies that the pods which stay will make.

    Args:
        reports: The newest of every pod.
        leaving: Who leaves.
        task_set: Which tasks have state; where that is unknown all are taken to have some.
        per_task: Bytes that one copy takes.

    Returns:
        None where no pod that stays gets a copy, or none of those has a limit.
    """
    staying = {ordinal: report for ordinal, report in reports.items() if ordinal not in leaving}
    coming = _copies_to_make(staying, [reports[one] for one in sorted(leaving) if one in reports], task_set)
    if not staying or not coming:
        return None
    needs = []
    for ordinal, share in sorted(tasks_per_pod(staying, coming, task_set).items()):
        memory = staying[ordinal].memory
        if memory is None:
            return MemoryUnknown(ordinal)
        if share and memory.limit is not None:
            needs.append(MemoryNeed(ordinal, share * per_task, max(0, memory.limit - memory.used)))
    return min(needs, key=lambda one: one.free - one.needed, default=None)


def declared_need(evidence: Evidence, leaving: Collection[Ordinal]) -> MemoryNeed | MemoryUnknown | None:
    """The same by what the user says that a copy takes; None where nothing is said."""
    per_task = evidence.policy.memory_per_task
    if per_task is None:
        return None
    return memory_for_tasks(evidence.fresh_reports, leaving, evidence.snapshot.task_set, per_task)


def estimated_need(evidence: Evidence, leaving: Collection[Ordinal]) -> MemoryNeed | None:
    """The same by an estimate, which is too high: all that a process takes beside its heap counts as its tasks'.

    None where the user says it better, or where it is not known.
    """
    reports, task_set = evidence.fresh_reports, evidence.snapshot.task_set
    held = held_tasks(reports, task_set)
    sizes = [
        max(0, one.memory.used - one.memory.heap) // held[ordinal]
        for ordinal, one in reports.items()
        if one.memory is not None and held[ordinal]
    ]
    if evidence.policy.memory_per_task is not None or not sizes:
        return None
    need = memory_for_tasks(reports, leaving, task_set, max(sizes))
    return need if isinstance(need, MemoryNeed) else None


def _copies_to_make(
    staying: Mapping[Ordinal, AgentReport], leaving: Collection[AgentReport], task_set: TaskSet | TopologyUnknown
) -> int:
    """The copies that tasks of the leaving pods will miss: each task has as many as before, or as fit the pods."""
    gone, kept = _stateful(leaving, task_set), _stateful(staying.values(), task_set)
    wanted = min(len(staying), 1 + _standbys((*staying.values(), *leaving), kept + gone))
    return sum(max(0, wanted - kept[task]) for task in gone)


def _standbys(reports: Collection[AgentReport], copies: Counter[TaskId]) -> int:
    """Of each task: as the application asks for, or with the streams protocol as the brokers make now."""
    if any(one.aside is not None and one.aside.kind is AsideKind.STREAMS_PROTOCOL for one in reports):
        return max(copies.values(), default=1) - 1
    return max((one.standby_replicas or 0 for one in reports), default=0)


def _stateful(reports: Collection[AgentReport], task_set: TaskSet | TopologyUnknown) -> Counter[TaskId]:
    """How many copies these pods have of each task with state."""
    return Counter(task.id for one in reports for task in one.tasks or () if has_state(task.id, task_set))
