"""Serves probes and Prometheus metrics over HTTP; metrics over HTTPS where there is a certificate.

Probes have a port of their own then, and stay plain: a broken certificate must not restart the operator. All of it runs
in the event loop of the operator, so that probes fail if the loop hangs.

`/healthz` fails if the process lives but cannot work: a key waits or a pass runs for too long, no watched namespace
could be listed for too long, or the wall clock was set. A namespace that is gone, beside others that can be listed, is
no reason to restart: that would restore no Role. `/readyz` of the leader says whether the first lists have arrived;
`/readyz` of a standby replica says whether it can see the leader. So a rollout proceeds past a standby replica, and the
replica counts for a disruption budget.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

from aiohttp import web

from streamapp.controller.leader.leadership import ALONE, Leadership
from streamapp.controller.metrics import Metrics
from streamapp.controller.namespaces import WATCHED, Namespace, WatchedNamespaces
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError
from streamapp.kube.client.kinds import Kind

MISSED_HEARTBEATS = 4
MOST_CLOCK_OFFSET = timedelta(seconds=30)
"""A clock that was set by more makes the probe fail: a process with an empty memory is safe, and has the right time."""


@dataclass(slots=True)
class Health:
    """What the probes are answered from."""

    queue_age: Callable[[], float]
    """Seconds that the key due longest has waited."""
    stuck_seconds: float
    heartbeat_seconds: float
    leadership: Leadership = ALONE
    namespaces: WatchedNamespaces = field(default_factory=WatchedNamespaces)
    clock_offset: Callable[[], timedelta] = timedelta
    """How far the wall clock is ahead of the one that dates everything."""

    def faults(self) -> list[str]:
        """What is wrong, as sentences; empty where nothing is."""
        now = asyncio.get_running_loop().time()
        problems = []
        age = self.queue_age()
        if age > self.stuck_seconds:
            problems.append(
                f"work queue: a StreamApp has waited or run for {age:.0f} s, the limit is {self.stuck_seconds:.0f} s"
            )
        offset = abs(self.clock_offset())
        if offset > MOST_CLOCK_OFFSET:
            problems.append(f"clock: it was set by {offset.total_seconds():.0f} s, and a new process begins with it")
        return [*problems, *self.namespaces.faults(now, MISSED_HEARTBEATS * self.heartbeat_seconds)]

    def unready(self) -> str:
        """Why nothing can be expected of this process, as a sentence; empty where it can."""
        if self.leadership.leads():
            return "" if self.namespaces.is_synced else "cache not synced"
        return self.leadership.blind()

    async def beat(self, client: KubeClient) -> None:
        """List every watched kind in every namespace again and again, the least there is, until cancelled."""
        self.namespaces.begin(asyncio.get_running_loop().time())
        while True:
            await asyncio.gather(*(self._beat_in(client, namespace) for namespace in self.namespaces.names))
            await asyncio.sleep(self.heartbeat_seconds)

    async def _beat_in(self, client: KubeClient, namespace: Namespace) -> None:
        errors = await asyncio.gather(*(self._list(client, namespace, kind) for kind in WATCHED))
        self.namespaces.report(namespace, next((error for error in errors if error is not None), None))

    async def _list(self, client: KubeClient, namespace: Namespace, kind: Kind) -> KubeError | None:
        try:
            await client.heartbeat(kind, namespace)
        except KubeError as error:
            return error
        self.namespaces.listed(namespace, kind, asyncio.get_running_loop().time())
        return None


async def serve(port: int, health: Health, metrics: Metrics, *, shows_metrics: bool = True) -> web.AppRunner:
    """Serve probes, and metrics unless they have a port of their own; `cleanup` of what it gives ends it."""

    async def healthz(_: web.Request) -> web.Response:
        faults = health.faults()
        return web.Response(status=500 if faults else 200, text="\n".join(faults) or "ok")

    async def readyz(_: web.Request) -> web.Response:
        why_not = health.unready()
        role = "ok" if health.leadership.leads() else f"standby, leader is {health.leadership.holder or 'unknown'}"
        return web.Response(status=503 if why_not else 200, text=why_not or role)

    routes = [web.get("/healthz", healthz), web.get("/readyz", readyz)]
    if shows_metrics:
        routes.append(of_metrics(health, metrics))
    runner = await runner_of(routes)
    await web.TCPSite(runner, None, port).start()
    return runner


async def serve_metrics(port: int, health: Health, metrics: Metrics, tls: ssl.SSLContext) -> web.AppRunner:
    """Serve metrics over HTTPS; `cleanup` of what it gives ends it."""
    runner = await runner_of([of_metrics(health, metrics)])
    await web.TCPSite(runner, None, port, ssl_context=tls).start()
    return runner


def of_metrics(health: Health, metrics: Metrics) -> web.RouteDef:
    """The route to the metrics."""

    async def show(_: web.Request) -> web.Response:
        metrics.queue_oldest_seconds.set(health.queue_age())
        return web.Response(body=metrics.text(), headers={"Content-Type": "text/plain; version=1.0.0; charset=utf-8"})

    return web.get("/metrics", show)


async def runner_of(routes: Iterable[web.RouteDef]) -> web.AppRunner:
    """Give what can serve these routes on any address; `cleanup` of it ends that."""
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    return runner
