"""How far a copy of a task is behind, in records: measured, running, or unknown, and never a number for "unknown".

Called by `coverage` and `convergence`. The measured lag is an upper bound: the end was read after the position, and a
copy that stays in the group only moves forward.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.tasks import TaskFacts


@dataclass(frozen=True, slots=True)
class Measured:
    """At most so many records are left to apply."""

    records: int


@dataclass(frozen=True, slots=True)
class RunningActive:
    """The task is processed there; there is nothing to catch up with."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody can say; counts as "not caught up" everywhere."""

    why: str


@dataclass(frozen=True, slots=True)
class BeyondEnd(Unknown):
    """The position lies beyond the end: they are not of the same logs, so no position of this task can be believed."""


TaskLag = Measured | RunningActive | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionEnd:
    """The two ends of one changelog partition, read-uncommitted (a hanging transaction must not look like zero)."""

    log_start: int
    end: int
    data_end: int | Unknown | None = None
    """The offset after the last record before the end that is applied: behind it a reader of committed records found
    only markers and aborted records, and no transaction is open. Unknown where a look did not tell, None where nobody
    looked; the end counts then."""

    def __post_init__(self) -> None:
        """Refuse what no log can be.

        Raises:
            ValueError: The end lies before the start, or the last data record beyond the end.
        """
        if not 0 <= self.log_start <= self.end:
            raise ValueError(f"partition end: start {self.log_start} and end {self.end} are no log")
        if isinstance(self.data_end, int) and not 0 <= self.data_end <= self.end:
            raise ValueError(f"partition end: data end {self.data_end} is not within the end {self.end}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOffsets:
    """One look at the ends of changelogs. A partition that is missing here is unknown."""

    read_at: datetime
    """When the last answer was in."""
    partitions: Mapping[TopicPartition, PartitionEnd]
    committed: Mapping[TopicPartition, int]
    """For source topics that serve as changelogs: the group's committed offset; where there is no record, the end. 0
    where there are records and it was seen for minutes that it has none; before, it is unknown."""


@dataclass(frozen=True, slots=True)
class EndsUnreadable:
    """The brokers did not give the ends."""

    detail: str


class TaskTarget(NamedTuple):
    """What a copy of one task has to reach: sums of offsets over all changelogs of the task.

    A tuple, since a decision about a large application makes thousands.
    """

    last: int
    """The largest sum of positions that a copy can have."""
    to_apply: int
    """From this sum on a copy has nothing left to apply.

    Of what is never applied behind the last record (`PartitionEnd.data_end`) only the shortest such tail counts: only
    the sum of the positions is known, and one that lies within its tail, or at its very end, must not make up for
    another that is behind."""
    readable: int
    """Records that there are to read at all: an empty or expired partition holds none, however large its offsets."""
    input: int
    """The sum of the offsets to reach; its growth is the input of the task."""

    def records_left(self, position: int) -> int | None:
        """Records between a sum of positions and the end: the smaller of two upper bounds. None: beyond the end."""
        if position > self.last:
            return None
        left = self.to_apply - position
        return 0 if left < 0 else min(left, self.readable)


def task_target(task: TaskFacts, ends: EndOffsets) -> TaskTarget | Unknown:
    """Sum up what a copy of the task has to reach; Unknown if one end is missing."""
    last = reach = readable = 0
    shortest_tail: int | None = None
    for partition in task.changelogs:
        target = _target(task, partition, ends)
        if target is None:
            return _unread(partition, ends)
        offset, last_offset, log_start = target
        last += last_offset
        reach += offset
        if offset > log_start:
            readable += offset - log_start
        tail = last_offset - offset
        if shortest_tail is None or tail < shortest_tail:
            shortest_tail = tail
    if shortest_tail is None:
        # A stateful task has a changelog (`TaskFacts` sees to it); a lag over nothing would be zero and mean nothing.
        return Unknown("the task has no changelog")
    return TaskTarget(last, last - shortest_tail, readable, reach)


def task_lag(task: TaskFacts, position: int, ends: EndOffsets) -> Measured | Unknown:
    """The lag of one copy whose positions sum up to `position`, over *all* changelogs of the task."""
    return lag_to(task_target(task, ends), position)


def lag_to(target: TaskTarget | Unknown, position: int) -> Measured | Unknown:
    """The lag of one copy of the task that the target is of."""
    if isinstance(target, Unknown):
        return target
    left = target.records_left(position)
    return _beyond(position, target.last) if left is None else Measured(left)


def records_left(end: PartitionEnd | None, position: int) -> int | None:
    """As `task_lag`, for a task of `TaskSet.sole_changelog`; None where the lag is unknown.

    A large application has thousands of copies, so that this makes no value for any of them.
    """
    if end is None or position > end.end:
        return None
    data_end = end.data_end
    to_apply = data_end if isinstance(data_end, int) else end.end
    start = max(end.log_start, position)
    return to_apply - start if to_apply > start else 0


def copy_lag(task: TaskFacts, positions: Mapping[TopicPartition, int], ends: EndOffsets) -> Measured | Unknown:
    """The lag of one copy whose position in each of the task's changelogs is known: the sum of what is left in each.

    Raises:
        KeyError: A changelog has no position.
    """
    left = 0
    for partition in task.changelogs:
        target = _target(task, partition, ends)
        if target is None:
            return _unread(partition, ends)
        (offset, last_offset, log_start), position = target, positions[partition]
        if position > last_offset:
            return _beyond(position, last_offset)
        left += min(max(0, offset - position), max(0, offset - log_start))
    return Measured(left)


def restore_size(task: TaskFacts, ends: EndOffsets) -> Measured | Unknown:
    """What a pod without any state would have to read before it could run the task."""
    target = task_target(task, ends)
    return target if isinstance(target, Unknown) else Measured(target.readable)


def written_to(task: TaskFacts, ends: EndOffsets) -> int | None:
    """The sum of offsets a copy has to reach; its growth is the task's input. None where an end is missing."""
    target = task_target(task, ends)
    return None if isinstance(target, Unknown) else target.input


def tail_doubt(task: TaskFacts, ends: EndOffsets) -> Unknown | None:
    """Why a look at the tails of the task's changelogs did not tell what is to be applied; None: nobody doubts it."""
    known = (ends.partitions.get(partition) for partition in task.changelogs)
    return next((end.data_end for end in known if end is not None and isinstance(end.data_end, Unknown)), None)


def is_made_anew(task: TaskFacts, before: EndOffsets, now: EndOffsets) -> bool:
    """Whether the end of one of the task's changelogs fell: its topic was made anew, or its log was cut off."""
    for partition in task.changelogs:
        earlier, later = before.partitions.get(partition), now.partitions.get(partition)
        if earlier is not None and later is not None and later.end < earlier.end:
            return True
    return False


def _beyond(position: int, end: int) -> BeyondEnd:
    cause = "its topic was made anew, or the topology leaves out a changelog"
    return BeyondEnd(f"position {position} lies beyond the end {end}: {cause}")


def _target(task: TaskFacts, partition: TopicPartition, ends: EndOffsets) -> tuple[int, int, int] | None:
    """The offset to reach, the largest offset that a position can have, and where the log starts; None: not read.

    Asked for each of thousands of tasks, so the text of what was not read is made elsewhere.
    """
    end = ends.partitions.get(partition)
    if end is None:
        return None
    to_apply = end.data_end if isinstance(end.data_end, int) else end.end
    if partition not in task.source_changelogs:
        return to_apply, end.end, end.log_start
    committed = ends.committed.get(partition)
    if committed is None:
        return None
    return min(committed, to_apply), committed, end.log_start


def _unread(partition: TopicPartition, ends: EndOffsets) -> Unknown:
    """What is missing of a partition that has no target."""
    offset = "committed offset" if partition in ends.partitions else "end"
    return Unknown(f"the {offset} of {partition.topic}-{partition.partition} was not read")
