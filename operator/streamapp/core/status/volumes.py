"""What lies on volumes whose pods were removed, for a prediction of what adding pods would cause.

Recorded on the claim with the removal (`kept_states`), read when the task table is made. It decides nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from streamapp.core.facts.lag import EndOffsets, Unknown, task_target
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.facts.workload import KeptState, Volume, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeRow:
    """One volume without a pod."""

    ordinal: Ordinal
    process: ProcessId
    kept_at: datetime
    lags: Mapping[TaskId, int]
    """Records by which the state is behind, of every task that it has state of."""


def volume_rows(
    workload: Workload, task_set: TaskSet, ends: EndOffsets | None, max_idle_time: timedelta | None, now: datetime
) -> tuple[VolumeRow, ...]:
    """One row for each volume that has no pod and a record, in order.

    A volume that was unused for longer than `max_idle_time` has none: its state is deleted before the next start.

    Args:
        workload: The volumes and the pods.
        task_set: The tasks there are.
        ends: The ends of the changelogs; None where they were not read.
        max_idle_time: `state.maxIdleTime`; None: no limit.
        now: The time.
    """
    if ends is None:
        return ()
    with_pod = {pod.ordinal for pod in workload.pods}
    return tuple(
        VolumeRow(
            ordinal=volume.ordinal,
            process=volume.process_id,
            kept_at=volume.kept.at,
            lags=dict(_lags(volume.kept, task_set, ends)),
        )
        for volume in workload.volumes
        if volume.kept is not None and volume.process_id is not None and volume.ordinal not in with_pod
        if not _is_expired(volume, max_idle_time, now)
    )


def _is_expired(volume: Volume, max_idle_time: timedelta | None, now: datetime) -> bool:
    return max_idle_time is not None and volume.kept is not None and now - volume.kept.at > max_idle_time


def _lags(kept: KeptState, task_set: TaskSet, ends: EndOffsets) -> Iterator[tuple[TaskId, int]]:
    """What is unknown, or lies beyond an end, is left out: Kafka Streams throws such state away."""
    for task_id, position in kept.positions.items():
        task = task_set.get(task_id)
        if task is None or not task.stateful:
            continue
        target = task_target(task, ends)
        left = None if isinstance(target, Unknown) else target.records_left(position)
        if left is not None:
            yield task_id, left
