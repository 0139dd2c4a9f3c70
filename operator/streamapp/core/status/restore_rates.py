"""How fast processes restore, as the positions in two reports of an agent show it.

Only a process that is still far behind shows its speed: one that has caught up is as fast as its input. A copy that
follows a quiet input is some records behind at each look, and would tell of a few records a second.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from streamapp.core.facts.agent_reports import AgentReport, AgentsSeen, LocalTask
from streamapp.core.facts.ids import Ordinal, TaskId, TopicPartition
from streamapp.core.facts.lag import EndOffsets, Measured, copy_lag
from streamapp.core.facts.tasks import TaskFacts, TaskSet

SHORTEST_SECONDS = 0.5
"""Between two looks; a shorter time says little."""
FAR_SECONDS = 30.0
"""A copy is far behind if its changelog took longer than this for what the copy lacks; looks at ends and agents are
seconds apart."""


@dataclass(frozen=True, slots=True)
class _Tails:
    """The ends of changelogs, and how fast they move away."""

    ends: EndOffsets
    growth: Mapping[TopicPartition, float]
    """Offsets a second, of those that two looks show."""

    def growth_of(self, task: TaskFacts) -> float | None:
        """Of all changelogs of a task; None where it is unknown."""
        known = [self.growth.get(changelog) for changelog in task.changelogs]
        return None if None in known else sum(one for one in known if one is not None)


def restore_rates(seen: AgentsSeen, task_set: TaskSet) -> Mapping[Ordinal, float]:
    """Records a second of each process that restores, by its two newest reports; none before two looks at the ends."""
    tails = _tails(seen)
    if tails is None:
        return {}
    rates = {}
    for ordinal, words in seen.words.items():
        reports = [word for word in words if isinstance(word, AgentReport)][:2]
        rate = _rate(reports[0], reports[1], task_set, tails) if len(reports) == 2 else None
        if rate is not None:
            rates[ordinal] = rate
    return rates


def _tails(seen: AgentsSeen) -> _Tails | None:
    """What the newest look at the ends shows, beside the oldest one that is remembered."""
    looks = [one.ends for one in seen.ends if isinstance(one.ends, EndOffsets)]
    if not looks:
        return None
    newest, oldest = looks[0], looks[-1]
    seconds = (newest.read_at - oldest.read_at).total_seconds()
    if seconds < SHORTEST_SECONDS:
        return None
    growth = {
        changelog: (one.end - oldest.partitions[changelog].end) / seconds
        for changelog, one in newest.partitions.items()
        if changelog in oldest.partitions
    }
    return _Tails(newest, growth)


def _rate(now: AgentReport, before: AgentReport, task_set: TaskSet, tails: _Tails) -> float | None:
    seconds = (now.as_of - before.as_of).total_seconds()
    if now.incarnation != before.incarnation or seconds < SHORTEST_SECONDS:
        return None
    earlier = {task.id: task for task in before.tasks or ()}
    applied = [
        _applied(task, earlier[task.id], task_set, tails)
        for task in now.tasks or ()
        if task.id in earlier and task.positions and earlier[task.id].positions
    ]
    done = [records for records, left in applied if 0 < records <= left]
    return sum(done) / seconds if done else None


def _applied(now: LocalTask, before: LocalTask, task_set: TaskSet, tails: _Tails) -> tuple[int, int]:
    """Records applied between two looks, and records that are left; 0 are left where the task is not far behind."""
    records = sum(now.positions[store] - before.positions.get(store, now.positions[store]) for store in now.positions)
    return records, _left(now.id, now.positions, task_set, tails)


def _left(task_id: TaskId, positions: Mapping[str, int], task_set: TaskSet, tails: _Tails) -> int:
    task = task_set.get(task_id)
    by_changelog = None if task is None or not task.stateful else task.by_changelog(positions)
    if task is None or by_changelog is None:
        return 0
    lag, growth = copy_lag(task, by_changelog, tails.ends), tails.growth_of(task)
    if growth is None or not isinstance(lag, Measured):
        return 0
    return lag.records if lag.records > growth * FAR_SECONDS else 0
