"""A rollout and a scale-down in one, with pods that are not well, walked pass by pass: what is decided is done at once.

Four pods, each with a copy of the tasks of another one. Whoever is not well stays so until somebody mends it: then it
comes back with the newest template. Whatever the decision waits for beside that can only come by its own next step.
"""

from dataclasses import dataclass, replace
from enum import Enum

from streamapp.core.actions.decision import Decision, GrantReplicas, RestartPod, WriteHoldRecord
from streamapp.core.decide import decide
from streamapp.core.facts.group import Member
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource, RolloutPolicy, ScaleDownPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import HoldOverride, Snapshot
from streamapp.core.facts.workload import Container, Pod
from tests.support import example
from tests.support.streams import streams_reading
from tests.support.walk import kept_after

PODS = 4
NEWEST = "newest"


class Health(Enum):
    """What ails a pod."""

    MISSING = "missing"
    DOWN = "down"
    UNREADY = "unready"
    """It runs, with its member and its tasks, and its probe says no."""
    TERMINATING = "terminating"
    """On a node that is lost: it runs nothing that is known, and is not gone."""


class Protocol(Enum):
    """How the group assigns, and who reports positions."""

    CLASSIC = "classic"
    CLASSIC_WITH_AGENTS = "classic with agents"
    STREAMS = "streams"


@dataclass(frozen=True, slots=True, kw_only=True)
class IllWorld:
    """One state; each pass leads to the next."""

    desired: int
    ills: frozenset[int]
    health: Health
    newest: frozenset[int]
    protocol: Protocol
    rollout: RolloutPolicy = RolloutPolicy.WHEN_CAUGHT_UP
    scale_down: ScaleDownPolicy = ScaleDownPolicy.HOLD
    is_overridden: bool = False
    replicas: int = PODS
    record: HoldRecord | None = None

    def decide(self) -> Decision:
        """What is decided here."""
        return decide(self._snapshot(), self._policy)

    def after(self, decision: Decision) -> "IllWorld":
        """What the world is when all of that is done."""
        world = self
        for step in decision.plan:
            if isinstance(step, RestartPod):
                world = replace(world, newest=world.newest | {step.ordinal})
            elif isinstance(step, GrantReplicas):
                gone = frozenset(range(step.to_replicas, world.replicas))
                world = replace(world, replicas=step.to_replicas, record=kept_after(step), ills=world.ills - gone)
            elif isinstance(step, WriteHoldRecord):
                world = replace(world, record=step.record)
        return world

    def mended(self) -> "IllWorld":
        """The same when somebody has mended what ailed the pods: they are back with the newest template."""
        return replace(self, ills=frozenset(), newest=self.newest | self.ills)

    @property
    def of_a_pass(self) -> tuple[object, ...]:
        """What a pass can change, without the clock that moves at each write."""
        return self.newest, self.replicas, self.ills, None if self.record is None else self.record.without_clock

    @property
    def is_done(self) -> bool:
        """All pods are those that are desired, with the newest template unless their user pauses that."""
        is_new = self.rollout is RolloutPolicy.PAUSED or self.newest >= frozenset(range(self.replicas))
        return self.replicas == self.desired and is_new

    @property
    def _policy(self) -> ScalingPolicy:
        is_forced = self.scale_down is ScaleDownPolicy.IMMEDIATE
        return ScalingPolicy(
            rollout=self.rollout,
            scale_down=self.scale_down,
            force_reason="ticket 7" if is_forced else "",
            agent=self.protocol is not Protocol.CLASSIC,
            source=LearnerSource.STANDBYS,
        )

    @property
    def _members(self) -> tuple[Member, ...]:
        """Of the pods that run: tasks dealt in turn, each with its standby on the next of them."""
        has_member = self.health is Health.UNREADY
        there = [number for number in range(self.replicas) if has_member or number not in self.ills]
        active = {number: range(place, example.PARTITIONS, len(there)) for place, number in enumerate(there)}
        standby = {number: active[there[place - 1]] for place, number in enumerate(there)}
        kept = standby if len(there) > 1 else {}
        return tuple(example.member(one, active=active[one], standby=kept.get(one, ())) for one in there)

    def _pod(self, number: int) -> Pod | None:
        revision = NEWEST if number in self.newest else example.REVISION
        pod = replace(example.pod(number), revision=revision, has_agent=self.protocol is not Protocol.CLASSIC)
        if number not in self.ills:
            return pod
        down = Container(id=f"c-{number}", running_since=None, ever_ran=True)
        match self.health:
            case Health.MISSING:
                return None
            case Health.DOWN:
                return replace(pod, ready=False, container=down)
            case Health.UNREADY:
                return replace(pod, ready=False)
            case Health.TERMINATING:
                return replace(pod, ready=False, container=down, terminating=True)

    def _snapshot(self) -> Snapshot:
        members, whole = self._members, example.snapshot(self.replicas, self.desired)
        statefulset = replace(example.statefulset(self.replicas), update_revision=NEWEST, record=self.record)
        pods = tuple(pod for number in range(self.replicas) if (pod := self._pod(number)) is not None)
        hold = None if self.record is None else self.record.hold
        override = HoldOverride(hold_id=hold.id, why="please") if self.is_overridden and hold is not None else None
        by_brokers = self.protocol is Protocol.STREAMS
        return replace(
            whole,
            app=replace(whole.app, override=override),
            workload=replace(whole.workload, statefulset=statefulset, pods=pods),
            readings=(
                (streams_reading(members, 1), streams_reading(members, 15))
                if by_brokers
                else example.two_readings(members)
            ),
            agents=None if self.protocol is Protocol.CLASSIC else example.agents(members),
        )


def whom_it_names(decision: Decision) -> frozenset[Ordinal]:
    """The pods in the details of what is decided, and of its conditions."""
    details = (decision.detail, *(one.detail for one in decision.conditions))
    return frozenset(number for number in map(Ordinal, range(PODS)) if any(_names(text, number) for text in details))


def _names(text: str, number: int) -> bool:
    words = text.replace(",", " ").replace(".", " ").split()
    return "ordinal" in text and str(number) in words
