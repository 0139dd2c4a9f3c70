"""Gathers all facts for one decision: live reads of Kubernetes, and what the process remembers of the group.

Called by `reconcile.reconciler` at the beginning of every pass. It reads and remembers; it neither writes nor decides.
It reads what the shared watches told, or live: what a pass does beside raising and reporting rests on live reads
(docs/decisions/0011-watches.md). Which member runs in which container is remembered from live reads alone.

It reads in two rounds. The StreamApp and the StatefulSet come first, since a raise needs nothing else.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from streamapp.api.objects import drift, manifests
from streamapp.api.status.translate import app_of, desired_since, policy_of, raised_standbys_of
from streamapp.api.v1alpha1.spec import Kafka
from streamapp.api.validation.parse import InvalidStreamApp, Parsed, StreamApp, parse
from streamapp.controller.agents.access import AgentGateway
from streamapp.controller.agents.poller import AgentPoller
from streamapp.controller.agents.topology import contradiction
from streamapp.controller.apps.apps import Application, Applications, ClusterAccess
from streamapp.controller.apps.client_secrets import read_client_properties
from streamapp.controller.apps.memory import Memory
from streamapp.controller.apps.raise_watch import RaiseWatch
from streamapp.controller.leader.clock import earliest, seconds_since_boot
from streamapp.controller.leader.leadership import ALONE, Leadership
from streamapp.controller.reconcile.autoscalers import AutoscalerLister
from streamapp.controller.reconcile.drift_check import DriftCheck
from streamapp.controller.reconcile.node_drains import NodeDrains
from streamapp.controller.reconcile.quotas import QuotaLister
from streamapp.controller.reconcile.shared_watch import SHARED
from streamapp.core.evidence import eviction
from streamapp.core.evidence.evidence import uncontradicted
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import App, Raise, Snapshot
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.workload import StatefulSet, Volume, Workload
from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.kinds import BUDGETS, CLAIMS, PODS, SERVICES, STATEFUL_SETS, STREAM_APPS, Key
from streamapp.kube.client.object_cache import ObjectCache
from streamapp.kube.objects import claims, from_json, statefulsets

PLACED_WITHIN = timedelta(seconds=60)
"""After this a member that no container could be found for is taken for one that runs elsewhere."""
SECRET_SECONDS = 120.0
"""Between two reads of a Secret at rest, while the group can be read with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The objects as they were read, for the writes that need them."""

    app: Json
    statefulset: Json | None
    pods: tuple[Json, ...]
    claims: tuple[Json, ...]
    budget: Json | None
    service: Json | None = None
    """Where watches told of it; live passes read it when they compare it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFacts:
    """All that a raise needs: the StreamApp and the StatefulSet, read in the first round."""

    key: Key
    resource: Json
    streamapp: StreamApp | InvalidStreamApp
    application: Application
    app: App
    live_statefulset: Json | None
    statefulset: StatefulSet | None
    read_at: datetime
    """When the reads began."""
    taken_at: float
    """Just before that, on the monotonic clock: the wall clock can be set."""
    is_live: bool = True
    """Whether the API server was asked; else the watches told it."""

    @property
    def current(self) -> int:
        """Replicas of the StatefulSet; 0 if it is missing."""
        return 0 if self.statefulset is None else self.statefulset.replicas

    @property
    def highest(self) -> int:
        """Replicas above which a StreamApp that is received later wants a raise."""
        return max(self.current, self.app.desired.replicas)


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
    """Just before the first read, on the monotonic clock: nothing of Kubernetes is older, however slow the answers."""
    raises: RaiseWatch
    """Of more replicas than are desired or there now; asked while a plan is made."""
    is_live: bool = True
    """Whether the API server was asked; else the watches told it, and nothing may be removed, made or forced by it."""


@dataclass(frozen=True, slots=True)
class OtherInstallation:
    """The StreamApp belongs to another installation of the operator."""

    name: str


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
        self._cache: ObjectCache | None = None
        self._node_drains: NodeDrains | None = None
        self._leadership = leadership
        self._agents = agents
        self._agent_poller = None if agents is None else AgentPoller(agents, now, client)
        self._monotonic = monotonic
        self._autoscaler_lister = AutoscalerLister(client, monotonic)
        self._quota_lister = QuotaLister(client, monotonic)
        self._drift_check = DriftCheck(client, installation, monotonic)
        self._applications = applications
        self._installation = installation
        self._now = now

    def begin_with(self, cache: ObjectCache, node_drains: NodeDrains | None = None) -> None:
        """Read from now on what the shared watches told, where that is enough; and the nodes, if they are watched."""
        self._cache = cache
        self._node_drains = node_drains
        self._autoscaler_lister.is_clusterwide = None in cache.namespaces

    @property
    def lease(self) -> int:
        """Transitions of the operator's Lease."""
        return self._leadership.transitions

    def can_be_told(self, key: Key) -> bool:
        """Whether all watches have spoken lately, so that a pass can begin with what they told."""
        return self._cache is not None and self._cache.is_current((STREAM_APPS, *SHARED), key.namespace)

    async def read_replicas(self, key: Key, *, live: bool = True) -> ReplicaFacts | OtherInstallation | None:
        """Read the StreamApp and the StatefulSet; None where the StreamApp is gone. Raises KubeError.

        Args:
            key: Of the StreamApp.
            live: Whether to ask the API server; else the watches have told it.
        """
        read_at, taken_at = self._now(), self._monotonic()
        resource, statefulset = await self._replica_objects(key, live=live)
        if resource is None:
            if self._agents is not None:
                self._agents.forget(key)
            return None
        resource = self._applications.remember_resource(key, resource)
        other = manifests.other_installation(resource, self._installation, statefulset)
        if other:
            if self._agents is not None:
                self._agents.kept.forget(key)
            return OtherInstallation(other)
        known = self._applications.find(key)
        streamapp = parse(resource, None if known is None else known.parsed)
        application = self._applications.get(key, streamapp.metadata.uid)
        application.parsed = Parsed(resource, streamapp)
        memory, generation = application.memory, streamapp.metadata.generation
        memory.record_desired(streamapp.replicas, generation, read_at, desired_since(streamapp, read_at))
        # The date first: it is of the API server's clock, the note of another machine's.
        memory.desired_unchanged_since = from_json.replicas_written_at(resource) or memory.desired_noted_since
        facts = ReplicaFacts(
            key=key,
            resource=resource,
            streamapp=streamapp,
            application=application,
            app=self._app(key, streamapp, application, has_statefulset=statefulset is not None),
            live_statefulset=None,
            statefulset=None,
            read_at=read_at,
            taken_at=taken_at,
            is_live=live,
        )
        return self.with_statefulset(facts, statefulset)

    async def _replica_objects(self, key: Key, *, live: bool) -> tuple[Json | None, Json | None]:
        place = key.namespace, key.name
        if not live and self._cache is not None:
            return self._cache.find(STREAM_APPS, *place), self._cache.find(STATEFUL_SETS, *place)
        return await asyncio.gather(self._client.find(STREAM_APPS, *place), self._client.find(STATEFUL_SETS, *place))

    def is_overtaken(self, facts: ReplicaFacts) -> bool:
        """Whether another version of the StatefulSet was seen than these facts have, by a watch or in an answer."""
        seen = None if self._cache is None else self._cache.find(STATEFUL_SETS, facts.key.namespace, facts.key.name)
        had = facts.live_statefulset or {"metadata": {}}
        return seen is not None and seen["metadata"].get("resourceVersion") != had["metadata"].get("resourceVersion")

    def with_statefulset(self, facts: ReplicaFacts, live: Json | None) -> ReplicaFacts:
        """Return the facts with the StatefulSet as it was read, or as a write left it."""
        statefulset = self._statefulset(facts.streamapp, live)
        facts.application.memory.current_replicas = None if statefulset is None else statefulset.replicas
        return replace(facts, live_statefulset=live, statefulset=statefulset)

    async def gather(self, facts: ReplicaFacts, raised: Raise | None = None) -> Gathered:
        """Read the rest. Raises KubeError.

        Args:
            facts: What was read in the first round.
            raised: The raise that was made since.
        """
        key, streamapp, application = facts.key, facts.streamapp, facts.application
        if isinstance(streamapp, StreamApp):
            access = await self._cluster_access(streamapp, application, live=facts.is_live)
            self._applications.connect_group(key, application, access)
        facts = await self._with_drift(facts)
        live = await self._live(facts, is_raised=raised is not None)
        for pod in live.pods:  # before the runs that are over are forgotten
            application.memory.record_terminations(from_json.container_ends(pod), earliest(self._now))
        workload = application.memory.with_runs(self._workload(facts, live), self._now())
        if raised is None:
            limits = await self._quota_lister.limits(key.namespace, workload, live.statefulset)
            workload = replace(workload, quota_limits=limits)
        return self._gathered(facts, live, workload, raised)

    def _gathered(self, facts: ReplicaFacts, live: Live, workload: Workload, raised: Raise | None) -> Gathered:
        key, streamapp, memory = facts.key, facts.streamapp, facts.application.memory
        policy = policy_of(streamapp) if isinstance(streamapp, StreamApp) else ScalingPolicy()
        memory.workload, memory.lag_limit = workload, policy.acceptable_recovery_lag
        memory.has_volumes = isinstance(streamapp, StreamApp) and streamapp.spec.state is not None
        if facts.is_live:
            _remember_what_is_live(memory, streamapp, workload)
        snapshot = Snapshot(
            now=self._now(),
            app=self._app(key, streamapp, facts.application, has_statefulset=workload.statefulset is not None),
            workload=workload,
            task_set=self._task_set(streamapp, memory, workload),
            agents=memory.agents if policy.agent else None,
            speeds=memory.speeds,
            lease=self.lease,
            readings=memory.readings,
            observed=memory.observed,
            container_ends=tuple(memory.ends.values()),
            rebalances=memory.rebalances,
            episode=memory.episode,
            was_at_rest=memory.was_converged and not memory.had_plan,
            topic_configs=memory.topic_configs,
            replica_writers=self._autoscaler_lister.replica_writers(key, live.app),
            raised=raised,
            eviction_turns=memory.eviction_turns,
            lost_standbys=memory.lost_standbys(workload.statefulset, raised_standbys_of(streamapp.status)),
        )
        return Gathered(
            key=key,
            streamapp=streamapp,
            live=live,
            snapshot=uncontradicted(snapshot, policy.timing),
            policy=policy,
            application=facts.application,
            taken_at=facts.taken_at,
            raises=self._applications.watch_raises(key, facts.highest),
            is_live=facts.is_live,
        )

    def _task_set(
        self, streamapp: StreamApp | InvalidStreamApp, memory: Memory, workload: Workload
    ) -> TaskSet | TopologyUnknown:
        in_spec = streamapp.spec.topology if isinstance(streamapp, StreamApp) else ""
        return contradiction(in_spec, memory.reported_topology, workload) or memory.task_set

    def _app(
        self, key: Key, streamapp: StreamApp | InvalidStreamApp, application: Application, *, has_statefulset: bool
    ) -> App:
        memory = application.memory
        conflicting = self._applications.conflicting(key, streamapp) if isinstance(streamapp, StreamApp) else ()
        app = app_of(
            streamapp,
            history=memory.desired_samples,
            unchanged_since=memory.desired_unchanged_since,
            conflicting=conflicting,
        )
        app = replace(
            app,
            unlisted=self._applications.unlisted(),
            in_group=self._applications.is_in_group(key),
            fault=app.fault or self._barred(key, streamapp, has_statefulset=has_statefulset),
        )
        refusal = memory.rejection
        if refusal is None or refusal.generation != app.generation or self._now() >= refusal.until:
            return app
        return app if app.fault else replace(app, fault=refusal.why, is_rejected=True)

    def _barred(self, key: Key, streamapp: StreamApp | InvalidStreamApp, *, has_statefulset: bool) -> str | None:
        """Why the namespace cannot use the application ID, or the StreamApp the names of its claims."""
        if not isinstance(streamapp, StreamApp):
            return None
        unbound = self._applications.bindings.fault(key.namespace, streamapp.spec.application_id)
        return unbound or self._applications.claims_fault(streamapp, has_statefulset=has_statefulset)

    async def _live(self, facts: ReplicaFacts, *, is_raised: bool) -> Live:
        """Read the rest of the objects; after a raise without agents and autoscalers, on which it has no effect yet."""
        client, key = self._client, facts.key
        if not facts.is_live and self._cache is not None:
            return await self._told(facts, self._cache, is_raised=is_raised)
        pods, labelled, budget, _ = await asyncio.gather(
            self._pods(facts, is_raised=is_raised),
            client.list(CLAIMS, key.namespace, key.selector),
            client.find(BUDGETS, key.namespace, key.name),
            self._autoscalers(facts, is_raised=is_raised),
        )
        # After the pods: a claim is there before its pod, so a pod that was just made has one in view too.
        others = await claims.missing_from(client, key, labelled, _claim_names(facts.streamapp, pods))
        return Live(
            app=facts.resource,
            statefulset=facts.live_statefulset,
            pods=tuple(pods),
            claims=(*labelled, *others),
            budget=budget,
        )

    async def _told(self, facts: ReplicaFacts, cache: ObjectCache, *, is_raised: bool) -> Live:
        """The same as the watches told it."""
        key = facts.key
        pods = cache.of_app(PODS, key)
        self._note_runs(facts, pods)
        await asyncio.gather(
            self._poll_agents(facts, pods, is_raised=is_raised), self._autoscalers(facts, is_raised=is_raised)
        )
        labelled = cache.of_app(CLAIMS, key)
        missing = _claim_names(facts.streamapp, pods) - {claim["metadata"]["name"] for claim in labelled}
        others = [cache.find(CLAIMS, key.namespace, name) for name in sorted(missing)]
        return Live(
            app=facts.resource,
            statefulset=facts.live_statefulset,
            pods=tuple(pods),
            claims=(*labelled, *filter(None, others)),
            budget=cache.find(BUDGETS, key.namespace, key.name),
            service=cache.find(SERVICES, key.namespace, key.name),
        )

    def _note_runs(self, facts: ReplicaFacts, pods: Sequence[Json]) -> None:
        """Remember which containers run; before their agents are asked, so that what these say is later."""
        for pod in pods:
            running = from_json.running_containers(pod)
            facts.application.memory.record_runs(pod["metadata"]["uid"], running, self._now())

    async def _pods(self, facts: ReplicaFacts, *, is_raised: bool) -> list[Json]:
        """Read the pods, and poll their agents as soon as their addresses are known."""
        live = await self._client.list(PODS, facts.key.namespace, facts.key.selector)
        self._note_runs(facts, live)
        await self._poll_agents(facts, live, is_raised=is_raised)
        return live

    async def _poll_agents(self, facts: ReplicaFacts, live: list[Json], *, is_raised: bool) -> None:
        key, streamapp = facts.key, facts.streamapp
        if self._agent_poller is not None and isinstance(streamapp, StreamApp):
            statefulset = None if is_raised else facts.live_statefulset
            await self._agent_poller.poll_agents(key, streamapp, facts.application, statefulset, live)

    async def _autoscalers(self, facts: ReplicaFacts, *, is_raised: bool) -> None:
        """List the autoscalers, unless the application scales up: a scale-up waits for nothing."""
        if facts.statefulset is not None and not is_raised and facts.app.desired.replicas <= facts.statefulset.replicas:
            await self._autoscaler_lister.refresh(facts.key.namespace)

    async def _cluster_access(self, streamapp: StreamApp, application: Application, *, live: bool) -> ClusterAccess:
        kafka, memory = streamapp.spec.kafka, application.memory
        if live or self._are_properties_due(application, kafka):
            application.properties_read_at = self._monotonic()
            application.client_properties = await read_client_properties(
                self._client, streamapp.metadata.namespace, kafka, application.client_properties.secrets
            )
        topology = streamapp.spec.topology if streamapp.spec.topology.strip() else memory.topology
        return ClusterAccess.of(streamapp, application.client_properties, topology)

    def _are_properties_due(self, application: Application, kafka: Kafka) -> bool:
        """Whether to read its Secrets again at rest: no watch tells of them, since that takes the right to all."""
        known, readings = application.client_properties, application.memory.readings
        is_known = known.named_by == kafka and known.fault is None
        is_readable = bool(readings) and isinstance(readings[0].group, GroupDescription)
        age = self._monotonic() - application.properties_read_at
        return not (is_known and is_readable) or (bool(known.secrets) and age >= SECRET_SECONDS)

    def _workload(self, facts: ReplicaFacts, live: Live) -> Workload:
        streamapp = facts.streamapp
        spec = streamapp.spec if isinstance(streamapp, StreamApp) else None
        uid = None if live.statefulset is None else live.statefulset["metadata"]["uid"]
        container = "" if spec is None else str(spec.application_container["name"])
        memory = facts.application.memory
        pods = from_json.pods(live.pods, streamapp.metadata.name, uid, container, memory.pods_by_version)
        volumes: tuple[Volume, ...] = ()
        if spec is not None and spec.state is not None:
            asked = {request.pod_uid for request in facts.app.restarts if request.new_volume}
            given_up = {pod.ordinal for pod in pods if pod.uid in asked}
            name, claim = streamapp.metadata.name, spec.state.claim_name
            volumes = from_json.volumes(live.claims, claim, name, spec.application_id, given_up)
            volumes = memory.with_refused_expansions(volumes, spec.state.volume_bytes, self._now())
        budget, drains = from_json.budget(live.budget), self._node_drains
        return Workload(
            read_at=facts.read_at,
            statefulset=facts.statefulset,
            pods=pods if drains is None else drains.on_pods(pods),
            volumes=volumes,
            budget=budget.allows,
            evictable=budget.evictable,
            budget_lease=budget.lease,
            sees_nodes=drains is not None and drains.are_seen,
        )

    def _statefulset(self, streamapp: StreamApp | InvalidStreamApp, live: Json | None) -> StatefulSet | None:
        if live is None:
            return None
        is_ours = manifests.is_ours(streamapp, self._installation, live)
        deletes_kept_claims = bool(drift.retained(manifests.retention_fields(streamapp), live))
        if not isinstance(streamapp, StreamApp):
            return from_json.statefulset(
                live,
                is_ours=is_ours,
                template_is_written=True,
                is_half_made=statefulsets.is_half_made(live),
                deletes_kept_claims=deletes_kept_claims,
            )
        is_written = manifests.template_is_written(streamapp, self._installation, live)
        return from_json.statefulset(
            live,
            is_ours=is_ours,
            template_is_written=is_written and statefulsets.is_handed_over(live),
            storage_class=manifests.other_storage_class(streamapp, live),
            is_half_made=statefulsets.is_half_made(live),
            deletes_kept_claims=deletes_kept_claims,
        )

    async def _with_drift(self, facts: ReplicaFacts) -> ReplicaFacts:
        """Return the facts with what another writer changed in the StatefulSet since it was last written."""
        statefulset, live, streamapp = facts.statefulset, facts.live_statefulset, facts.streamapp
        if statefulset is None or live is None or not isinstance(streamapp, StreamApp):
            return facts
        if not (statefulset.is_ours and statefulset.template_is_written):
            return facts
        found = await self._drift_check.find(streamapp, live, facts.application.memory)
        if found == statefulset.drift:
            return facts
        return replace(facts, statefulset=replace(statefulset, drift=found))


def _claim_names(streamapp: StreamApp | InvalidStreamApp, pods: Sequence[Json]) -> frozenset[str]:
    """The claims that the pods use for their state; none where no state is kept."""
    state = streamapp.spec.state if isinstance(streamapp, StreamApp) else None
    if state is None:
        return frozenset()
    return frozenset(f"{state.claim_name}-{pod['metadata']['name']}" for pod in pods)


def _remember_what_is_live(memory: Memory, streamapp: StreamApp | InvalidStreamApp, workload: Workload) -> None:
    # By live reads alone: a watch can still show a record that was removed since.
    memory.follow_record(None if workload.statefulset is None else workload.statefulset.record)
    if not isinstance(streamapp, StreamApp):
        return  # an invalid spec does not name the application's container, so no member can be placed in one
    latest = memory.readings[0] if memory.readings else None
    if latest is not None and latest.ended_at != memory.observed_at:
        memory.observed = eviction.remember(memory.observed, latest, workload)
        memory.observed_at = latest.ended_at
        if isinstance(latest.group, GroupDescription):
            unplaced, since = latest.group.member_ids - _placed(memory), memory.unplaced_since
            memory.unplaced_since = {member: since.get(member, latest.ended_at) for member in unplaced}


def has_unplaced_members(memory: Memory) -> bool:
    """Whether live reads may still tell in which container a member of the newest reading runs, or must confirm it.

    A pod may get its address after its members are in the group. What no read has placed for a while is of elsewhere.
    """
    latest = memory.readings[0] if memory.readings else None
    if latest is None or not isinstance(latest.group, GroupDescription):
        return False
    if not all(one.is_confirmed for one in memory.observed):
        return True
    unplaced, since = latest.group.member_ids - _placed(memory), memory.unplaced_since
    return any(latest.ended_at - since.get(member, latest.ended_at) < PLACED_WITHIN for member in unplaced)


def _placed(memory: Memory) -> frozenset[str]:
    return frozenset(member.id for one in memory.observed for member in one.members)
