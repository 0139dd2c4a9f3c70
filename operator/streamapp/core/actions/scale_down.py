"""The hold: desired replicas are lower than current replicas. Keep the pods, or remove the next ones.

Called by `decide` as the last branch of the decision. One ordinal at a time from the top, each judged afresh; the
hold record carries nothing from one judgement to the next but the wait for the next pod and the user's word.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from streamapp.core.actions.decision import BranchResult, Event, Grant, Verdict
from streamapp.core.actions.rollout import STOPPED_BY_PODS, Restart, next_restart, ordinals_in_its_way
from streamapp.core.actions.standbys import or_waits_for_place
from streamapp.core.evidence.capacity.floors import least_replicas
from streamapp.core.evidence.evidence import Evidence, OfEvidence
from streamapp.core.evidence.learner_source import announced_pods, is_on_demand, streams_group
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts import hold_annotation
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.hold_record import (
    NO_EPOCH,
    Forced,
    ForcedBy,
    Hold,
    HoldRecord,
    OpenStep,
    Progress,
    RecordUnreadable,
    new_hold_id,
)
from streamapp.core.facts.policy import OnTimeout, ScaleDownPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.facts.workload import StatefulSet
from streamapp.core.gates.candidates import (
    RemovalCandidate,
    RemovalKind,
    every_pod,
    lowest_drained,
    lowest_of_step,
    next_drained,
    next_removal,
)
from streamapp.core.gates.case import input_now
from streamapp.core.gates.evaluate import Approval, CoverageOverride, evaluate
from streamapp.core.gates.safety_gates import every_task_runs
from streamapp.core.reasons import Reason


def scale_down(evidence: Evidence, statefulset: StatefulSet) -> BranchResult:
    """Decide about desired replicas that are lower than the current ones."""
    snapshot, policy = evidence.snapshot, evidence.policy
    current = current_hold(statefulset)
    if snapshot.app.held_because is not None:
        kept = None if current is None else current.before_next_wait(snapshot.now)
        return _hold(Reason.HeldByUser, snapshot.app.held_because, kept)
    if snapshot.app.desired.replicas == 0 and not policy.allow_zero:
        return _hold(Reason.ZeroNotAllowed, "", None)
    target = snapshot.app.desired.highest_within(policy.stabilization_window, snapshot.now)
    if target is None or target >= statefulset.replicas:
        waiting = _hold(Reason.Stabilizing, _how_long_it_must_last(evidence, statefulset), current)
        return replace(waiting, drained=_drained_already(evidence, statefulset, current))
    if isinstance(statefulset.record, RecordUnreadable):
        return _hold(Reason.HoldRecordUnreadable, statefulset.record.detail, None)
    if statefulset.is_half_made:  # no record can be written yet, so each pass would begin a hold of its own
        return _hold(Reason.TemplateUnwritten, "", None)
    hold = _continued(current, target, snapshot, statefulset)
    is_new = current is None or current.id != hold.id
    return _Held(evidence, statefulset, hold, is_new=is_new).outcome()


def _drained_already(evidence: Evidence, statefulset: StatefulSet, current: Hold | None) -> int | None:
    """The lowest pod that is drained already: an operator that took over does not call the learners off."""
    record = statefulset.record
    is_left = current is None or current.gave_up_at is not None or evidence.snapshot.app.is_migrating
    if current is None or is_left or not isinstance(record, HoldRecord):
        return None
    target = max(current.target, evidence.snapshot.app.desired.replicas)
    if record.standbys is not None:
        return target
    known = announced_pods(evidence)
    lowest = statefulset.replicas
    while lowest > target and lowest - 1 in known:
        lowest -= 1
    return lowest if lowest < statefulset.replicas else None


def current_hold(statefulset: StatefulSet) -> Hold | None:
    """The hold on record, unless it is left over from a scale-down that something else has ended."""
    record = statefulset.record
    hold = record.hold if isinstance(record, HoldRecord) else None
    return hold if hold is not None and hold.granted == statefulset.replicas else None


def _how_long_it_must_last(evidence: Evidence, statefulset: StatefulSet) -> str:
    snapshot, policy = evidence.snapshot, evidence.policy
    window = f"It must last for {policy.stabilization_window.total_seconds():g} s"
    since = snapshot.app.desired.lower_since(statefulset.replicas)
    # A point in time and not a countdown, which would be another status at every look.
    return (
        f"{window}."
        if since is None
        else f"{window}, which is until {since + policy.stabilization_window:%H:%M:%S} UTC."
    )


def _hold(reason: Reason, detail: str, hold: Hold | None) -> BranchResult:
    return BranchResult(verdict=Verdict.HOLD, reason=reason, detail=detail, hold=hold)


def _continued(current: Hold | None, target: int, snapshot: Snapshot, statefulset: StatefulSet) -> Hold:
    """The hold that goes on, or a new one: with a new ID, and nothing done."""
    generation = snapshot.app.generation
    id_ = new_hold_id(snapshot.app.uid, statefulset.resource_version, snapshot.now)
    if current is not None and current.gave_up_at in (None, generation):
        override = snapshot.app.override
        is_overridden = override is not None and override.hold_id == current.id
        # The user overrode coverage for the pods of the earlier target, and not for those below it.
        goes_further = target < current.target
        # Fewer pods that stay are further from coverage: what stood in the way before is no measure for that.
        progress = replace(current.progress, best=None) if goes_further else current.progress
        return replace(
            current,
            target=target,
            id=id_ if goes_further and is_overridden else current.id,
            progress=progress,
            dropped_by_half=_falls_far(current.target, target)
            or (current.dropped_by_half and target <= current.target),
        )
    return Hold(
        id=id_,
        from_replicas=statefulset.replicas,
        target=target,
        granted=statefulset.replicas,
        since=snapshot.now,
        reason=Reason.HoldBegan,
        progress=Progress(improved_at=snapshot.now),
        dropped_by_half=_falls_far(statefulset.replicas, target),
    )


def _falls_far(before: int, target: int) -> bool:
    """By more than half: as when somebody applies a manifest that knows nothing of an autoscaler."""
    return 2 * target < before


@dataclass(frozen=True, slots=True)
class _Held(OfEvidence):
    """One pass over a hold."""

    evidence: Evidence
    statefulset: StatefulSet
    hold: Hold
    is_new: bool
    """Not on record yet."""

    def outcome(self) -> BranchResult:
        if self.hold.gave_up_at is not None and not self._is_overridden:
            return _hold(Reason.GaveUp, "", self.hold)
        verdict = self._judged(self._next())
        if isinstance(verdict, Refusal) and verdict.reason is Reason.RolloutInProgress:
            verdict = self._beside_a_rollout(verdict)
        if isinstance(verdict, Refusal):
            return self._wait(or_waits_for_place(self.evidence, verdict, self.hold))
        if self.is_new and not self.snapshot.app.dry_run:
            # The hold is on record before the first pod goes, so that whoever takes over or calls it off has something
            # to write, and a removal that was prepared before and is sent late finds another version of the object.
            return self._wait(Refusal(Reason.HoldBegan))
        return self._step(verdict)

    def _judged(self, candidate: RemovalCandidate) -> Approval | Refusal:
        override = self._override(candidate)
        return self._last_of_all(candidate) or evaluate(self.evidence, candidate, override)

    def _beside_a_rollout(self, refusal: Refusal) -> Approval | Refusal:
        """What a rollout refuses, judged before it where it waits for pods that leave; else whom it waits for."""
        found = next_restart(self.evidence, self.statefulset, self.hold.target)
        if isinstance(found, Restart) and found.reason is Reason.RestartOfIdlePod:
            return self._rather_than(found, refusal)
        if not isinstance(found, Refusal):
            return refusal
        if self._waits_for_leavers(found):
            return self._judged(replace(self._next(), is_before_rollout=True))
        is_stopped = found.reason in STOPPED_BY_PODS
        return replace(refusal, detail=f"{refusal.detail}; it waits for {found.detail}") if is_stopped else refusal

    def _rather_than(self, restart: Restart, refusal: Refusal) -> Approval | Refusal:
        """A pod that leaves and is down goes, if it may, rather than restart with a template for nothing."""
        next_ones = self._next()
        if restart.pod.ordinal not in next_ones.ordinals or not self._are_down(next_ones):
            return refusal
        verdict = self._judged(replace(next_ones, is_before_rollout=True))
        return refusal if isinstance(verdict, Refusal) else verdict

    def _waits_for_leavers(self, found: Refusal) -> bool:
        """Tell whether the rollout waits for pods that leave: it and the scale-down would wait for each other.

        A pod above the target that is missing, ill or going keeps each other one from restarting, perhaps for ever. It
        runs nothing, so that its removal rests on no word of a template. A pod above it that runs goes before it by a
        user's word alone. Or the brokers would move tasks of the next pod to restart cold. Nothing but another layout
        ends that, and the scale-down brings one; brokers alone assign such a group, so two templates do not make it
        unpredictable.
        """
        if found.reason in STOPPED_BY_PODS:
            next_ones, in_its_way = self._next(), ordinals_in_its_way(self.evidence, self.statefulset, self.hold.target)
            may_go = self._are_down(next_ones) or self._override(next_ones) is not None
            return may_go and all(ordinal >= self.hold.target for ordinal in in_its_way)
        return found.reason is Reason.WouldMoveCold and streams_group(self.evidence) is not None

    def _are_down(self, candidate: RemovalCandidate) -> bool:
        pods = map(self.snapshot.workload.pod, candidate.ordinals)
        return all(pod is None or pod.terminating or not pod.is_running for pod in pods)

    def _next(self) -> RemovalCandidate:
        """The pods that are judged in this pass."""
        if self._stops_all:
            return every_pod(self.statefulset.replicas)
        next_ones = next_drained if is_on_demand(self.evidence) else next_removal
        return next_ones(self.evidence, self.statefulset.replicas, self.hold.target)

    @property
    def _stops_all(self) -> bool:
        """Tell whether a migration stops every pod: nothing is copied or moved before, since none stays."""
        return self.snapshot.app.is_migrating and self.hold.target == 0

    def _override(self, candidate: RemovalCandidate) -> CoverageOverride | None:
        """Return what lets these pods go without coverage; None if nothing does."""
        if candidate.lowest == 0:
            return CoverageOverride(Reason.StoppingToZero)
        override = self.snapshot.app.override
        if override is not None and self._is_overridden:
            return CoverageOverride(Reason.OverriddenByUser, Forced(ForcedBy.OVERRIDE, override.why))
        if self.policy.scale_down is ScaleDownPolicy.IMMEDIATE:
            return CoverageOverride(Reason.OverriddenByPolicy, Forced(ForcedBy.POLICY, self.policy.force_reason))
        if self.policy.on_timeout is OnTimeout.PROCEED and self._is_timed_out(self.hold.progress):
            return CoverageOverride(Reason.OverriddenByTimeout, Forced(ForcedBy.TIMEOUT, self.policy.force_reason))
        return None

    def _last_of_all(self, candidate: RemovalCandidate) -> Refusal | None:
        """Before the last pod goes, where a source topic serves as changelog: every task that has a member runs.

        What is restored from a source topic ends at the committed offset; a task that is stopped while it restores
        would come back with less than it had.
        """
        task_set, latest = self.snapshot.task_set, self.snapshot.latest
        if candidate.lowest > 0 or candidate.kind is RemovalKind.NEVER_RAN or latest is None:
            return None
        if isinstance(task_set, TaskSet) and not any(task.source_changelogs for task in task_set.tasks):
            return None
        if (
            candidate.kind is RemovalKind.ALL
            and isinstance(latest.group, GroupDescription)
            and not latest.group.members
        ):
            return None  # nothing restores where no container of the new template ever joined
        return every_task_runs(input_now(self.evidence, candidate, latest))

    def _step(self, approval: Approval) -> BranchResult:
        """Let them go; what must be remembered of them is written with the same PATCH."""
        for shorter in _shorter_and_shorter(approval):
            outcome = self._step_of(shorter)
            step = None if outcome.grant is None else outcome.grant.step
            if hold_annotation.fits(HoldRecord(epoch=NO_EPOCH, hold=outcome.hold, step=step)):
                return outcome
        return self._wait(Refusal(Reason.HoldRecordTooLarge))

    def _step_of(self, approval: Approval) -> BranchResult:
        to_replicas = approval.candidate.lowest
        hold = replace(
            self.hold,
            granted=to_replicas,
            reason=approval.reason,
            forced=approval.forced,
            progress=Progress(improved_at=self.snapshot.now),
        )
        step = OpenStep(
            hold_id=hold.id,
            from_replicas=self.statefulset.replicas,
            to_replicas=to_replicas,
            granted_at=self.snapshot.now,
            reason=approval.reason,
            forced=approval.forced,
            observed=tuple(seen for seen in approval.observed if seen.ordinal in approval.candidate.ordinals),
        )
        # Pods whose container never ran leave nobody behind whose going would have to be watched.
        watched = None if approval.candidate.kind is RemovalKind.NEVER_RAN else step
        detail = f"{self.statefulset.replicas} to {to_replicas}"
        return BranchResult(
            verdict=Verdict.STEP,
            reason=approval.reason,
            detail=detail,
            hold=hold if to_replicas > hold.target else None,
            grant=Grant(to_replicas=to_replicas, step=watched),
            events=(*self._beginning(), Event(approval.reason, detail)),
        )

    def _wait(self, refusal: Refusal) -> BranchResult:
        records_to_go = _in_the_way(refusal)
        progress = self.hold.progress.after(records_to_go, self.snapshot.now)
        told = self._told(refusal, progress, is_seen=records_to_go is not None)
        hold = replace(self.hold, reason=told.reason, progress=progress)
        if told.reason is Reason.GaveUp:
            hold = replace(hold, gave_up_at=self.snapshot.app.generation)
        return BranchResult(
            verdict=Verdict.HOLD,
            reason=told.reason,
            detail=self._with_limits(told.detail),
            waits=refusal.waits,
            hold=hold,
            staying=hold.target,
            drained=self._drained(told),
            could_be_rebalanced=None if told.reason is Reason.GaveUp else refusal,
            events=self._news(told),
        )

    def _drained(self, told: Refusal) -> int | None:
        """The lowest pod that is drained; None where none is, so that nothing else waits for a drain."""
        is_none = told.reason is Reason.GaveUp or self._stops_all or self._lowest == self.statefulset.replicas
        return None if is_none else self._lowest

    def _told(self, refusal: Refusal, progress: Progress, *, is_seen: bool) -> Refusal:
        """The refusal as the user is told it: at the deadline it gives up, or is told apart from a slow one.

        A hold that only waits on is no user's concern while copies come nearer. Once it is told to stand still, a pass
        that cannot see all copies does not take that back.
        """
        what = f"{refusal.reason.name}. {refusal.detail}".strip()
        if self.policy.on_timeout is OnTimeout.GIVE_UP and self._is_timed_out(progress):
            return Refusal(Reason.GaveUp, f"After {self.policy.timeout}: {what}", refusal.waits)
        is_known = is_seen or (self.hold.reason is Reason.NoProgress and refusal.reason.row.is_overridable)
        if self.policy.on_timeout is not OnTimeout.WAIT or not is_known or not self._stands_still(progress):
            return refusal
        detail = f"Since {progress.improved_at:%Y-%m-%d %H:%M:%S} UTC: {what}"
        return Refusal(Reason.NoProgress, detail, refusal.waits)

    @property
    def _lowest(self) -> int:
        """The lowest ordinal that leaves now, by the application's own limits."""
        return lowest_drained(self.evidence, self.statefulset.replicas, self.hold.target)

    def _with_limits(self, detail: str) -> str:
        """The detail, and how many pods leave now if a limit of the application keeps others for later."""
        granted, target = self.statefulset.replicas, self.hold.target
        if self._stops_all or granted <= least_replicas(self.evidence, target):
            return detail
        lowest = self._lowest if is_on_demand(self.evidence) else lowest_of_step(self.evidence, granted, target)
        if lowest == target:
            return detail
        limits = f"By the limits of the StreamApp, {granted - lowest} of {granted - target} pods leave first."
        return f"{detail.removesuffix('.')}. {limits}" if detail else limits

    @property
    def _is_overridden(self) -> bool:
        return self.snapshot.app.override is not None and self.snapshot.app.override.hold_id == self.hold.id

    def _is_timed_out(self, progress: Progress) -> bool:
        """Tell whether the user's deadline for the next pod has passed."""
        return progress.waited_by(self.snapshot.now) >= self.policy.timeout

    def _stands_still(self, progress: Progress) -> bool:
        """Tell whether the deadline has passed, and for as long no copy came nearer."""
        is_still = self.snapshot.now - progress.improved_at >= self.policy.timeout
        return is_still and self._is_timed_out(progress)

    def _news(self, told: Refusal) -> tuple[Event, ...]:
        """What is new with this pass: the hold itself, or a clock that ran out."""
        if told.reason in {Reason.NoProgress, Reason.GaveUp} and told.reason is not self.hold.reason:
            return (*self._beginning(), Event(told.reason, told.detail))
        return self._beginning()

    def _beginning(self) -> tuple[Event, ...]:
        desired = f"{self.hold.from_replicas} to {self.hold.target}"
        before = current_hold(self.statefulset)
        falls_now = self.hold.dropped_by_half and (self.is_new or before is None or not before.dropped_by_half)
        began = (Event(Reason.HoldBegan, desired),) if self.is_new else ()
        return (*began, *((Event(Reason.LargeDrop, desired),) if falls_now else ()))


def _in_the_way(refusal: Refusal) -> int | None:
    """Records between now and coverage; None where something else stands in the way, or not all of it is known."""
    if refusal.reason in {Reason.ReadingsPending, Reason.GroupChanged}:
        return 0
    if refusal.reason in {Reason.TasksReadyToMove, Reason.Draining} and not refusal.waits:
        return 0
    counts = [wait.records_to_go for wait in refusal.waits]
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None


def _shorter_and_shorter(approval: Approval) -> Iterator[Approval]:
    """The run itself, then half of it from the top, down to one: what the record can hold decides.

    Where all pods stop, they always stop together, since nothing covers those of a half: then less is remembered, and
    the other members leave by themselves or by their session timeout.
    """
    candidate = approval.candidate
    length = len(candidate.ordinals)
    while length >= 1:
        ordinals = candidate.ordinals[:length]
        if candidate.kind is RemovalKind.ALL:
            yield replace(approval, observed=tuple(one for one in approval.observed if one.ordinal in ordinals))
        else:
            yield replace(approval, candidate=replace(candidate, ordinals=ordinals))
        length //= 2
    if candidate.kind is RemovalKind.ALL:
        yield replace(approval, observed=())
