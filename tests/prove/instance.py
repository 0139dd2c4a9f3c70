"""One process of the operator: the product's own `Operator`, with a clock, a client and a group of this world.

Only what needs sockets is left out: kopf, whose watches are played here, and the health server. A process can die at
any call, and can be frozen at any call while another one takes its place.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from streamapp.controller.apps.apps import ClusterAccess
from streamapp.controller.leader.leadership import Alone
from streamapp.controller.ports import ApplicationGroup
from streamapp.controller.process import Operator
from streamapp.controller.settings import Settings
from streamapp.kube.client.kinds import PODS, STATEFUL_SETS, STREAM_APPS, Key
from tests.kube.object_store import ObjectStore
from tests.prove.agents import KEY_FILE, PortedAgents
from tests.prove.calls import DirectClient, PortedGroup, Switchboard, Witness
from tests.prove.coverage import VisitRecorder
from tests.prove.group import Group
from tests.prove.kubelet import NAME, NAMESPACE
from tests.prove.story import Disturbance
from tests.prove.virtual_time import VirtualLoop

Json = dict[str, Any]
KEY = Key(NAMESPACE, NAME)
POLL_BUSY, POLL_REBALANCE = 3.0, 0.8
"""Seconds; a little slower than by default, since each look is a pass, and passes are what a sweep costs."""
WATCHED = {"streamapps": STREAM_APPS, "statefulsets": STATEFUL_SETS, "pods": PODS}


class _Operator(Operator):
    """The product's, on this world's brokers."""

    def __init__(self, instance: "Instance", client: DirectClient, loop: VirtualLoop) -> None:
        settings = Settings(
            instance=f"operator-{instance.number}",
            poll_busy_seconds=POLL_BUSY,
            poll_rebalance_seconds=POLL_REBALANCE,
            agent_key_file=str(KEY_FILE),
        )
        # Its lease is never found to be over: what a later one writes has to stop it.
        leadership = Alone(transitions=instance.number)
        super().__init__(settings, client, loop.now, loop.time, instance.agents, leadership=leadership)
        self._instance = instance
        self._reconciler._recorder = VisitRecorder(instance.visited, instance.group.group)

    def connect(self, _: ClusterAccess) -> ApplicationGroup:
        return self._instance.group


class Instance:
    """One process."""

    def __init__(
        self,
        number: int,
        loop: VirtualLoop,
        store: ObjectStore,
        group: Group,
        board: Switchboard,
        witness: Witness,
        lives: "Lives",
    ) -> None:
        self.number = number
        self.is_dead = False
        self._loop, self._store, self._board, self._lives = loop, store, board, lives
        self._open = asyncio.Event()
        self._open.set()
        self._gap_until = -1.0
        self.visited = witness.visited
        self.group = PortedGroup(group, board, self, witness, loop.now)
        self.agents = PortedAgents(group, board, self, witness, loop.now)
        self.operator = _Operator(self, DirectClient(store, board, self, witness), loop)
        self._resync = loop.create_task(self.operator.resync())
        self._closing: asyncio.Task[None] | None = None
        store.changed.append(self._watch)
        self._tell_everything()

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
            self._store.changed.remove(self._watch)
            self._lives.ended(self)

    def freeze(self, how: str, thaw_after: float) -> None:
        """It stops, somebody else takes over, and some time later it goes on, for a few seconds."""
        self._open.clear()
        self._lives.frozen(self, how)
        self._loop.call_later(thaw_after, self._thaw)

    def _thaw(self) -> None:
        if not self.is_dead:
            self._open.set()
            self._loop.call_later(5.0, self.die)

    # Its watches.

    def _watch(self, plural: str, body: Json, before: Json | None) -> None:
        if plural not in WATCHED:
            return
        resource, is_gone = (body, False) if body else (before or {}, True)
        fates = self._board.arrive("event")
        delay = self._board.chance.uniform(0.005, 0.1)
        if any(fate.what == "gap" for fate in fates):
            # The watch is told 410, lists again, and never hears what happened meanwhile.
            self._gap_until = self._loop.time() + 2.0
            self._loop.call_later(2.0, self._tell_everything)
        if self._loop.time() < self._gap_until or any(fate.what == "lost" for fate in fates):
            return
        delay += sum(fate.which for fate in fates if fate.what == "delayed")
        tell = self._told(plural, resource, is_gone=is_gone)
        self._loop.call_later(delay, tell)
        for fate in fates:
            if fate.what == "doubled":
                self._loop.call_later(delay + fate.which, tell)

    def _told(self, plural: str, resource: Json, *, is_gone: bool) -> Callable[[], None]:
        def tell() -> None:
            if self.is_dead:
                return
            if not self._open.is_set():
                self._loop.call_later(1.0, tell)  # it lies in the socket until somebody reads
            elif plural == "streamapps":
                self.operator.on_streamapp_event(KEY, resource, is_gone=is_gone)
            elif plural == "pods":
                self.operator.on_pod_event(KEY, resource)
            else:
                self.operator.on_owned_event(KEY, WATCHED[plural])

        return tell

    def _tell_everything(self) -> None:
        for (plural, _, _), stored in sorted(self._store.objects.items()):
            if plural in WATCHED:
                self._told(plural, stored.body, is_gone=False)()


class Lives:
    """Sees to it that there is always a process, as a Deployment of one replica does."""

    def __init__(self, make: Callable[[int], Instance], loop: VirtualLoop, board: Switchboard) -> None:
        self._make, self._loop, self._board = make, loop, board
        self._count = 0
        self._all: list[Instance] = []
        self._is_over = False
        self.present: Instance | None = None

    def begin(self) -> None:
        """Start one."""
        if self._is_over:
            return
        self._count += 1
        self.present = self._make(self._count)
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
