"""The parts of the operator's process, and what events and lists do to them.

Created and run by `lifecycle`, one for each process.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

import structlog

from streamapp.agents.client import AgentClient
from streamapp.api.objects.manifests import Installation
from streamapp.controller.agents.access import AgentGateway
from streamapp.controller.agents.keys import KeyFile
from streamapp.controller.agents.trust import AgentTrust
from streamapp.controller.apps.apps import Applications, ClusterAccess
from streamapp.controller.apps.bindings import Bindings
from streamapp.controller.apps.group_poller import PollIntervals
from streamapp.controller.apps.kafka_group import connect
from streamapp.controller.apps.restore_places import RestorePlaces
from streamapp.controller.http.answers import Answers, release
from streamapp.controller.http.probes import Health
from streamapp.controller.insight_file import InsightFile
from streamapp.controller.leader.clock import SteadyClock, earliest, offset_of, seconds_since_boot
from streamapp.controller.leader.leadership import ALONE, Leadership
from streamapp.controller.metrics import Metrics
from streamapp.controller.namespaces import ALL, Namespace, WatchedNamespaces
from streamapp.controller.ports import AgentAccess, ApplicationGroup
from streamapp.controller.reconcile.apply import Applier
from streamapp.controller.reconcile.gather import Gatherer
from streamapp.controller.reconcile.node_drains import NodeDrains
from streamapp.controller.reconcile.reconciler import Reconciler
from streamapp.controller.reconcile.report import Reporter
from streamapp.controller.reconcile.shared_watch import SHARED, SharedWatch
from streamapp.controller.reconcile.workqueue import KeyQueue, Pauses
from streamapp.controller.record.reader import RecordHistory
from streamapp.controller.record.setup import recording, term_of
from streamapp.controller.settings import Settings
from streamapp.kafka.brokers.shared_clusters import SharedClusters
from streamapp.kafka.connection.allowed_brokers import AllowedBrokers
from streamapp.kafka.connection.answer_limits import AnswerLimits
from streamapp.kube.client.client import Json, KubeClient, ObjectList
from streamapp.kube.client.errors import KubeError, UnavailableError
from streamapp.kube.client.kinds import NODES, PODS, STATEFUL_SETS, STREAM_APPS, Key, Kind
from streamapp.kube.client.object_cache import ObjectCache
from streamapp.kube.objects import from_json
from streamapp.kube.objects.trimmed import TRIMS
from streamapp.wire.byte_budget import ByteBudget

log = structlog.get_logger()

_CACHED = frozenset((STREAM_APPS, *SHARED))
"""Kinds whose objects are kept as they were last read or written."""


class CannotStartError(Exception):
    """The operator cannot do its work here; says why, and what to do."""


@dataclass(slots=True)
class QueueMetrics:
    """Reports the queue's events as metrics and log lines."""

    metrics: Metrics

    def added(self) -> None:
        """A key was marked dirty."""
        self.metrics.queue_adds.inc()

    def finished(self, seconds: float, result: str) -> None:
        """A pass ended."""
        self.metrics.reconcile_seconds.observe(seconds)
        self.metrics.reconciles.labels(result).inc()

    def failed(self, key: str, error: Exception, again_in_seconds: float) -> None:
        """A pass raised. An error of the API server needs no stack trace; an unexpected error does."""
        trace = None if isinstance(error, KubeError) else error
        log.warning("reconcile failed", app=key, error=str(error), again_in_seconds=again_in_seconds, exc_info=trace)


def _record_folder(settings: Settings) -> Path | None:
    return Path(settings.record_folder) if settings.record_folder else None


def _installation(settings: Settings, keys: KeyFile) -> Installation:
    return Installation(
        name=settings.installation,
        seed_image=settings.seed_image,
        agent_image=settings.agent_image,
        accepted=keys.accepted,
    )


class Operator:
    """All parts of one process."""

    def __init__(
        self,
        settings: Settings,
        client: KubeClient,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = seconds_since_boot,
        agents: AgentAccess | None = None,
        *,
        leadership: Leadership = ALONE,
    ) -> None:
        self.settings = settings
        self.leadership = leadership
        now = SteadyClock(wall, monotonic)
        self.agents = agents or AgentClient(now=now)
        self.keys = KeyFile(settings.agent_key_file)
        self._now = now
        self.client = client
        self.metrics = Metrics()
        self.namespaces = WatchedNamespaces(settings.namespaces or ALL, self.metrics)
        self.queue = self._empty_queue()
        self._raises: set[asyncio.Task[None]] = set()
        self._show_queue_and_lease()
        self.cache = ObjectCache(monotonic, self.namespaces.names, dict(TRIMS))
        self.applications = self._no_applications()
        installation = _installation(settings, self.keys)
        self.node_drains = self._watched_nodes(monotonic)
        side = AgentGateway(self.agents, self.keys, self.metrics, AgentTrust(monotonic))
        self.recording = recording(settings, self.metrics, now, leadership)
        self.insight = InsightFile(settings.insight_file, settings.cluster_name, now)
        self._reconciler = self._made_reconciler(installation, side, monotonic)
        self.history = RecordHistory(_record_folder(settings), leadership.leads)
        self.health = Health(
            self.queue.oldest_seconds,
            settings.stuck_seconds,
            settings.heartbeat_seconds,
            leadership,
            self.namespaces,
            lambda: offset_of(now),
        )
        self.answers = Answers(settings, self.applications, self.keys, leadership.leads, now)

    def _empty_queue(self) -> KeyQueue[Key]:
        settings = self.settings
        pauses = Pauses(settings.pass_gap_seconds, settings.backoff_first_seconds, settings.backoff_longest_seconds)
        return KeyQueue(self._pass, pauses, QueueMetrics(self.metrics), self._longest_pause)

    def _no_applications(self) -> Applications:
        settings = self.settings
        pace = PollIntervals(settings.poll_idle_seconds, settings.poll_busy_seconds, settings.poll_rebalance_seconds)
        bindings = Bindings.read(settings.application_ids)
        return Applications(
            *(self.connect, pace, self.queue.add, self._now, lambda: self.namespaces.unlisted, bindings),
            can_have_statefulset=partial(self.cache.can_control, STATEFUL_SETS),
        )

    def _made_reconciler(
        self, installation: Installation, side: AgentGateway, monotonic: Callable[[], float]
    ) -> Reconciler:
        client, leadership, now = self.client, self.leadership, self._now
        gatherer = Gatherer(client, self.applications, installation, now, monotonic, side, leadership=leadership)
        gatherer.begin_with(self.cache, self.node_drains)
        client.seen = self._saw
        reconciler = Reconciler(
            gatherer,
            Applier(client, installation, self.metrics, monotonic, side, leadership=leadership),
            Reporter(client, self.metrics, self.settings.instance, now, self.insight.of),
            self.applications,
            now,
            self.recording.recorder,
            scaling_pause_seconds=self.settings.backoff_scaling_seconds,
        )
        most = self.settings.restores_per_cluster
        reconciler.restores = RestorePlaces(most, self.applications.keys, self.metrics, monotonic)
        return reconciler

    def _watched_nodes(self, monotonic: Callable[[], float]) -> NodeDrains | None:
        if not self.settings.watch_nodes:
            return None
        return NodeDrains(self.settings.node_taints, monotonic, self._on_drain)

    def _on_drain(self, nodes: frozenset[str]) -> None:
        """Queue the applications that had a pod on one of these nodes when they were last read."""
        self.metrics.watch_events.labels(NODES.plural).inc()
        for key in [*self.applications.keys()]:
            application = self.applications.find(key)
            workload = None if application is None else application.memory.workload
            if workload is not None and any(pod.node in nodes for pod in workload.pods):
                self.queue.add(key)

    def _show_queue_and_lease(self) -> None:
        self.metrics.build_info.labels(release()).set(1)
        self.metrics.start_time.set(self._now().timestamp())
        self.metrics.queue_depth.set_function(lambda: len(self.queue))
        self.metrics.leader.set_function(lambda: float(self.leadership.leads()))
        self.metrics.lease_transitions.set_function(lambda: term_of(self.leadership)() or 0)

    def on_streamapp_event(self, key: Key, resource: Json, *, is_gone: bool) -> None:
        """Remember the StreamApp, to detect conflicts with others, raise replicas at once, and queue a pass."""
        self.metrics.watch_events.labels(STREAM_APPS.plural).inc()
        if is_gone:
            self.cache.remove(STREAM_APPS, resource)
            self.applications.drop_deleted(key)
        else:
            self._remember(key, resource)
            if self._raise_first(key):
                return
        self.queue.add(key)

    def on_object_event(self, kind: Kind, key: Key, one: Json | None) -> None:
        """Queue a pass over the application that an object belongs to; of a pod, remember how its containers ended.

        The object is None where a list showed that something has changed.
        """
        self.metrics.watch_events.labels(kind.plural).inc()
        application = self.applications.find(key)
        if application is not None and kind == PODS:
            pods = self.cache.of_app(PODS, key) if one is None else [one]
            for pod in pods:
                application.memory.record_terminations(from_json.container_ends(pod), earliest(self._now))
                running = from_json.running_containers(pod)
                application.memory.record_runs(pod["metadata"]["uid"], running, self._now())
            if application.watch is not None:
                application.watch.look_soon()
        if self.applications.contains(key):
            self.queue.add(key)

    def _saw(self, kind: Kind, one: Json) -> None:
        """Keep what was read or written live: the next pass must not begin with an older version.

        A StreamApp is received this way, too: an answer to a write of its status can carry the user's next wish, and
        the event that tells of it is no news then.
        """
        if kind not in _CACHED or not self.cache.learn(kind, one):
            return
        key = Key(one["metadata"]["namespace"], one["metadata"]["name"])
        if kind == STATEFUL_SETS:
            self._count_replicas(key, one)
        elif kind == STREAM_APPS and self.applications.received(key) is not None:
            self.applications.remember_resource(key, one)
            self.queue.add(key)

    def _count_replicas(self, key: Key, statefulset: Json) -> None:
        """Measure raises by the newest StatefulSet: after a removal, so many as before are more than there are.

        A raise that was received while the removal was on its way is made now.
        """
        application = self.applications.find(key)
        if application is None:
            return
        before, current = application.memory.current_replicas, statefulset["spec"].get("replicas", 1)
        application.memory.current_replicas = current
        if before is not None and current < before:
            self._raise_first(key)

    def _remember(self, key: Key, resource: Json) -> None:
        """Remember a StreamApp, unless a newer version is known: a watch can be behind what a pass has read."""
        if self.cache.put(STREAM_APPS, resource) or self.applications.received(key) is None:
            self.applications.remember_resource(key, resource)

    def _raise_first(self, key: Key) -> bool:
        """Have a raise made before anything else: it waits for no pass, and for no pause between passes.

        The pass comes after it. False: there is no raise to make.
        """
        application = self.applications.find(key)
        current = None if application is None else application.memory.current_replicas
        is_raised = current is not None and self.applications.desires_more(key, current)
        if is_raised and self.namespaces.first_round.is_set():
            raising = asyncio.get_running_loop().create_task(self._make_raise(key), name=f"raise {key}")
            self._raises.add(raising)
            raising.add_done_callback(self._raises.discard)
            return True
        return False

    async def _make_raise(self, key: Key) -> None:
        try:
            self.queue.leave_alone(key, await self._reconciler.raise_first(key))
        finally:
            self.queue.add(key)

    async def stand(self) -> None:
        """Return when this process leads and the definition of the StreamApp is there."""
        await self.check()
        await self.leadership.stand()

    async def check(self) -> None:
        """See that the definition of the StreamApp is there; CannotStartError if not.

        While the API server gives no answer, it is asked again: a process that ended would be started more and more
        rarely, and would be missing long after the outage.
        """
        while True:
            try:
                is_served = await self.client.serves(STREAM_APPS)
                break
            except UnavailableError as error:
                pause = max(self.settings.lease_retry_seconds, error.retry_after_seconds)
                log.warning("API server unavailable", error=str(error), again_in_seconds=pause)
                await asyncio.sleep(pause)
        if not is_served:
            raise CannotStartError(
                f"the API server does not know {STREAM_APPS.plural} of {STREAM_APPS.api_version}: install "
                f"crds/{STREAM_APPS.plural}.{STREAM_APPS.group}.yaml, then start the operator again"
            )

    async def resync(self) -> None:
        """List all StreamApps again and again, until cancelled: a watch can miss an event, above all a deletion.

        Each namespace by itself: one that cannot be listed keeps nothing from the others. Passes wait for the first
        round, but no longer than a request may take.
        """
        asyncio.get_running_loop().call_later(self.settings.request_deadline_seconds, self.namespaces.first_round.set)
        await asyncio.gather(*(self._resync(namespace) for namespace in self.namespaces.names))

    async def _resync(self, namespace: Namespace) -> None:
        settings, failures = self.settings, 0
        pauses = Pauses(0.0, settings.backoff_first_seconds, settings.heartbeat_seconds)
        while True:
            try:
                self._take_list(namespace, await self.client.listing(STREAM_APPS, namespace))
            except KubeError as error:
                failures += 1
                if failures == 1:
                    log.warning("resync failed", namespace=namespace or "all", error=str(error))
                if self.namespaces.could_not_list(namespace, error):
                    self._queue_all()
                await asyncio.sleep(max(pauses.after_failures(failures), error.retry_after_seconds))
            else:
                failures = 0
                await asyncio.sleep(settings.resync_seconds)

    def shared_watches(self) -> Iterator[SharedWatch]:
        """Give the watches of everything that a pass reads beside the StreamApp, one for each kind and scope.

        And of nodes, where that is set.
        """
        settings = self.settings
        pauses = Pauses(0.0, settings.backoff_first_seconds, settings.heartbeat_seconds)
        if self.node_drains is not None:
            yield self.node_drains.watch(self.client, settings.resync_seconds, pauses)
        for namespace in self.namespaces.names:
            for kind in SHARED:
                yield SharedWatch(
                    *(self.client, self.cache, kind, namespace, self.on_object_event),
                    relist_seconds=settings.resync_seconds,
                    pauses=pauses,
                )

    async def watch_objects(self) -> None:
        """Run the shared watches until cancelled."""
        await asyncio.gather(*(watch.run() for watch in self.shared_watches()))

    async def close(self, patience_seconds: float = 0.0) -> None:
        """Stop passes and polls; a running pass can finish within the patience."""
        for raising in tuple(self._raises):
            raising.cancel()
        await self.queue.close(patience_seconds)
        self.applications.close()
        self.clusters.close()
        await self.agents.close()

    def _take_list(self, namespace: Namespace, listing: ObjectList) -> None:
        """Take all StreamApps of a namespace; queue those that are new, changed or gone, and all after news."""
        resources = {Key(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in listing.objects}
        if self.cache.begin_list(STREAM_APPS, namespace, listing.version):
            self.applications.forget_resources(namespace)
        dirty = {key for key in [*self.applications.keys()] if namespace in {None, key.namespace}} - resources.keys()
        for key in self.cache.replace(STREAM_APPS, namespace, listing.objects, listing.version):
            if key in resources:
                self.applications.remember_resource(key, resources[key])
                self._raise_first(key)
            dirty.add(key)
        is_first = self.namespaces.has_listed(namespace)
        if is_first:
            dirty |= {*resources}
        for key in dirty:
            self.queue.add(key)
        if is_first and not self.namespaces.unlisted.silent:
            self._queue_all()

    def _queue_all(self) -> None:
        """Queue a pass over every application: whatever could not be created may be created now."""
        for key in [*self.applications.keys()]:
            self.queue.add(key)

    async def _pass(self, key: Key) -> float | None:
        """Run a pass, but none before it is known which StreamApps there are: an older one can have the same ID."""
        await self._reconciler.stand_by(key, self.namespaces.first_round)
        return await self._reconcile(key)

    async def _reconcile(self, key: Key) -> float | None:
        return await self._reconciler.reconcile(key)

    def _longest_pause(self, key: Key) -> float:
        return self._reconciler.longest_pause(key)

    @cached_property
    def clusters(self) -> SharedClusters:
        """The Kafka clusters of all applications."""
        return SharedClusters(self._answer_limits)

    @cached_property
    def _answer_limits(self) -> AnswerLimits:
        """One for all applications: they share its budget."""
        return AnswerLimits(most_bytes=self.settings.kafka_answer_bytes, budget=ByteBudget())

    def connect(self, cluster_access: ClusterAccess) -> ApplicationGroup:
        """Give the Kafka side of an application."""
        allowed = AllowedBrokers(self.settings.allowed_brokers)
        return connect(
            *(cluster_access, self.settings.kafka_deadline_seconds, self._answer_limits, allowed, self._now),
            clusters=self.clusters,
        )
