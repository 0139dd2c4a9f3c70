"""How fast processes restore, as the positions in two reports of an agent show it.

Only a process that is still far behind shows its speed: one that has caught up is as fast as its input.
"""

from collections.abc import Mapping

from streamapp.core.facts.agent_reports import AgentReport, AgentsSeen, LocalTask
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.lag import EndOffsets, Measured, copy_lag
from streamapp.core.facts.tasks import TaskSet

SHORTEST_SECONDS = 0.5
"""Between two looks; a shorter time says little."""


def restore_rates(seen: AgentsSeen, task_set: TaskSet) -> Mapping[Ordinal, float]:
    """Records a second of each process that restores, by its two newest reports."""
    ends = next((one.ends for one in seen.ends if isinstance(one.ends, EndOffsets)), None)
    if ends is None:
        return {}
    rates = {}
    for ordinal, words in seen.words.items():
        reports = [word for word in words if isinstance(word, AgentReport)][:2]
        rate = _rate(reports[0], reports[1], task_set, ends) if len(reports) == 2 else None
        if rate is not None:
            rates[ordinal] = rate
    return rates


def _rate(now: AgentReport, before: AgentReport, task_set: TaskSet, ends: EndOffsets) -> float | None:
    seconds = (now.as_of - before.as_of).total_seconds()
    if now.incarnation != before.incarnation or seconds < SHORTEST_SECONDS:
        return None
    earlier = {task.id: task for task in before.tasks or ()}
    applied = [
        _applied(task, earlier[task.id], task_set, ends)
        for task in now.tasks or ()
        if task.id in earlier and task.positions and earlier[task.id].positions
    ]
    done = [records for records, left in applied if 0 < records <= left]
    return sum(done) / seconds if done else None


def _applied(now: LocalTask, before: LocalTask, task_set: TaskSet, ends: EndOffsets) -> tuple[int, int]:
    """Records applied between two looks, and records that are left."""
    records = sum(now.positions[store] - before.positions.get(store, now.positions[store]) for store in now.positions)
    return records, _left(now.id, now.positions, task_set, ends)


def _left(task_id: TaskId, positions: Mapping[str, int], task_set: TaskSet, ends: EndOffsets) -> int:
    task = task_set.get(task_id)
    by_changelog = None if task is None or not task.stateful else task.by_changelog(positions)
    if task is None or by_changelog is None:
        return 0
    lag = copy_lag(task, by_changelog, ends)
    return lag.records if isinstance(lag, Measured) else 0
