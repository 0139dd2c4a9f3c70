"""Which tasks are active where, and which of those are known to run.

Used by the gates, by `open_step` and by `convergence`. "Assigned" is what the leader decided; "running" is what the
member itself said when it joined, and is therefore known one join later; or what the agent in its JVM says now.
"""

from collections.abc import Collection, Container, Iterable, Mapping
from typing import TypeVar

from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.facts.agent_reports import AgentReport, TaskState
from streamapp.core.facts.group import GroupDescription, Member, NoOffsets
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.tasks import TaskFacts, TaskSet, TopologyUnknown, settled_tasks

Holder = TypeVar("Holder")


def active_holders(group: GroupDescription) -> Mapping[TaskId, tuple[Member, ...]]:
    """The members that each task is assigned to as active; once per member, however many inputs the task has."""
    given = ((member.assignment.active, member) for member in group.members if member.assignment is not None)
    return holders_of(given)


def holders_of(given: Iterable[tuple[Collection[TaskId], Holder]]) -> dict[TaskId, tuple[Holder, ...]]:
    """Turn tasks by holder into holders by task. Whole dictionaries at a time: a large application has thousands."""
    holders: dict[TaskId, tuple[Holder, ...]] = {}
    for tasks, holder in given:
        added: dict[TaskId, tuple[Holder, ...]] = dict.fromkeys(tasks, (holder,))
        if not holders.keys().isdisjoint(added):
            added = {task: (*holders.get(task, ()), holder) for task in tasks}
        holders.update(added)
    return holders


def running_tasks(
    group: GroupDescription,
    holders: Mapping[TaskId, tuple[Member, ...]],
    task_set: TaskSet,
    believed: Container[str],
) -> frozenset[TaskId]:
    """The tasks that exactly one member holds, which says that it processes them and is one to be believed.

    Args:
        group: A reading.
        holders: The members that each task is assigned to as active, in that reading.
        task_set: The tasks there are.
        believed: IDs of members whose word counts. For a decision: those that took part in a join that was watched.
    """
    running: set[TaskId] = set()
    for member in group.members:
        if member.assignment is not None and member.subscription is not None and member.id in believed:
            active = member.assignment.active
            running |= active & member.subscription.running & task_set.stateful_ids
            running.update(task for task in active & task_set.stateless_ids if runs(member, task_set.get(task)))
    if group.active_assignments == len(holders):
        return frozenset(running)
    return frozenset(task for task in running if len(holders[task]) == 1)


def runs(member: Member, task: TaskFacts | None) -> bool:
    """Tell whether a member is known to process a task that is assigned to it, and not merely to have been given it.

    The subscription is older than the assignment. So a task that was running at the join and is still assigned runs on;
    one that was assigned only now may still be restoring, and the group shows that at the next join at the earliest.
    """
    if task is None or member.subscription is None:
        return False
    if task.stateful:
        return member.subscription.offsets.get(task.id) is NoOffsets.RUNNING
    return member.subscription.owned_partitions.issuperset(task.source_partitions)


def running_by_agents(
    holders: Mapping[TaskId, tuple[Member, ...]],
    placement: MemberPlacement,
    reports: Mapping[Ordinal, AgentReport],
) -> frozenset[TaskId]:
    """The tasks that exactly one member holds, and that the agent in that member's pod sees running."""
    running: set[TaskId] = set()
    for ordinal, report in reports.items():
        members = placement.members(ordinal)
        given = {task for one in members if one.assignment is not None for task in one.assignment.active}
        seen = {task.id for task in report.tasks or () if task.is_active and task.state is TaskState.RUNNING}
        running |= {task for task in given & seen if len(holders[task]) == 1}
    return frozenset(running)


def assigned_of_late(known: TaskSet | TopologyUnknown, groups: Iterable[GroupDescription]) -> TaskSet | TopologyUnknown:
    """The tasks without the sub-topologies that no leader has assigned for a while, as none of the other version does.

    No task of them is on any member, so no restart can stop one. Nor has a leader made their topics, so that what is
    unknown may be these alone. What lies of them on a disk is kept there, and is no reason to wait: after a version was
    rolled back, it lies there for long.

    Args:
        known: What the topology and the topics gave.
        groups: All that were seen of late, for longer than a task is on its way from one member to another.
    """
    assigned = frozenset[int]().union(*map(_assigned_subtopologies, groups))
    settled = settled_tasks(known)
    if isinstance(settled, TopologyUnknown):
        return known
    if isinstance(known, TopologyUnknown) and not known.doubtful.isdisjoint(assigned):
        return known
    kept = tuple(task for task in settled.tasks if task.id.subtopology in assigned)
    return known if not kept or known == (found := TaskSet(kept)) else found


def has_unknown_subtopologies(known: TaskSet, groups: Iterable[GroupDescription]) -> bool:
    """Whether the group had sub-topologies of late that are not known.

    One that is known and that nobody has may be on its way. Only `assigned_of_late` leaves one out.
    """
    assigned = frozenset[int]().union(*map(_assigned_subtopologies, groups))
    return not assigned <= {task.id.subtopology for task in known.tasks}


def _assigned_subtopologies(group: GroupDescription) -> frozenset[int]:
    given = (one.assignment for one in group.members if one.assignment is not None)
    return frozenset(task.subtopology for each in given for task in (*each.active, *each.standby))
