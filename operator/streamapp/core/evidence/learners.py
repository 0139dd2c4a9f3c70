"""Where learners come from, as seen in the group: detected and shown, never guessed.

Only what stock applications on the classic protocol offer: standbys that are there, or none.
"""

from dataclasses import dataclass

from streamapp.core.facts.group import FollowUp, GroupDescription, GroupState
from streamapp.core.facts.policy import LearnerSource
from streamapp.core.facts.tasks import TaskSet


@dataclass(frozen=True, slots=True)
class LearnersUnknown:
    """It cannot be told at present."""

    why: str


def detect(group: GroupDescription, task_set: TaskSet) -> LearnerSource | LearnersUnknown:
    """Tell the source from a settled group.

    While tasks are still to move, warm-ups look like standbys on the wire; a single process has nowhere to put one.
    """
    stateful = {task.id for task in task_set.stateful}
    if not stateful:
        return LearnersUnknown("no task has state")
    if group.state is not GroupState.STABLE or not group.is_decoded:
        return LearnersUnknown("the group is not stable")
    if len({member.process_id for member in group.members}) < 2:
        return LearnersUnknown("a single process has no place for a standby")
    assignments = [member.assignment for member in group.members if member.assignment is not None]
    if any(assignment.follow_up is not FollowUp.NONE for assignment in assignments):
        return LearnersUnknown("tasks are still to move, and their warm-ups look like standbys")
    has_standby = any(assignment.standby & stateful for assignment in assignments)
    return LearnerSource.STANDBYS if has_standby else LearnerSource.NONE
