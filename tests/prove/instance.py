"""One process of the operator: the product's own `Operator`, with a clock, a client and a group of this world.

Only what needs sockets is left out: the watches, which `watches` plays, and the health server. A process can die at
any call, and can be frozen at any call while another one takes its place.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from streamapp.controller.apps.apps import Application, ClusterAccess
from streamapp.controller.apps.memory import Memory
from streamapp.controller.leader.leadership import without_lease
from streamapp.controller.ports import ApplicationGroup
from streamapp.controller.process import Operator
from streamapp.controller.settings import Settings
from streamapp.kube.client.kinds import Key
from tests.kube.object_store import ObjectStore
from tests.prove.agents import KEY_FILE, PortedAgents
from tests.prove.calls import DirectClient, Switchboard, Witness
from tests.prove.coverage import VisitRecorder
from tests.prove.fleet.setup import ALONE, PROCESSES_APART, Setup
from tests.prove.group import Group
from tests.prove.story import Disturbance
from tests.prove.streams.setup import a_port
from tests.prove.virtual_time import VirtualLoop
from tests.prove.watches import PlayedWatches

POLL_BUSY, POLL_REBALANCE = 3.0, 0.8
"""Seconds; a little slower than by default, since each look is a pass, and passes are what a sweep costs."""


def first_of(setup: Setup) -> int:
    """The number of the first process of an operator."""
    return setup.number * PROCESSES_APART + 1


class _Operator(Operator):
    """The product's, on this world's brokers."""

    def __init__(self, instance: "Instance", client: DirectClient, loop: VirtualLoop) -> None:
        settings = Settings(
            instance=f"operator-{instance.number}",
            installation=instance.setup.name,
            namespaces=instance.setup.namespaces,
            watch_nodes=instance.setup.watches_nodes,
            poll_busy_seconds=POLL_BUSY,
            poll_rebalance_seconds=POLL_REBALANCE,
            agent_key_file=str(KEY_FILE),
            restores_per_cluster=instance.setup.restores,
        )
        # Its lease is never found to be over: what a later one writes has to stop it, or to show it that it is over.
        leadership = replace(without_lease(loop.now()), lost=instance.die)
        super().__init__(settings, client, loop.now, loop.time, instance.agents, leadership=leadership)
        self._instance = instance
        self._reconciler._recorder = VisitRecorder(instance.visited, instance.truths.__getitem__)

    def connect(self, access: ClusterAccess) -> ApplicationGroup:
        return self._instance.groups[access.application_id]


class Instance:
    """One process."""

    def __init__(
        self,
        number: int,
        loop: VirtualLoop,
        store: ObjectStore,
        groups: Mapping[str, Group],
        board: Switchboard,
        witness: Witness,
        lives: "Lives",
        *,
        behind: float = 0.0,
        setup: Setup = ALONE,
    ) -> None:
        self.number, self.setup = number, setup
        self.installation = setup.number
        self.is_dead = False
        self._loop, self._lives = loop, lives
        self._open = asyncio.Event()
        self._open.set()
        self.visited = witness.visited
        self.truths = groups
        self.groups = {name: a_port(group, board, self, witness, loop.now) for name, group in groups.items()}
        """By application ID."""
        self.agents = PortedAgents(groups, board, self, witness, loop.now)
        self.operator = _Operator(self, DirectClient(store, board, self, witness), loop)
        if number == first_of(setup):
            self._has_seen_all_begin(store)
        self._resync = loop.create_task(self.operator.resync())
        self._closing: asyncio.Task[None] | None = None
        self._watches = PlayedWatches(self.operator, self, loop=loop, store=store, board=board, behind=behind)

    def _has_seen_all_begin(self, store: ObjectStore) -> None:
        """A world begins at rest, as the first process brought it up: it saw the containers of all pods begin."""
        pods = {stored.body["metadata"]["uid"] for place, stored in store.objects.items() if place[0] == "pods"}
        remembered = self.operator.applications.get

        def get(key: Key, uid: str) -> Application:
            application = remembered(key, uid)
            application.memory.seen_pods |= pods
            return application

        self.operator.applications.get = get  # type: ignore[method-assign]

    @property
    def is_open(self) -> bool:
        """Whether it runs; else it stands still, or is dead."""
        return self._open.is_set()

    def memory(self, key: Key) -> Memory | None:
        """What it remembers of a StreamApp; None: it does not know it."""
        found = self.operator.applications.find(key)
        return None if found is None else found.memory

    async def turn(self) -> None:
        """Return when this process may go on; never, where it is dead."""
        await self._open.wait()

    def die(self) -> None:
        """It ends here and now; what it was waiting for never comes."""
        if not self.is_dead:
            self.is_dead = True
            self._open.clear()
            self._resync.cancel()
            self._closing = self._loop.create_task(self.operator.close())
            self._watches.end()
            self._lives.ended(self)

    def freeze(self, how: str, thaw_after: float) -> None:
        """It stops, somebody else takes over, and some time later it goes on, for a few seconds."""
        self._open.clear()
        self._lives.frozen(self, how)
        self._loop.call_later(thaw_after, self._thaw)

    def _thaw(self) -> None:
        if not self.is_dead:
            self._open.set()
            self._watches.go_on()
            self._loop.call_later(5.0, self.die)


class Lives:
    """Sees to it that there is always a process, as a Deployment of one replica does."""

    def __init__(
        self, make: Callable[[int, "Lives"], Instance], loop: VirtualLoop, board: Switchboard, first: int = 0
    ) -> None:
        """Prepare; the number of the first process is one more than `first`."""
        self._make, self._loop, self._board = make, loop, board
        self._count = first
        self._all: list[Instance] = []
        self._is_over = False
        self.present: Instance | None = None

    def deeds(self) -> Mapping[str, Callable[[int], object]]:
        """What can befall them, by the name that a story has for it."""
        return {"die": self._die}

    def _die(self, _: int) -> None:
        if self.present is not None:
            self.present.die()

    def begin(self) -> None:
        """Start one."""
        if self._is_over:
            return
        self._count += 1
        self.present = self._make(self._count, self)
        self._all.append(self.present)
        self._board.disturbed()

    def end(self) -> None:
        """The story is over."""
        self._is_over = True
        for one in self._all:
            one.die()

    def ended(self, instance: Instance) -> None:
        """A process died; if it was the present one, another takes its place."""
        if instance is self.present:
            self.present = None
            self._loop.call_later(2.0, self.begin)

    def frozen(self, instance: Instance, how: str) -> None:
        """A process stopped; another one takes its place, and with `-raise` a user changes his mind meanwhile."""
        if instance is not self.present:
            return
        self.present = None
        self._loop.call_later(2.0, self.begin)
        if how == "-raise":
            self._loop.call_later(4.0, self._board.strikes, Disturbance("second", 0, "wish-back"))
