"""What three reports come to: whether all tasks are at work, how far learners are, whether a process is empty. Pure."""

from collections.abc import Collection, Mapping, Sequence

from streamapp.core.facts.agent_reports import AgentReport, LocalTask, TaskState
from streamapp.core.facts.ids import TaskId, TopicPartition

CAUGHT_UP = 500
"""Records that a learner may lack: some seconds of the load, and far below `acceptable.recovery.lag`."""


def actives(report: AgentReport) -> list[LocalTask]:
    """Give the tasks that this process is to process."""
    return [task for task in report.tasks or () if task.is_active]


def all_at_work(reports: Sequence[AgentReport], expected: Collection[TaskId]) -> bool:
    """Whether each task is active in exactly one process, and none is restoring there."""
    tasks = [task for report in reports for task in actives(report)]
    at_work = all(task.state is not TaskState.RESTORING for task in tasks)
    return at_work and sorted(task.id for task in tasks) == sorted(expected)


def is_empty(report: AgentReport) -> bool:
    """Whether the process is known to hold no task at all."""
    return report.tasks == ()


def changelogs(reports: Sequence[AgentReport], application_id: str) -> set[str]:
    """Name the changelogs of all stores whose position somebody told."""
    tasks = (task for report in reports for task in report.tasks or ())
    return {changelog(application_id, store) for task in tasks for store in task.positions}


def changelog(application_id: str, store: str) -> str:
    """Name the changelog of a store."""
    return f"{application_id}-{store}-changelog"


def behind(
    task: TaskId, survivors: Sequence[AgentReport], ends: Mapping[TopicPartition, int], application_id: str
) -> int | None:
    """Tell how many records the best copy of a task among the survivors lacks; None where there is none to judge by.

    A survivor that already processes the task lacks nothing.
    """
    copies = [each for report in survivors for each in report.tasks or () if each.id == task]
    if any(copy.is_active and copy.state is not TaskState.RESTORING for copy in copies):
        return 0
    lacking = [_behind(copy, ends, application_id) for copy in copies if copy.positions]
    return min((lag for lag in lacking if lag is not None), default=None)


def _behind(copy: LocalTask, ends: Mapping[TopicPartition, int], application_id: str) -> int | None:
    lags = []
    for store, position in copy.positions.items():
        end = ends.get(TopicPartition(changelog(application_id, store), copy.id.partition))
        if end is None:
            return None
        lags.append(max(end - position, 0))
    return max(lags)
