"""Gathers all facts for one decision: live reads of Kubernetes, and what the process remembers of the group.

Called by `reconcile.reconciler` at the beginning of every pass. It reads and remembers; it neither writes nor decides.
Nothing of Kubernetes comes from a cache: a watch may be behind, and the decision can be irreversible.
"""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from streamapp.api.objects import manifests
from streamapp.api.status.translate import app_of, policy_of
from streamapp.api.validation.parse import InvalidStreamApp, StreamApp, parse
from streamapp.controller.agents.access import AgentGateway
from streamapp.controller.agents.poller import AgentPoller
from streamapp.controller.agents.topology import contradiction
from streamapp.controller.apps.apps import Application, Applications, ClusterAccess
from streamapp.controller.apps.memory import Memory
from streamapp.controller.leader.clock import seconds_since_boot
from streamapp.controller.leader.leadership import ALONE, Leadership
from streamapp.controller.reconcile.autoscalers import AutoscalerLister
from streamapp.core.evidence import eviction
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import App, Snapshot
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.workload import StatefulSet, Volume, Workload
from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.errors import KubeError
from streamapp.kube.client.kinds import BUDGETS, CLAIMS, PODS, SECRETS, STATEFUL_SETS, STREAM_APPS, Key
from streamapp.kube.objects import claims, from_json, statefulsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The objects as they were read, for the writes that need them."""

    app: Json
    statefulset: Json | None
    pods: tuple[Json, ...]
    claims: tuple[Json, ...]
    budget: Json | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Everything about one application in one pass."""

    key: Key
    streamapp: StreamApp | InvalidStreamApp
    live: Live
    snapshot: Snapshot
    policy: ScalingPolicy
    application: Application
    taken_at: float
    """When `snapshot.now` was, on the monotonic clock: the wall clock can be set."""


class Gatherer:
    """Reads for all applications."""

    def __init__(
        self,
        client: KubeClient,
        applications: Applications,
        installation: manifests.Installation,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = seconds_since_boot,
        agents: AgentGateway | None = None,
        *,
        leadership: Leadership = ALONE,
    ) -> None:
        self._client = client
        self._leadership = leadership
        self._agents = agents
        self._agent_poller = None if agents is None else AgentPoller(agents, now)
        self._monotonic = monotonic
        self._autoscaler_lister = AutoscalerLister(client, monotonic)
        self._applications = applications
        self._installation = installation
        self._now = now

    async def gather(self, key: Key) -> Gathered | None:
        """Read everything; None where the StreamApp is gone. Raises KubeError."""
        read_at = self._now()
        resource = await self._client.find(STREAM_APPS, key.namespace, key.name)
        if resource is None:
            if self._agents is not None:
                self._agents.forget(key)
            return None
        self._applications.remember_resource(key, resource)
        streamapp = parse(resource)
        application = self._applications.get(key, streamapp.metadata.uid)
        application.memory.record_desired(streamapp.replicas, read_at)
        if isinstance(streamapp, StreamApp):
            self._applications.connect_group(
                key, application, await self._cluster_access(streamapp, application.memory)
            )
        live = await self._live(key, resource, streamapp, application)
        return self._gathered(key, streamapp, application, live, self._workload(streamapp, live, read_at))

    def _gathered(
        self,
        key: Key,
        streamapp: StreamApp | InvalidStreamApp,
        application: Application,
        live: Live,
        workload: Workload,
    ) -> Gathered:
        memory, now = application.memory, self._now()
        taken_at = self._monotonic()
        policy = policy_of(streamapp) if isinstance(streamapp, StreamApp) else ScalingPolicy()
        memory.workload, memory.lag_limit = workload, policy.acceptable_recovery_lag
        memory.has_volumes = isinstance(streamapp, StreamApp) and streamapp.spec.state is not None
        for pod in live.pods:
            memory.record_terminations(from_json.container_ends(pod), now)
        _remember_who_is_where(memory, streamapp, workload)
        snapshot = Snapshot(
            now=now,
            app=self._app(key, streamapp, application),
            workload=workload,
            task_set=self._task_set(streamapp, memory, workload),
            agents=memory.agents if policy.agent else None,
            lease=self._leadership.transitions,
            readings=memory.readings,
            observed=memory.observed,
            container_ends=tuple(memory.ends.values()),
            rebalances=memory.rebalances,
            episode=memory.episode,
            topic_configs=memory.topic_configs,
            replica_writers=self._autoscaler_lister.replica_writers(key, live.app),
        )
        return Gathered(
            key=key,
            streamapp=streamapp,
            live=live,
            snapshot=snapshot,
            policy=policy,
            application=application,
            taken_at=taken_at,
        )

    def _task_set(
        self, streamapp: StreamApp | InvalidStreamApp, memory: Memory, workload: Workload
    ) -> TaskSet | TopologyUnknown:
        in_spec = streamapp.spec.topology if isinstance(streamapp, StreamApp) else ""
        return contradiction(in_spec, memory.reported_topology, workload) or memory.task_set

    def _app(self, key: Key, streamapp: StreamApp | InvalidStreamApp, application: Application) -> App:
        memory = application.memory
        conflicting = self._applications.conflicting(key, streamapp) if isinstance(streamapp, StreamApp) else ()
        app = app_of(streamapp, history=memory.desired_samples, conflicting=conflicting)
        refusal = memory.rejection
        if refusal is None or refusal.generation != app.generation or self._now() >= refusal.until:
            return app
        return replace(app, fault=app.fault or refusal.why)

    async def _live(
        self, key: Key, resource: Json, streamapp: StreamApp | InvalidStreamApp, application: Application
    ) -> Live:
        client, namespace = self._client, key.namespace
        statefulset_read = asyncio.ensure_future(client.find(STATEFUL_SETS, namespace, key.name))
        statefulset, pods, labelled, budget, _ = await asyncio.gather(
            statefulset_read,
            self._pods(key, streamapp, application, statefulset_read),
            client.list(CLAIMS, namespace, key.selector),
            client.find(BUDGETS, namespace, key.name),
            self._autoscalers(key, streamapp, statefulset_read),
        )
        # After the pods: a claim is there before its pod, so a pod that was just made has one in view too.
        others = await claims.missing_from(client, key, labelled, _claim_names(streamapp, pods))
        return Live(app=resource, statefulset=statefulset, pods=tuple(pods), claims=(*labelled, *others), budget=budget)

    async def _pods(
        self,
        key: Key,
        streamapp: StreamApp | InvalidStreamApp,
        application: Application,
        statefulset: Awaitable[Json | None],
    ) -> list[Json]:
        """Read the pods, and poll their agents as soon as their addresses are known."""
        live = await self._client.list(PODS, key.namespace, key.selector)
        if self._agent_poller is not None and isinstance(streamapp, StreamApp):
            await self._agent_poller.poll_agents(key, streamapp, application, await statefulset, live)
        return live

    async def _autoscalers(
        self, key: Key, streamapp: StreamApp | InvalidStreamApp, statefulset: Awaitable[Json | None]
    ) -> None:
        """List the autoscalers, unless the application scales up: a scale-up waits for nothing."""
        live = await statefulset
        if live is not None and streamapp.replicas <= live["spec"]["replicas"]:
            await self._autoscaler_lister.refresh(key.namespace)

    async def _cluster_access(self, streamapp: StreamApp, memory: Memory) -> ClusterAccess:
        kafka, properties, fault = streamapp.spec.kafka, {}, None
        if kafka.config_secret_ref is not None:
            name = kafka.config_secret_ref.name
            try:
                secret = await self._client.get(SECRETS, streamapp.metadata.namespace, name)
                properties = {name: base64.b64decode(text).decode() for name, text in secret.get("data", {}).items()}
            except (KubeError, ValueError) as error:
                fault = f"secret {name}: {error}"
        return ClusterAccess(
            bootstrap=kafka.bootstrap_servers,
            properties=tuple(sorted(properties.items())),
            application_id=streamapp.spec.application_id,
            topology=streamapp.spec.topology if streamapp.spec.topology.strip() else memory.topology,
            fault=fault,
        )

    def _workload(self, streamapp: StreamApp | InvalidStreamApp, live: Live, read_at: datetime) -> Workload:
        spec = streamapp.spec if isinstance(streamapp, StreamApp) else None
        volumes: tuple[Volume, ...] = ()
        if spec is not None and spec.state is not None:
            volumes = from_json.volumes(
                live.claims, spec.state.claim_name, streamapp.metadata.name, spec.application_id
            )
        uid = None if live.statefulset is None else live.statefulset["metadata"]["uid"]
        container = "" if spec is None else str(spec.application_container["name"])
        return Workload(
            read_at=read_at,
            statefulset=self._statefulset(streamapp, live.statefulset),
            pods=from_json.pods(live.pods, streamapp.metadata.name, uid, container),
            volumes=volumes,
            budget=from_json.budget(live.budget),
        )

    def _statefulset(self, streamapp: StreamApp | InvalidStreamApp, live: Json | None) -> StatefulSet | None:
        if live is None:
            return None
        is_ours = manifests.is_ours(streamapp, self._installation, live)
        if not isinstance(streamapp, StreamApp):
            return from_json.statefulset(live, is_ours=is_ours, template_is_written=True)
        is_written = manifests.template_is_written(streamapp, self._installation, live)
        return from_json.statefulset(
            live,
            is_ours=is_ours,
            template_is_written=is_written and statefulsets.is_handed_over(live),
        )


def _claim_names(streamapp: StreamApp | InvalidStreamApp, pods: Sequence[Json]) -> frozenset[str]:
    """The claims that the pods use for their state; none where no state is kept."""
    state = streamapp.spec.state if isinstance(streamapp, StreamApp) else None
    if state is None:
        return frozenset()
    return frozenset(f"{state.claim_name}-{pod['metadata']['name']}" for pod in pods)


def _remember_who_is_where(memory: Memory, streamapp: StreamApp | InvalidStreamApp, workload: Workload) -> None:
    if not isinstance(streamapp, StreamApp):
        return  # an invalid spec does not name the application's container, so no member can be placed in one
    latest = memory.readings[0] if memory.readings else None
    if latest is not None and latest.ended_at != memory.observed_at:
        memory.observed = eviction.remember(memory.observed, latest, workload)
        memory.observed_at = latest.ended_at
