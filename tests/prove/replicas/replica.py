"""One replica of the operator, from its start to its end: the product's order of work, its elector and its client.

It stands for the Lease beside other replicas, works while it leads, and is killed, frozen, cut off or told to stop as a
process is. Its wall clock is its node's own. Only kopf, the streams of the watches and the health server are left out.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from streamapp.agents.answers import AgentAddress, AgentReading, AnnouncementResult
from streamapp.controller.apps.apps import ClusterAccess
from streamapp.controller.apps.memory import Memory
from streamapp.controller.leader.election import Elector
from streamapp.controller.leader.thread_loop import RemoteLeadership
from streamapp.controller.lifecycle import Parts, lease_key, lease_timing, work_in_turn
from streamapp.controller.ports import ApplicationGroup
from streamapp.controller.process import CannotStartError, Operator
from streamapp.controller.settings import Settings
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import StandbySetting, StandbySettingUnread
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError
from streamapp.kube.client.kinds import Key
from tests.kube.object_store import ObjectStore
from tests.prove.agents import KEY_FILE, PortedAgents
from tests.prove.calls import PortedGroup, Switchboard, Witness
from tests.prove.coverage import VisitRecorder
from tests.prove.group import Group
from tests.prove.instance import POLL_BUSY, POLL_REBALANCE
from tests.prove.replicas.connection import connected_client
from tests.prove.replicas.gate import Gate, GatedLoop
from tests.prove.streams.setup import a_port
from tests.prove.watches import PlayedWatches

T = TypeVar("T")
LEASE_NAMESPACE = "streamapp-system"
ELECTION_WAKES_AFTER = 0.05
"""Seconds by which the thread of the election goes on later than all else, when a process thaws: the worse order."""


@dataclass(slots=True)
class Node:
    """Where a replica runs."""

    name: str
    clock: timedelta = timedelta(0)
    """How far its wall clock is ahead."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all replicas share."""

    loop: GatedLoop
    store: ObjectStore
    board: Switchboard
    groups: Mapping[str, Group]
    """By application ID."""
    witness: Witness
    behind: float = 0.0
    """Seconds by which the shared watches are behind."""
    namespaces: tuple[str, ...] = ()
    """Those that are watched; empty: all."""
    watches_nodes: bool = False
    """Whether the replicas see which nodes must be drained."""


class Replica:
    """One process, a `connection.Caller`."""

    def __init__(
        self, surroundings: Surroundings, node: Node, start: int, ended: Callable[["Replica"], object]
    ) -> None:
        """Start it; `start` counts the starts of all replicas, and `ended` is told of its end."""
        self.around, self.node, self._ended = surroundings, node, ended
        self.identity = f"{node.name}_{start}"
        self.number = self.installation = 0
        """Of its term; 0 before the first."""
        self.is_dead = False
        self._cut_until = float("-inf")
        self._gate, self._election_gate = Gate(), Gate()
        self._open = asyncio.Event()
        self._open.set()
        self._stop = asyncio.Event()
        self._watches: PlayedWatches | None = None
        self._gate.context.run(self._start)

    def _start(self) -> None:
        around = self.around
        settings = Settings(
            instance=self.node.name,
            namespaces=around.namespaces,
            watch_nodes=around.watches_nodes,
            lease_namespace=LEASE_NAMESPACE,
            poll_busy_seconds=POLL_BUSY,
            poll_rebalance_seconds=POLL_REBALANCE,
            agent_key_file=str(KEY_FILE),
        )
        timing = lease_timing(settings)
        self.elector = Elector(
            self._client(timing.request, at_once=2),
            lease_key(settings),
            self.identity,
            timing,
            lost=self.die,
            monotonic=around.loop.time,
            now=self.now,
        )
        thread: Any = ElectionThread(around.loop, self._election_gate)
        self.leadership = RemoteLeadership(self.elector, thread)
        client = self._client(settings.request_deadline_seconds, may_write=self.elector.check)
        self.operator = _Operator(self, settings, client)
        self._work = around.loop.create_task(self._run())

    def _client(
        self, deadline: float, *, may_write: Callable[[], None] = lambda: None, at_once: int = 50
    ) -> KubeClient:
        around = self.around
        return connected_client(
            *(around.loop, around.store, around.board, self, around.witness),
            deadline_seconds=deadline,
            may_write=may_write,
            at_once=at_once,
        )

    async def _run(self) -> None:
        """Work as `process.run` does; the process ends with it, whatever it raised."""
        try:
            await work_in_turn(self.operator, self._stop, self._parts)
        except (KubeError, CannotStartError) as error:
            self.around.board.tell(f"{self.identity}: {error}")
        except Exception as error:  # noqa: BLE001 (nothing else ends it: the story has failed)
            self.around.loop.broken = self.around.loop.broken or error
        finally:
            self.die()

    def _parts(self) -> Parts:
        return {"watches": self._watch(), "resync": self.operator.resync()}

    async def _watch(self) -> None:
        around = self.around
        self.number = around.board.next_term()
        around.board.tell(f"{self.identity} leads, term {self.elector.transitions}")
        self._watches = PlayedWatches(
            self.operator,
            self,
            loop=around.loop,
            store=around.store,
            board=around.board,
            behind=around.behind,
        )
        await asyncio.Event().wait()

    def now(self) -> datetime:
        """Its wall clock."""
        return self.around.loop.now() + self.node.clock

    def leads(self) -> bool:
        """Whether it would act at this moment, if it runs."""
        return not self.is_dead and bool(self.number) and self.elector.leads()

    @property
    def is_open(self) -> bool:
        """Whether it runs; else it stands still, or is dead."""
        return self._gate.is_open and not self.is_dead

    @property
    def is_cut_off(self) -> bool:
        """Whether nothing comes through between it and the API server."""
        return self.around.loop.time() < self._cut_until

    def memory(self, key: Key) -> Memory | None:
        """What it remembers of a StreamApp; None: it does not know it."""
        found = self.operator.applications.find(key)
        return None if found is None else found.memory

    async def turn(self) -> None:
        """Return when this process may go on; never, where it is dead."""
        await self._open.wait()

    def die(self) -> None:
        """It ends here and now."""
        if self.is_dead:
            return
        self.is_dead = self._gate.is_over = self._election_gate.is_over = True
        self._open.clear()
        if self._watches is not None:
            self._watches.end()
        self.around.board.tell(f"{self.identity} has ended")
        self._ended(self)

    def freeze(self, how: str, thaw_after: float) -> None:
        """It stands still as a whole; with `-raise` the user wants the first replicas again meanwhile."""
        if self.is_open:
            self._gate.is_open = self._election_gate.is_open = False
            self._open.clear()
            self.around.board.frozen(how)
            self.around.loop.call_later(thaw_after, self._thaw, context=Context())

    def be_cut_off(self, seconds: float) -> None:
        """Let nothing come through between it and the API server for so long."""
        self._cut_until = max(self._cut_until, self.around.loop.time() + seconds)
        if self._watches is not None:
            self._watches.be_silent(self._cut_until)

    def stop(self) -> None:
        """Tell it to end, as Kubernetes does."""
        self._gate.context.run(self._stop.set)

    def _thaw(self) -> None:
        if not self.is_dead:
            self._open.set()  # what was being sent goes first
            self.around.loop.call_soon(self.around.loop.open, self._gate)
            self.around.loop.call_later(ELECTION_WAKES_AFTER, self.around.loop.open, self._election_gate)


class _Operator(Operator):
    """The product's, on this world's brokers and agents."""

    def __init__(self, replica: Replica, settings: Settings, client: KubeClient) -> None:
        around = replica.around
        ported = {
            name: a_port(group, around.board, replica, around.witness, self._clock)
            for name, group in around.groups.items()
        }
        agents = PortedAgents(around.groups, around.board, replica, around.witness, self._clock)
        self._groups = {name: GroupOutside(group, replica) for name, group in ported.items()}
        outside = AgentsOutside(agents, replica)
        super().__init__(settings, client, replica.now, around.loop.time, outside, leadership=replica.leadership)
        self._reconciler._recorder = VisitRecorder(around.witness.visited, around.groups.__getitem__)

    def _clock(self) -> datetime:
        return self._now()

    def connect(self, access: ClusterAccess) -> ApplicationGroup:
        return self._groups[access.application_id]


@dataclass(frozen=True, slots=True)
class ElectionThread:
    """Stands where the election has a thread and an event loop of its own: it does not wait for the process's tasks."""

    loop: GatedLoop
    gate: Gate

    async def run(self, what: Coroutine[Any, Any, T]) -> T:
        """Run it there, and wait for it here."""
        return await self.loop.create_task(what, context=self.gate.context.copy())


class GroupOutside:
    """The brokers, who go on while a process is frozen; a request that was sent arrives."""

    def __init__(self, group: PortedGroup, replica: Replica) -> None:
        self._group, self._replica = group, replica
        outside = replica.around.loop.outside
        self.describe = lambda: outside(group.describe())
        self.task_set = lambda: outside(group.task_set())
        self.ends = lambda task_set: outside(group.ends(task_set))
        self.tails = lambda ends: outside(group.tails(ends))
        self.configs = lambda topics: outside(group.configs(topics))

    def close(self) -> None:
        """Nothing is open."""

    async def trigger_rebalance(self, like_member: str) -> None:
        """Let a probe member join and leave."""
        self._sends()
        await self._replica.around.loop.outside(self._group.trigger_rebalance(like_member))

    async def standbys(self) -> StandbySetting | StandbySettingUnread:
        """Read the standbys of the group."""
        return await self._replica.around.loop.outside(self._group.standbys())

    async def set_standbys(self, replicas: int | None, instead_of: StandbySetting | None = None) -> None:
        """Set the standbys of a streams group."""
        self._sends()
        await self._replica.around.loop.outside(self._group.set_standbys(replicas, instead_of))

    async def evict(self, members: Sequence[MemberKey], reason: str) -> None:
        """Evict members."""
        self._sends()
        await self._replica.around.loop.outside(self._group.evict(members, reason))

    def _sends(self) -> None:
        self._replica.around.board.sending(self._replica, None)


class AgentsOutside:
    """The agents, likewise."""

    def __init__(self, agents: PortedAgents, replica: Replica) -> None:
        self._agents, self._replica = agents, replica

    async def read(self, addresses: Iterable[AgentAddress], application_id: str, token: str) -> list[AgentReading]:
        """Ask all of them."""
        return await self._replica.around.loop.outside(self._agents.read(addresses, application_id, token))

    async def announce(
        self, addresses: Iterable[AgentAddress], announcement: bytes, token: str
    ) -> list[AnnouncementResult]:
        """Announce to all of them."""
        self._replica.around.board.sending(self._replica, None)
        return await self._replica.around.loop.outside(self._agents.announce(addresses, announcement, token))

    async def cap_heartbeats(
        self, addresses: Iterable[AgentAddress], cap: bytes, token: str
    ) -> list[AnnouncementResult]:
        """Ask all of them."""
        return await self._replica.around.loop.outside(self._agents.cap_heartbeats(addresses, cap, token))

    async def close(self) -> None:
        """Nothing is open."""
