"""Replicas of the operator on one bench: each is the product's `Operator` with the product's elector, on one clock.

Kopf and the timers are left out: at each round of the test every replica that is awake does what is due.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from kubernetes.aio.client.configuration import Configuration

from streamapp.controller.apps.apps import ClusterAccess
from streamapp.controller.leader.election import Elector, LeaseTiming
from streamapp.controller.leader.leadership import NotLeadingError
from streamapp.controller.ports import ApplicationGroup
from streamapp.controller.process import Operator
from streamapp.controller.settings import Settings
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError
from streamapp.kube.client.kinds import Key
from tests.controller.doubles.bench import INSTALLATION, NEVER, Bench

TIMING = LeaseTiming(lease=15, renew=10, retry=2)
LEASE = Key("system", "streamapp-operator")


class _Operator(Operator):
    """The product's, on the bench's brokers."""

    def __init__(self, bench: Bench, name: str, client: KubeClient, elector: Elector) -> None:
        settings = Settings(
            instance=name,
            installation=INSTALLATION.name,
            seed_image=INSTALLATION.seed_image,
            agent_image=INSTALLATION.agent_image,
            poll_idle_seconds=NEVER,
            poll_busy_seconds=NEVER,
            poll_rebalance_seconds=NEVER,
        )
        clock = bench.clock
        super().__init__(settings, client, clock.now, clock.monotonic, bench.agents, leadership=elector)
        self._bench = bench
        self.queue._closed = True  # the test makes every pass

    def connect(self, _: ClusterAccess) -> ApplicationGroup:
        return self._bench.group

    async def make_pass(self) -> bool:
        """Poll and run one pass."""
        return await self._bench.make_pass_of(self.applications, self._reconcile)


class Replica:
    """One process."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.name, self.losses = name, 0
        self.is_dead = self.is_frozen = False
        self._bench = bench
        self._line = KubeClient(Configuration(host=bench.url), deadline_seconds=5)
        clock = bench.clock
        self.elector = Elector(
            self._line, LEASE, f"{name}_1", TIMING, lost=self._lost, monotonic=clock.monotonic, now=clock.now
        )
        self.client = KubeClient(Configuration(host=bench.url), deadline_seconds=5, may_write=self._may_write)
        self.operator = _Operator(bench, name, self.client, self.elector)

    async def act(self) -> None:
        """Do what is due: look at the Lease, or renew it and make a pass."""
        if self.is_dead or self.is_frozen:
            return
        if not self.elector.leads():
            await self.elector.look()
        else:
            with suppress(KubeError):
                await self.elector.renew()
            if not self.is_dead:
                await self.operator.make_pass()

    async def stop(self) -> None:
        """End in order."""
        await self.operator.close()
        await self.elector.release()
        self.is_dead = True

    async def close(self) -> None:
        """Drop the connections."""
        await self.operator.close()
        await self.client.close()
        await self._line.close()

    def _may_write(self) -> None:
        if self.is_dead and not self.is_frozen:
            raise NotLeadingError(self.name, "it is dead", "its pass would not go on either")
        self.elector.check()

    def _lost(self) -> None:
        self.losses += 1
        self.is_dead = True


class Replicas:
    """All of them."""

    def __init__(self, bench: Bench, *names: str) -> None:
        self._bench = bench
        self.all = [Replica(bench, name) for name in names]

    async def round(self) -> None:
        """Let two seconds pass."""
        self._bench.clock.move(2)
        for one in self.all:
            await one.act()

    async def until(self, holds: Callable[[], bool], seconds: int = 240) -> float:
        """Let time pass until something is so; give the seconds that took."""
        began = self._bench.clock.monotonic()
        while not holds():
            took = self._bench.clock.monotonic() - began
            assert took < seconds, f"not within {seconds} s: {self._bench.status()}, {self._bench.wrongs}"
            await self.round()
        return self._bench.clock.monotonic() - began

    async def close(self) -> None:
        """End them."""
        for one in self.all:
            await one.close()


async def with_replicas(bench: Bench, story: Callable[[Replicas, Replica, Replica], Awaitable[None]]) -> None:
    """Have two replicas look after the bench's application in place of its operator, the first of them leading."""
    await bench.stop()
    them = Replicas(bench, "one", "two")
    try:
        one, two = them.all
        await them.until(lambda: one.elector.leads() and bench.is_settled(bench.granted()), 60)
        await story(them, one, two)
    finally:
        await them.close()
