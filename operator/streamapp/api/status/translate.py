"""Between the resource and the core: what a StreamApp means to a decision, and what a decision means to a StreamApp.

The only module through which spec and status meet the core's types. Called by the controller (and by the command line
for a plan); pure, and it decides nothing about pods.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from streamapp.api.insight import AppInsight
from streamapp.api.names import HOLD, MIGRATION, NEW_VOLUME, OVERRIDE, RESTART, claim_of, selector_of
from streamapp.api.status.conditions import with_times
from streamapp.api.status.progress import convergence_status, scale_down_status, steps_with
from streamapp.api.v1alpha1.status import (
    MOST_MEMBERS,
    AgentState,
    ConvergenceState,
    ConvergenceStatus,
    DowntimeStatus,
    GroupProtocol,
    MemberStatus,
    RaisedStandbysStatus,
    StreamAppStatus,
)
from streamapp.api.validation.parse import InvalidStreamApp, StreamApp
from streamapp.core.actions.decision import Decision
from streamapp.core.evidence.failing_pods import fault_of
from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.facts.agent_reports import AgentSilent
from streamapp.core.facts.group import GroupDescription, GroupUnreadable
from streamapp.core.facts.hold_record import RaisedStandbys, RecordUnreadable
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy, Timing
from streamapp.core.facts.snapshot import (
    App,
    ConflictingStreamApp,
    DesiredReplicas,
    DesiredSample,
    HoldOverride,
    Raise,
    RestartRequest,
    Snapshot,
)
from streamapp.core.reasons import Reason
from streamapp.core.status.conditions import conditions_after_raise
from streamapp.core.status.gaps import Gap, GapUnknown

MOST_RESTARTS = 100
"""In one annotation, which a tenant writes."""
_TIMING = Timing()
"""The operator's own; it is checked when it is made, so each pass has this one."""
NO_REASON = "no reason given"
"""What stands for a reason that a break-glass annotation leaves out: at night it must work all the same."""


def app_of(
    found: StreamApp | InvalidStreamApp,
    *,
    history: Iterable[DesiredSample],
    unchanged_since: datetime | None = None,
    conflicting: Iterable[ConflictingStreamApp] = (),
) -> App:
    """The resource, as far as a decision needs it.

    Args:
        found: What `reading.parse` made of it. An invalid one is stalled with its faults and keeps its pods.
        history: What this process saw `spec.replicas` be before.
        unchanged_since: Since when `spec.replicas` has its value, or longer; None if that is not known.
        conflicting: Other StreamApps with the same application ID on the same Kafka cluster.
    """
    metadata = found.metadata
    valid = found.spec if isinstance(found, StreamApp) else None
    return App(
        uid=metadata.uid,
        generation=metadata.generation,
        created_at=metadata.creation_timestamp,
        desired=DesiredReplicas(replicas=found.replicas, history=tuple(history), unchanged_since=unchanged_since),
        paused=valid is not None and valid.paused,
        dry_run=valid is not None and valid.dry_run,
        deleting=metadata.deletion_timestamp is not None,
        keeps_state=valid is None or valid.state is not None,
        max_idle_time=None if valid is None or valid.state is None else valid.state.max_idle_time,
        volume_size=None if valid is None or valid.state is None else valid.state.volume_bytes,
        fault=None if isinstance(found, StreamApp) else found.sentence,
        conflicting=tuple(conflicting),
        held_because=_held_because(metadata.annotations.get(HOLD)),
        override=_override(metadata.annotations.get(OVERRIDE)),
        restarts=tuple(restart_requests(metadata.annotations)),
        is_migrating=MIGRATION in metadata.annotations,
        granted_before=found.status.stateful_set_replicas,
    )


def policy_of(streamapp: StreamApp, timing: Timing | None = None) -> ScalingPolicy:
    """How the application may be scaled; the limits of the operator itself come from its settings."""
    spec = streamapp.spec
    return ScalingPolicy(
        scale_down=spec.scale_down.policy,
        stabilization_window=spec.scale_down.stabilization_window,
        timeout=spec.scale_down.timeout,
        on_timeout=spec.scale_down.on_timeout,
        force_reason=spec.scale_down.reason,
        allow_zero=spec.scale_down.allow_zero,
        max_step=spec.scale_down.max_step,
        min_copies=spec.scale_down.min_copies,
        min_zones=spec.scale_down.min_zones,
        acceptable_recovery_lag=spec.learners.acceptable_recovery_lag,
        assignor=spec.learners.assignor,
        trigger_rebalance=spec.learners.trigger_rebalance,
        agent=spec.agent.enabled,
        source=None if spec.learners.source is None else LearnerSource(spec.learners.source.value),
        rebalance=spec.learners.rebalance,
        max_learners=spec.learners.max_at_once,
        memory_per_task=spec.learners.memory_per_task_bytes,
        rollout=spec.rollout.policy,
        disruption=spec.disruption.policy,
        timing=timing or _TIMING,
    )


def as_rival(streamapp: StreamApp, *, in_group: bool = False, has_statefulset: bool = False) -> ConflictingStreamApp:
    """What another StreamApp is to one with the same application ID on the same Kafka cluster."""
    metadata = streamapp.metadata
    return ConflictingStreamApp(
        name=f"{metadata.namespace}/{metadata.name}",
        uid=metadata.uid,
        created_at=metadata.creation_timestamp,
        in_group=in_group,
        has_statefulset=has_statefulset,
    )


def status_of(
    found: StreamApp | InvalidStreamApp,
    decision: Decision,
    snapshot: Snapshot,
    previous: StreamAppStatus,
    gap: Gap | GapUnknown | None = None,
    downtime: DowntimeStatus | None = None,
    insight: AppInsight | None = None,
) -> dict[str, Any]:
    """The whole status, as JSON; what is not in it is to be removed from the resource (server-side apply does).

    Args:
        found: The resource that was decided about.
        decision: The decision.
        snapshot: Its facts; their time is the time of every transition.
        previous: The status that was last written, by this process or, after a restart, as it stands on the resource.
        gap: What was seen of the gap of the step that this decision finds finished.
        downtime: Of the month, with what this pass adds; None where this process saw none.
        insight: What was learned of the StreamApp, for the estimate and its range alone; None where it is unknown.
    """
    answer = _Answer(found, decision, snapshot, previous)
    statefulset = snapshot.workload.statefulset
    status = StreamAppStatus(
        observed_generation=snapshot.app.generation,
        replicas=len(snapshot.workload.pods),
        selector=selector_of(found.metadata.name),
        stateful_set_replicas=previous.stateful_set_replicas if statefulset is None else statefulset.replicas,
        ready_replicas=snapshot.workload.ready,
        learner_source=answer.learner_source(),
        group_protocol=answer.group_protocol(),
        convergence=convergence_status(decision.convergence, snapshot.now),
        scale_down=scale_down_status(decision, snapshot, previous.scale_down, insight),
        members=answer.members(),
        last_steps=steps_with(decision, gap, previous),
        downtime=downtime or previous.downtime,
        raised_standbys=_raised_standbys_status(decision, snapshot, previous),
        conditions=with_times(decision.conditions, previous.conditions, snapshot.app.generation, snapshot.now),
    )
    return _written(status)


def status_after_raise(previous: StreamAppStatus, raised: Raise, unread: str, now: datetime) -> dict[str, Any] | None:
    """The status after a raise, if nothing but the StreamApp and the StatefulSet could be read.

    What was not read stays as last written, or becomes unknown if the raise changes it. The observed generation stays
    too: the rest of the spec is not reconciled yet. None if there is no status to start from.

    Args:
        previous: The status as it stands on the resource.
        raised: The raise that was made.
        unread: What could not be read, and why.
        now: The time of the raise.
    """
    if previous.observed_generation is None:
        return None
    changed = with_times(conditions_after_raise(raised, unread), previous.conditions, previous.observed_generation, now)
    by_type = {condition.type: condition for condition in (*previous.conditions, *changed)}
    status = previous.model_copy(
        update={
            "stateful_set_replicas": raised.to_replicas,
            "convergence": ConvergenceStatus(state=ConvergenceState.UNKNOWN),
            "scale_down": None,
            "conditions": tuple(by_type.values()),
        }
    )
    return _written(status)


def desired_since(found: StreamApp | InvalidStreamApp, now: datetime) -> datetime | None:
    """Since when `spec.replicas` has its value, as an earlier process has noted it; None if it says nothing of it.

    Any change of the spec since makes the note worthless: the number can have been another one meanwhile.
    """
    going = found.status.scale_down
    noted = None if going is None else going.desired
    if noted is None or noted.since.tzinfo is None or noted.since > now:
        return None
    is_same = (noted.replicas, noted.generation) == (found.replicas, found.metadata.generation)
    return noted.since if is_same else None


def raised_standbys_of(status: StreamAppStatus) -> RaisedStandbys | None:
    """The setting of the group that must be put back, by the status: where the hold record is gone, it is the copy."""
    raised = status.raised_standbys
    return None if raised is None else RaisedStandbys(**raised.model_dump())


def _raised_standbys_status(
    decision: Decision, snapshot: Snapshot, previous: StreamAppStatus
) -> RaisedStandbysStatus | None:
    """What the hold record says; as it was where there is none that could say it, or it cannot be read."""
    record, statefulset = decision.record, snapshot.workload.statefulset
    if statefulset is None or not statefulset.is_ours or isinstance(record, RecordUnreadable):
        return previous.raised_standbys
    raised = None if record is None else record.standbys
    return None if raised is None else RaisedStandbysStatus(**asdict(raised))


def _written(status: StreamAppStatus) -> dict[str, Any]:
    written: dict[str, Any] = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    return written


@dataclass(frozen=True, slots=True)
class _Answer:
    """What of the status is neither a number at hand nor somebody else's text."""

    found: StreamApp | InvalidStreamApp
    decision: Decision
    snapshot: Snapshot
    previous: StreamAppStatus

    def learner_source(self) -> LearnerSource | None:
        """As last detected: while tasks move it cannot be told anew."""
        source, before = self.decision.source.told, self.previous.learner_source
        if isinstance(source, LearnerSource):
            return source
        # What agents said is over as soon as one of them says otherwise.
        return None if before is LearnerSource.ON_DEMAND else before

    def group_protocol(self) -> GroupProtocol | None:
        latest = self.snapshot.latest
        if latest is None:
            return self.previous.group_protocol
        if isinstance(latest.group, GroupUnreadable):
            unsupported = latest.group.reason is Reason.GroupProtocolUnsupported
            return None if unsupported else self.previous.group_protocol
        return GroupProtocol.CLASSIC if latest.group.streams is None else GroupProtocol.STREAMS

    def members(self) -> tuple[MemberStatus, ...]:
        pods, group = self.snapshot.workload.pods[:MOST_MEMBERS], self._group()
        is_shown = group is not None and group.is_decoded
        attribution = self.decision.placement if is_shown else None
        return tuple(self._member(pod.ordinal, attribution) for pod in pods)

    def _member(self, ordinal: Ordinal, attribution: MemberPlacement | None) -> MemberStatus:
        volume = self.snapshot.workload.volume(ordinal)
        known = None if volume is None or volume.process_id is None else str(volume.process_id)
        claim = None if volume is None else self._claim(ordinal)
        agent, fault = self._agent(ordinal), fault_of(ordinal, self.snapshot.workload)
        pod = self.snapshot.workload.pod(ordinal)
        zone = None if pod is None else pod.zone or None
        if attribution is None:
            return MemberStatus(ordinal=ordinal, process_id=known, volume=claim, agent=agent, zone=zone, fault=fault)
        members = attribution.members(ordinal)
        shown = {str(member.process_id) for member in members if member.process_id is not None}
        assigned = [member.assignment for member in members if member.assignment is not None]
        return MemberStatus(
            ordinal=ordinal,
            process_id=shown.pop() if len(shown) == 1 else known,
            volume=claim,
            active=len(frozenset[TaskId]().union(*(one.active for one in assigned))),
            learners=len(frozenset[TaskId]().union(*(one.standby for one in assigned))),
            agent=agent,
            zone=zone,
            fault=fault,
        )

    def _agent(self, ordinal: Ordinal) -> AgentState | None:
        if self.snapshot.agents is None:
            return None
        word = self.snapshot.agents.latest(ordinal)
        if isinstance(word, AgentSilent):
            return AgentState.UNREACHABLE
        # With the streams protocol brokers assign, so that no assignor is missing in the JVM.
        is_streams = self.group_protocol() is GroupProtocol.STREAMS
        return AgentState.ACTIVE if word.is_ours or is_streams else AgentState.INACTIVE

    def _claim(self, ordinal: Ordinal) -> str | None:
        if not isinstance(self.found, StreamApp) or self.found.spec.state is None:
            return None
        return claim_of(self.found.spec.state.claim_name, self.found.metadata.name, ordinal)

    def _group(self) -> GroupDescription | None:
        latest = self.snapshot.latest
        return latest.group if latest is not None and isinstance(latest.group, GroupDescription) else None


def restart_requests(annotations: Mapping[str, str]) -> Iterator[RestartRequest]:
    """The restarts that a user asks for; what is no request, or one too many, is left out."""
    for request in annotations.get(RESTART, "").split(",", MOST_RESTARTS)[:MOST_RESTARTS]:
        pod_uid, *words = request.split()[:3] or [""]
        if pod_uid and words in ([], [NEW_VOLUME]):
            yield RestartRequest(pod_uid=pod_uid, new_volume=bool(words))


def _held_because(annotation: str | None) -> str | None:
    return None if annotation is None else annotation.strip() or NO_REASON


def _override(annotation: str | None) -> HoldOverride | None:
    hold_id, _, why = (annotation or "").strip().partition(" ")
    return HoldOverride(hold_id=hold_id, why=why.strip() or NO_REASON) if hold_id else None
