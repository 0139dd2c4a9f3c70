"""The only door: `decide` turns everything that was read into everything that the operator does next, and says why.

Called by the controller after every gathering. It reads nothing but its arguments. The same snapshot and policy always
give the same decision.

The branches, in their order; the first that applies gives the verdict:

0. An open step is brought to its end beside every other branch.
1. The spec is invalid, or another owner has the StatefulSet or the application ID: stalled, nothing is changed.
2. Paused, or being deleted: what a hold prepared is withdrawn, the rest is only reported.
3. Desired replicas exceed current replicas: one write sets all of them, whatever the state of Kafka.
4. Desired replicas equal current replicas: steady.
5. Desired replicas are lower: the hold, in `scale_down`.
6. Desired replicas are zero: the hold too, down to the last pod, if that is allowed.

A dry run makes the same decision; its plan is withheld.
"""

from dataclasses import replace
from datetime import timedelta

from streamapp.core.actions import announcement, open_step
from streamapp.core.actions.decision import Announce, BranchResult, CompletedStep, Decision, Event, Grant, Plan, Verdict
from streamapp.core.actions.open_step import StepProgress
from streamapp.core.actions.plan import PlanBuilder
from streamapp.core.actions.rollout import Restart, next_replacement, next_restart, to_drain
from streamapp.core.actions.scale_down import current_hold, scale_down
from streamapp.core.evidence import learner_source
from streamapp.core.evidence.disk_space import RoomUnknown, room_for_learners
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.hold_record import Hold, HoldRecord
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import StatefulSet
from streamapp.core.gates import convergence
from streamapp.core.reasons import Reason
from streamapp.core.status import autoscaling, state_age
from streamapp.core.status.conditions import DecisionFacts, conditions

_REQUEUE = {
    Verdict.STALLED: timedelta(seconds=60),
    Verdict.PAUSED: timedelta(seconds=60),
    Verdict.CREATE: timedelta(seconds=2),
    Verdict.GROW: timedelta(seconds=2),
    Verdict.CLOSE_STEP: timedelta(seconds=1),
    Verdict.STEADY: timedelta(seconds=30),
    Verdict.HOLD: timedelta(seconds=5),
    Verdict.STEP: timedelta(seconds=1),
}


def decide(snapshot: Snapshot, policy: ScalingPolicy) -> Decision:
    """Turn the facts into a verdict with its reason, a plan of writes, and all that the resource reports.

    Args:
        snapshot: Everything that was read in one pass.
        policy: What the user chose.
    """
    evidence = learner_source.limited_evidence(snapshot, policy)
    step_progress = open_step.assess(evidence)
    branch = _branch(evidence, step_progress)
    rollout = _rollout(evidence, branch, step_progress)
    outcome = _with_what_the_rollout_waits_for(branch, rollout)
    draft = PlanBuilder(
        evidence=evidence,
        outcome=outcome,
        step_progress=step_progress,
        rollout=rollout,
        drains=_drains(evidence, outcome),
        convergence=convergence.measure(evidence),
    )
    plan = draft.plan()
    done = _of_a_dry_run(draft).plan_of_closing() if snapshot.app.dry_run and step_progress is not None else ()
    return Decision(
        verdict=outcome.verdict,
        reason=outcome.reason,
        detail=outcome.detail,
        waiting_for=outcome.waits,
        eta=draft.eta(),
        plan=done if snapshot.app.dry_run else plan,
        withheld=tuple(step for step in plan if step not in done) if snapshot.app.dry_run else (),
        record=draft.record(),
        convergence=draft.convergence,
        conditions=conditions(_findings(draft)),
        events=draft.events(),
        warnings=_warnings(draft),
        closed_step=_closed(step_progress, snapshot),
        source=learner_source.source_in_force(evidence),
        requeue_after=_requeue(draft, plan),
    )


def _closed(step_progress: StepProgress | None, snapshot: Snapshot) -> CompletedStep | None:
    if step_progress is None or step_progress.waits_for is not None:
        return None
    return step_progress.as_closed(snapshot)


def _branch(evidence: Evidence, step_progress: StepProgress | None) -> BranchResult:
    snapshot = evidence.snapshot
    app, statefulset = snapshot.app, snapshot.workload.statefulset
    refused = _stalled(snapshot) or _withdrawn(snapshot)
    if refused is not None:
        return refused
    if statefulset is None:
        return _create(snapshot)
    if app.desired.replicas > statefulset.replicas:
        return _grow(app.desired.replicas, statefulset)
    if step_progress is not None:
        return _close(step_progress, snapshot, statefulset)
    if app.desired.replicas == statefulset.replicas:
        return BranchResult(verdict=Verdict.STEADY, reason=Reason.Steady)
    return scale_down(evidence, statefulset)


def _stalled(snapshot: Snapshot) -> BranchResult | None:
    app, statefulset = snapshot.app, snapshot.workload.statefulset
    hold = _hold_on_record(statefulset)
    if app.fault is not None:
        return BranchResult(verdict=Verdict.STALLED, reason=Reason.InvalidSpec, detail=app.fault, hold=hold)
    if statefulset is not None and not statefulset.is_ours:
        return BranchResult(verdict=Verdict.STALLED, reason=Reason.ForeignStatefulSet, hold=hold)
    conflicting_app = app.older_conflicting
    if conflicting_app is not None:
        return BranchResult(
            verdict=Verdict.STALLED, reason=Reason.ApplicationIdTaken, detail=conflicting_app.name, hold=hold
        )
    return None


def _withdrawn(snapshot: Snapshot) -> BranchResult | None:
    if snapshot.app.deleting:
        return BranchResult(verdict=Verdict.PAUSED, reason=Reason.BeingDeleted)
    if snapshot.app.paused:
        return BranchResult(verdict=Verdict.PAUSED, reason=Reason.Paused)
    return None


def _create(snapshot: Snapshot) -> BranchResult:
    """Never smaller than it last was: what is gone may have had pods that hold the only state there is."""
    ordinals = [pod.ordinal + 1 for pod in snapshot.workload.pods]
    replicas = max([snapshot.app.desired.replicas, snapshot.app.granted_before or 0, *ordinals])
    return BranchResult(verdict=Verdict.CREATE, reason=Reason.StatefulSetMissing, create=replicas)


def _grow(desired: int, statefulset: StatefulSet) -> BranchResult:
    detail = f"{statefulset.replicas} to {desired}"
    return BranchResult(
        verdict=Verdict.GROW,
        reason=Reason.Growing,
        detail=detail,
        grant=Grant(to_replicas=desired),
        events=(Event(Reason.Growing, detail),),
    )


def _close(step_progress: StepProgress, snapshot: Snapshot, statefulset: StatefulSet) -> BranchResult:
    """A step is open: nothing else is begun until it is done, and the hold goes on unless the desired replicas rose."""
    hold = current_hold(statefulset) if snapshot.app.desired.replicas < statefulset.replicas else None
    drained = None if hold is None or snapshot.app.held_because is not None else hold.target
    missing = step_progress.waits_for or Refusal(Reason.StepClosed)
    reason, detail = missing.reason, missing.detail
    if step_progress.is_slow and step_progress.waits_for is not None:
        reason, detail = Reason.StepSlow, f"{missing.reason.name}: {missing.detail}".removesuffix(": ")
    return BranchResult(verdict=Verdict.CLOSE_STEP, reason=reason, detail=detail, hold=hold, drained=drained)


def _rollout(evidence: Evidence, outcome: BranchResult, step_progress: StepProgress | None) -> Restart | Refusal | None:
    statefulset = evidence.snapshot.workload.statefulset
    if statefulset is None:
        return None
    if step_progress is not None and step_progress.is_slow and outcome.verdict is Verdict.CLOSE_STEP:
        return next_replacement(evidence, statefulset)
    if step_progress is not None or outcome.verdict not in {Verdict.STEADY, Verdict.HOLD}:
        return None
    staying = statefulset.replicas if outcome.staying is None else outcome.staying
    return next_restart(evidence, statefulset, staying)


def _with_what_the_rollout_waits_for(outcome: BranchResult, rollout: Restart | Refusal | None) -> BranchResult:
    """A hold that waits for the rollout says what only a user can give the rollout."""
    is_held_by_it = outcome.reason in {Reason.RolloutInProgress, Reason.TopologyUnknown}
    if not is_held_by_it or not isinstance(rollout, Refusal) or rollout.reason is not Reason.FirstRestartUncovered:
        return outcome
    hold = None if outcome.hold is None else replace(outcome.hold, reason=rollout.reason)
    return replace(outcome, reason=rollout.reason, detail=rollout.detail, hold=hold)


def _warnings(draft: PlanBuilder) -> tuple[Event, ...]:
    found = (state_age.warning(draft.snapshot), _unchecked_room(draft))
    return (*filter(None, found), *autoscaling.warnings(draft.snapshot, draft.outcome.hold))


def _unchecked_room(draft: PlanBuilder) -> Event | None:
    """While learners are made: an agent that does not tell what room there is for them."""
    lowest, snapshot, reports = draft.outcome.drained, draft.snapshot, draft.evidence.fresh_reports
    if lowest is None or not learner_source.is_on_demand(draft.evidence):
        return None
    room = room_for_learners(reports, {one for one in reports if one >= max(lowest, 1)}, snapshot.task_set)
    return Event(Reason.DiskRoomUnknown, f"ordinal {room.ordinal}") if isinstance(room, RoomUnknown) else None


def _findings(draft: PlanBuilder) -> DecisionFacts:
    return DecisionFacts(
        evidence=draft.evidence,
        outcome=draft.outcome,
        rollout=draft.rollout,
        convergence=draft.convergence,
    )


def _drains(evidence: Evidence, outcome: BranchResult) -> Ordinal | None:
    """The pod that is drained for a restart; none while a step is open, and none that is about to leave."""
    statefulset = evidence.snapshot.workload.statefulset
    if statefulset is None or outcome.verdict not in {Verdict.STEADY, Verdict.HOLD}:
        return None
    return to_drain(evidence, statefulset, statefulset.replicas if outcome.staying is None else outcome.staying)


def _requeue(draft: PlanBuilder, plan: Plan) -> timedelta:
    """Sooner while something is on its way, and in time for the next announcement."""
    after = [_REQUEUE[draft.outcome.verdict], *([] if draft.convergence.is_converged else [timedelta(seconds=5)])]
    due = announcement.soonest(draft.evidence)
    is_told = any(isinstance(step, Announce) for step in plan)
    is_draining = draft.drains is not None or draft.outcome.drained is not None
    is_soon = is_told or (is_draining and learner_source.is_on_demand(draft.evidence))
    return min([*after, *([] if due is None else [due]), *([timedelta(seconds=2)] if is_soon else [])])


def _of_a_dry_run(draft: PlanBuilder) -> PlanBuilder:
    """The same decision, without any change to the hold."""
    hold = _hold_on_record(draft.snapshot.workload.statefulset)
    return replace(draft, outcome=replace(draft.outcome, hold=hold, grant=None))


def _hold_on_record(statefulset: StatefulSet | None) -> Hold | None:
    """As it stands there, left over or not."""
    record = None if statefulset is None else statefulset.record
    return record.hold if isinstance(record, HoldRecord) else None
