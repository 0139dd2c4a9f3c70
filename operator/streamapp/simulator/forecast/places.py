"""Where tasks can end that the brokers can deal in several ways.

The ways that are played are a sample where ties are many. So what is exchangeable counts as exchanged: pods that are
added without state, and the pods that tasks of one tie go to.
"""

from collections.abc import Collection, Iterable, Mapping

from streamapp.core.facts.ids import TaskId

Places = Mapping[TaskId, frozenset[int]]


def possible_places(
    ends: Iterable[Mapping[TaskId, int]], before: Mapping[TaskId, int], blank: Collection[int]
) -> Places:
    """By task, the pods that it can end on; of tasks with one such pod, too.

    Args:
        ends: For each way that was played, the pod of each task.
        before: The pod of each task before the change; tasks that are not in it are left out.
        blank: Pods that are added without any state.
    """
    found: dict[TaskId, set[int]] = {task: set() for task in before}
    for owners in ends:
        for task in before:
            if task in owners:
                found[task].add(owners[task])
    tied = {task for task, places in found.items() if len(places) > 1 or (places & set(blank) and len(blank) > 1)}
    groups = _together([found[task] - {before[task]} for task in tied], blank)
    for task in tied:
        for group in groups:
            if group & (found[task] - {before[task]}):
                found[task] |= group
    return {task: frozenset(places) for task, places in found.items()}


def _together(receivers: Iterable[set[int]], blank: Collection[int]) -> list[set[int]]:
    """Join the sets that have a pod in common."""
    groups: list[set[int]] = []
    for receiver in (set(blank), *receivers):
        touching = [group for group in groups if group & receiver]
        groups = [group for group in groups if not group & receiver]
        if receiver:
            groups.append(receiver.union(*touching))
    return groups
