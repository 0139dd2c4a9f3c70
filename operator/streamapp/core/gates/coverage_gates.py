"""The gates of coverage: is there, for every stateful task, a good copy on a pod that stays?

The only gates that a user's word overrides (`scaleDown.policy`, `onTimeout`, an override, a stop to zero), because they
alone ask about what would be lost, not about whether the facts can be trusted.
"""

from dataclasses import replace

from streamapp.core.evidence.coverage import TaskWait
from streamapp.core.evidence.learner_source import another_assignor, limit_in_doubt, why_not_on_demand
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.lag import Measured, Unknown
from streamapp.core.facts.policy import Assignor, LearnerSource
from streamapp.core.gates.candidates import RemovalKind
from streamapp.core.gates.case import GateInput
from streamapp.core.reasons import Reason


def topology_is_known(case: GateInput) -> Refusal | None:
    """It is known which tasks there are, and which have state."""
    task_set = case.task_set()
    if not isinstance(task_set, Refusal):
        return None
    quiet = case.evidence.agents_unavailable if case.policy.agent else None
    if quiet is not None and quiet.reason is Reason.AgentKeyMissing and not task_set.needs_rebalance:
        # The agents would report the topology, and no rebalance shows it.
        return Refusal(Reason.AgentKeyMissing, quiet.detail, needs_rebalance=False)
    return task_set


def tasks_move_to_caught_up_copies(case: GateInput) -> Refusal | None:
    """The application declares the assignor that promotes caught-up copies; without state it does not matter."""
    task_set = case.task_set()
    if isinstance(task_set, Refusal):
        return task_set
    if not task_set.stateful:
        return None
    told = agents_tell(case)
    if told is not None:
        return told
    return Refusal(Reason.AssignorUnknown) if case.policy.assignor is Assignor.UNKNOWN else None


def agents_tell(case: GateInput) -> Refusal | None:
    """No agent tells of another assignor than the declared one, or of a limit that is none."""
    if not case.policy.agent:
        return None
    if case.policy.assignor is not Assignor.UNKNOWN:
        other = another_assignor(case.evidence)
        if other is not None:
            return other
    limit = limit_in_doubt(case.evidence)
    return limit if limit is not None and limit.reason is Reason.RecoveryLagUnbounded else None


def the_source_that_is_demanded_is_in_force(case: GateInput) -> Refusal | None:
    """Where the user demands learners on demand, no pod goes by another rule; restarts may, to bring agents in."""
    if case.policy.source is not LearnerSource.ON_DEMAND or case.candidate.kind is RemovalKind.RESTART:
        return None
    return why_not_on_demand(case.evidence)


def positions_are_known(case: GateInput) -> Refusal | None:
    """Agents tell the positions, or this process watched the join that they are from."""
    if case.view is not None:
        return None
    rebalance = case.rebalance()
    return rebalance if isinstance(rebalance, Refusal) else None


def end_offsets_were_read(case: GateInput) -> Refusal | None:
    """The ends of the changelogs were read after that join."""
    ends = case.ends()
    return ends if isinstance(ends, Refusal) else None


def every_stateful_task_is_covered(case: GateInput) -> Refusal | None:
    """Each stateful task of the universe runs on, or has a caught-up copy on, a pod that stays.

    Pods that hold nothing may also go while a task is uncovered for reasons that have nothing to do with them.
    """
    copies = case.copies()
    if isinstance(copies, Refusal):
        return copies
    waits = copies.waits(case.candidate.stays, case.policy.acceptable_recovery_lag)
    if case.candidate.kind is RemovalKind.IDLE:
        waits = tuple(wait for wait in waits if _might_be_taken_up_again(wait.task, case))
    return replace(refusal_of(waits), needs_rebalance=case.view is None) if waits else None


def _might_be_taken_up_again(task: TaskId, case: GateInput) -> bool:
    """Tell whether a pod that goes has state of the task on its disk, which the next rebalance could make use of."""
    placement = case.placement()
    if isinstance(placement, Refusal):
        return True
    leaving = (member for ordinal in case.candidate.ordinals for member in placement.members(ordinal))
    return any(member.subscription is None or task in member.subscription.offsets for member in leaving)


def refusal_of(waits: tuple[TaskWait, ...]) -> Refusal:
    """Name the worst of the tasks that are waited for; there is at least one."""
    reason = min({wait.reason for wait in waits}, key=lambda one: one.row.wait_rank)
    concerned = [wait for wait in waits if wait.reason is reason]
    worst = max(concerned, key=lambda wait: (wait.records_to_go or 0, wait.task))
    many = "1 task waits" if len(waits) == 1 else f"{len(waits)} tasks wait"
    return Refusal(reason, f"{many}; {describe(worst)}", waits)


def describe(wait: TaskWait) -> str:
    """Say how far the best copy of a task is, for example `0_31 on ordinal 2 is 220114 records behind`."""
    if wait.best is None:
        return f"{wait.task} has no copy"
    match wait.best.lag:
        case Measured(records):
            return f"{wait.task} on ordinal {wait.best.ordinal} is {records} records behind"
        case Unknown(why):
            return f"{wait.task} on ordinal {wait.best.ordinal}: {why}"
    return f"{wait.task} on ordinal {wait.best.ordinal} runs"
