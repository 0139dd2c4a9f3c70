"""The shell around `decide`, as small as it can be: gather, decide, apply, remember what the core's own folds say.

It also holds the ground truth against every removal and every eviction, at the moment it is applied.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from streamapp.core.actions import rebalance_trigger as rebalances
from streamapp.core.actions.decision import (
    Announce,
    CloseBudget,
    Decision,
    Evict,
    GrantReplicas,
    OpenBudget,
    RecordProcessId,
    RecordState,
    RestartPod,
    Step,
    TriggerRebalance,
    WriteHoldRecord,
)
from streamapp.core.decide import decide
from streamapp.core.evidence import agent_views, eviction, readings
from streamapp.core.facts.agent_reports import AgentsSeen
from streamapp.core.facts.containers import ObservedMembers
from streamapp.core.facts.group import GroupReading, GroupState, GroupUnreadable, ObservedRebalance
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import App, DesiredReplicas, DesiredSample, Episode, RebalanceHistory, Snapshot
from streamapp.core.facts.workload import Budget
from streamapp.core.reasons import Reason
from tests.simulation.kafka_model import INPUT_RATE, GroupModel
from tests.simulation.kubernetes_model import ClusterModel, ConflictError
from tests.simulation.learner_model import LearnerGroupModel
from tests.support.example import UID, task_set


class GuaranteeBrokenError(AssertionError):
    """A guarantee of the product does not hold."""


@dataclass
class Memory:
    """What one process of the operator remembers, and loses with it."""

    readings: tuple[GroupReading, ...] = ()
    observed: tuple[ObservedMembers, ...] = ()
    rebalances: RebalanceHistory = field(default_factory=RebalanceHistory)
    wishes: list[DesiredSample] = field(default_factory=list)
    episode: Episode | None = None
    agents: AgentsSeen | None = None
    rebalance: ObservedRebalance | None = None
    generation: int | None = None
    unstable_since: datetime | None = None


class OperatorModel:
    """One operator for one application."""

    def __init__(self, cluster: ClusterModel, group: GroupModel, policy: ScalingPolicy, history: list[str]) -> None:
        self.cluster, self.group, self.policy, self.history = cluster, group, policy, history
        self.memory = Memory()
        self.lease = 0
        self.desired = cluster.statefulset.replicas
        self.paused = False
        self.kafka_down_until: datetime | None = None
        self.last: Decision | None = None

    def restart(self) -> None:
        """Another process takes over; nothing is remembered."""
        self.memory = Memory()
        self.lease += 1

    def watch(self, now: datetime) -> None:
        """Every second: has the group settled after a rebalance that we saw begin?"""
        if self._is_blind(now):
            self.memory.generation, self.memory.rebalance, self.memory.unstable_since = None, None, None
            return
        if self.group.state is not GroupState.STABLE:
            if self.memory.generation is not None:
                self.memory.unstable_since = self.memory.unstable_since or now
            return
        if self.memory.generation is not None and self.group.generation != self.memory.generation:
            began = self.memory.unstable_since
            self.memory.rebalance = None if began is None else self._join(began, now)
        self.memory.generation, self.memory.unstable_since = self.group.generation, None

    def _join(self, began: datetime, now: datetime) -> ObservedRebalance:
        rejoined_members = (one.id for one in self.group.threads.values() if one.joined_in == self.group.generation)
        return ObservedRebalance(
            began_at=began, settled_at=now, rejoined_members=frozenset(rejoined_members), ends=self.group.ends(now)
        )

    def decide(self, now: datetime) -> Decision:
        """One pass, without its writes."""
        memory = self.memory
        reading = self._reading(now)
        workload = self.cluster.workload(now)
        memory.rebalances = rebalances.seen(memory.rebalances, memory.readings, reading)
        memory.readings = readings.remember(memory.readings, reading)
        memory.observed = eviction.remember(memory.observed, reading, workload)
        if not memory.wishes or memory.wishes[-1].replicas != self.desired:
            memory.wishes.append(DesiredSample(now, self.desired))
        desired = DesiredReplicas(replicas=self.desired, history=tuple(memory.wishes))
        snapshot = Snapshot(
            now=now,
            app=App(uid=UID, generation=1, created_at=now - timedelta(days=1), desired=desired, paused=self.paused),
            workload=workload,
            task_set=task_set(len(self.group.tasks)),
            readings=memory.readings,
            observed=memory.observed,
            container_ends=tuple(self.cluster.ends),
            rebalances=memory.rebalances,
            episode=memory.episode,
            was_at_rest=self.last is not None and self.last.convergence.is_converged and not self.last.plan,
            agents=self._hear(now),
            lease=self.lease,
        )
        self.last = decide(snapshot, self.policy)
        memory.episode = self.last.convergence.episode
        return self.last

    def _hear(self, now: datetime) -> AgentsSeen | None:
        """Ask the agents, where there are any."""
        if isinstance(self.group, LearnerGroupModel):
            pods = {pod.ordinal: pod.uid for pod in self.cluster.pods.values() if pod.running_since is not None}
            words, ends = self.group.hears(pods, now)
            self.memory.agents = agent_views.remember(self.memory.agents, now, words, ends)
        return self.memory.agents

    def apply(self, decision: Decision, now: datetime) -> None:
        """Make the steps in their order; the first that fails ends the pass."""
        try:
            for step in decision.plan:
                self.history.append(f"{now:%H:%M:%S} {decision.reason.name}: {type(step).__name__} {_brief(step)}")
                if not isinstance(step, RecordState):  # only predictions read it
                    self._make(step, now)
        except ConflictError:
            self.history.append(f"{now:%H:%M:%S} conflict")

    def _make(self, step: Step, now: datetime) -> None:
        match step:
            case GrantReplicas(to_replicas=to_replicas, record=record, fence=fence):
                if step.is_removal and fence.resource_version == self.cluster.statefulset.resource_version:
                    self._check_removal(step)
                self.cluster.patch(fence, replicas=to_replicas, record=record)
            case WriteHoldRecord(record=record, fence=fence):
                self.cluster.patch(fence, record=record)
            case TriggerRebalance():
                self.memory.rebalances = rebalances.sent(self.memory.rebalances, now)
                self.group.rebalance(now)
            case Evict(members=members):
                self._check_eviction({key.id for key in members})
                self.group.leave({key.id for key in members}, now)
            case Announce() if isinstance(self.group, LearnerGroupModel):
                self._check_announcement(step)
                self.group.announce(step, now)
            case RestartPod(pod_uid=uid):
                self._check_restart(step)
                self.cluster.delete_pod(uid, now)
            case RecordProcessId(ordinal=ordinal, process_id=process_id):
                self.cluster.recorded[ordinal] = process_id
            case CloseBudget() | OpenBudget():
                self.cluster.budget = Budget.CLOSED if isinstance(step, CloseBudget) else Budget.OPEN
            case _:
                raise AssertionError(step)

    def _check_removal(self, grant: GrantReplicas) -> None:
        going = set(range(grant.to_replicas, grant.from_replicas))
        holders = [thread for thread in self.group.threads.values() if thread.ordinal in going]
        held = {task for thread in holders for task in thread.active | thread.standby}
        if len(going) > 1 and held:
            raise GuaranteeBrokenError(f"{sorted(going)} go at once and hold {sorted(held)}")
        if grant.reason is Reason.Drained and held:
            raise GuaranteeBrokenError(f"{sorted(going)} go and hold {sorted(map(str, held))}")
        if grant.reason in {Reason.Covered, Reason.Drained} and (lost := self._not_covered(going)):
            raise GuaranteeBrokenError(f"{sorted(going)} go and {sorted(map(str, lost))} have no good copy elsewhere")

    def _check_restart(self, step: RestartPod) -> None:
        held = [thread for thread in self.group.threads.values() if thread.ordinal == step.ordinal]
        if step.reason is Reason.RestartDrained and any(thread.active | thread.standby for thread in held):
            raise GuaranteeBrokenError(f"{step.ordinal} restarts and holds tasks")
        if step.reason in {Reason.RestartCovered, Reason.RestartDrained} and (
            lost := self._not_covered({step.ordinal})
        ):
            raise GuaranteeBrokenError(f"{step.ordinal} restarts and {sorted(map(str, lost))} have no good copy")

    def _check_announcement(self, step: Announce) -> None:
        named = set(step.process_ids)
        if self.group.alive() and named >= {thread.process_id for thread in self.group.alive()}:
            raise GuaranteeBrokenError("everybody is told to leave")

    def _not_covered(self, going: set[int]) -> set[object]:
        """The truth, not what anybody read; input of half a minute is allowed for."""
        slack = 30 * INPUT_RATE
        staying = [thread for thread in self.group.alive() if thread.ordinal not in going]
        lost: set[object] = set()
        for task in self.group.tasks:
            lags = [
                self.group.end - self.group.volumes.get(thread.ordinal, {}).get(task, 0)
                for thread in staying
                if task in thread.standby or task in thread.running
            ]
            if not any(lag <= self.group.limit + slack for lag in lags):
                lost.add(task)
        return lost

    def _check_eviction(self, ids: set[str]) -> None:
        for one in ids:
            thread = self.group.threads.get(one)
            if thread is not None and thread.died_at is None:
                raise GuaranteeBrokenError(f"{one} lives and is put out")

    def _is_blind(self, now: datetime) -> bool:
        return self.kafka_down_until is not None and now < self.kafka_down_until

    def _reading(self, now: datetime) -> GroupReading:
        if self._is_blind(now):
            return GroupReading(
                ended_at=now, group=GroupUnreadable(Reason.BrokersUnreachable, "timed out"), rebalance=None
            )
        stable = self.group.state is GroupState.STABLE
        rebalance = self.memory.rebalance if stable and self.memory.generation == self.group.generation else None
        return GroupReading(ended_at=now, group=self.group.description(), rebalance=rebalance)


def _brief(step: Step) -> str:
    match step:
        case GrantReplicas():
            return f"{step.from_replicas} to {step.to_replicas}"
        case Evict():
            return ", ".join(key.id for key in step.members)
        case RestartPod():
            return str(step.ordinal)
        case Announce():
            return f"{len(step.process_ids)} leave, to {step.to}, {step.epoch.counter}, {step.reason.name}"
    return step.reason.name
