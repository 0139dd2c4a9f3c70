"""When the tails of changelogs are worth a look, and what becomes of what it found.

Under exactly-once a changelog ends with markers, and may end with aborted records; neither is ever applied, so that a
copy which has everything may stay behind the end for as long as nothing is written. Called by the watch of a group,
once per join, before the ends are taken for what a copy must reach. A look is dear: it reads the log itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from streamapp.core.facts.group import Applied, GroupDescription
from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.lag import EndOffsets, Measured, PartitionEnd, Unknown, task_lag
from streamapp.core.facts.tasks import TaskFacts, TaskSet

MOST_AT_ONCE = 50
"""Tails that are looked at after one join."""


def worth_a_look(
    task_set: TaskSet, before: GroupDescription, now: GroupDescription, ends: EndOffsets, limit: int
) -> Mapping[TopicPartition, PartitionEnd]:
    """Give the ends whose tails would tell whether a copy that stands still is caught up.

    Args:
        task_set: All tasks.
        before: The group as it was after the join before.
        now: As it is after the newest join.
        ends: What was read after the newest join; what it knows of a tail already is not asked for again.
        limit: Records; a copy no further behind needs no look.

    Returns:
        The changelogs of every task of which a standby is further behind than the limit, and came no nearer since the
        join before: it may be stuck, or have everything there is. At most `MOST_AT_ONCE`; the others get their turn
        when these are known.
    """
    tasks = _standing_still(task_set, before, now, ends, limit)
    behind = sorted({partition for task in tasks for partition in task.changelogs} & ends.partitions.keys())
    unknown = [each for each in behind if not isinstance(ends.partitions[each].data_end, int)]
    return {partition: ends.partitions[partition] for partition in unknown[:MOST_AT_ONCE]}


def known_from(earlier: EndOffsets, ends: EndOffsets) -> EndOffsets:
    """Give the ends with the tails that an earlier look found, where the log has not moved since."""
    known = {partition: end.data_end for partition, end in earlier.partitions.items() if isinstance(end.data_end, int)}
    return with_tails(
        ends,
        {
            partition: known[partition]
            for partition, end in ends.partitions.items()
            if partition in known and earlier.partitions[partition].end == end.end
        },
    )


def with_tails(ends: EndOffsets, tails: Mapping[TopicPartition, int | Unknown]) -> EndOffsets:
    """Give the ends with what a look at their tails found."""
    found = {
        partition: replace(end, data_end=tails[partition])
        for partition, end in ends.partitions.items()
        if partition in tails
    }
    return replace(ends, partitions={**ends.partitions, **found})


def _standing_still(
    task_set: TaskSet, before: GroupDescription, now: GroupDescription, ends: EndOffsets, limit: int
) -> Iterator[TaskFacts]:
    earlier = {member.id: member for member in before.members}
    for member in now.members:
        was = earlier.get(member.id)
        if was is None or was.subscription is None or member.subscription is None or member.assignment is None:
            continue
        for task in sorted(member.assignment.standby):
            facts, said = task_set.get(task), member.subscription.offsets.get(task)
            if facts is None or not facts.stateful or not isinstance(said, Applied):
                continue
            lag = task_lag(facts, said.offset_sum, ends)
            if isinstance(lag, Measured) and lag.records > limit and was.subscription.offsets.get(task) == said:
                yield facts
