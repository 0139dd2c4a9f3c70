"""What the steps of a plan do to the facts, if all of them succeed and nothing else happens."""

from dataclasses import replace
from datetime import timedelta

from streamapp.core.actions.decision import (
    Announce,
    CapHeartbeats,
    CloseBudget,
    CreateStatefulSet,
    Decision,
    Evict,
    ExpandVolume,
    GrantReplicas,
    KeepClaims,
    OpenBudget,
    RecordProcessId,
    RecordState,
    RestartPod,
    Step,
    TriggerRebalance,
    WriteHoldRecord,
    WriteTemplate,
)
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import AgentReport, AgentsSeen, AnnouncementAck, AnnouncementState, HeartbeatCap
from streamapp.core.facts.group import GroupDescription, GroupReading
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import RebalanceHistory, Snapshot
from streamapp.core.facts.workload import Budget, StatefulSet, Volume, Workload
from tests.support.example import statefulset


def applied(snapshot: Snapshot, decision: Decision) -> Snapshot:
    """The facts after the plan."""
    for step in decision.plan:
        snapshot = _after(snapshot, step)
    return snapshot


def assert_rest(snapshot: Snapshot, policy: ScalingPolicy, *, passes: int) -> None:
    """With the clock and the world standing still, so many passes come to rest, and none repeats a step of another."""
    made: list[Step] = []
    for _ in range(passes):
        decision = decide(snapshot, policy)
        assert [step for step in decision.plan if step in made] == []
        if not decision.plan:
            return
        made += decision.plan
        snapshot = applied(snapshot, decision)
    raise AssertionError(f"still not at rest: {[type(step).__name__ for step in made]}")


def _after(snapshot: Snapshot, step: Step) -> Snapshot:
    match step:
        case TriggerRebalance():
            sent = (*snapshot.rebalances.sent, snapshot.now)
            return replace(
                snapshot, rebalances=RebalanceHistory(sent=sent, layout_since=snapshot.rebalances.layout_since)
            )
        case Evict(members=members):
            gone = {key.id for key in members}
            return replace(snapshot, readings=tuple(_without(reading, gone) for reading in snapshot.readings))
        case Announce():
            return replace(snapshot, agents=_told(snapshot.agents, step))
        case CapHeartbeats():
            return replace(snapshot, agents=_capped(snapshot.agents, step))
        case _:
            return replace(snapshot, workload=_workload_after(snapshot.workload, step))


def _told(agents: AgentsSeen | None, step: Announce) -> AgentsSeen | None:
    """Agents have heard it, and say so."""
    if agents is None:
        return None
    heard = AnnouncementAck(
        state=AnnouncementState.SET if step.process_ids else AnnouncementState.EMPTY,
        epoch=step.epoch,
        process_ids=frozenset(step.process_ids),
        rebalance=step.rebalance,
        expires_in=step.ttl if step.process_ids else None,
    )
    words = {
        ordinal: tuple(
            replace(word, heard=heard) if isinstance(word, AgentReport) and ordinal in step.to else word
            for word in said
        )
        for ordinal, said in agents.words.items()
    }
    return AgentsSeen(words, agents.ends)


def _workload_after(workload: Workload, step: Step) -> Workload:
    match step:
        case CloseBudget():
            return replace(workload, budget=Budget.CLOSED)
        case OpenBudget():
            return replace(workload, budget=Budget.OPEN)
        case RecordProcessId() | RecordState() | ExpandVolume():
            return replace(workload, volumes=tuple(_annotated(volume, step) for volume in workload.volumes))
        case RestartPod(pod_uid=uid):
            pods = tuple(replace(pod, terminating=True) if pod.uid == uid else pod for pod in workload.pods)
            return replace(workload, pods=pods)
        case CreateStatefulSet(replicas=replicas):
            return replace(workload, statefulset=replace(statefulset(), replicas=replicas))
    assert workload.statefulset is not None
    return replace(workload, statefulset=_written(workload.statefulset, step))


def _annotated(volume: Volume, step: RecordProcessId | RecordState | ExpandVolume) -> Volume:
    if volume.ordinal != step.ordinal:
        return volume
    if isinstance(step, ExpandVolume):
        return replace(volume, requested=step.to_bytes)
    if isinstance(step, RecordState):
        return replace(volume, kept=step.state)
    return replace(volume, process_id=step.process_id)


def _written(before: StatefulSet, step: Step) -> StatefulSet:
    moved = replace(before, resource_version=str(int(before.resource_version) + 1))
    match step:
        case GrantReplicas(to_replicas=replicas, record=record):
            return replace(moved, replicas=replicas, record=record, generation=before.generation + 1)
        case WriteHoldRecord(record=record):
            return replace(moved, record=record)
        case WriteTemplate():
            return replace(moved, template_is_written=True, update_revision="written", deletes_kept_claims=False)
        case KeepClaims():
            return replace(moved, deletes_kept_claims=False, generation=before.generation + 1)
    raise AssertionError(step)


def _without(reading: GroupReading, gone: set[str]) -> GroupReading:
    if not isinstance(reading.group, GroupDescription):
        return reading
    left = tuple(member for member in reading.group.members if member.id not in gone)
    return replace(reading, group=GroupDescription(reading.group.state, left))


def _capped(agents: AgentsSeen | None, step: CapHeartbeats) -> AgentsSeen | None:
    if agents is None:
        return None
    has_one = step.ttl > timedelta(0)
    cap = HeartbeatCap(interval=step.cap, expires_in=step.ttl) if has_one else HeartbeatCap()
    words = {
        ordinal: tuple(
            replace(word, heartbeat_cap=cap) if isinstance(word, AgentReport) and ordinal in step.to else word
            for word in said
        )
        for ordinal, said in agents.words.items()
    }
    return replace(agents, words=words)
