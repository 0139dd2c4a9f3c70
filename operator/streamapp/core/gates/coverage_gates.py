"""The gates of coverage: is there, for every stateful task, a good copy on a pod that stays?

The only gates that a user's word overrides (`scaleDown.policy`, `onTimeout`, an override, a stop to zero), because they
alone ask about what would be lost, not about whether the facts can be trusted.
"""

from dataclasses import replace
from datetime import timedelta

from streamapp.core.assignors.broker_moves import AssignorUnknown, Moves, moves_without
from streamapp.core.evidence.coverage import TaskWait
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import another_assignor, limit_in_doubt, streams_group, why_not_on_demand
from streamapp.core.evidence.readings import with_earlier_offsets
from streamapp.core.evidence.refusal import Refusal, first_few
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.hold_record import RaiseState
from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.lag import Measured, Unknown
from streamapp.core.facts.policy import Assignor, LearnerSource
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.gates.candidates import RemovalKind
from streamapp.core.gates.case import GateInput
from streamapp.core.gates.safety_gates import not_reported
from streamapp.core.reasons import Reason

SHOWN_WITHIN = timedelta(seconds=10)
"""A raise of standbys that is on record is sent and shown by then, or it cannot be sent: for want of room, say."""


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
    """Where the user demands learners on demand, no pod goes by another rule; restarts may, to bring agents in.

    In a group of the streams protocol learners are standbys that brokers place on demand: coverage asks for them.
    """
    if case.policy.source is not LearnerSource.ON_DEMAND or case.candidate.kind is RemovalKind.RESTART:
        return None
    if streams_group(case.evidence) is not None:
        return None
    return why_not_on_demand(case.evidence)


def positions_are_known(case: GateInput) -> Refusal | None:
    """Agents tell the positions, or this process watched the join that they are from."""
    if case.view is not None:
        return None
    group = case.group()
    if isinstance(group, GroupDescription) and group.streams is not None:
        return not_reported(case)
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


def every_stateful_task_has_two_places(case: GateInput) -> Refusal | None:
    """Each stateful task of the universe runs or has a caught-up copy on two pods, so that any one pod may go."""
    copies = case.copies()
    if isinstance(copies, Refusal):
        return copies
    waits = copies.with_fewer_places(2, lambda _: True, case.policy.acceptable_recovery_lag)
    return replace(refusal_of(waits), needs_rebalance=case.view is None) if waits else None


def brokers_choose_caught_up_copies(case: GateInput) -> Refusal | None:
    """In a group of the streams protocol the broker chooses: it is predicted to choose a caught-up copy for each task.

    A standby on a pod that stays is not enough, since the assignor passes over one whose pod has its quota of tasks.
    """
    known, copies = case.known(), case.copies()
    if isinstance(known, Refusal):
        return known
    group, task_set, placement = known
    if group.streams is None:
        return None
    if isinstance(copies, Refusal):
        return copies
    leaving = {member.id for ordinal in case.candidate.ordinals for member in placement.members(ordinal)}
    if not leaving or leaving == group.member_ids:
        return None
    told = with_earlier_offsets(group, case.snapshot.readings)
    moves = case.evidence.once(_PlayedMoves).without(told, task_set, frozenset(leaving))
    if isinstance(moves, AssignorUnknown):
        return Refusal(Reason.BrokerAssignorUnknown, moves.why, needs_rebalance=False)
    ordinals = {member.process_id: one for one, found in placement.by_ordinal.items() for member in found}
    cold = copies.cold_moves(
        {task: {ordinals.get(to) for to in places} for task, places in moves.items()},
        case.policy.acceptable_recovery_lag,
    )
    return _would_move_cold(cold) if cold else None


class _PlayedMoves:
    """What the broker would do in each group of one pass: both readings mostly show the same group."""

    def __init__(self, evidence: Evidence) -> None:
        self._standbys_to_come = _standbys_to_come(evidence)
        self._found: list[tuple[tuple[GroupDescription, TaskSet, frozenset[str]], Moves | AssignorUnknown]] = []

    def without(self, group: GroupDescription, task_set: TaskSet, leaving: frozenset[str]) -> Moves | AssignorUnknown:
        """As `moves_without`, played at the first question."""
        asked = (group, task_set, leaving)
        for known, moves in self._found:
            if known == asked:
                return moves
        moves = moves_without(group, task_set, leaving, self._standbys_to_come)
        self._found.append((asked, moves))
        return moves


def _standbys_to_come(evidence: Evidence) -> frozenset[int]:
    """What the operator itself has set lately, or is about to set, though no broker may show it yet."""
    record = evidence.hold_record
    raised = None if record is None else record.standbys
    if raised is not None and raised.state is RaiseState.RETURNING:
        return frozenset({raised.at_rest})
    if raised is not None and raised.state is RaiseState.WANTED and evidence.snapshot.now - raised.at < SHOWN_WITHIN:
        return frozenset({raised.to})
    return frozenset()


def _would_move_cold(cold: tuple[TaskWait, ...]) -> Refusal:
    records = [wait.records_to_go for wait in cold]
    known = [count for count in records if count is not None]
    restore = f"at most {sum(known)} records" if len(known) == len(cold) else "an unknown number of records"
    detail = f"task {first_few([wait.task for wait in cold])} would restore {restore}"
    return Refusal(Reason.WouldMoveCold, detail, cold, needs_rebalance=False)


def _might_be_taken_up_again(task: TaskId, case: GateInput) -> bool:
    """Tell whether a pod that goes has state of the task on its disk, which the next rebalance could make use of."""
    placement, group = case.placement(), case.group()
    if isinstance(placement, Refusal) or isinstance(group, Refusal) or group.streams is not None:
        return True  # the streams protocol does not show what lies on disks
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
