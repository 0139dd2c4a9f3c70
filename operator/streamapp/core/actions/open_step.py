"""The open step: replicas were taken away; is everything that belonged to them gone, and does every task run again?

It goes on beside every other branch of the decision, a pause included, until it is done: a half-finished step is the
one thing that nobody wants to keep.
"""

from dataclasses import dataclass
from datetime import timedelta

from streamapp.core.actions.decision import CompletedStep
from streamapp.core.evidence.eviction import evictable
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.refusal import Refusal, first_few
from streamapp.core.facts.hold_record import HoldRecord, OpenStep
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.facts.workload import Pod, StatefulSet
from streamapp.core.gates.candidates import RemovalCandidate, RemovalKind
from streamapp.core.gates.case import GateInput, input_now
from streamapp.core.gates.chains import STEP_END_BY_TASKS_GATES, STEP_END_GATES
from streamapp.core.gates.evaluate import first_refusal
from streamapp.core.gates.safety_gates import facts_are_fresh, the_other_pods_are_ready
from streamapp.core.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgress:
    """How far an open step is."""

    step: OpenStep
    waits_for: Refusal | None
    """What is still missing; None: it is done."""
    is_slow: bool
    """Open for so long that the disruption budget must not stay closed for it."""

    def as_closed(self, snapshot: Snapshot) -> CompletedStep:
        """The step, for the list of those that were made."""
        return CompletedStep(
            hold_id=self.step.hold_id,
            from_replicas=self.step.from_replicas,
            to_replicas=self.step.to_replicas,
            granted_at=self.step.granted_at,
            took=max(timedelta(0), snapshot.now - self.step.granted_at),
            forced=self.step.forced,
        )


def assess(evidence: Evidence) -> StepProgress | None:
    """Look at the open step; None where there is none."""
    snapshot, policy = evidence.snapshot, evidence.policy
    statefulset = snapshot.workload.statefulset
    if statefulset is None or not isinstance(statefulset.record, HoldRecord) or statefulset.record.step is None:
        return None
    step = statefulset.record.step
    return StepProgress(
        step=step,
        waits_for=_missing(step, statefulset, evidence),
        is_slow=snapshot.now - step.granted_at > policy.timing.step_slow,
    )


def _missing(step: OpenStep, statefulset: StatefulSet, evidence: Evidence) -> Refusal | None:
    snapshot = evidence.snapshot
    latest = snapshot.latest
    if latest is None:
        return Refusal(Reason.BrokersUnreachable, "the group has not been read yet")
    gone = tuple(Ordinal(number) for number in range(step.from_replicas - 1, step.to_replicas - 1, -1))
    case = input_now(_of_what_runs(evidence), RemovalCandidate(RemovalKind.ONE, gone), latest)
    if step.forced is not None and latest.shows_no_tasks:
        # By now brokers may describe who is left: an old word that they do not ends no step.
        return _pod_that_is_left(step, statefulset, snapshot) or the_other_pods_are_ready(case) or facts_are_fresh(case)
    return (
        _pod_that_is_left(step, statefulset, snapshot)
        or _member_that_is_left(step, statefulset, case)
        or (None if statefulset.replicas == 0 else _task_that_does_not_run(step, case))
    )


def _of_what_runs(evidence: Evidence) -> Evidence:
    """The facts without sub-topologies that only a newer template has: the rollout that brings them waits for the step.

    Where the group runs what is not known, the plain facts say of which task that is.
    """
    of_restarts = evidence.of_restarts
    return evidence if isinstance(of_restarts.snapshot.task_set, TopologyUnknown) else of_restarts


def _spared(statefulset: StatefulSet, snapshot: Snapshot) -> tuple[Pod, ...]:
    """The pods that stay, though they may have been taken: replicas that rise again in time delete nobody.

    Only where the StatefulSet's controller has seen the raise: until then a deletion may be on its way.
    """
    if statefulset.observed_generation < statefulset.generation:
        return ()
    return tuple(pod for pod in snapshot.workload.pods if pod.ordinal < statefulset.replicas and not pod.terminating)


def _pod_that_is_left(step: OpenStep, statefulset: StatefulSet, snapshot: Snapshot) -> Refusal | None:
    spared = _spared(statefulset, snapshot)
    taken = {capture.pod_uid for capture in step.observed} - {pod.uid for pod in spared}
    pods = snapshot.workload.pods
    left = [pod.ordinal for pod in pods if pod.uid in taken or pod.ordinal >= statefulset.replicas]
    return Refusal(Reason.PodTerminating, f"ordinal {first_few(left)}") if left else None


def _member_that_is_left(step: OpenStep, statefulset: StatefulSet, case: GateInput) -> Refusal | None:
    group, placement = case.group(), case.placement()
    if isinstance(group, Refusal):
        return group
    if isinstance(placement, Refusal):
        return placement
    run_on = {pod.container.id for pod in _spared(statefulset, case.snapshot) if pod.is_running}
    captured = {key.id for seen in step.observed if seen.container_id not in run_on for key in seen.members}
    away = {
        member.id
        for ordinal, members in placement.by_ordinal.items()
        if ordinal >= statefulset.replicas
        for member in members
    }
    left = (captured | away) & group.member_ids
    if not left:
        return None
    ends, margin = case.snapshot.container_ends, case.policy.timing.eviction_margin
    may_go = evictable(
        *(step.observed, ends, group, margin),
        for_good=lambda seen: seen.ordinal >= statefulset.replicas,
        staying_pods=(),
    )
    on_their_way = {key.id for one in may_go for key in one.members}
    reason = Reason.ContainerEnded if on_their_way >= left else Reason.EvictionMissed
    return Refusal(reason, f"member {first_few(sorted(left))}")


def _task_that_does_not_run(step: OpenStep, case: GateInput) -> Refusal | None:
    """Every task runs again, as far as it is known which tasks there are.

    Where the step rested on that, it ends on that too: in the middle of a rebalance, when a task is nowhere, the tasks
    cannot be inferred from the group.
    """
    by_tasks = step.reason.row.rests_on_tasks or not isinstance(case.task_set(), Refusal)
    return first_refusal(STEP_END_BY_TASKS_GATES if by_tasks else STEP_END_GATES, case)
