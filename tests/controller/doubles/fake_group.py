"""A consumer group in small, as `ports.ApplicationGroup`: it follows the pods of the fake API server.

Members join when their container runs and stay listed after it has ended, as real ones do until their session times
out. A rebalance deals six tasks out with one standby each; while a dead member is listed it does not come to an end.
Offsets, and which tasks run, are what members said at their last join. Evicting a member whose container still runs is
the one thing that must never happen: it is kept in `wrongs`.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from streamapp.controller.ports import KafkaStepError, Poll
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import (
    Applied,
    Assignment,
    FollowUp,
    GroupDescription,
    GroupState,
    GroupUnreadable,
    Member,
    NoOffsets,
    OffsetSum,
    StandbySetting,
    StandbySettingUnread,
    Subscription,
)
from streamapp.core.facts.ids import Ordinal, TaskId, TopicPartition
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable, PartitionEnd, Unknown
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.topic_configs import ConfigUnread, TopicConfig
from streamapp.core.reasons import Reason
from tests.controller.doubles.fake_pods import FakePod
from tests.support.example import END, PARTITIONS, ends, task, task_set


@dataclass(slots=True)
class Share:
    """One member with what it has."""

    id: str
    pod: FakePod
    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    said_active: frozenset[TaskId] = frozenset()
    """What it had when it joined last."""
    said_standby: frozenset[TaskId] = frozenset()
    joins: int = 0
    dead_since: datetime | None = None


SESSION_TIMEOUT = timedelta(seconds=45)
KAFKAS_OWN = TopicConfig(frozenset({"compact"}), None, timedelta(days=1))
"""What a changelog has that nobody configured."""


NOT_TOLD = StandbySettingUnread("no right")


@dataclass(slots=True)
class FakeGroup:
    """The group of one application."""

    app_uid: str
    pods: Callable[[], Sequence[FakePod]]
    """The containers that run now."""
    now: Callable[[], datetime]
    lag: int = 0
    """Of every standby."""
    is_reachable: bool = True
    wrongs: list[str] = field(default_factory=list)
    rebalances: int = 0
    looks: list[frozenset[TopicPartition]] = field(default_factory=list)
    """At the tails of which partitions."""
    data_end: int | Unknown | None = None
    """Of every changelog; None: at its end."""
    config: TopicConfig | ConfigUnread = KAFKAS_OWN
    """Of every topic."""
    configs_asked: list[frozenset[str]] = field(default_factory=list)
    """Each time, of which topics."""
    assignor: Callable[[Sequence[Share]], None] | None = None
    """Deals the tasks out in place of the stock assignor; agents then know what runs without another join."""
    unused_standbys: StandbySetting | StandbySettingUnread = NOT_TOLD
    """What brokers have set for the group, without an effect."""
    members: dict[str, Share] = field(default_factory=dict)
    is_rebalancing: bool = False

    def close(self) -> None:
        """Nothing is open."""

    async def describe(self) -> Poll:
        """Look at the group, as it is after the pods' last changes."""
        if not self.is_reachable:
            return Poll(GroupUnreadable(Reason.BrokersUnreachable, "no answer within 5 s"))
        self._follow_pods()
        members = tuple(self._shown(member) for member in self.members.values())
        if not members:
            return Poll(GroupDescription(GroupState.EMPTY))
        state = GroupState.PREPARING_REBALANCE if self.is_rebalancing else GroupState.STABLE
        joins = {} if self.is_rebalancing else {member.id: member.joins for member in self.members.values()}
        return Poll(GroupDescription(state, members), joins)

    async def task_set(self) -> TaskSet | TopologyUnknown:
        """Know the six tasks."""
        return task_set()

    async def ends(self, task_set: TaskSet) -> EndOffsets | EndsUnreadable:
        """Read the ends, all the same."""
        assert task_set.ids
        return ends(self.now())

    async def tails(self, ends: Mapping[TopicPartition, PartitionEnd]) -> Mapping[TopicPartition, int | Unknown]:
        """Look at the tails, which end in records that are applied."""
        self.looks.append(frozenset(ends))
        return {partition: end.end if self.data_end is None else self.data_end for partition, end in ends.items()}

    async def configs(self, topics: Iterable[str]) -> Mapping[str, TopicConfig | ConfigUnread]:
        """Read the settings, the same for every topic."""
        self.configs_asked.append(frozenset(topics))
        return dict.fromkeys(self.configs_asked[-1], self.config)

    async def trigger_rebalance(self, like_member: str) -> None:
        """Let everybody join again."""
        if not self.is_reachable or like_member not in self.members:
            raise KafkaStepError(f"trigger rebalance like {like_member}: no answer")
        self.rebalances += 1
        self._rebalance()

    async def standbys(self) -> StandbySetting | StandbySettingUnread:
        """Read what is left from the time when the group had the streams protocol."""
        return self.unused_standbys

    async def set_standbys(self, replicas: int | None, instead_of: StandbySetting | None = None) -> None:
        """Put back what is left; nothing else sets the standbys of a classic group."""
        if instead_of != self.unused_standbys:
            raise KafkaStepError(f"set standbys to {replicas}: {self.unused_standbys} is set")
        self.unused_standbys = StandbySetting(replicas or 0, is_set=replicas is not None)

    async def evict(self, members: Sequence[MemberKey], reason: str) -> None:
        """Put members out; note down whose container still runs."""
        if not self.is_reachable:
            raise KafkaStepError(f"evict for {reason}: no answer")
        alive = {pod.container_id for pod in self.pods()}
        for key in members:
            member = self.members.pop(key.id, None)
            if member is not None and member.pod.container_id in alive:
                self.wrongs.append(f"evicted {key.id}, which is alive")
        self._rebalance()

    def uncovered_without(self, ordinal: int) -> set[TaskId]:
        """The tasks that no other ordinal runs or has a caught-up copy of, by the truth and not by what was said."""
        others = [member for member in self.members.values() if member.pod.ordinal != ordinal]
        running = [member.active & (member.active if self.assignor else member.said_active) for member in others]
        covered = {one for active in running for one in active}
        if self.lag <= 10_000:
            covered |= {one for member in others for one in (member.standby & member.said_standby)}
        return set(task_set().ids) - covered

    def tasks_from(self, ordinal: int) -> set[TaskId]:
        """The tasks that this ordinal and those above it have, by the truth."""
        above = [member for member in self.members.values() if member.pod.ordinal >= ordinal]
        return {one for member in above for one in member.active | member.standby}

    def _follow_pods(self) -> None:
        running = {pod.container_id: pod for pod in self.pods()}
        known = {member.pod.container_id for member in self.members.values()}
        lost = [member for member in self.members.values() if self._is_timed_out(member, running)]
        for member in lost:
            del self.members[member.id]
        new = [pod for identity, pod in sorted(running.items()) if identity not in known]
        for pod in new:
            member = Share(f"member-{pod.container_id}", pod)
            self.members[member.id] = member
        if new or lost or (self.is_rebalancing and all(m.pod.container_id in running for m in self.members.values())):
            self._rebalance()

    def _is_timed_out(self, member: Share, running: Container[str]) -> bool:
        if member.pod.container_id in running:
            return False
        member.dead_since = member.dead_since or self.now()
        return self.now() - member.dead_since > SESSION_TIMEOUT

    def _rebalance(self) -> None:
        running = {pod.container_id for pod in self.pods()}
        self.is_rebalancing = any(member.pod.container_id not in running for member in self.members.values())
        if self.is_rebalancing or not self.members:
            return
        ordered = sorted(self.members.values(), key=lambda member: member.pod.ordinal)
        if self.assignor is not None:
            for member in ordered:
                member.said_active, member.said_standby = member.active, member.standby
                member.joins += 1
            self.assignor(ordered)
            return
        shares = [frozenset(map(task, range(place, PARTITIONS, len(ordered)))) for place in range(len(ordered))]
        for place, member in enumerate(ordered):
            member.said_active, member.said_standby = member.active, member.standby
            member.joins += 1
            member.active = shares[place]
            member.standby = shares[place - 1] if len(ordered) > 1 else frozenset()

    def _shown(self, member: Share) -> Member:
        offsets: dict[TaskId, OffsetSum] = {one: Applied(END - self.lag) for one in member.said_standby}
        offsets |= dict.fromkeys(member.said_active, NoOffsets.RUNNING)
        return Member(
            id=member.id,
            client_id=f"counter-{member.pod.ordinal}",
            client_host=member.pod.ip,
            subscription=None
            if self.is_rebalancing
            else Subscription(
                process_id=seeded_process_id(self.app_uid, Ordinal(member.pod.ordinal)),
                offsets=offsets,
                owned_partitions=frozenset(TopicPartition("lines", one.partition) for one in member.said_active),
            ),
            assignment=None
            if self.is_rebalancing
            else Assignment(active=member.active, standby=member.standby, follow_up=FollowUp.NONE),
        )
