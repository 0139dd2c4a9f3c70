"""The whole shell but kopf and the queue, on the fake API server and the fake group, in time that the test moves.

A *bench* stands for one cluster with one StreamApp. `restart` throws the operator's process away and starts another;
`run` moves the time and makes a poll and a pass every second. What the operator promises is watched at every write.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from kubernetes.aio.client.configuration import Configuration

from streamapp.api.objects.manifests import Installation
from streamapp.controller.agents.access import AgentGateway
from streamapp.controller.agents.keys import KeyFile
from streamapp.controller.agents.trust import AgentTrust
from streamapp.controller.apps.apps import Applications, ClusterAccess
from streamapp.controller.apps.group_poller import PollIntervals
from streamapp.controller.metrics import Metrics
from streamapp.controller.reconcile.apply import Applier
from streamapp.controller.reconcile.gather import Gatherer
from streamapp.controller.reconcile.reconciler import Reconciler
from streamapp.controller.reconcile.report import Reporter
from streamapp.controller.record.recorder import PassRecorder
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError
from streamapp.kube.client.kinds import Key
from streamapp.kube.objects import from_json
from tests.conformance import violations
from tests.controller.doubles.fake_agents import FakeAgents
from tests.controller.doubles.fake_group import FakeGroup
from tests.controller.doubles.fake_pods import NAMESPACE, FakePods
from tests.kube.api_server import ApiServer
from tests.support.example import NOW

Json = dict[str, Any]
NAME = "counter"
KEY = Key(NAMESPACE, NAME)
NEVER = 1e6
INSTALLATION = Installation(name="test", seed_image="seed:test", agent_image="agent:test")


class Bench:
    """One cluster, one StreamApp, one operator at a time."""

    def __init__(self, url: str, server: ApiServer, clock: "Clock") -> None:
        self.clock = clock
        self.server = server
        self.pods = FakePods(server, NAME, clock.now)
        self.group = FakeGroup("", self.pods.running, clock.now)
        self.agents = FakeAgents(self.pods.running, self.group, clock.now)
        self.keys = KeyFile("")
        self.wirings: list[ClusterAccess] = []
        """With what each connection was made."""
        self.recorder = PassRecorder.off()
        """Of every process that is started from now on."""
        self.wrongs: list[str] = []
        """Promises that were broken, as sentences."""
        self.url = url
        self._told_of = 0
        self._began_at = clock.now()
        server.changed.append(self._watch_promises)

    async def restart(self) -> None:
        """Start a process that remembers nothing, in place of the one before."""
        await self.stop()
        configuration = Configuration(host=self.url)
        self.client = KubeClient(configuration, deadline_seconds=5)
        self.metrics = Metrics()
        installation = replace(INSTALLATION, accepted=self.keys.accepted)
        agents = AgentGateway(self.agents, self.keys, self.metrics, AgentTrust(self.clock.monotonic))
        # The test makes every poll; the task of the application makes the first and then sleeps.
        pace = PollIntervals(NEVER, NEVER, NEVER)
        self.applications = Applications(self._connect, pace, lambda _: None, self.clock.now)
        self.gatherer = Gatherer(
            self.client, self.applications, installation, self.clock.now, self.clock.monotonic, agents
        )
        self.applier = Applier(self.client, installation, self.metrics, self.clock.monotonic, agents)
        reporter = Reporter(self.client, self.metrics, "test", self.clock.now)
        self.reconciler = Reconciler(self.gatherer, self.applier, reporter, self.applications, recorder=self.recorder)

    async def stop(self) -> None:
        """End the process."""
        if hasattr(self, "client"):
            self.applications.close()
            await self.client.close()

    async def make_pass(self) -> bool:
        """Poll the group and run one pass; tell whether the pass came to its end."""
        return await self.make_pass_of(self.applications, self.reconciler.reconcile)

    async def make_pass_of(
        self, applications: Applications, reconcile: Callable[[Key], Awaitable[float | None]]
    ) -> bool:
        """Have another process do the same."""
        application = applications.find(KEY)
        if application is not None and application.watch is not None:
            for pod in self.pods.deleted[self._told_of :]:
                application.memory.record_terminations(from_json.container_ends(pod), self.clock.now())
            self._told_of = len(self.pods.deleted)
            await application.watch.poll()
        self._began_at = self.clock.now()
        try:
            await reconcile(KEY)
        except KubeError:
            return False
        return True

    async def run(self, until: Callable[[], bool], seconds: int = 240) -> None:
        """Let time pass until something is so."""
        for _ in range(0, seconds, 2):
            if until():
                return
            self.clock.move(2)
            await self.make_pass()
        raise AssertionError(f"not within {seconds} s: {self.status().get('conditions')}, wrongs {self.wrongs}")

    def desired(self, replicas: int, **spec: Any) -> None:
        """Write the StreamApp as its user does."""
        app = self.server.get("streamapps", NAMESPACE, NAME) or a_stream_app()
        app = {**app, "spec": {**app["spec"], **spec, "replicas": replicas}}
        made = self.server.put("streamapps", app)
        self.group.app_uid = made["metadata"]["uid"]

    def statefulset(self) -> Json:
        """The StatefulSet as it is; empty where there is none."""
        return self.server.get("statefulsets", NAMESPACE, NAME) or {}

    def granted(self) -> int:
        """Its replicas; 0 where there is none."""
        return int(self.statefulset().get("spec", {}).get("replicas", 0))

    def record(self) -> str | None:
        """The hold record."""
        text: str | None = (
            self.statefulset().get("metadata", {}).get("annotations", {}).get("streamapp.dev/hold-record")
        )
        return text

    def status(self) -> Json:
        """The StreamApp's status."""
        found: Json = (self.server.get("streamapps", NAMESPACE, NAME) or {}).get("status", {})
        return found

    def condition(self, kind: str) -> tuple[str, str]:
        """Status and reason of a condition."""
        found: Json = next((each for each in self.status().get("conditions", []) if each["type"] == kind), {})
        return found.get("status", ""), found.get("reason", "")

    def is_settled(self, replicas: int) -> bool:
        """Whether everything is as wished for and nothing is left of what was done for it."""
        budget = self.server.get("poddisruptionbudgets", NAMESPACE, NAME) or {}
        return (
            self.granted() == replicas
            and self.record() is None
            and budget.get("spec", {}).get("maxUnavailable") == 1
            and self.condition("Converged") == ("True", "Converged")
            and self.status().get("statefulSetReplicas") == replicas
        )

    def _connect(self, cluster_access: ClusterAccess) -> FakeGroup:
        self.wirings.append(cluster_access)
        return self.group

    def _watch_promises(self, plural: str, body: Json, before: Json | None) -> None:
        if before is None or not body:
            return
        if plural == "streamapps":
            self._watch_status(body, before)
        if plural == "statefulsets":
            self._watch_replicas(body, before)

    def _watch_status(self, body: Json, before: Json) -> None:
        """Whatever else a test is about, every status that is written is what Kubernetes' conventions ask for."""
        if body.get("status") in (None, before.get("status")):
            return
        status, generation, now = body["status"], body["status"].get("observedGeneration", 0), self._began_at
        self.wrongs += violations(status, generation=generation, now=now, previous=before.get("status"))
        if generation > body["metadata"]["generation"]:
            self.wrongs.append(f"observed generation {generation}, which is not there yet")

    def _watch_replicas(self, body: Json, before: Json) -> None:
        was, now = before["spec"]["replicas"], body["spec"]["replicas"]
        if now >= was:
            return
        wished = (self.server.get("streamapps", NAMESPACE, NAME) or a_stream_app())["spec"]["replicas"]
        if was - now > 1 and self.group.tasks_from(now):
            self.wrongs.append(f"{was} to {now} in one step")
        if now < wished:
            self.wrongs.append(f"{was} to {now}, although {wished} are wished for")
        left = self.group.uncovered_without(now)
        if left:
            self.wrongs.append(f"{was} to {now}, although nobody else has {sorted(map(str, left))}")


class Clock:
    """Time that only a test moves."""

    def __init__(self) -> None:
        self._now = NOW

    def now(self) -> datetime:
        """The time; each look is a little later, as it is everywhere else."""
        self._now += timedelta(microseconds=1)
        return self._now

    def monotonic(self) -> float:
        """The same, as seconds."""
        return (self.now() - NOW).total_seconds()

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self._now += timedelta(seconds=seconds)


@asynccontextmanager
async def a_bench(replicas: int = 4, **spec: Any) -> AsyncIterator[Bench]:
    """Give a bench whose application has been converged for a while."""
    clock = Clock()
    server = ApiServer(clock.now)
    async with server.serving() as url:
        bench = Bench(url, server, clock)
        bench.desired(replicas, **spec)
        await bench.restart()
        try:
            await bench.run(lambda: bench.is_settled(replicas))
            yield bench
        finally:
            await bench.stop()


def a_stream_app() -> Json:
    """The StreamApp."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "streamapp.dev/v1alpha1",
        "kind": "StreamApp",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "replicas": 1,
            "applicationId": "wordcount",
            "kafka": {"bootstrapServers": "kafka:9092"},
            "template": {"spec": {"containers": [{"name": "app", "image": "app:1"}]}},
            "state": {"mountPath": "/state", "volumeClaimTemplate": claim},
            "scaleDown": {"stabilizationWindow": "2s"},
        },
    }
