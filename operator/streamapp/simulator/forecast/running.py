"""An application as it runs, in the values of the model, from the core's task table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from streamapp.core.assignors.broker_moves import why_unknown
from streamapp.core.assignors.group import Task
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.core.status.processes import ProcessRow
from streamapp.core.status.streams_rows import StreamsRow
from streamapp.core.status.task_table import Role, TaskRow, TaskTable
from streamapp.core.status.volumes import VolumeRow
from streamapp.simulator.world import Instance, World

UNKNOWN_RECORDS = 1_000_000
"""Stands for an unknown size, so that moves and rebalances can be counted; no time is given then."""


class LayoutUnknownError(ValueError):
    """The layout is not known well enough to play a change; says why."""


class BrokerAssignorUnknownError(ValueError):
    """The brokers assign in a way that is not modelled, so nothing can be predicted; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The application before the change."""

    world: World
    processes: Mapping[int, ProcessId]
    """By ordinal; also of ordinals that are not there yet."""
    kept: Mapping[int, Mapping[TaskId, float]]
    """By ordinal of a pod that is not there, the records applied on its volume; missing where nothing is on record."""
    current: int
    """Replicas of the StatefulSet."""
    limit: int
    """Records; a copy no further behind is caught up."""
    unknown_sizes: int
    """Stateful tasks whose changelogs have an unknown size."""
    unknown_lags: int
    """Copies whose lag is not known; they count as empty."""
    usual_copies: int
    """As many standbys as most stateful tasks have."""
    bytes_per_record: float | None
    """Of state on a volume; None where agents do not report it."""
    rows: tuple[ProcessRow, ...]
    streams: StreamsRow | None = None
    """None for a group of the classic protocol."""

    def position(self, process: ProcessId, task: TaskId) -> float:
        """The records of the task that are applied on the volume of a process, which may have no pod."""
        one = self.world.instances.get(process)
        if one is not None:
            return one.positions.get(task, 0.0)
        return next((self.kept[at].get(task, 0.0) for at in self.kept if self.processes[at] == process), 0.0)

    def ordinals(self) -> dict[ProcessId, int]:
        """The ordinal of each process."""
        return {process: ordinal for ordinal, process in self.processes.items()}


def running(table: TaskTable, current: int, to: int, app_uid: str) -> Running:
    """Take the layout from the table; LayoutUnknownError if the pod of a task or of a member is not known.

    For a group of the streams protocol also BrokerAssignorUnknownError, if its assignor is not modelled.

    Args:
        table: What the operator's last pass found.
        current: Replicas of the StatefulSet.
        to: Replicas after the change.
        app_uid: UID of the StreamApp, from which the IDs of new ordinals follow.
    """
    _require_placed(table, current)
    known = {int(row.ordinal): row for row in table.processes}
    volumes = {int(row.ordinal): row for row in table.volumes if row.ordinal >= current}
    processes = _process_ids(known, volumes, max(current, to), app_uid)
    stateful = [row for row in table.rows if row.is_stateful]
    ends = {row.task: float(UNKNOWN_RECORDS if row.records is None else row.records) for row in stateful}
    by_pod = _rows_by_pod(table.rows)
    instances = [
        _instance(ordinal, processes[ordinal], known.get(ordinal), by_pod.get(ordinal, ()), ends)
        for ordinal in range(current)
    ]
    return Running(
        world=World(
            tasks=tuple(Task(row.task, row.is_stateful) for row in table.rows),
            ends=ends,
            instances={one.process: one for one in instances},
        ),
        processes=processes,
        kept={ordinal: _positions(row.lags, ends) for ordinal, row in volumes.items()},
        current=current,
        limit=table.limit,
        unknown_sizes=sum(row.records is None for row in stateful),
        unknown_lags=sum(copy.lag is None for row in stateful for copy in row.copies if copy.role is not Role.ACTIVE),
        usual_copies=_usual_copies(stateful),
        bytes_per_record=_bytes_per_record(known, instances, ends),
        rows=table.processes,
        streams=table.streams,
    )


def _require_placed(table: TaskTable, current: int) -> None:
    """Raise an error unless the pod of each task is known, and in a streams group that of each member."""
    if not table.rows:
        raise LayoutUnknownError(table.doubt or "no task is known")
    unplaced = [row.task for row in table.rows if row.owner is not None and row.owner.ordinal is None]
    if unplaced:
        raise LayoutUnknownError(f"the pod of task {unplaced[0]} is not known")
    if table.streams is not None:
        _require_whole(table.streams, current)


def _require_whole(streams: StreamsRow, current: int) -> None:
    """Raise an error unless the assignor is modelled, and each pod and each member has its place."""
    doubt = why_unknown(streams.group)
    if doubt:
        raise BrokerAssignorUnknownError(doubt)
    unplaced = [member.id for member in streams.members if member.ordinal is None]
    if unplaced:
        raise LayoutUnknownError(f"the pod of member `{unplaced[0]}` is not known")
    present = {int(member.ordinal) for member in streams.members if member.ordinal is not None}
    if present != set(range(current)):
        missing = sorted(set(range(current)) - present)
        what = f"pod {missing[0]} is not in the group" if missing else f"pod {max(present)} still has members"
        raise LayoutUnknownError(what)


def _process_ids(
    known: Mapping[int, ProcessRow], volumes: Mapping[int, VolumeRow], count: int, app_uid: str
) -> dict[int, ProcessId]:
    """By ordinal, the process ID that is known, or that a new volume gets."""
    told = {ordinal: row.process for ordinal, row in volumes.items()}
    told |= {ordinal: row.process for ordinal, row in known.items()}
    return {
        ordinal: told[ordinal] if ordinal in told else seeded_process_id(app_uid, Ordinal(ordinal))
        for ordinal in range(count)
    }


def _positions(lags: Mapping[TaskId, float], ends: Mapping[TaskId, float]) -> dict[TaskId, float]:
    """The records applied, of every stateful task with state."""
    return {task: max(0.0, ends[task] - lag) for task, lag in lags.items() if task in ends}


def _rows_by_pod(rows: Iterable[TaskRow]) -> dict[int, list[TaskRow]]:
    """By ordinal, the tasks that it owns or has a copy of."""
    found: dict[int, list[TaskRow]] = {}
    for one in rows:
        owner = [] if one.owner is None or one.owner.ordinal is None else [int(one.owner.ordinal)]
        for ordinal in {*owner, *(int(copy.ordinal) for copy in one.copies)}:
            found.setdefault(ordinal, []).append(one)
    return found


def _instance(
    ordinal: int,
    process: ProcessId,
    row: ProcessRow | None,
    rows: Iterable[TaskRow],
    ends: Mapping[TaskId, float],
) -> Instance:
    """One process; `rows` are those of its tasks."""
    actives = frozenset(one.task for one in rows if one.owner is not None and one.owner.ordinal == ordinal)
    lags: dict[TaskId, float] = {} if row is None else {task: lag for task, lag in row.lags.items() if task in ends}
    standbys: set[TaskId] = set()
    for one in rows:
        for copy in one.copies:
            if copy.ordinal != ordinal:
                continue
            if copy.role is not Role.ACTIVE:
                standbys.add(one.task)
            if copy.lag is not None:
                lags[one.task] = copy.lag
            elif copy.role is Role.ACTIVE:
                lags[one.task] = 0
            else:
                lags.setdefault(one.task, ends[one.task])
    return Instance(
        process=process,
        threads=1 if row is None else row.threads,
        actives=actives,
        standbys=frozenset(standbys) - actives,
        positions=_positions(lags, ends),
    )


def _usual_copies(stateful: list[TaskRow]) -> int:
    counts = sorted(sum(copy.role is not Role.ACTIVE for copy in row.copies) for row in stateful)
    return counts[len(counts) // 2] if counts else 0


def _bytes_per_record(
    known: Mapping[int, ProcessRow], instances: list[Instance], ends: Mapping[TaskId, float]
) -> float | None:
    """Bytes on all volumes that are known, by the records that were applied there."""
    told = [known[ordinal].state_bytes for ordinal in range(len(instances)) if ordinal in known]
    if len(told) < len(instances) or any(size is None for size in told):
        return None
    records = sum(position for one in instances for task, position in one.positions.items() if task in ends)
    return sum(size for size in told if size is not None) / records if records > 0 else None
