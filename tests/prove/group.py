"""The truth about one consumer group: the coordinator, the members' processes, and how far every copy of a task is.

A classic group with the cooperative protocol. A rebalance waits for every listed member to join again, which the living
do with their next heartbeat and the dead never; a task that moves is revoked in one generation and given in the next; a
copy is promoted only in a rebalance. What a member says of its positions is as old as its last join.
"""

import asyncio
import random
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamapp.core.facts.agent_reports import AgentReport, AnnouncementState
from streamapp.core.facts.group import GroupState
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import ProcessId, TaskId
from tests.prove.assignor import Given, deal
from tests.prove.learner_assignor import deal_on_demand

if TYPE_CHECKING:
    from streamapp.controller.ports import Poll

SESSION_TIMEOUT = 45.0
GHOST_TIMEOUT = 10.0
STATIC_SESSION_TIMEOUT = 90.0
STATIC_REBALANCE_TIMEOUT = 10.0
UNKNOWN_FOR = 60.0
NOT_COMMITTED = 0.3
"""Seconds after which a coordinator looks again whether its records are committed."""


@dataclass(slots=True)
class Run:
    """One run of one container: what is really alive."""

    id: str
    ordinal: int
    volume: str
    """Its claim, `namespace/name`."""
    pod_uid: str
    host: str
    process_id: ProcessId
    started: str
    """As its node's clock said."""
    ended_at: float | None = None
    ended: str = ""
    reason: str = ""
    words: str = ""
    """Its last, where they say more than the reason."""
    joined_at: float | None = None
    is_lost: bool = False
    """Its node is gone, so nobody says that it has ended."""
    is_past: bool = False
    """Its volume is gone, too."""

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self.ended_at is None


@dataclass(slots=True)
class Said:
    """What a member told when it joined last."""

    positions: dict[TaskId, int] = field(default_factory=dict)
    """Where its volume was, tasks that it ran left out."""
    running: frozenset[TaskId] = frozenset()
    owned: frozenset[TaskId] = frozenset()
    generation: int | None = None
    """That it came from."""
    lags: dict[TaskId, int] = field(default_factory=dict)
    """The truth at that moment, of everything on its volume."""
    at: float = 0.0


@dataclass(slots=True)
class Member:
    """One member, as the coordinator has it and as it is."""

    id: str
    run: Run | None
    """None: a probe member that could not leave."""
    host: str
    process_id: ProcessId
    said: Said = field(default_factory=Said)
    joins: int = 0
    active: set[TaskId] = field(default_factory=set)
    standby: set[TaskId] = field(default_factory=set)
    running: set[TaskId] = field(default_factory=set)
    has_assignment: bool = False
    generation: int | None = None
    """That its process knows; None before its first."""
    instance: str | None = None
    """Of a static member."""

    @property
    def is_alive(self) -> bool:
        """Whether it answers."""
        return self.run is not None and self.run.is_alive


@dataclass(slots=True, kw_only=True)
class Led:
    """An assignment that a JVM made as the leader."""

    at: float
    state: AnnouncementState
    epoch: Epoch | None
    moved: int
    learning: int
    is_watch: bool


@dataclass(slots=True)
class AgentTruth:
    """One agent, as long as its container runs."""

    born_at: float
    epoch: Epoch | None = None
    named: frozenset[ProcessId] = frozenset()
    expires_at: float = 0.0
    sequence: int = 0
    led: Led | None = None
    said: list[AgentReport] = field(default_factory=list)
    """Its last answers, newest first."""

    def state(self, time: float) -> AnnouncementState:
        """As the protocol has it: unknown for a minute, then empty, unless told."""
        if self.epoch is None:
            return AnnouncementState.UNKNOWN if time - self.born_at < UNKNOWN_FOR else AnnouncementState.EMPTY
        return AnnouncementState.SET if self.named and time < self.expires_at else AnnouncementState.EMPTY


@dataclass(slots=True, kw_only=True)
class Shape:
    """What kind of application it is."""

    tasks: int = 6
    limit: int = 10_000
    rate: float = 50.0
    """Records a second, per changelog."""
    restore: float = 40_000.0
    """Records a second that a copy catches up with."""
    probing: float = 600.0
    """Seconds to the next look whether a copy has warmed up; 60 is the least that Kafka Streams allows."""
    threads: int = 1
    standbys: int = 1
    heartbeat: float = 0.6
    on_demand: bool = False
    """Every container brings an agent and the learner task assignor."""
    static: bool = False
    """Members come back as who they were, without a rebalance, and a generation does not wait for them."""
    streams: bool = False
    """The brokers assign (`group.protocol=streams`), and every container brings an agent."""
    memory: int = 0
    """Bytes that are free below the memory limit of each container; 0: agents do not report them."""

    @property
    def is_bare(self) -> bool:
        """Whether no task ever has a copy that somebody keeps for it: there are no standbys, and no learners."""
        return not (self.standbys or self.on_demand or self.streams)


@dataclass(slots=True)
class GroupTruth:
    """Everything but the timers; can be copied."""

    shape: Shape
    application_id: str = "wordcount"
    end: float = 200_000.0
    at: float = 0.0
    volumes: dict[str, dict[TaskId, float]] = field(default_factory=dict)
    """By the claim of each."""
    members: dict[str, Member] = field(default_factory=dict)
    state: GroupState = GroupState.EMPTY
    generation: int = 0
    rejoined_members: set[str] = field(default_factory=set)
    follow_up: bool = False
    agents: dict[str, AgentTruth] = field(default_factory=dict)
    """By the container's ID."""
    slow: dict[str, int] = field(default_factory=dict)
    """Volumes whose copies stay so many records behind."""

    def lag(self, volume: str, task: TaskId) -> int:
        """How far the copy on a volume really is behind."""
        return round(self.end - self.volumes.get(volume, {}).get(task, 0.0))

    def given_to(self, member: Member) -> Collection[TaskId]:
        """The active tasks that brokers show for a member."""
        return member.active


class Group:
    """The coordinator with its timers."""

    def __init__(self, truth: GroupTruth, loop: asyncio.AbstractEventLoop, chance: random.Random) -> None:
        self.truth = truth
        self._loop = loop
        self._chance = chance
        self._numbers = 0
        self.tasks = [TaskId(0, number) for number in range(truth.shape.tasks)]
        self.completed: list[Callable[[], None]] = []
        self.is_away = False
        """Its brokers give no answer."""
        self.is_behind = False
        """What its coordinator writes is not committed at present."""
        self.coordinator = 0
        """Which broker it is."""
        self.shown: Callable[[Poll], Poll] = lambda poll: poll
        """Gives what the coordinator shows in place of the truth."""
        self.slowness = 0.0
        """Seconds that its brokers take for each answer beside the usual, half of them before they look."""
        self.agents_are_away = False
        self.hides_changelogs = False
        """Its brokers list no changelog, as to a client without the right to describe one."""
        self.lost_at: dict[tuple[ProcessId, TaskId], float] = {}
        """When a copy was lost last while its process went on; only its agent can tell."""

    def deeds(self) -> Mapping[str, "Callable[[int], object]"]:
        """What can happen to its settings, by the name that a story has for it."""
        return {}

    def time(self) -> float:
        """The world's clock, in seconds."""
        return self._loop.time()

    def advance(self) -> None:
        """Bring every position to the present."""
        truth, now = self.truth, self._loop.time()
        passed, truth.at = now - truth.at, now
        truth.end += truth.shape.rate * passed
        step = truth.shape.restore * passed
        for member in truth.members.values():
            if member.run is None or not member.run.is_alive:
                continue
            volume = truth.volumes.setdefault(member.run.volume, {})
            for task in member.running:
                volume[task] = truth.end
            for task in member.standby:
                nearest = truth.end - truth.slow.get(member.run.volume, 0)
                volume[task] = max(volume.get(task, 0.0), min(nearest, volume.get(task, 0.0) + step))
            for task in member.active - member.running:
                volume[task] = min(truth.end, volume.get(task, 0.0) + step)
                if volume[task] >= truth.end:
                    member.running.add(task)

    def join(self, run: Run) -> None:
        """A container that has started joins with each of its threads."""
        self.truth.agents[run.id] = AgentTruth(self.time())
        for thread in range(self.truth.shape.threads):
            self.join_thread(run, thread)

    def join_thread(self, run: Run, thread: int, suffix: str = "") -> None:
        """One of its threads joins, as a member that nobody has seen before."""
        self._numbers += 1
        identity = f"{self.truth.application_id}-{run.ordinal}-{run.id.rpartition('/')[2]}-{self._numbers}{suffix}"
        member = Member(identity, run, run.host, run.process_id)
        if self.truth.shape.static:
            member.instance = f"{self.truth.application_id}-{run.ordinal}-{thread}"
            if self._comes_back(member):
                return
        self.truth.members[identity] = member
        self._rebalance()
        self._rejoin(identity)

    def _comes_back(self, member: Member) -> bool:
        """A static member that is still listed is itself again, with what it was given; its word is new."""
        truth = self.truth
        before = next((one for one in truth.members.values() if one.instance == member.instance), None)
        if before is None:
            return False
        self.advance()
        del truth.members[before.id]
        truth.rejoined_members.discard(before.id)
        truth.members[member.id] = member
        member.active, member.standby, member.has_assignment = before.active, before.standby, before.has_assignment
        if truth.state is GroupState.PREPARING_REBALANCE:
            self._rejoin(member.id)
        else:
            self._says(member)
        return True

    def ended(self, run: Run) -> None:
        """A container has ended without a word; its sessions go on."""
        for member in list(self.truth.members.values()):
            if member.run is run:
                timeout = SESSION_TIMEOUT if member.instance is None else STATIC_SESSION_TIMEOUT
                self._loop.call_later(timeout, self.leave, member.id)

    def leave(self, identity: str) -> None:
        """Its session timed out, or somebody sent LeaveGroup for it."""
        truth = self.truth
        if identity not in truth.members:
            return
        self.advance()
        del truth.members[identity]
        truth.rejoined_members.discard(identity)
        if not truth.members:
            truth.state, truth.follow_up = GroupState.EMPTY, False
            truth.generation += 1
        elif truth.state is GroupState.PREPARING_REBALANCE:
            self._complete_if_all_are_there()
        else:
            self._rebalance()

    def trigger_rebalance(self, process_id: ProcessId, host: str, *, stays: bool) -> bool:
        """A probe member joins and leaves; or stays, where its LeaveGroup was lost. False: the group is not stable."""
        truth = self.truth
        if truth.state is not GroupState.STABLE:
            return False
        self._rebalance()
        if stays:
            self._numbers += 1
            ghost = Member(f"streamapp-operator-probe-{self._numbers}", None, host, process_id)
            truth.members[ghost.id] = ghost
            truth.rejoined_members.add(ghost.id)
            ghost.joins += 1
            self._loop.call_later(GHOST_TIMEOUT, self.leave, ghost.id)
        return True

    def listed(self, *, alive: bool | None = None) -> list[Member]:
        """The members, probe members left out."""
        real = [member for member in self.truth.members.values() if member.run is not None]
        return [member for member in real if alive is None or member.is_alive == alive]

    def rests_below(self, are_missed: Callable[[AbstractSet[int], AbstractSet[int]], bool], stays: set[int]) -> bool:
        """Whether it has come to rest, and some task has too few places among the ordinals that stay.

        An assignor that has nothing to move deals the same again, so no further join brings a place. With learners on
        demand it moves what the pods that go have, and only watches when it has done so.
        """
        truth, members = self.truth, self.listed()
        is_done = self._only_watches() if truth.shape.on_demand else not truth.follow_up
        if truth.shape.streams or truth.state is not GroupState.STABLE or not is_done:
            return False
        if any(not member.is_alive or member.running != member.active for member in members):
            return False
        places = {(task, one.run.ordinal) for one in members if one.run for task in one.active | one.standby}
        if truth.shape.on_demand and any(at not in stays for _, at in places):
            return False
        return any(are_missed({at for has, at in places if has == task} & stays, stays) for task in self.tasks)

    def _only_watches(self) -> bool:
        """Whether the leader of the last rebalance moved nothing, and has its follow-ups only to see what comes."""
        led = [agent.led for agent in self.truth.agents.values() if agent.led is not None]
        return bool(led) and max(led, key=lambda one: one.at).is_watch

    def _rebalance(self) -> None:
        truth = self.truth
        if truth.state is GroupState.PREPARING_REBALANCE:
            return
        self.advance()
        truth.state, truth.follow_up = GroupState.PREPARING_REBALANCE, False
        truth.rejoined_members = set()
        if truth.shape.static:
            self._loop.call_later(STATIC_REBALANCE_TIMEOUT, self._complete_without_some, truth.generation)
        for member in truth.members.values():
            if member.is_alive:
                self._loop.call_later(self._heartbeat(), self._rejoin, member.id)

    def _heartbeat(self) -> float:
        return self._chance.uniform(0.05, self.truth.shape.heartbeat)

    def _rejoin(self, identity: str) -> None:
        truth = self.truth
        member = truth.members.get(identity)
        is_due = truth.state is GroupState.PREPARING_REBALANCE and identity not in truth.rejoined_members
        if member is None or member.run is None or not member.is_alive or not is_due:
            return
        self.advance()
        self._says(member)
        truth.rejoined_members.add(identity)
        self._complete_if_all_are_there()

    def _says(self, member: Member) -> None:
        """A member joins with the word of this moment."""
        truth = self.truth
        assert member.run is not None
        volume = truth.volumes.setdefault(member.run.volume, {})
        siblings = [other for other in truth.members.values() if other.run is member.run and other is not member]
        locked = {task for other in siblings for task in other.active | other.standby}
        member.said = Said(
            positions={task: int(at) for task, at in volume.items() if task not in member.running | locked},
            running=frozenset(member.running),
            owned=frozenset(member.active),
            generation=member.generation,
            lags={task: truth.lag(member.run.volume, task) for task in volume},
            at=self.time(),
        )
        member.joins += 1

    def _complete_without_some(self, generation: int) -> None:
        """The time of a rebalance is over: static members that are missing stay listed, all others go."""
        truth = self.truth
        if (truth.generation, truth.state) != (generation, GroupState.PREPARING_REBALANCE):
            return
        for member in list(truth.members.values()):
            if member.instance is None and member.id not in truth.rejoined_members:
                del truth.members[member.id]
        if truth.rejoined_members:
            self._complete()
        else:
            self._loop.call_later(STATIC_REBALANCE_TIMEOUT, self._complete_without_some, generation)

    def _complete_if_all_are_there(self) -> None:
        if self.truth.rejoined_members >= self.truth.members.keys():
            self._complete()

    def _complete(self) -> None:
        truth = self.truth
        truth.state = GroupState.COMPLETING_REBALANCE
        truth.generation += 1
        self._loop.call_later(self._chance.uniform(0.02, 0.15), self._assign, truth.generation)

    def _assign(self, generation: int) -> None:
        truth = self.truth
        if (truth.generation, truth.state) != (generation, GroupState.COMPLETING_REBALANCE):
            return
        if self.is_behind:
            self._loop.call_later(NOT_COMMITTED, self._assign, generation)
            return
        self.advance()
        shape, members = truth.shape, list(truth.members.values())
        if shape.on_demand:
            given, moves, warms = self._deal_on_demand(members)
        else:
            given, moves, warms = deal(self.tasks, members, truth.end, shape.limit, shape.standbys)
        for member in truth.members.values():
            share = given.get(member.id, Given())
            member.active, member.standby = set(share.active), set(share.standby)
            member.running &= member.active
            member.has_assignment, member.generation = True, generation
        truth.state, truth.follow_up = GroupState.STABLE, moves or warms
        if truth.follow_up:
            pause = self._chance.uniform(0.05, 1.0) if moves else 20.0 if shape.on_demand else shape.probing
            self._loop.call_later(pause, self._follow_up, generation)
        for tell in self.completed:
            tell()

    def _deal_on_demand(self, members: list[Member]) -> tuple[Mapping[str, Given], bool, bool]:
        """The first that is alive leads, and its agent remembers that; learners wait for triggered rebalances."""
        leader = next((member.run for member in members if member.run is not None and member.is_alive), None)
        if leader is None:
            return {}, False, False
        agent, time = self.truth.agents[leader.id], self.time()
        state = agent.state(time)
        dealt = deal_on_demand(
            self.tasks,
            members,
            agent.named if state is AnnouncementState.SET else frozenset(),
            self.truth.end - self.truth.shape.limit,
            is_unknown=state is AnnouncementState.UNKNOWN,
        )
        agent.led = Led(
            at=time,
            state=state,
            epoch=agent.epoch,
            moved=dealt.moved,
            learning=dealt.learning,
            is_watch=state is AnnouncementState.SET and not dealt.moved and not dealt.learning,
        )
        return dealt.given, bool(dealt.moved), dealt.learning > 0 or state is not AnnouncementState.EMPTY

    def _follow_up(self, generation: int) -> None:
        if (self.truth.generation, self.truth.state) == (generation, GroupState.STABLE):
            self._rebalance()
