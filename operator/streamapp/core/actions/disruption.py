"""What the Eviction API may take now: what the PodDisruptionBudget is to allow, and which pod is drained for its node.

Under `disruption.policy: WhenCaughtUp` the budget follows coverage. Where each task has standbys, it opens for any one
pod while every task has two places. Where learners come on demand, it opens for one pod: the next one whose node must
be drained, when its tasks are elsewhere. It opens on the word of two readings, as a removal does. It closes as soon as
the newest reading does not say so any more. Called by `decide`; nothing here takes a pod.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from streamapp.core.actions.decision import BranchResult, CloseBudget, Disruptions, OpenBudget, Step, Verdict
from streamapp.core.actions.eviction_turns import in_turn, is_due
from streamapp.core.actions.open_step import StepProgress
from streamapp.core.actions.rollout import Restart
from streamapp.core.actions.standbys import or_waits_for_place
from streamapp.core.evidence.evidence import Evidence, OfEvidence
from streamapp.core.evidence.learner_source import source_in_force, streams_group
from streamapp.core.evidence.refusal import Refusal, first_few
from streamapp.core.facts.group import GroupReading
from streamapp.core.facts.hold_record import Hold
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import DisruptionPolicy, LearnerSource
from streamapp.core.facts.workload import Budget, Pod, StatefulSet
from streamapp.core.gates.candidates import RemovalCandidate, RemovalKind
from streamapp.core.gates.case import GateInput, input_now, input_of_restart
from streamapp.core.gates.chains import REPLACEMENT_GATES
from streamapp.core.gates.drain_gates import learners_have_room
from streamapp.core.gates.evaluate import Approval, evaluate, still_covered, takes_nothing_away
from streamapp.core.gates.safety_gates import the_other_pods_are_ready
from streamapp.core.reasons import Reason

READING_AGE = timedelta(seconds=60)
"""A budget that is open stays so on a reading that is no older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What else goes on in this decision."""

    outcome: BranchResult
    step_progress: StepProgress | None
    rollout: Restart | Refusal | None

    @property
    def takes_pods(self) -> bool:
        """Whether this decision removes pods."""
        return self.outcome.grant is not None and self.outcome.grant.step is not None

    @property
    def is_step_open(self) -> bool:
        """Whether a step is open that is not slow."""
        progress = self.step_progress
        return progress is not None and progress.waits_for is not None and not progress.is_slow


def disruptions_now(evidence: Evidence, around: Around) -> Disruptions:
    """Decide what evictions are allowed.

    Args:
        evidence: What follows from the facts.
        around: What else goes on.
    """
    statefulset = evidence.snapshot.workload.lasting_statefulset
    if not _follows_coverage(evidence):
        is_closed = around.takes_pods or around.is_step_open
        reason = Reason.StepOpen if is_closed else Reason.OneAtATime
        allows = Budget.CLOSED if is_closed else Budget.OPEN
        return Disruptions(allows=allows, reason=reason, follows_coverage=False)
    down = _pod_that_is_down(evidence, around)
    if down is not None:
        return _open_for(down, Reason.EvictionOfIdlePod)
    busy = _busy_with(around)
    if busy is not None or statefulset is None:
        refused = busy or Refusal(Reason.StatefulSetMissing)
        return Disruptions(allows=Budget.CLOSED, reason=refused.reason, detail=refused.detail)
    latest = evidence.snapshot.latest
    if latest is None:
        return Disruptions(allows=Budget.CLOSED, reason=Reason.BrokersUnreachable)
    return _Disruption(evidence, statefulset, latest, around.outcome.hold).allowed()


def budget_step(evidence: Evidence, wanted: Disruptions, around: Around) -> tuple[Step, ...]:
    """Write the budget if it allows something else; it is closed first where another process wrote it last.

    That write is a fence: an opening that a former leader sent late carries an older version, and is refused.
    """
    workload = evidence.snapshot.workload
    if workload.budget is Budget.ABSENT:
        return ()
    if not wanted.follows_coverage:
        return _without_coverage(evidence, wanted, around)
    if workload.budget_lease != evidence.snapshot.lease:
        return (CloseBudget(reason=Reason.DisruptionsFenced, follows_coverage=True),)
    ordinal = None if wanted.evictable is None else wanted.evictable.ordinal
    if (workload.budget, workload.evictable) == (wanted.allows, ordinal):
        return ()
    if wanted.allows is Budget.CLOSED or wanted.allows is workload.budget is Budget.OPEN_FOR_ONE:
        # Not from one pod to another at once: the former can be evicted after the last look at the pods, and the
        # budget, which leaves it out, does not change by that. The next pass opens it on a look of its own.
        return (CloseBudget(reason=wanted.reason, follows_coverage=True),)
    return (OpenBudget(reason=wanted.reason, evictable=ordinal, judged_at=evidence.snapshot.now),)


def _without_coverage(evidence: Evidence, wanted: Disruptions, around: Around) -> tuple[Step, ...]:
    now, followed = evidence.snapshot.workload.budget, evidence.snapshot.workload.budget_lease is not None
    if wanted.allows is Budget.CLOSED:
        return (CloseBudget(reason=wanted.reason),) if followed or now is not Budget.CLOSED else ()
    if now is Budget.OPEN:
        return (OpenBudget(reason=wanted.reason),) if followed else ()
    progress = around.step_progress
    if progress is None:
        return (OpenBudget(reason=wanted.reason if followed else Reason.HoldCancelled),)
    return (OpenBudget(reason=Reason.StepClosed if progress.waits_for is None else Reason.StepSlow),)


def _follows_coverage(evidence: Evidence) -> bool:
    """By the policy; with an invalid spec, which tells no policy, by what the budget was written for.

    Not while the StreamApp is being deleted: the budget may stay there for ever, if its deletion leaves orphans.
    """
    if evidence.snapshot.app.deleting:
        return False
    if evidence.snapshot.app.fault is not None:
        return evidence.snapshot.workload.budget_lease is not None
    return evidence.policy.disruption is DisruptionPolicy.WHEN_CAUGHT_UP


def _busy_with(around: Around) -> Refusal | None:
    """What goes before any eviction."""
    outcome, rollout = around.outcome, around.rollout
    if around.takes_pods or around.step_progress is not None:
        return Refusal(Reason.StepOpen, outcome.detail)
    if outcome.verdict is Verdict.HOLD and outcome.drained is not None:
        return Refusal(outcome.reason, f"The scale-down goes first: {outcome.detail}".removesuffix(": "))
    if outcome.verdict not in {Verdict.STEADY, Verdict.HOLD}:
        return Refusal(outcome.reason, outcome.detail)
    if rollout is not None and not rollout.reason.row.gives_way_to_evictions:
        detail = rollout.detail if isinstance(rollout, Refusal) else f"ordinal {rollout.pod.ordinal}"
        return Refusal(rollout.reason, f"The rollout goes first: {detail}".removesuffix(": "))
    return None


@dataclass(frozen=True, slots=True)
class _Disruption(OfEvidence):
    """One look at an application of which nothing else takes a pod."""

    evidence: Evidence
    statefulset: StatefulSet
    latest: GroupReading
    hold: Hold | None
    """The hold that goes on beside it; None if there is none."""

    def allowed(self) -> Disruptions:
        due = in_turn(self.snapshot.eviction_turns, _due(self.evidence))
        if self._is_one_by_one():
            return self._for_one(due)
        return self._for_any(due)

    def _is_one_by_one(self) -> bool:
        """Whether a pod can be covered only when it is known which one goes."""
        source = source_in_force(self.evidence).source
        return source is LearnerSource.ON_DEMAND or streams_group(self.evidence) is not None

    def _for_one(self, due: tuple[Pod, ...]) -> Disruptions:
        if not due:
            return self._at_rest()
        with_room = (pod for pod in due if learners_have_room(self._case_of(pod)) is None)
        pod = next(with_room, due[0])
        if self.statefulset.replicas == 1:
            alone = Refusal(Reason.NoLearners, f"ordinal {pod.ordinal}, {pod.drain}: there is no other pod")
            return replace(_closed(alone), drained_node=_node(due))
        case = self._case_of(pod)
        drains = pod.ordinal if self._others_run(pod) else None
        # Of two pods that are away, each could have been the copy of the other one's tasks.
        refused = the_other_pods_are_ready(case) or self._uncovered(case, is_open_for=pod)
        if refused is not None:
            refused = or_waits_for_place(self.evidence, refused, self.hold)
        if refused is None:
            return replace(_open_for(pod, Reason.EvictionCovered), drains=drains)
        detail = f"ordinal {pod.ordinal}, {pod.drain}: {refused.detail}".removesuffix(": ")
        closed = _closed(replace(refused, detail=detail))
        return replace(closed, drains=drains, waits_for=refused, drained_node=_node(due))

    def _others_run(self, pod: Pod) -> bool:
        """Whether all the tasks of a pod need not go to fewer pods than there are beside it."""
        others = {one.ordinal for one in self.snapshot.workload.pods if one.is_running and one.ordinal != pod.ordinal}
        return len(others) >= self.statefulset.replicas - 1

    def _for_any(self, due: tuple[Pod, ...]) -> Disruptions:
        """Any one of the pods may go while each task has two places."""
        ordinals = tuple(Ordinal(number) for number in range(self.statefulset.replicas - 1, -1, -1))
        candidate = RemovalCandidate(RemovalKind.ANY_ONE, ordinals)
        case = input_now(self.evidence, candidate, self.latest)
        missing = self._missing()
        if len(missing) == 1 and missing[0] in {pod.ordinal for pod in due}:
            return self._for_sick(next(pod for pod in due if pod.ordinal == missing[0]))
        if missing:
            refused: Refusal | None = Refusal(
                Reason.PodsNotReady, f"ordinal {first_few(missing)}", needs_rebalance=False
            )
        else:
            refused = self._uncovered(case, is_open_for=None)
        if refused is None:
            return Disruptions(allows=Budget.OPEN, reason=Reason.EveryTaskCovered)
        if due:
            return replace(_closed(refused), waits_for=refused, drained_node=_node(due))
        if case.view is None and refused.reason in {Reason.ReadingsPending, Reason.PositionsUnknown}:
            return self._at_rest()
        is_brief = refused.reason in {Reason.FactsStale, Reason.ReadingsPending}
        return replace(_closed(refused), waits_for=replace(refused, needs_rebalance=False) if is_brief else None)

    def _at_rest(self) -> Disruptions:
        """Closed: copies are made, or it is known how far they are, only when a node must be drained."""
        sees = self.snapshot.workload.sees_nodes
        return _closed(Refusal(Reason.NoDrainedNode if sees else Reason.NodesUnwatched, needs_rebalance=False))

    def _for_sick(self, pod: Pod) -> Disruptions:
        """The only pod that is not ready: what ails it may be the node that must be drained."""
        refused = self._uncovered(self._case_of(pod), is_open_for=pod)
        if refused is None:
            return _open_for(pod, Reason.EvictionCovered)
        return replace(_closed(refused), waits_for=refused, drained_node=_node((pod,)))

    def _missing(self) -> list[int]:
        ready = self.snapshot.workload.ready_ordinals
        return [number for number in range(self.statefulset.replicas) if number not in ready]

    def _uncovered(self, case: GateInput, *, is_open_for: Pod | None) -> Refusal | None:
        """Why what the case is about cannot be evicted: what is open already needs only the newest word."""
        workload = self.snapshot.workload
        is_ours = workload.budget_lease == self.snapshot.lease
        wanted = (Budget.OPEN, None) if is_open_for is None else (Budget.OPEN_FOR_ONE, is_open_for.ordinal)
        refused = still_covered(case, READING_AGE)
        if refused is not None or (is_ours and (workload.budget, workload.evictable) == wanted):
            return refused
        verdict = evaluate(self.evidence, case.candidate)
        return None if isinstance(verdict, Approval) else verdict

    def _case_of(self, pod: Pod) -> GateInput:
        return input_of_restart(self.evidence, pod, self.latest)


def _due(evidence: Evidence) -> tuple[Pod, ...]:
    """Pods whose node must be drained."""
    return tuple(pod for pod in evidence.snapshot.workload.pods if is_due(pod))


def _pod_that_is_down(evidence: Evidence, around: Around) -> Pod | None:
    """A pod that does not run and has nobody in the group, whatever else goes on but a step: it may need another node.

    A rollout can wait for it, and it for its node.
    """
    latest = evidence.snapshot.latest
    if latest is None or around.takes_pods or around.step_progress is not None or evidence.snapshot.app.fault:
        return None
    down = (pod for pod in _due(evidence) if not pod.is_running)
    return next(
        (pod for pod in down if takes_nothing_away(input_of_restart(evidence, pod, latest), REPLACEMENT_GATES)), None
    )


def _open_for(pod: Pod, reason: Reason) -> Disruptions:
    detail = f"ordinal {pod.ordinal}, {pod.drain}"
    return Disruptions(allows=Budget.OPEN_FOR_ONE, reason=reason, detail=detail, evictable=pod)


def _node(due: tuple[Pod, ...]) -> str:
    return "" if due[0].drain is None else due[0].drain.node


def _closed(refused: Refusal) -> Disruptions:
    return Disruptions(allows=Budget.CLOSED, reason=refused.reason, detail=refused.detail)
