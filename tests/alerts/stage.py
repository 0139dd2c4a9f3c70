"""A stage for alerts: real processes of the operator, an API server and a broker whose faults a test makes.

The API server is the fake one with its watches and Leases, the pods and the group follow its StatefulSet, and the
broker speaks Kafka's protocol. What is measured is the whole operator: `python -m streamapp`, over real sockets.
"""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from lab.matrix.processes import free_ports
from streamapp.kube.client.kinds import PODS as POD_KIND
from streamapp.kube.client.kinds import STATEFUL_SETS, STREAM_APPS, Kind
from tests.alerts.group_broker import GroupBroker
from tests.alerts.prometheus import Prometheus
from tests.controller.doubles.bench import NAME, a_stream_app
from tests.controller.doubles.fake_group import FakeGroup
from tests.controller.doubles.fake_pods import NAMESPACE, FakePods
from tests.controller.leader.processes import KnowingServer, Replicas, replicas_at
from tests.kube.discovery import discovery

Json = dict[str, Any]
PODS = 4
"""Of the application."""
SETTINGS: dict[str, Any] = {
    "heartbeat_seconds": 1.0,
    "lease_seconds": 6.0,
    "lease_renew_seconds": 4.0,
    "lease_retry_seconds": 0.5,
    "poll_idle_seconds": 2.0,
}
"""Shorter than the defaults; no alert looks at any of them."""


class SlowServer(KnowingServer):
    """The API server, which can keep the answers of some requests back."""

    def __init__(self) -> None:
        super().__init__()
        self.keeps: Callable[[web.Request], bool] = lambda _: False
        """Which requests wait."""
        self.released = asyncio.Event()

    async def _serve(self, received: web.Request) -> web.StreamResponse:
        if self.keeps(received):
            await self.released.wait()
        return await super()._serve(received)

    async def _serve_read(self, received: web.Request) -> web.StreamResponse:
        known = _DISCOVERY.get(received.path)
        return await super()._serve_read(received) if known is None else web.json_response(known)


_DISCOVERY = discovery(
    (
        *(STREAM_APPS, STATEFUL_SETS, POD_KIND),
        Kind("", "v1", "namespaces", "Namespace"),
        Kind("", "v1", "events", "Event"),
        Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"),
    )
)
"""With what kopf looks for before it watches."""


@dataclass(slots=True)
class Stage:
    """One application, its brokers, and the operator's processes."""

    them: Replicas
    server: SlowServer
    group: FakeGroup
    broker: GroupBroker
    ports: dict[str, int]
    """Of each process, by the name of its pod."""

    async def start(self, name: str) -> None:
        """Start a process, or the next one in the same pod."""
        await self.them.start(name, port=self.ports[name], record_bootstrap=self.broker.address)

    async def until_it_shows(self, name: str) -> None:
        """Wait until a process serves its metrics."""
        for _ in range(600):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.ports[name])
                writer.close()
                return
            assert self.them.all[name].process.returncode is None, self.them.all[name].words
            await asyncio.sleep(0.1)
        raise AssertionError(f"{name} does not listen: {self.them.all[name].lines}")

    async def kill(self, name: str) -> None:
        """Kill a process, and wait for its end."""
        self.them.all[name].send(signal.SIGKILL)
        await self.them.all[name].ended()

    def desire(self, replicas: int, **spec: Any) -> None:
        """Write the StreamApp as its user does."""
        app = self.server.get("streamapps", NAMESPACE, NAME) or a_stream_app()
        made = self.server.put("streamapps", {**app, "spec": {**app["spec"], **spec, "replicas": replicas}})
        self.group.app_uid = made["metadata"]["uid"]

    def add(self, name: str, **spec: Any) -> None:
        """Create another StreamApp."""
        app = a_stream_app()
        app["metadata"]["name"] = name
        app["spec"] |= {"kafka": {"bootstrapServers": self.broker.address}, **spec}
        self.server.put("streamapps", app)

    def statefulset(self) -> Json:
        """The application's StatefulSet; empty where there is none."""
        return self.server.get("statefulsets", NAMESPACE, NAME) or {}

    def annotate(self, plural: str, name: str, annotation: str, text: str) -> None:
        """Write an annotation as somebody else."""
        found = self.server.get(plural, NAMESPACE, name)
        assert found is not None, f"{plural} {name}"
        annotations = {**found["metadata"].get("annotations", {}), annotation: text}
        self.server.put(plural, {**found, "metadata": {**found["metadata"], "annotations": annotations}})

    def conditions(self) -> dict[str, str]:
        """The status of each condition of the application."""
        found = self.server.get("streamapps", NAMESPACE, NAME) or {}
        return {one["type"]: one["status"] for one in found.get("status", {}).get("conditions", [])}

    def is_well(self, replicas: int) -> bool:
        """Whether the application has these replicas, is converged, and nothing is wrong."""
        well = {"KafkaReachable": "True", "ProcessIdentityStable": "True", "Converged": "True", "Stalled": "False"}
        granted = self.statefulset().get("spec", {}).get("replicas")
        return granted == replicas and well.items() <= self.conditions().items()


@asynccontextmanager
async def a_stage(folder: Path, *pods: str, **settings: Any) -> AsyncIterator[Stage]:
    """Give a stage whose application is well, led by the first of the operator's pods."""
    server = SlowServer()
    server.put("namespaces", {"metadata": {"name": NAMESPACE, "namespace": ""}})
    async with replicas_at(server, folder, **{**SETTINGS, **settings}) as them:
        group = FakeGroup("", FakePods(server, NAME, _now).running, _now)
        broker = GroupBroker(group)
        await broker.open()
        try:
            stage = Stage(them, server, group, broker, {pod: free_ports(1)[0] for pod in pods})
            stage.desire(PODS, kafka={"bootstrapServers": broker.address})
            for pod in pods:
                await stage.start(pod)
                await stage.until_it_shows(pod)
                await them.until(f"{pod} or another leads", server.leader)
            if pods:
                await them.until("the application is well", lambda: stage.is_well(PODS), 120)
            yield stage
        finally:
            server.released.set()
            await broker.close()


async def scraped(stage: Stage, prometheus: Prometheus) -> None:
    """Wait until every process was scraped and every rule was evaluated, more than once."""
    count = f"count(count_over_time(streamapp_leader[1m]) > 3) == {len(stage.ports)}"
    await prometheus.until("every process is scraped", lambda: prometheus.query(count), 60)
    first = await _evaluations(prometheus)

    async def is_evaluated() -> bool:
        return await _evaluations(prometheus) > first

    await prometheus.until("every rule is evaluated", is_evaluated, 30)


async def _evaluations(prometheus: Prometheus) -> list[str]:
    groups = (await prometheus.get("rules"))["groups"]
    broken = [rule["name"] for group in groups for rule in group["rules"] if rule["health"] == "err"]
    assert broken == []
    return [rule["lastEvaluation"] for group in groups for rule in group["rules"]]


def _now() -> datetime:
    return datetime.now(UTC)
