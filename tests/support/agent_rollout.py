"""A rollout that brings the agent, walked pass by pass: what is decided is done at once, and everything else is well.

Four pods whose group is stable and whose agents answer as soon as their pod has the newest template. Whatever the
decision then waits for, only its own next step, or a user, can bring.
"""

from dataclasses import dataclass, replace

from streamapp.core.actions.decision import Announce, Decision, GrantReplicas, RestartPod, WriteHoldRecord
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import AgentSilent, AgentsSeen
from streamapp.core.facts.group import Member
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource, RolloutPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from tests.support import example
from tests.support.walk import kept_after

PODS = 4
NEWEST = "with-agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One state; each pass leads to the next."""

    desired: int
    has_standbys: bool
    is_topology_in_spec: bool
    source: LearnerSource | None
    rollout: RolloutPolicy
    newest: frozenset[int] = frozenset()
    """Pods with the newest template; only these have an agent."""
    replicas: int = PODS
    record: HoldRecord | None = None
    announced: Announce | None = None

    def decide(self) -> Decision:
        """What is decided here."""
        return decide(self._snapshot(), self._policy)

    def after(self, decision: Decision) -> "World":
        """What the world is when all of that is done."""
        world = self
        for step in decision.plan:
            if isinstance(step, RestartPod):
                world = replace(world, newest=world.newest | {step.ordinal})
            elif isinstance(step, GrantReplicas):
                world = replace(world, replicas=step.to_replicas, record=kept_after(step))
            elif isinstance(step, WriteHoldRecord):
                world = replace(world, record=step.record)
            elif isinstance(step, Announce):
                world = replace(world, announced=step)
        return world

    @property
    def of_a_pass(self) -> tuple[object, ...]:
        """What a pass can change, without the clock and the counter that move at each write."""
        record = None if self.record is None else self.record.without_clock
        announced = None if self.announced is None else (self.announced.process_ids, self.announced.epoch)
        return self.newest, self.replicas, record, announced

    @property
    def is_done(self) -> bool:
        """All pods are those that are desired, with the newest template."""
        return self.replicas == self.desired and self.newest >= frozenset(range(self.replicas))

    @property
    def _policy(self) -> ScalingPolicy:
        return ScalingPolicy(agent=True, source=self.source, rollout=self.rollout)

    @property
    def _leaving(self) -> frozenset[int]:
        ids = () if self.announced is None else self.announced.process_ids
        return frozenset(number for number in range(self.replicas) if example.process_id(number) in ids)

    def _members(self) -> tuple[Member, ...]:
        """Tasks on the pods that nobody has announced as leaving; with standbys, each also on the next of them."""
        staying = sorted(set(range(self.replicas)) - self._leaving)
        active = {number: range(place, example.PARTITIONS, len(staying)) for place, number in enumerate(staying)}
        standby = {number: active[staying[place - 1]] for place, number in enumerate(staying)}
        has_standbys = self.has_standbys and len(staying) > 1
        return tuple(
            example.member(
                number, active=active.get(number, ()), standby=standby.get(number, ()) if has_standbys else ()
            )
            for number in range(self.replicas)
        )

    def _agents(self, members: tuple[Member, ...]) -> AgentsSeen:
        changes = {}
        if self.announced is not None and self.announced.process_ids:
            epoch = self.announced.epoch
            heard = replace(example.leaving(*self._leaving), epoch=epoch)
            changes = {"heard": heard, "round": replace(example.assigned(), epoch=epoch)}
        seen = example.agents(members, **changes)
        deaf = {Ordinal(one): (AgentSilent(Ordinal(one), "refused"),) for one in range(self.replicas)}
        return AgentsSeen({one: seen.words[one] if one in self.newest else deaf[one] for one in deaf}, seen.ends)

    def _snapshot(self) -> Snapshot:
        members = self._members()
        agents = self._agents(members)
        whole = example.snapshot(self.replicas, self.desired)
        knows = self.is_topology_in_spec or self.newest >= frozenset(range(self.replicas))
        own = tuple(
            replace(
                example.pod(number),
                revision=NEWEST if number in self.newest else example.REVISION,
                has_agent=number in self.newest,
            )
            for number in range(self.replicas)
        )
        changed = replace(example.statefulset(self.replicas), update_revision=NEWEST, record=self.record)
        return replace(
            whole,
            workload=replace(whole.workload, statefulset=changed, pods=own),
            task_set=whole.task_set if knows else TopologyUnknown("there are two sub-topologies"),
            readings=example.two_readings(members),
            agents=agents,
        )
