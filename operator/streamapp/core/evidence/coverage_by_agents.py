"""Coverage on the word of the agents: which copies there are, by what each JVM says of its own tasks now.

A copy counts only where the agent and the brokers both say that it is there. Called by `case`; `coverage` says what
becomes of the copies.
"""

from collections import defaultdict

from streamapp.core.evidence.agent_views import AgentView
from streamapp.core.evidence.coverage import Copy, CopyMap, ReadSince, nearest_first
from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.facts.agent_reports import LocalTask, TaskState
from streamapp.core.facts.group import Assignment
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.lag import EndOffsets, RunningActive, TaskLag, Unknown, copy_lag
from streamapp.core.facts.tasks import TaskFacts, TaskSet


def map_copies_by_agents(task_set: TaskSet, placement: MemberPlacement, view: AgentView) -> CopyMap:
    """Find every copy that counts: actives that run, and standbys; an active that restores is none.

    Where the ends were not read since, standbys are there all the same, each at an unknown distance.
    """
    ends = view.ends
    if not isinstance(ends, EndOffsets):
        ends = EndOffsets(read_at=view.as_of, partitions={}, committed={})
    copies: dict[TaskId, list[Copy]] = defaultdict(list)
    restoring: dict[TaskId, list[Copy]] = defaultdict(list)
    for ordinal, report in view.reports.items():
        given = [one.assignment for one in placement.members(ordinal) if one.assignment is not None]
        for task in report.tasks or ():
            facts = task_set.get(task.id)
            if facts is None or not facts.stateful or not _is_given(task, given):
                continue
            _place(task, Copy(Ordinal(ordinal), _lag(task, facts, ends)), copies, restoring)
    return CopyMap(
        task_set=task_set,
        since=ReadSince(view.as_of, ends),
        earlier=None,
        copies={task: nearest_first(found) for task, found in copies.items()},
        restoring={task: tuple(found) for task, found in restoring.items()},
    )


def _is_given(task: LocalTask, given: list[Assignment]) -> bool:
    return any(task.id in (one.active if task.is_active else one.standby) for one in given)


def _place(task: LocalTask, copy: Copy, copies: dict[TaskId, list[Copy]], restoring: dict[TaskId, list[Copy]]) -> None:
    is_good = not task.is_active or isinstance(copy.lag, RunningActive)
    (copies if is_good else restoring)[task.id].append(copy)


def _lag(task: LocalTask, facts: TaskFacts, ends: EndOffsets) -> TaskLag:
    if task.is_active and task.state is TaskState.RUNNING:
        return RunningActive()
    positions = facts.by_changelog(task.positions)
    return (
        Unknown("its agent does not tell all of its positions")
        if positions is None
        else copy_lag(facts, positions, ends)
    )
