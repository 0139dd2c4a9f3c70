"""Serves probes and Prometheus metrics over HTTP, and mounts the routes of `http.routes`.

Runs in the event loop of the operator, so that probes fail if the loop hangs.

`/healthz` fails if the process lives but cannot work: a key waits or a pass runs for too long, the API server has
refused lists for too long, or a watch has died. `/readyz` of the leader says whether the first lists have arrived;
`/readyz` of a standby replica says whether it can see the leader. So a rollout proceeds past a standby replica, and the
replica counts for a disruption budget.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from aiohttp import web

from streamapp.controller.leader.leadership import ALONE, Leadership
from streamapp.controller.metrics import Metrics
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError
from streamapp.kube.client.kinds import PODS, STATEFUL_SETS, STREAM_APPS

WATCHED = (STREAM_APPS, STATEFUL_SETS, PODS)
MISSED_HEARTBEATS = 4


@dataclass(slots=True)
class Health:
    """What the probes are answered from."""

    queue_age: Callable[[], float]
    """Seconds that the key due longest has waited."""
    stuck_seconds: float
    heartbeat_seconds: float
    leadership: Leadership = ALONE
    is_ready: bool = False
    _listed_at: dict[str, float] = field(default_factory=dict)
    """When each kind was last listed, on the loop's clock."""

    def faults(self) -> list[str]:
        """What is wrong, as sentences; empty where nothing is."""
        now = asyncio.get_running_loop().time()
        problems = []
        age = self.queue_age()
        if age > self.stuck_seconds:
            problems.append(
                f"work queue: a StreamApp has waited or run for {age:.0f} s, the limit is {self.stuck_seconds:.0f} s"
            )
        for kind, at in self._listed_at.items():
            if now - at > MISSED_HEARTBEATS * self.heartbeat_seconds:
                problems.append(f"watch: listing {kind} has failed for {now - at:.0f} s")
        return problems

    def unready(self) -> str:
        """Why nothing can be expected of this process, as a sentence; empty where it can."""
        if self.leadership.leads():
            return "" if self.is_ready else "cache not synced"
        return self.leadership.blind()

    async def beat(self, client: KubeClient, namespaces: tuple[str, ...]) -> None:
        """List every watched kind again and again, the least there is, until cancelled."""
        loop = asyncio.get_running_loop()
        self._listed_at = {kind.plural: loop.time() for kind in WATCHED}
        while True:
            for kind in WATCHED:
                try:
                    for namespace in namespaces or (None,):
                        await client.heartbeat(kind, namespace)
                    self._listed_at[kind.plural] = loop.time()
                except KubeError:
                    continue  # how long it has failed is what counts
            await asyncio.sleep(self.heartbeat_seconds)


async def serve(port: int, health: Health, metrics: Metrics, routes: Iterable[web.RouteDef] = ()) -> web.AppRunner:
    """Start the server, with these routes beside its own; `cleanup` of what it gives ends it."""

    async def healthz(_: web.Request) -> web.Response:
        faults = health.faults()
        return web.Response(status=500 if faults else 200, text="\n".join(faults) or "ok")

    async def readyz(_: web.Request) -> web.Response:
        why_not = health.unready()
        role = "ok" if health.leadership.leads() else f"standby, leader is {health.leadership.holder or 'unknown'}"
        return web.Response(status=503 if why_not else 200, text=why_not or role)

    async def show(_: web.Request) -> web.Response:
        metrics.queue_oldest_seconds.set(health.queue_age())
        return web.Response(body=metrics.text(), headers={"Content-Type": "text/plain; version=1.0.0; charset=utf-8"})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", show)])
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, port=port).start()
    return runner
