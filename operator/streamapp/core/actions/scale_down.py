"""The hold: fewer replicas are wished for than are granted. Keep the pods, or let the next ones go.

Called by `planning` as the last branch of the decision. One ordinal at a time from the top, each judged afresh; the
hold record carries nothing from one judgement to the next but the clock of "no progress" and the user's word.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from streamapp.core.actions.decision import Event, Verdict
from streamapp.core.actions.outcomes import Grant, Outcome
from streamapp.core.evidence.learner_source import is_on_demand
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts import hold_annotation
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
from streamapp.core.facts.policy import OnTimeout, ScaleDownPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import Universe
from streamapp.core.facts.workload import StatefulSet
from streamapp.core.gates.candidates import Departure, Going, next_drained, next_removal
from streamapp.core.gates.case import case_now
from streamapp.core.gates.evaluate import Permission, Waiver, judge
from streamapp.core.gates.safety_gates import every_task_runs
from streamapp.core.reasons import Reason


def scale_down(snapshot: Snapshot, policy: ScalingPolicy, statefulset: StatefulSet) -> Outcome:
    """Decide about a wish that is lower than what is granted."""
    current = current_hold(statefulset)
    if snapshot.app.held_because is not None:
        return _hold(Reason.HeldByUser, snapshot.app.held_because, current)
    if snapshot.app.wish.replicas == 0 and not policy.allow_zero:
        return _hold(Reason.ZeroNotAllowed, "", None)
    target = snapshot.app.wish.highest_within(policy.stabilization, snapshot.now)
    if target is None or target >= statefulset.replicas:
        return _hold(Reason.Stabilizing, _how_long_it_must_last(snapshot, policy, statefulset), current)
    if isinstance(statefulset.record, RecordUnreadable):
        return _hold(Reason.HoldRecordUnreadable, statefulset.record.detail, None)
    hold = _continued(current, target, snapshot, statefulset)
    is_new = current is None or current.id != hold.id
    return _Held(snapshot, policy, statefulset, hold, is_new=is_new).outcome()


def current_hold(statefulset: StatefulSet) -> Hold | None:
    """The hold on record, unless it is left over from a scale-down that something else has ended."""
    record = statefulset.record
    hold = record.hold if isinstance(record, HoldRecord) else None
    return hold if hold is not None and hold.granted == statefulset.replicas else None


def _how_long_it_must_last(snapshot: Snapshot, policy: ScalingPolicy, statefulset: StatefulSet) -> str:
    window = f"It must last for {policy.stabilization.total_seconds():g} s"
    since = snapshot.app.wish.lower_since(statefulset.replicas)
    # A point in time and not a countdown, which would be another status at every look.
    return f"{window}." if since is None else f"{window}, which is until {since + policy.stabilization:%H:%M:%S} UTC."


def _hold(reason: Reason, detail: str, hold: Hold | None) -> Outcome:
    return Outcome(verdict=Verdict.HOLD, reason=reason, detail=detail, hold=hold)


def _continued(current: Hold | None, target: int, snapshot: Snapshot, statefulset: StatefulSet) -> Hold:
    """The hold that goes on, or a new one: with a new ID, and nothing done."""
    generation = snapshot.app.generation
    id_ = new_hold_id(snapshot.app.uid, statefulset.resource_version, snapshot.now)
    if current is not None and current.gave_up_at in (None, generation):
        release = snapshot.app.release
        is_released = release is not None and release.hold_id == current.id
        # Whoever released it spoke of the pods that it was about then, and not of those that are to follow now.
        goes_further = is_released and target < current.target
        return replace(
            current,
            target=target,
            id=id_ if goes_further else current.id,
            fell_far=_falls_far(current.target, target) or (current.fell_far and target <= current.target),
        )
    return Hold(
        id=id_,
        from_replicas=statefulset.replicas,
        target=target,
        granted=statefulset.replicas,
        since=snapshot.now,
        reason=Reason.HoldBegan,
        progress=Progress(improved_at=snapshot.now),
        fell_far=_falls_far(statefulset.replicas, target),
    )


def _falls_far(before: int, target: int) -> bool:
    """By more than half: as when somebody applies a manifest that knows nothing of an autoscaler."""
    return 2 * target < before


@dataclass(frozen=True, slots=True)
class _Held:
    """One pass over a hold."""

    snapshot: Snapshot
    policy: ScalingPolicy
    statefulset: StatefulSet
    hold: Hold
    is_new: bool
    """Not on record yet."""

    def outcome(self) -> Outcome:
        if self.hold.gave_up_at is not None and not self._is_released:
            return _hold(Reason.GaveUp, "", self.hold)
        next_ones = next_drained if is_on_demand(self.snapshot, self.policy) else next_removal
        departure = next_ones(self.snapshot, self.statefulset.replicas, self.hold.target)
        waiver = self._waiver(departure)
        verdict = self._last_of_all(departure) or judge(self.snapshot, self.policy, departure, waiver)
        if isinstance(verdict, Refusal):
            return self._wait(verdict)
        if self.is_new and not self.snapshot.app.dry_run:
            # The hold is on record before the first pod goes, so that whoever takes over or calls it off has something
            # to write, and a removal that was prepared before and is sent late finds another version of the object.
            return self._wait(Refusal(Reason.HoldBegan))
        return self._step(verdict)

    def _waiver(self, departure: Departure) -> Waiver | None:
        """Who says that coverage need not be, if anybody does."""
        if departure.lowest == 0:
            return Waiver(Reason.StoppingToZero)
        release = self.snapshot.app.release
        if release is not None and self._is_released:
            return Waiver(Reason.ForcedByRelease, Forced(ForcedBy.RELEASE, release.why))
        if self.policy.scale_down is ScaleDownPolicy.IMMEDIATE:
            return Waiver(Reason.ForcedByPolicy, Forced(ForcedBy.POLICY, self.policy.force_reason))
        if self.policy.on_timeout is OnTimeout.PROCEED and self._is_timed_out(self.hold.progress):
            return Waiver(Reason.ForcedByTimeout, Forced(ForcedBy.TIMEOUT, self.policy.force_reason))
        return None

    def _last_of_all(self, departure: Departure) -> Refusal | None:
        """Before the last pod goes, where a source topic serves as changelog: every task runs.

        What is restored from a source topic ends at the committed offset; a task that is stopped while it restores
        would come back with less than it had.
        """
        universe, latest = self.snapshot.universe, self.snapshot.latest
        if departure.lowest > 0 or departure.going is Going.NEVER_RAN or latest is None:
            return None
        if isinstance(universe, Universe) and not any(task.source_changelogs for task in universe.tasks):
            return None
        return every_task_runs(case_now(self.snapshot, self.policy, departure, latest))

    def _step(self, permission: Permission) -> Outcome:
        """Let them go; what must be remembered of them is written with the same PATCH."""
        for departure in _shorter_and_shorter(permission.departure):
            outcome = self._step_of(replace(permission, departure=departure))
            step = None if outcome.grant is None else outcome.grant.step
            if hold_annotation.fits(HoldRecord(epoch=NO_EPOCH, hold=outcome.hold, step=step)):
                return outcome
        return self._wait(Refusal(Reason.HoldRecordTooLarge))

    def _step_of(self, permission: Permission) -> Outcome:
        to_replicas = permission.departure.lowest
        hold = replace(
            self.hold,
            granted=to_replicas,
            reason=permission.reason,
            forced=permission.forced,
            progress=Progress(improved_at=self.snapshot.now),
        )
        step = OpenStep(
            hold_id=hold.id,
            from_replicas=self.statefulset.replicas,
            to_replicas=to_replicas,
            granted_at=self.snapshot.now,
            reason=permission.reason,
            forced=permission.forced,
            captures=tuple(seen for seen in permission.captures if seen.ordinal in permission.departure.ordinals),
        )
        # Pods whose container never ran leave nobody behind whose going would have to be watched.
        watched = None if permission.departure.going is Going.NEVER_RAN else step
        detail = f"{self.statefulset.replicas} to {to_replicas}"
        return Outcome(
            verdict=Verdict.STEP,
            reason=permission.reason,
            detail=detail,
            hold=hold if to_replicas > hold.target else None,
            grant=Grant(to_replicas=to_replicas, step=watched),
            events=(*self._beginning(), Event(permission.reason, detail)),
        )

    def _wait(self, refusal: Refusal) -> Outcome:
        in_the_way = _in_the_way(refusal)
        progress = self.hold.progress.after(in_the_way, self.snapshot.now, self.policy.timing.pass_gap)
        told = self._told(refusal, progress)
        hold = replace(self.hold, reason=told.reason, progress=progress)
        if told.reason is Reason.GaveUp:
            hold = replace(hold, gave_up_at=self.snapshot.app.generation)
        return Outcome(
            verdict=Verdict.HOLD,
            reason=told.reason,
            detail=told.detail,
            waits=refusal.waits,
            hold=hold,
            staying=hold.target,
            drained=None if told.reason is Reason.GaveUp else hold.target,
            could_be_nudged=None if told.reason is Reason.GaveUp else refusal,
            events=self._news(told),
        )

    def _told(self, refusal: Refusal, progress: Progress) -> Refusal:
        """The refusal as the user is told it: a hold that stands still is told apart from a slow one."""
        if not self._is_timed_out(progress) or progress.counted_at is None:
            return refusal
        detail = f"For {progress.waited}: {refusal.reason.name}. {refusal.detail}".strip()
        reason = Reason.GaveUp if self.policy.on_timeout is OnTimeout.GIVE_UP else Reason.NoProgress
        return Refusal(reason, detail, refusal.waits)

    @property
    def _is_released(self) -> bool:
        return self.snapshot.app.release is not None and self.snapshot.app.release.hold_id == self.hold.id

    def _is_timed_out(self, progress: Progress) -> bool:
        return progress.waited >= self.policy.timeout

    def _news(self, told: Refusal) -> tuple[Event, ...]:
        """What is new with this pass: the hold itself, or a clock that ran out."""
        if told.reason in {Reason.NoProgress, Reason.GaveUp} and told.reason is not self.hold.reason:
            return (*self._beginning(), Event(told.reason, told.detail))
        return self._beginning()

    def _beginning(self) -> tuple[Event, ...]:
        wish = f"{self.hold.from_replicas} to {self.hold.target}"
        before = current_hold(self.statefulset)
        falls_now = self.hold.fell_far and (self.is_new or before is None or not before.fell_far)
        began = (Event(Reason.HoldBegan, wish),) if self.is_new else ()
        return (*began, *((Event(Reason.LargeDrop, wish),) if falls_now else ()))


def _in_the_way(refusal: Refusal) -> int | None:
    """Records between now and coverage; None where something else stands in the way, or not all of it is known."""
    if refusal.reason in {Reason.ReadingsPending, Reason.GroupChanged}:
        return 0
    if refusal.reason in {Reason.TasksReadyToMove, Reason.Draining} and not refusal.waits:
        return 0
    counts = [wait.in_the_way for wait in refusal.waits]
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None


def _shorter_and_shorter(departure: Departure) -> Iterator[Departure]:
    """The run itself, then half of it from the top, down to one: what the record can hold decides."""
    length = len(departure.ordinals)
    while length >= 1:
        yield replace(departure, ordinals=departure.ordinals[:length])
        length //= 2
