"""What a restart without coverage costs, as far as it is known: the tasks that stop, and the state behind them.

Called by `rollout` where a user must accept the restart. It only reports; what is not known is called unknown.
"""

from streamapp.core.evidence.evidence import Evidence
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.lag import EndOffsets, Measured, restore_size
from streamapp.core.facts.tasks import TaskSet

UNKNOWN = "unknown"


def cost_of_restart(evidence: Evidence, ordinal: Ordinal) -> str:
    """Say in one sentence what stops with a pod, and how much would have to be restored elsewhere."""
    tasks = _tasks(evidence, ordinal)
    stops = "an unknown number of tasks" if tasks is None else f"{len(tasks)} task{'' if len(tasks) == 1 else 's'}"
    return (
        f"The restart of ordinal {ordinal} stops {stops}; to restore elsewhere: records {_records(evidence, tasks)}, "
        f"bytes {_bytes(evidence, ordinal)}; silence: {_silence(tasks)}."
    )


def _tasks(evidence: Evidence, ordinal: Ordinal) -> frozenset[TaskId] | None:
    """The active tasks of a pod; None where the group shows no assignment of it."""
    latest = evidence.latest
    members = () if latest is None else latest.placement.members(ordinal)
    given = [member.assignment.active for member in members if member.assignment is not None]
    return frozenset[TaskId]().union(*given) if given and len(given) == len(members) else None


def _records(evidence: Evidence, tasks: frozenset[TaskId] | None) -> str:
    task_set, latest = evidence.snapshot.task_set, evidence.snapshot.latest
    join = None if latest is None else latest.rebalance
    if tasks is None or not isinstance(task_set, TaskSet) or join is None or not isinstance(join.ends, EndOffsets):
        return UNKNOWN
    sizes = [restore_size(task, join.ends) for task in task_set.stateful if task.id in tasks]
    known = [size.records for size in sizes if isinstance(size, Measured)]
    return f"at most {_rounded(sum(known)):,}" if len(known) == len(sizes) else UNKNOWN


def _bytes(evidence: Evidence, ordinal: Ordinal) -> str:
    report = evidence.fresh_reports.get(ordinal)
    return UNKNOWN if report is None or report.state_bytes is None else f"at most {_rounded(report.state_bytes):,}"


def _silence(tasks: frozenset[TaskId] | None) -> str:
    """Nobody has measured how fast this application restores before it has done so."""
    return "none" if tasks == frozenset() else UNKNOWN


def _rounded(number: int) -> int:
    """Upwards to two digits: a status that changed with every record would be written at every look."""
    step = int("1".ljust(max(1, len(str(number)) - 1), "0"))
    return -(-number // step) * step
