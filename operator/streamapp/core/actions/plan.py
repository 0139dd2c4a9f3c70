"""The plan of a decision: what the branch wants and what goes on beside it, as steps in the order they are made.

Called by `decide` only. It decides nothing about pods; it sees to it that one pass makes one change: never a removal
and a restart, never a write on the StatefulSet after another one, never a triggered rebalance while pods are on
their way.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property

from streamapp.core.actions import beside, standbys
from streamapp.core.actions.announcement import Leaving, announcement
from streamapp.core.actions.decision import (
    BranchResult,
    CloseBudget,
    CreateStatefulSet,
    Disruptions,
    Event,
    Evict,
    Fence,
    GrantReplicas,
    KeepClaims,
    OpenBudget,
    Plan,
    RestartPod,
    TriggerRebalance,
    Verdict,
    WriteHoldRecord,
    WriteTemplate,
)
from streamapp.core.actions.disruption import Around, budget_step
from streamapp.core.actions.heartbeats import cap_heartbeats, has_pods_on_their_way
from streamapp.core.actions.open_step import StepProgress
from streamapp.core.actions.rebalance_trigger import Waiting, due_at, rebalance_for
from streamapp.core.actions.rollout import Restart
from streamapp.core.actions.standbys import StandbysNow
from streamapp.core.evidence.eta import NOT_KNOWN, Estimate
from streamapp.core.evidence.evidence import Evidence, OfEvidence
from streamapp.core.evidence.failing_pods import expired_pods, overdue_pods
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.hold_record import NO_EPOCH, HoldRecord, RecordUnreadable
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.workload import Pod, StatefulSet
from streamapp.core.gates.convergence import Convergence, estimate
from streamapp.core.reasons import Reason


@dataclass(frozen=True, kw_only=True)
class PlanBuilder(OfEvidence):
    """Everything that one decision has found out, on its way to a plan."""

    evidence: Evidence
    outcome: BranchResult
    step_progress: StepProgress | None
    rollout: Restart | Refusal | None
    drains: Ordinal | None
    """The pod that is drained to be restarted or evicted."""
    disruptions: Disruptions
    convergence: Convergence

    def plan(self) -> Plan:
        """Everything that is to be done."""
        statefulset = self.snapshot.workload.statefulset
        if self.outcome.create is not None:
            return (CreateStatefulSet(replicas=self.outcome.create, reason=self.outcome.reason),)
        if statefulset is None or not statefulset.is_ours:
            return ()
        if self.outcome.verdict is Verdict.STALLED:
            return self.plan_of_closing()
        if self.outcome.verdict is Verdict.PAUSED:
            return (*self.plan_of_closing(), *self._standbys.steps, *self._announcement())
        main = self._main(statefulset)
        others = (
            *self._evictions(statefulset, everywhere=True),
            *beside.probe_members(self.evidence),
            *beside.new_process_ids(self.evidence),
        )
        capped = self._heartbeats(main, others)
        # Nothing that may fail comes before a raise, and no call to brokers before a budget is closed.
        closing, opening = self._budget_to_close(), self._budget_to_open()
        if self.outcome.verdict is Verdict.GROW:
            ordered = (*main, *closing, *capped, *others, *opening)
        else:
            ordered = (*closing, *capped, *others, *opening, *main)
        told = (*self._standbys.steps, *self._told(main), *self._rebalance(main))
        return (*ordered, *told, *beside.larger_volumes(self.snapshot), *self._claims_to_keep(statefulset, main))

    def plan_of_closing(self) -> Plan:
        """Only what brings an open step to its end, and the record; all that a pause leaves."""
        statefulset = self.snapshot.workload.statefulset
        if statefulset is None or not statefulset.is_ours:
            return ()
        written = self._record_write(statefulset)
        return (
            *self._budget_to_close(),
            *self._evictions(statefulset, everywhere=False),
            *self._budget_to_open(),
            *written,
            *self._closing_rebalance(),
            *self._claims_to_keep(statefulset, written),
        )

    def record_write(self) -> Plan:
        """Only the record, if it says something else."""
        statefulset = self.snapshot.workload.statefulset
        return () if statefulset is None or not statefulset.is_ours else self._record_write(statefulset)

    @cached_property
    def record(self) -> HoldRecord | RecordUnreadable | None:
        """What the record says when the plan is done."""
        statefulset = self.snapshot.workload.statefulset
        if statefulset is None or isinstance(statefulset.record, RecordUnreadable):
            return None if statefulset is None else statefulset.record
        before = statefulset.record
        wanted = self._wanted_record(before)
        if wanted is None or before is None:
            return wanted
        return wanted if self._must_be_written(before, wanted) else before

    def eta(self) -> Estimate:
        """When what is waited for will be caught up."""
        waits = self.outcome.waits
        return estimate(self.evidence, waits) if waits else NOT_KNOWN

    def rebalance_due_in(self) -> timedelta | None:
        """How long until a step, a hold or a rollout needs a rebalance; None if the clock brings none."""
        waiting = (self._held, self._rolling) if self.step_progress is None else (self._closing,)
        found, now = [one for one in waiting if one is not None and one.refusal.needs_rebalance], self.snapshot.now
        due = [due_at(one, self.snapshot, self.policy.timing) for one in found]
        return min((at - now for at in due if at is not None and at > now), default=None)

    def events(self) -> tuple[Event, ...]:
        """What happened with this decision."""
        news = list(self.outcome.events)
        statefulset = self.snapshot.workload.statefulset
        before = None if statefulset is None else statefulset.record
        if self.step_progress is not None and self.step_progress.waits_for is None:
            step = self.step_progress.step
            news.append(Event(Reason.StepClosed, f"{step.from_replicas} to {step.to_replicas}"))
        if statefulset is not None and statefulset.is_ours and statefulset.drift:
            news.append(Event(Reason.StatefulSetChanged, statefulset.drift))
        takes_pods = self.outcome.grant is not None and self.outcome.verdict is Verdict.STEP
        news.extend(self._standbys.events)
        is_opened = any(isinstance(step, OpenBudget) and step.evictable is not None for step in self._budget)
        if is_opened and not self.snapshot.app.dry_run:  # a dry run opens nothing, so no eviction is allowed
            news.append(Event(self.disruptions.reason, self.disruptions.detail))
        if isinstance(before, HoldRecord) and before.hold is not None and self.outcome.hold is None and not takes_pods:
            news.append(Event(Reason.HoldCancelled, f"hold {before.hold.id}"))
        raised = self.snapshot.raised
        if raised is not None and raised.cancelled_hold is not None:
            news.append(Event(Reason.HoldCancelled, f"hold {raised.cancelled_hold}"))
        return tuple(news)

    def _main(self, statefulset: StatefulSet) -> Plan:
        """The one change of this pass."""
        fence = Fence(statefulset.uid, statefulset.resource_version)
        outcome = self.outcome
        if outcome.grant is not None:
            grant = GrantReplicas(
                from_replicas=statefulset.replicas,
                to_replicas=outcome.grant.to_replicas,
                record=self.record,
                fence=fence,
                judged_at=self.snapshot.now,
                reason=outcome.reason,
            )
            return (grant,)
        written = self._record_write(statefulset)
        template = self._template_write(statefulset)
        if outcome.verdict is Verdict.GROW:
            return () if statefulset.is_half_made else written  # the raise was the change of this pass
        if statefulset.is_half_made:
            return template  # a record alone would give up all that the record's manager owns
        # They never start meanwhile, so no task waits for them; the written template has the age that counts.
        too_old = overdue_pods(self.snapshot) if template else expired_pods(self.snapshot)
        expired = [pod for pod in too_old if not self._is_in_group(pod)]
        # A step that is slow must not keep out the template that may be what mends the application.
        is_step_open = self.step_progress is not None and not self.step_progress.is_slow
        if written or is_step_open or (template and not expired):
            return written or template
        restart = Restart(expired[0], Reason.IdleStateExpired) if expired else self.rollout
        if not isinstance(restart, Restart):
            return ()
        pod, reason = restart.pod, restart.reason
        return (RestartPod(ordinal=pod.ordinal, pod_uid=pod.uid, judged_at=self.snapshot.now, reason=reason),)

    def _is_in_group(self, pod: Pod) -> bool:
        """Whether members run in a pod that has not started, as its kubelet says: one that is cut off says it for long.

        Silent brokers keep no pod whose state is too old: their silence says nothing against its kubelet.
        """
        return self.evidence.latest is not None and self.evidence.latest.placement.is_present(pod.ordinal)

    @property
    def around(self) -> Around:
        """What evictions must not disturb."""
        return Around(outcome=self.outcome, step_progress=self.step_progress, rollout=self.rollout)

    @cached_property
    def _budget(self) -> Plan:
        return budget_step(self.evidence, self.disruptions, self.around)

    def _budget_to_close(self) -> Plan:
        return tuple(step for step in self._budget if isinstance(step, CloseBudget))

    def _budget_to_open(self) -> Plan:
        return tuple(step for step in self._budget if isinstance(step, OpenBudget))

    def _template_write(self, statefulset: StatefulSet) -> Plan:
        """What another writer changed, at once; a new template not while a step is open, unless it is slow."""
        fence = Fence(statefulset.uid, statefulset.resource_version)
        if statefulset.drift:
            return (WriteTemplate(fence=fence, reason=Reason.StatefulSetChanged),)
        is_time = self.step_progress is None or self.step_progress.is_slow
        if is_time and not statefulset.template_is_written:
            return (WriteTemplate(fence=fence, reason=Reason.RolloutInProgress),)
        return ()

    def _claims_to_keep(self, statefulset: StatefulSet, main: Plan) -> Plan:
        """What keeps the claims while no template is written: in a pause, say, in which the StreamApp can be deleted.

        By itself, and last: nothing waits for it, and the StatefulSet is written once in a pass.
        """
        is_written = any(isinstance(step, GrantReplicas | WriteHoldRecord | WriteTemplate) for step in main)
        if is_written or not statefulset.deletes_kept_claims or statefulset.is_half_made or self.snapshot.app.dry_run:
            return ()
        fence = Fence(statefulset.uid, statefulset.resource_version)
        return (KeepClaims(fence=fence, reason=Reason.TemplateUnwritten),)

    def _told(self, main: Plan) -> Plan:
        """What agents are told; not in the pass that takes a pod, since it could fail and keep that from being done."""
        return () if _takes_a_pod(main) else self._announcement()

    def _heartbeats(self, main: Plan, others: Plan) -> Plan:
        """The cap of heartbeats, before the step that moves tasks: survivors then learn of their tasks at once."""
        progress = self.step_progress
        is_open = (
            _takes_a_pod(main)
            or any(isinstance(step, Evict) for step in others)
            or self.outcome.verdict is Verdict.GROW
            or (progress is not None and progress.waits_for is not None and not progress.is_slow)
            or has_pods_on_their_way(self.evidence, is_settled=self.convergence.is_settled)
        )
        is_settled = self.convergence.is_settled and progress is None
        asked = cap_heartbeats(self.evidence, self.outcome.reason, is_open=is_open, is_settled=is_settled)
        return () if asked is None else (asked,)

    @property
    def leaving(self) -> Leaving:
        """The pods that this decision has drained."""
        return Leaving(from_ordinal=self.outcome.drained, restart=self.drains)

    def _announcement(self) -> Plan:
        told = announcement(self.evidence, self.leaving)
        return () if told is None else (told,)

    def _record_write(self, statefulset: StatefulSet) -> Plan:
        wanted = self.record
        if wanted == statefulset.record or isinstance(wanted, RecordUnreadable):
            return ()
        fence = Fence(statefulset.uid, statefulset.resource_version)
        return (WriteHoldRecord(record=wanted, fence=fence, reason=self.outcome.reason),)

    def _wanted_record(self, before: HoldRecord | None) -> HoldRecord | None:
        step = None
        if self.step_progress is not None and self.step_progress.waits_for is not None:
            step = self.step_progress.step
        if self.outcome.grant is not None and self.outcome.grant.step is not None:
            step = self.outcome.grant.step
        raised, hold = self._standbys.record, self.outcome.hold
        if hold is None and step is None and raised is None:
            return None
        if hold is not None:
            # Another process that finds another generation knows that it did not see all of this hold.
            hold = replace(hold, generation=self.snapshot.app.generation)
        epoch = (NO_EPOCH if before is None else before.epoch).next(self.snapshot.lease, self.snapshot.now)
        return HoldRecord(epoch=epoch, hold=hold, step=step, standbys=raised)

    @cached_property
    def _standbys(self) -> StandbysNow:
        """What becomes of the group's standbys; nothing changes in a dry run and while the operator is stalled."""
        is_idle = self.snapshot.app.dry_run or self.outcome.verdict is Verdict.STALLED
        wanted = standbys.Wanted(
            for_hold=self.outcome if self._is_held else None,
            for_rollout=None if self.outcome.verdict is Verdict.PAUSED else self.restart_or_eviction,
            takes_a_pod=self.around.takes_pods
            or isinstance(self.rollout, Restart)
            or self.disruptions.reason is Reason.EvictionCovered,
        )
        return standbys.unchanged(self.evidence) if is_idle else standbys.standbys_now(self.evidence, wanted)

    @property
    def restart_or_eviction(self) -> Restart | Refusal | Pod | None:
        """The next restart or eviction, or what it waits for: an eviction rests on the copies until it has come."""
        eviction = self.disruptions.waits_for or self.disruptions.evictable
        gives_way = self.rollout is not None and self.rollout.reason.row.gives_way_to_evictions
        return (eviction or self.rollout) if gives_way else (self.rollout or eviction)

    @property
    def _is_held(self) -> bool:
        """A hold goes on, or a step of it is open: what was raised for it stays raised."""
        is_under_way = self.step_progress is not None or self.outcome.verdict is Verdict.STEP
        is_off = self.outcome.verdict in {Verdict.PAUSED, Verdict.GROW}
        return not is_off and (self.outcome.drained is not None or is_under_way)

    def _must_be_written(self, before: HoldRecord, wanted: HoldRecord) -> bool:
        """Each write wakes our own watch: unchanged content is not written, the clock alone not often."""
        if wanted.without_clock != before.without_clock:
            return True
        if before.hold is None or replace(wanted, epoch=before.epoch) == before:
            return False
        return self.snapshot.now - before.hold.progress.improved_at >= self.policy.timing.record_gap

    def _evictions(self, statefulset: StatefulSet, *, everywhere: bool) -> Plan:
        of_step = () if self.step_progress is None else self.step_progress.step.observed
        in_memory = self.snapshot.observed if everywhere else ()
        return beside.evictions((*of_step, *in_memory), self.evidence, statefulset)

    def _rebalance(self, main: Plan) -> Plan:
        is_growing = self.outcome.verdict is Verdict.GROW
        if is_growing or any(not isinstance(step, WriteHoldRecord) for step in main):
            return ()
        if self.step_progress is not None:
            return self._closing_rebalance()
        asked = self._hold_rebalance() or self._rollout_rebalance() or self._settling_rebalance()
        return () if asked is None else (asked,)

    def _closing_rebalance(self) -> Plan:
        waiting = self._closing
        trigger = None if waiting is None else rebalance_for(waiting, self.evidence)
        return () if trigger is None else (trigger,)

    def _hold_rebalance(self) -> TriggerRebalance | None:
        waiting = self._held
        return None if waiting is None else rebalance_for(waiting, self.evidence)

    @property
    def _closing(self) -> Waiting | None:
        """What the open step waits for."""
        progress = self.step_progress
        if progress is None or progress.waits_for is None:
            return None
        return Waiting(refusal=progress.waits_for, since=progress.step.granted_at)

    @property
    def _held(self) -> Waiting | None:
        """What the hold waits for."""
        refusal, hold = self.outcome.could_be_rebalanced, self.outcome.hold
        if refusal is None or hold is None:
            return None
        return Waiting(refusal=refusal, since=hold.since, estimate=self.eta())

    @property
    def _rolling(self) -> Waiting | None:
        """What the rollout, or the eviction of a pod from its node, waits for."""
        refusal = self.restart_or_eviction
        return Waiting(refusal=refusal, since=None) if isinstance(refusal, Refusal) else None

    def _rollout_rebalance(self) -> TriggerRebalance | None:
        waiting = self._rolling
        return None if waiting is None else rebalance_for(waiting, self.evidence)

    def _settling_rebalance(self) -> TriggerRebalance | None:
        missing = self.convergence.waits_for
        if missing is None or not missing.reason.row.triggers_outside_hold:
            return None
        when = self.convergence.eta if missing.reason is Reason.LearnersCatchingUp else NOT_KNOWN
        episode = self.convergence.episode
        progress_at = None if episode is None else episode.progress_at
        waiting = Waiting(refusal=missing, since=None, estimate=when, is_at_rest=True, progress_at=progress_at)
        return rebalance_for(waiting, self.evidence)


def _takes_a_pod(main: Plan) -> bool:
    return any(isinstance(step, RestartPod) or (isinstance(step, GrantReplicas) and step.is_removal) for step in main)
