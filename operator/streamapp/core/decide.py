"""The only door: `decide` turns everything that was read into everything that the operator does next, and says why.

Called by the controller after every gathering. It reads nothing but its arguments. The same snapshot and policy always
give the same decision.

The branches, in their order; the first that applies gives the verdict:

0. An open step is brought to its end beside every other branch.
1. The spec is invalid, or another owner has the StatefulSet or the application ID: stalled, nothing is changed. So is
   a StreamApp without a StatefulSet while pods of one that is not known can be in its group.
2. Paused, or being deleted: what a hold prepared is withdrawn, the rest is only reported.
3. Desired replicas exceed current replicas: one write sets all of them, whatever the state of Kafka. The controller
   makes this write by `decide_raise`, before it reads anything else; `decide` then says what goes on beside it.
4. Desired replicas equal current replicas: steady.
5. Desired replicas are lower: the hold, in `scale_down`.
6. Desired replicas are zero: the hold too, down to the last pod, if that is allowed.

A dry run makes the same decision; its plan is withheld.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from streamapp.core.actions import announcement, open_step, standbys
from streamapp.core.actions.decision import (
    Announce,
    BranchResult,
    CloseBudget,
    CompletedStep,
    Decision,
    Event,
    Fence,
    Grant,
    GrantReplicas,
    Plan,
    RestoreNeed,
    Verdict,
)
from streamapp.core.actions.disruption import Around, disruptions_now
from streamapp.core.actions.open_step import StepProgress
from streamapp.core.actions.plan import PlanBuilder
from streamapp.core.actions.rebalance_trigger import with_refused
from streamapp.core.actions.restore_claims import restore_claim
from streamapp.core.actions.rollout import Restart, next_replacement, next_restart, to_drain
from streamapp.core.actions.scale_down import current_hold, scale_down
from streamapp.core.actions.standbys import or_waits_for_place
from streamapp.core.evidence import learner_source
from streamapp.core.evidence.capacity.container_memory import estimated_need
from streamapp.core.evidence.capacity.disk_space import RoomUnknown, room_for_learners
from streamapp.core.evidence.evidence import Evidence, uncontradicted
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.hold_record import Hold, HoldRecord, RecordUnreadable
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import RolloutPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import App, Raise, Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.facts.workload import StatefulSet
from streamapp.core.gates import convergence, creation
from streamapp.core.gates.candidates import lowest_drained
from streamapp.core.reasons import Reason
from streamapp.core.status import autoscaling, state_age, volume_warnings
from streamapp.core.status.conditions import DecisionFacts, conditions
from streamapp.core.status.kept_states import kept_states

AT_REST = frozenset({Verdict.STEADY, Verdict.STALLED, Verdict.PAUSED})
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

_REFUSED_RAISE = timedelta(seconds=15)
"""How often a raise is tried again that the API server did not accept: another person can mend what stands against it.
"""


_FOR_A_PLACE = {
    RestoreNeed.NONE: timedelta.max,
    RestoreNeed.LEARNING: timedelta.max,
    RestoreNeed.WAITING: timedelta(seconds=5),
}
"""How often an application asks for its place."""


def decide(snapshot: Snapshot, policy: ScalingPolicy) -> Decision:
    """Turn the facts into a verdict with its reason, a plan of writes, and all that the resource reports.

    Args:
        snapshot: Everything that was read in one pass.
        policy: What the user chose.
    """
    snapshot = uncontradicted(_with_followed_record(snapshot), policy.timing)
    draft = _draft(learner_source.limited_evidence(snapshot, policy))
    evidence, outcome = draft.evidence, draft.outcome
    made, withheld = _made_and_withheld(draft)
    made = (*made, *kept_states(evidence, made))
    claim = restore_claim(draft)
    return Decision(
        verdict=outcome.verdict,
        reason=outcome.reason,
        detail=outcome.detail,
        waiting_for=outcome.waits,
        eta=draft.eta(),
        plan=made,
        withheld=withheld,
        record=draft.record,
        convergence=draft.convergence,
        placement=None if evidence.latest is None else evidence.latest.placement,
        conditions=conditions(_findings(draft, made)),
        events=draft.events(),
        warnings=_warnings(draft),
        closed_step=_closed(draft.step_progress, snapshot),
        source=learner_source.source_in_force(evidence),
        requeue_after=min(_requeue(draft, (*made, *withheld)), _FOR_A_PLACE[claim.need]),
        needs_fresh_group=_needs_fresh_group(draft),
        waits_for_news=_waits_for_news(draft, (*made, *withheld)),
        disruptions=draft.disruptions,
        restores=claim,
    )


def _with_followed_record(snapshot: Snapshot) -> Snapshot:
    """The same; a hold is left over if no pass has seen a change of the StreamApp that was made in it."""
    statefulset = snapshot.workload.statefulset
    if statefulset is None or not isinstance(statefulset.record, HoldRecord):
        return snapshot
    followed = statefulset.record.followed_to(snapshot.app.generation)
    if followed is statefulset.record:
        return snapshot
    return replace(snapshot, workload=replace(snapshot.workload, statefulset=replace(statefulset, record=followed)))


def _draft(evidence: Evidence) -> PlanBuilder:
    """Choose the branch, and what a rollout adds to it."""
    step_progress = open_step.assess(evidence)
    branch = _branch(evidence, step_progress)
    rollout = _rollout(evidence, branch, step_progress)
    outcome = _with_what_the_rollout_waits_for(branch, rollout)
    disruptions = disruptions_now(evidence, Around(outcome=outcome, step_progress=step_progress, rollout=rollout))
    drained = _drains(evidence, outcome)
    draft = PlanBuilder(
        evidence=evidence,
        outcome=outcome,
        step_progress=step_progress,
        rollout=rollout,
        drains=disruptions.drains if drained is None else drained,
        disruptions=disruptions,
        convergence=convergence.measure(evidence),
    )
    return draft if evidence.snapshot.rebalances.refused is None else _with_refused_triggers(draft)


def _with_refused_triggers(draft: PlanBuilder) -> PlanBuilder:
    """Whatever waits for a rebalance says that its triggers fail."""

    def told(refusal: Refusal) -> Refusal:
        return with_refused(refusal, draft.snapshot, draft.policy.timing)

    outcome, missing = draft.outcome, draft.convergence.waits_for
    waits_for = outcome.could_be_rebalanced
    if draft.step_progress is not None and outcome.verdict is Verdict.CLOSE_STEP:
        waits_for = draft.step_progress.waits_for
    if waits_for is not None:
        outcome = replace(outcome, detail=told(replace(waits_for, detail=outcome.detail)).detail)
    seen = draft.convergence if missing is None else replace(draft.convergence, waits_for=told(missing))
    return replace(draft, outcome=outcome, convergence=seen)


def decide_raise(app: App, statefulset: StatefulSet | None, lease: int, now: datetime) -> GrantReplicas | None:
    """Return the raise that must not wait for any other fact; None if there is none to make.

    The rules that stop a raise are those of `decide`, and none of them needs another read: an invalid spec, the owner
    of the StatefulSet, a pause, a deletion and a dry run stand on the two objects. Another StreamApp with this
    application ID counts if this process has received it; one that it has not yet received does not stop a raise, since
    this StatefulSet has members in the group already. Nor does an object that the API server did not accept: only the
    next try tells whether it accepts the raise.

    The raise ends a hold. An open step stays on record: whether it is done takes more facts.

    Args:
        app: The StreamApp, as read in this pass.
        statefulset: Its StatefulSet, as read in this pass; None if there is none.
        lease: Transitions of the operator's Lease.
        now: The time.
    """
    known = replace(app, fault=None) if app.is_rejected else app
    refused = app.dry_run or _stalled(known, statefulset) or _withdrawn(app)
    if statefulset is None or refused or app.desired.replicas <= statefulset.replicas:
        return None
    return GrantReplicas(
        from_replicas=statefulset.replicas,
        to_replicas=app.desired.replicas,
        record=_record_of_raise(statefulset.record, lease, now),
        fence=Fence(statefulset.uid, statefulset.resource_version),
        judged_at=now,
        reason=Reason.Growing,
    )


def made_raise(step: GrantReplicas, statefulset: StatefulSet) -> Raise:
    """Return what `decide` must know of a raise that was made.

    Args:
        step: The raise.
        statefulset: As it was before the raise.
    """
    hold = _hold_on_record(statefulset)
    cancelled = None if hold is None else hold.id
    return Raise(from_replicas=step.from_replicas, to_replicas=step.to_replicas, cancelled_hold=cancelled)


def _record_of_raise(
    record: HoldRecord | RecordUnreadable | None, lease: int, now: datetime
) -> HoldRecord | RecordUnreadable | None:
    if not isinstance(record, HoldRecord):
        return record
    if record.step is None and record.standbys is None:
        return None
    # The raise is a fence, too: it can be the first write after another process.
    standbys = replace(record, hold=None).dated_until(now).standbys
    return HoldRecord(epoch=record.epoch.next(lease, now), hold=None, step=record.step, standbys=standbys)


def _closed(step_progress: StepProgress | None, snapshot: Snapshot) -> CompletedStep | None:
    if step_progress is None or step_progress.waits_for is not None:
        return None
    return step_progress.as_closed(snapshot)


def _branch(evidence: Evidence, step_progress: StepProgress | None) -> BranchResult:
    snapshot = evidence.snapshot
    app, statefulset = snapshot.app, snapshot.workload.statefulset
    refused = _stalled(app, statefulset) or _withdrawn(app)
    if refused is not None:
        hold = refused.hold
        return replace(refused, hold=None if hold is None else hold.before_next_wait(snapshot.now))
    if statefulset is None:
        return _create(evidence)
    if app.desired.replicas > statefulset.replicas or snapshot.raised is not None:
        return _grow(app.desired.replicas, statefulset, snapshot.raised)
    if step_progress is not None:
        return _close(step_progress, evidence, statefulset)
    if app.desired.replicas == statefulset.replicas:
        return BranchResult(verdict=Verdict.STEADY, reason=Reason.Steady)
    return scale_down(evidence, statefulset)


def _stalled(app: App, statefulset: StatefulSet | None) -> BranchResult | None:
    hold = _hold_to_keep(app, statefulset)
    if app.fault is not None:
        return BranchResult(verdict=Verdict.STALLED, reason=Reason.InvalidSpec, detail=app.fault, hold=hold)
    if statefulset is not None and not statefulset.is_ours:
        return BranchResult(verdict=Verdict.STALLED, reason=Reason.ForeignStatefulSet, hold=hold)
    conflicting_app = app.served_instead(has_statefulset=statefulset is not None)
    if conflicting_app is not None:
        return BranchResult(
            verdict=Verdict.STALLED, reason=Reason.ApplicationIdTaken, detail=conflicting_app.name, hold=hold
        )
    return None


def _withdrawn(app: App) -> BranchResult | None:
    if app.deleting:
        return BranchResult(verdict=Verdict.PAUSED, reason=Reason.BeingDeleted)
    if app.paused:
        return BranchResult(verdict=Verdict.PAUSED, reason=Reason.Paused)
    return None


def _create(evidence: Evidence) -> BranchResult:
    """Never smaller than it last was: what is gone may have had pods that hold the only state there is.

    Not while pods of a StreamApp that is not known can be in the group: those of a younger one would join them.
    """
    refusal, snapshot = creation.refusal(evidence), evidence.snapshot
    if refusal is not None:
        return BranchResult(verdict=Verdict.STALLED, reason=refusal.reason, detail=refusal.detail)
    ordinals = [pod.ordinal + 1 for pod in snapshot.workload.pods]
    replicas = max([snapshot.app.desired.replicas, snapshot.app.granted_before or 0, *ordinals])
    return BranchResult(verdict=Verdict.CREATE, reason=Reason.StatefulSetMissing, create=replicas)


def _grow(desired: int, statefulset: StatefulSet, raised: Raise | None) -> BranchResult:
    """A raise that is to be made, or was made in this pass."""
    grant = Grant(to_replicas=desired) if raised is None else None
    detail = f"{statefulset.replicas} to {desired}"
    if raised is not None:
        detail = f"{raised.from_replicas} to {raised.to_replicas}"
    events = (Event(Reason.Growing, detail),)
    return BranchResult(verdict=Verdict.GROW, reason=Reason.Growing, detail=detail, grant=grant, events=events)


def _close(step_progress: StepProgress, evidence: Evidence, statefulset: StatefulSet) -> BranchResult:
    """A step is open: nothing else is begun until it is done, and the hold goes on unless the desired replicas rose."""
    snapshot = evidence.snapshot
    hold = current_hold(statefulset) if snapshot.app.desired.replicas < statefulset.replicas else None
    drained = None if hold is None or snapshot.app.held_because is not None else hold.target
    if drained is not None:
        drained = lowest_drained(evidence, statefulset.replicas, drained)
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
    found = next_restart(evidence, statefulset, _staying(evidence, outcome, statefulset))
    if not isinstance(found, Refusal) or evidence.policy.rollout is not RolloutPolicy.WHEN_CAUGHT_UP:
        return found
    return or_waits_for_place(evidence, found, outcome.hold)


def _staying(evidence: Evidence, outcome: BranchResult, statefulset: StatefulSet) -> int:
    """The pods that a rollout restarts: not those that leave, also while desired replicas must last."""
    if outcome.staying is not None:
        return outcome.staying
    is_soon_lower = outcome.reason is Reason.Stabilizing
    return evidence.snapshot.app.desired.replicas if is_soon_lower else statefulset.replicas


def _with_what_the_rollout_waits_for(outcome: BranchResult, rollout: Restart | Refusal | None) -> BranchResult:
    """A hold that waits for the rollout says what only a user can give the rollout."""
    is_held_by_it = outcome.reason in {Reason.RolloutInProgress, Reason.TopologyUnknown}
    if not is_held_by_it or not isinstance(rollout, Refusal) or rollout.reason is not Reason.FirstRestartUncovered:
        return outcome
    hold = None if outcome.hold is None else replace(outcome.hold, reason=rollout.reason)
    return replace(outcome, reason=rollout.reason, detail=rollout.detail, hold=hold)


def _warnings(draft: PlanBuilder) -> tuple[Event, ...]:
    found = (
        state_age.warning(draft.snapshot),
        volume_warnings.not_expandable(draft.snapshot),
        volume_warnings.other_storage_class(draft.snapshot),
        _unchecked_room(draft),
        _tight_memory(draft),
        _cold_scale_up(draft),
    )
    return (*filter(None, found), *autoscaling.warnings(draft.snapshot, draft.outcome.hold))


def _cold_scale_up(draft: PlanBuilder) -> Event | None:
    """While replicas rise in a group whose brokers warm nothing up: what the new pods will cost."""
    is_cold = draft.outcome.verdict is Verdict.GROW and learner_source.streams_group(draft.evidence) is not None
    task_set = draft.snapshot.task_set
    has_state = not isinstance(task_set, TaskSet) or bool(task_set.stateful)
    return Event(Reason.ColdScaleUp, draft.outcome.detail) if is_cold and has_state else None


def _unchecked_room(draft: PlanBuilder) -> Event | None:
    """While learners are made: an agent that does not tell what room there is for them."""
    lowest, snapshot, reports = draft.outcome.drained, draft.snapshot, draft.evidence.fresh_reports
    if lowest is None or not learner_source.is_on_demand(draft.evidence):
        return None
    room = room_for_learners(reports, {one for one in reports if one >= max(lowest, 1)}, snapshot.task_set)
    return Event(Reason.DiskRoomUnknown, f"ordinal {room.ordinal}") if isinstance(room, RoomUnknown) else None


def _tight_memory(draft: PlanBuilder) -> Event | None:
    """While pods are to leave: what nobody declared is only estimated, and an estimate holds nothing."""
    target = draft.outcome.staying
    if draft.outcome.verdict is not Verdict.HOLD or not target:
        return None
    reports = draft.evidence.fresh_reports
    need = estimated_need(draft.evidence, {ordinal for ordinal in reports if ordinal >= target})
    # Without the pod or the figures: they differ from pass to pass, and each would be news.
    return None if need is None or need.is_enough else Event(Reason.MemoryMayNotSuffice, f"{target} replicas")


def _findings(draft: PlanBuilder, plan: Plan) -> DecisionFacts:
    return DecisionFacts(
        evidence=draft.evidence,
        outcome=draft.outcome,
        rollout=draft.rollout,
        convergence=draft.convergence,
        disruptions=draft.disruptions,
        plan=plan,
    )


def _drains(evidence: Evidence, outcome: BranchResult) -> Ordinal | None:
    """The pod that is drained for a restart; none while a step is open, and none that is about to leave."""
    statefulset = evidence.snapshot.workload.statefulset
    if statefulset is None or outcome.verdict not in {Verdict.STEADY, Verdict.HOLD}:
        return None
    return to_drain(evidence, statefulset, _staying(evidence, outcome, statefulset))


def _requeue(draft: PlanBuilder, plan: Plan) -> timedelta:
    """Sooner while something is on its way, and in time for the next announcement and the next rebalance."""
    after = [_REQUEUE[draft.outcome.verdict], *([] if draft.convergence.is_settled else [timedelta(seconds=5)])]
    after += [_REFUSED_RAISE] if _is_raise_refused(draft.snapshot) else []
    due = [*filter(None, (announcement.soonest(draft.evidence), draft.rebalance_due_in()))]
    is_told = any(isinstance(step, Announce) for step in plan)
    is_draining = draft.drains is not None or draft.outcome.drained is not None
    is_soon = is_told or (is_draining and learner_source.is_on_demand(draft.evidence))
    return min([*after, *due, *([timedelta(seconds=2)] if is_soon else [])])


def _is_raise_refused(snapshot: Snapshot) -> bool:
    app, statefulset = snapshot.app, snapshot.workload.statefulset
    return app.is_rejected and statefulset is not None and app.desired.replicas > statefulset.replicas


def _needs_fresh_group(draft: PlanBuilder) -> bool:
    rollout = draft.rollout
    waits_for_user = isinstance(rollout, Refusal) and rollout.reason.row.waits_for_user
    is_rolling = rollout is not None and not waits_for_user
    is_on_record = isinstance(draft.record, HoldRecord) and not standbys.waits_for_right(draft.evidence)
    is_created = draft.outcome.reason is Reason.NamespaceUnlisted and creation.awaits_look(draft.evidence)
    return is_rolling or draft.disruptions.has_news_due or is_on_record or is_created or _is_look_due(draft)


def _is_look_due(draft: PlanBuilder) -> bool:
    """Whether nothing but a fresh look is missing: no event tells that, so the group is read again at once."""
    missing = draft.convergence.waits_for
    return missing is not None and missing.reason is Reason.FactsStale


def _waits_for_news(draft: PlanBuilder, plan: Plan) -> bool:
    missing, evidence = draft.convergence.waits_for, draft.evidence
    waits = draft.rollout is not None or draft.record is not None or draft.disruptions.has_news_due
    is_at_rest = draft.outcome.verdict in AT_REST and not plan and not waits
    is_rebalance_due = missing is not None and missing.reason.row.triggers_outside_hold
    are_agents_due = announcement.soonest(evidence) is not None or (evidence.policy.agent and missing is not None)
    return is_at_rest and not is_rebalance_due and not are_agents_due and not _is_look_due(draft)


def _made_and_withheld(draft: PlanBuilder) -> tuple[Plan, Plan]:
    """Give the steps that are made, and those that a dry run withholds.

    It makes none but those that close a step, or that stop the wait of a hold: nothing is prepared for it meanwhile.
    """
    plan = draft.plan()
    if not draft.snapshot.app.dry_run:
        return plan, ()
    kept = _of_a_dry_run(draft)
    made = kept.plan_of_closing() if draft.step_progress is not None else kept.record_write()
    # An open budget rests on coverage, which goes on to change.
    closing = (step for step in plan if isinstance(step, CloseBudget) and step.follows_coverage and step not in made)
    made = (*made, *closing)
    return made, tuple(step for step in plan if step not in made)


def _of_a_dry_run(draft: PlanBuilder) -> PlanBuilder:
    """The same decision, without any change to the hold but that its wait ends."""
    hold = _hold_to_keep(draft.snapshot.app, draft.snapshot.workload.statefulset)
    kept = None if hold is None else hold.before_next_wait(draft.snapshot.now)
    return replace(draft, outcome=replace(draft.outcome, hold=kept, grant=None))


def _hold_on_record(statefulset: StatefulSet | None) -> Hold | None:
    """As it stands there, left over or not."""
    record = None if statefulset is None else statefulset.record
    return record.hold if isinstance(record, HoldRecord) else None


def _hold_to_keep(app: App, statefulset: StatefulSet | None) -> Hold | None:
    """The same while nothing is prepared for it; None once as many replicas are desired again.

    An override is the user's word about one hold. If that hold outlived the end of its scale-down, the word would let
    the pods of the next one go without copies.
    """
    is_lower = statefulset is not None and app.desired.replicas < statefulset.replicas
    return _hold_on_record(statefulset) if is_lower else None
