"""Makes lines of the flight record about decisions and steps, each from the values of one pass.

`changes` decides which of them are news. The recorder numbers the lines (`seq`).
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from streamapp.api.managed_fields import authors_of
from streamapp.core.actions import decision as core
from streamapp.core.evidence.coverage import TaskWait
from streamapp.core.evidence.eta import Estimate, EtaAt, NeverAtThisSpeed, NotKnown
from streamapp.core.facts.hold_record import Hold, HoldRecord
from streamapp.core.facts.lag import Measured
from streamapp.core.facts.snapshot import DesiredSample, Snapshot
from streamapp.core.status.gaps import Gap, GapUnknown
from streamapp.flightrecord.sampling import ChosenSample
from streamapp.flightrecord.schema import (
    MOST_BLOCKERS,
    Actor,
    Blocker,
    DecisionLine,
    EtaKind,
    SampledCopies,
    SamplesLine,
    ScaleLine,
    StepClosedLine,
    StepLine,
    StepOutcome,
    TaskState,
)

Head = Mapping[str, Any]
"""Fields that all lines of one application in one process share: cluster, namespace, app, uid, recorder."""

_HPA = ("kube-controller-manager", "horizontal-pod-autoscaler")
_KEDA = "keda-operator"
_ETA_KINDS: Mapping[type[Estimate], EtaKind] = {
    EtaAt: EtaKind.KNOWN,
    NeverAtThisSpeed: EtaKind.NEVER,
    NotKnown: EtaKind.NOT_MEASURED,
}


@dataclass(frozen=True, slots=True)
class ExecutedStep:
    """One step of a plan, after the controller tried it."""

    step: core.Step
    at: datetime
    is_done: bool


def scale_line(head: Head, desired: DesiredSample, before: int | None, resource: Mapping[str, Any] | None) -> ScaleLine:
    """A change of the desired replicas; `resource` is the StreamApp if it still has this number."""
    writer = None if resource is None else next(iter(authors_of(resource, "spec", "replicas")), None)
    generation = 0 if resource is None else resource["metadata"].get("generation", 0)
    actor = Actor.UNKNOWN
    if writer is not None:
        by_scale = writer.subresource == "scale"
        is_hpa = by_scale and writer.manager.startswith(_HPA)
        actor = Actor.HPA if is_hpa else Actor.KEDA if writer.manager.startswith(_KEDA) else Actor.USER
    return ScaleLine(
        **head,
        seq=0,
        ts=desired.at,
        old_replicas=before,
        new_replicas=desired.replicas,
        actor=actor,
        manager="" if writer is None else writer.manager,
        generation=generation,
    )


def decision_line(head: Head, decision: core.Decision, snapshot: Snapshot) -> DecisionLine:
    """The decision of one pass."""
    workload, hold, convergence = snapshot.workload, hold_of(decision), decision.convergence
    eta = decision.eta
    return DecisionLine(
        **head,
        seq=0,
        ts=snapshot.now,
        verdict=decision.verdict.value,
        reason=decision.reason.name,
        detail=decision.detail,
        desired=snapshot.app.desired.replicas,
        granted=0 if workload.statefulset is None else workload.statefulset.replicas,
        actual=len(workload.pods),
        ready=workload.ready,
        hold_id="" if hold is None else hold.id,
        hold_since=None if hold is None else hold.since,
        target=None if hold is None else hold.target,
        blocking=tuple(map(_blocker, heapq.nlargest(MOST_BLOCKERS, decision.waiting_for, key=_distance))),
        blocking_count=len(decision.waiting_for),
        eta_seconds=_seconds(eta.time - snapshot.now) if isinstance(eta, EtaAt) else None,
        eta_kind=None if hold is None else _ETA_KINDS[type(eta)],
        converged=convergence.is_converged if convergence.can_be_told else None,
        converging_reason="" if convergence.waits_for is None else convergence.waits_for.reason.name,
    )


def step_line(head: Head, executed: ExecutedStep, decision: core.Decision) -> StepLine:
    """One step of the plan."""
    step, hold = executed.step, hold_of(decision)
    from_replicas = to_replicas = ordinal = None
    match step:
        case core.GrantReplicas():
            from_replicas, to_replicas = step.from_replicas, step.to_replicas
        case core.CreateStatefulSet():
            to_replicas = step.replicas
        case core.RestartPod() | core.RecordProcessId() | core.RecordState() | core.ExpandVolume():
            ordinal = step.ordinal
        case _:
            pass
    return StepLine(
        **head,
        seq=0,
        ts=executed.at,
        step=type(step).__name__,
        outcome=StepOutcome.DONE if executed.is_done else StepOutcome.FAILED,
        reason=step.reason.name,
        hold_id="" if hold is None else hold.id,
        from_replicas=from_replicas,
        to_replicas=to_replicas,
        ordinal=ordinal,
    )


def closed_line(
    head: Head, closed: core.CompletedStep, now: datetime, held_since: datetime | None, gap: Gap | GapUnknown | None
) -> StepClosedLine:
    """A removal is finished."""
    measured = gap if isinstance(gap, Gap) else None
    return StepClosedLine(
        **head,
        seq=0,
        ts=now,
        hold_id=closed.hold_id,
        from_replicas=closed.from_replicas,
        to_replicas=closed.to_replicas,
        granted_at=closed.granted_at,
        took_seconds=_seconds(closed.took),
        held_seconds=None if held_since is None else _seconds(closed.granted_at - held_since),
        worst_gap_seconds=None if measured is None else _seconds(measured.at_most),
        gap_error_seconds=None if measured is None else _seconds(measured.error),
        forced_by="" if closed.forced is None else closed.forced.by.value,
    )


def samples_line(head: Head, samples: Sequence[tuple[ChosenSample, int | None]], epoch: int) -> SamplesLine:
    """The samples of one pass, each with its end offset; at least one."""
    alike: dict[tuple[object, ...], list[tuple[ChosenSample, int | None]]] = {}
    for sample, end in samples:
        copy = sample.copy
        key = (copy.process, copy.ordinal, sample.at, copy.role, copy.state, copy.source, sample.interval)
        alike.setdefault(key, []).append((sample, end))
    return SamplesLine(
        **head,
        seq=0,
        ts=max(sample.at for sample, _ in samples),
        epoch=epoch,
        copies=tuple(map(_sampled_copies, alike.values())),
    )


def _sampled_copies(alike: Sequence[tuple[ChosenSample, int | None]]) -> SampledCopies:
    """Samples that differ in task and offsets alone."""
    sample, _ = alike[0]
    copy = sample.copy
    return SampledCopies(
        process_id=str(copy.process),
        ordinal=copy.ordinal,
        at=sample.at,
        role=copy.role,
        state=None if copy.state is None else TaskState[copy.state.name],
        source=copy.source,
        interval_seconds=_seconds(sample.interval),
        tasks=tuple(str(one.copy.task) for one, _ in alike),
        offsets=_known(tuple(one.position.offset for one, _ in alike)),
        end_offsets=_known(tuple(end for _, end in alike)),
    )


def _known(offsets: tuple[int | None, ...]) -> tuple[int | None, ...] | None:
    return None if all(offset is None for offset in offsets) else offsets


def hold_of(decision: core.Decision) -> Hold | None:
    """The hold that remains after the plan."""
    return decision.record.hold if isinstance(decision.record, HoldRecord) else None


def _blocker(wait: TaskWait) -> Blocker:
    lag = wait.best.lag.records if wait.best is not None and isinstance(wait.best.lag, Measured) else None
    ordinal = None if wait.best is None else wait.best.ordinal
    return Blocker(task=str(wait.task), ordinal=ordinal, lag=lag)


def _distance(wait: TaskWait) -> tuple[bool, int]:
    """Sorts tasks with an unknown lag to the front."""
    return wait.records_to_go is None, wait.records_to_go or 0


def _seconds(duration: timedelta) -> float:
    """Never negative: the clock can have been set back."""
    return max(0.0, duration.total_seconds())
