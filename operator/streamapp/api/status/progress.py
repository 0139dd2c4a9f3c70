"""The parts of the status that move while something goes on: convergence, the scale-down, the last steps.

Called by `translate`. Times are whole seconds and estimates are rounded, so that a status does not change for nothing.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from streamapp.api.insight import AppInsight, EtaScore, LearnedEta
from streamapp.api.v1alpha1.status import (
    MOST_LINE,
    MOST_STEPS,
    ConvergenceState,
    ConvergenceStatus,
    DesiredStatus,
    EstimateSource,
    ForcedBy,
    ForcedStatus,
    LastStep,
    ScaleDownStatus,
    SlowTask,
    StreamAppStatus,
)
from streamapp.core.actions.decision import Decision, Verdict
from streamapp.core.evidence.coverage import TaskWait
from streamapp.core.evidence.eta import LONGEST, NOT_KNOWN, Estimate, EtaAt, NeverAtThisSpeed, NotKnown
from streamapp.core.facts.hold_record import NO_EPOCH, Forced, HoldRecord
from streamapp.core.facts.lag import Measured
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.gates.convergence import Convergence
from streamapp.core.reasons import Reason
from streamapp.core.status.gaps import Gap, GapUnknown

_GRAINS = (
    (timedelta(minutes=2), timedelta(seconds=5)),
    (timedelta(minutes=20), timedelta(seconds=30)),
    (timedelta(hours=4), timedelta(minutes=5)),
)
"""The longest time left, and the multiple to which its instant is rounded up."""
_COARSEST = timedelta(hours=1)
_LEARNED = EstimateSource.LEARNED
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def convergence_status(convergence: Convergence, now: datetime) -> ConvergenceStatus:
    """How far it is from the state in which nothing moves any more."""
    counts, progress = convergence.counts, convergence.progress
    return ConvergenceStatus(
        state=_state(convergence),
        progress=None if progress is None else math.floor(progress * 100),
        tasks=None if counts is None else counts.tasks,
        running=None if counts is None else counts.running,
        learners=None if counts is None else counts.learners,
        caught_up=None if counts is None else counts.caught_up,
        remaining_lag=convergence.remaining_lag,
        estimated_completion_time=completion_time(convergence.eta, now),
        lag_falling=lag_falling(convergence.eta),
        slowest=tuple(map(_slow, convergence.slowest)),
    )


def scale_down_status(
    decision: Decision, snapshot: Snapshot, previous: ScaleDownStatus | None, insight: AppInsight | None = None
) -> ScaleDownStatus | None:
    """The scale-down that goes on, until its last step is finished; None where none does."""
    record = decision.record if isinstance(decision.record, HoldRecord) else HoldRecord(epoch=NO_EPOCH)
    hold, step = record.hold, record.step
    if hold is None and step is None and decision.verdict not in {Verdict.HOLD, Verdict.STEP}:
        return None
    hold_id = hold.id if hold else step.hold_id if step else None
    granted = 0 if snapshot.workload.statefulset is None else snapshot.workload.statefulset.replicas
    since = began(decision, previous, hold_id)
    if hold_id is None and (since is None or not _goes_on(previous, snapshot)):
        since = snapshot.app.desired.lower_since(granted)  # nothing is on record while a user holds it
    target = _target(decision, record, snapshot)
    shown = _shown(decision, snapshot.now, insight)
    return ScaleDownStatus(
        hold_id=hold_id,
        target=target,
        desired=_desired(snapshot, granted),
        since=None if since is None else _whole(since),
        last_progress=None if hold is None else _whole(hold.progress.improved_at),
        next_ordinal=granted - 1 if granted > target else None,
        waiting_for=len(decision.waiting_for),
        estimated_completion_time=shown.time,
        earliest_completion_time=shown.earliest,
        latest_completion_time=shown.latest,
        estimate_source=shown.source,
        lag_falling=lag_falling(decision.eta),
        reason=decision.reason.name,
        forced=_forced(hold.forced if hold else step.forced if step else None),
    )


def _goes_on(previous: ScaleDownStatus | None, snapshot: Snapshot) -> bool:
    """Whether the status that stands is of this wait: two changes of the spec can be a raise and its end."""
    noted = None if previous is None else previous.desired
    return noted is not None and snapshot.app.generation <= noted.generation + 1


def _desired(snapshot: Snapshot, granted: int) -> DesiredStatus | None:
    """The number that must last. It changes with the spec alone, and then the status is written anyway."""
    since = snapshot.app.desired.same_since
    if since is None or snapshot.app.desired.replicas >= granted:
        return None
    # Rounded up: the next leader rather waits for a moment longer.
    at = _whole(since + timedelta(microseconds=999_999))
    return DesiredStatus(replicas=snapshot.app.desired.replicas, since=at, generation=snapshot.app.generation)


@dataclass(frozen=True, slots=True)
class _ShownEstimate:
    """An estimate as the status has it; all None if there is none."""

    time: datetime | None
    earliest: datetime | None
    latest: datetime | None
    source: EstimateSource | None


def _shown(decision: Decision, now: datetime, insight: AppInsight | None) -> _ShownEstimate:
    """The live estimate; only where two measurements are missing the learned one, and that only with its range."""
    score = None if insight is None else insight.eta
    learned = None if insight is None else insight.learned_eta
    estimate: Estimate = decision.eta
    source = EstimateSource.LIVE
    if isinstance(estimate, NotKnown) and learned is not None:
        estimate, score, source = learned_estimate(decision.waiting_for, now, learned), learned.score, _LEARNED
    time, (earliest, latest) = completion_time(estimate, now), completion_range(estimate, now, score)
    if time is None or (source is _LEARNED and latest is None):
        return _ShownEstimate(None, None, None, None)
    return _ShownEstimate(time, earliest, latest, source)


def learned_estimate(waits: Iterable[TaskWait], now: datetime, learned: LearnedEta) -> Estimate:
    """When the slowest of these copies will be caught up, at the rates of earlier days."""
    seconds = learned.seconds((str(wait.task.subtopology), _lag(wait)) for wait in waits)
    if seconds is None or seconds > LONGEST.total_seconds():
        return NOT_KNOWN
    return EtaAt(now + timedelta(seconds=seconds))


def _lag(wait: TaskWait) -> int | None:
    """As the flight record has it: estimates are scored by that."""
    return wait.best.lag.records if wait.best is not None and isinstance(wait.best.lag, Measured) else None


def _target(decision: Decision, record: HoldRecord, snapshot: Snapshot) -> int:
    """The target on record; while a user holds the scale-down, the record waits and desired replicas go on."""
    if record.hold is not None and decision.reason is not Reason.HeldByUser:
        return record.hold.target
    if record.hold is None and record.step is not None:
        return record.step.to_replicas
    return snapshot.app.desired.replicas


def steps_with(decision: Decision, gap: Gap | GapUnknown | None, previous: StreamAppStatus) -> tuple[LastStep, ...]:
    """The last steps, with one that has just been finished in front; once, however often it is found finished."""
    closed = decision.closed_step
    if closed is None:
        return previous.last_steps
    since = began(decision, previous.scale_down, closed.hold_id)
    seen = gap if isinstance(gap, Gap) else None
    step = LastStep(
        from_=closed.from_replicas,
        to=closed.to_replicas,
        at=_whole(closed.granted_at),
        held_duration=None if since is None else _span(closed.granted_at - since),
        duration=_span(closed.took),
        downtime_max=None if seen is None else seen.at_most,
        downtime_uncertainty=None if seen is None else seen.error,
        forced=_forced(closed.forced),
    )
    if any((one.at, one.from_, one.to) == (step.at, step.from_, step.to) for one in previous.last_steps):
        return previous.last_steps
    return (step, *previous.last_steps)[:MOST_STEPS]


def began(decision: Decision, previous: ScaleDownStatus | None, hold_id: str | None) -> datetime | None:
    """When a hold began: as it stands on record, or, once its last step was granted, as it was told before."""
    hold = decision.record.hold if isinstance(decision.record, HoldRecord) else None
    if hold is not None and hold.id == hold_id:
        return hold.since
    return previous.since if previous is not None and previous.hold_id == hold_id else None


def completion_time(estimate: Estimate, now: datetime) -> datetime | None:
    """Give the estimated instant, rounded up to a multiple that grows with the time left; None if there is none.

    The multiples count from a fixed instant: an estimate that holds gives the same text at each reconcile.
    """
    if not isinstance(estimate, EtaAt):
        return None
    left = estimate.time - now
    grain = next((grain for longest, grain in _GRAINS if left <= longest), _COARSEST)
    return _EPOCH - (_EPOCH - estimate.time) // grain * grain


def completion_range(
    estimate: Estimate, now: datetime, score: EtaScore | None
) -> tuple[datetime, datetime] | tuple[None, None]:
    """Give the earliest and the latest instant, both rounded up; none unless the score says that such ranges hold."""
    if score is None or not score.is_good or not isinstance(estimate, EtaAt):
        return None, None
    left = max(estimate.time - now, timedelta(0))
    if left * score.high > LONGEST:
        return None, None
    earliest, latest = (completion_time(EtaAt(now + left * factor), now) for factor in (score.low, score.high))
    return (None, None) if earliest is None or latest is None else (earliest, latest)


def lag_falling(estimate: Estimate) -> bool | None:
    """Tell whether two readings show the lag decreasing; None if there are not two readings to compare."""
    match estimate:
        case EtaAt():
            return True
        case NeverAtThisSpeed():
            return False
        case _:
            return None


def _state(convergence: Convergence) -> ConvergenceState:
    if convergence.is_converged:
        return ConvergenceState.CONVERGED
    return ConvergenceState.CONVERGING if convergence.can_be_told else ConvergenceState.UNKNOWN


def _slow(wait: TaskWait) -> SlowTask:
    lag = wait.records_to_go
    if wait.best is not None:
        lag = wait.best.lag.records if isinstance(wait.best.lag, Measured) else None
    return SlowTask(task=str(wait.task), ordinal=None if wait.best is None else wait.best.ordinal, lag=lag)


def _forced(forced: Forced | None) -> ForcedStatus | None:
    if forced is None:
        return None
    return ForcedStatus(by=ForcedBy[forced.by.name], reason=forced.why[:MOST_LINE])


def _span(duration: timedelta) -> timedelta:
    """Without its fraction of a second, and never negative: a clock may have been set back."""
    return timedelta(seconds=max(0, round(duration.total_seconds())))


def _whole(time: datetime) -> datetime:
    """As Kubernetes writes times, in whole seconds."""
    return time.replace(microsecond=0)
