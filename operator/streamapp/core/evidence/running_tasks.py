"""Which tasks are active where, and which of those are known to run.

Used by the gates, by `open_step` and by `convergence`. "Assigned" is what the leader decided; "running" is what the
member itself said when it joined, and is therefore known one join later; or what the agent in its JVM says now.
"""

from collections import defaultdict
from collections.abc import Container, Mapping

from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.facts.agent_reports import AgentReport, TaskState
from streamapp.core.facts.group import GroupDescription, Member
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.tasks import TaskSet


def active_holders(group: GroupDescription) -> Mapping[TaskId, tuple[Member, ...]]:
    """The members that each task is assigned to as active; once per member, however many inputs the task has."""
    holders: dict[TaskId, list[Member]] = defaultdict(list)
    for member in group.members:
        if member.assignment is not None:
            for task in member.assignment.active:
                holders[task].append(member)
    return {task: tuple(members) for task, members in holders.items()}


def running_tasks(group: GroupDescription, task_set: TaskSet, believed: Container[str]) -> frozenset[TaskId]:
    """The tasks that exactly one member holds, which says that it processes them and is one to be believed.

    Args:
        group: A reading.
        task_set: The tasks there are.
        believed: IDs of members whose word counts. For a decision: those that took part in a join that was watched.
    """
    holders = active_holders(group)
    return frozenset(
        task.id
        for task in task_set.tasks
        if len(holders.get(task.id, ())) == 1
        and holders[task.id][0].id in believed
        and holders[task.id][0].runs(task.id, frozenset(task.source_partitions), stateful=task.stateful)
    )


def running_by_agents(
    group: GroupDescription, placement: MemberPlacement, reports: Mapping[Ordinal, AgentReport]
) -> frozenset[TaskId]:
    """The tasks that exactly one member holds, and that the agent in that member's pod sees running."""
    holders = active_holders(group)
    running: set[TaskId] = set()
    for ordinal, report in reports.items():
        members = placement.members(ordinal)
        given = {task for one in members if one.assignment is not None for task in one.assignment.active}
        seen = {task.id for task in report.tasks or () if task.is_active and task.state is TaskState.RUNNING}
        running |= {task for task in given & seen if len(holders[task]) == 1}
    return frozenset(running)
