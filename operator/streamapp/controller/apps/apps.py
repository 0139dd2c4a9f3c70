"""The applications of this process: for each its memory, the poller of its group, and its last received resource.

Filled by the watches and the passes. A StreamApp that was deleted and created again under its name is another
application and starts with an empty memory.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from streamapp.api.status.translate import as_rival
from streamapp.api.validation.parse import InvalidStreamApp, Parsed, StreamApp, parse
from streamapp.controller.apps import claim_names
from streamapp.controller.apps.bindings import FREE, Bindings
from streamapp.controller.apps.client_secrets import ClientProperties
from streamapp.controller.apps.group_poller import GroupPoller, PollIntervals
from streamapp.controller.apps.memory import LastPass, Memory
from streamapp.controller.apps.raise_watch import RaiseWatch
from streamapp.controller.ports import ApplicationGroup
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.snapshot import ALL_LISTED, ConflictingStreamApp, UnlistedNamespaces
from streamapp.kube.client.client import Json
from streamapp.kube.client.kinds import Key
from streamapp.kube.client.object_cache import version_of


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Everything that a connection to an application's group depends on; a change needs a new connection."""

    bootstrap: str
    properties: tuple[tuple[str, str], ...] = field(repr=False)
    """Client properties, sorted; they can contain passwords."""
    application_id: str
    topology: str
    namespace: str = ""
    """Of the StreamApp: whose places looking names up takes."""
    fault: str | None = None
    """Why there are no properties, where the Secrets cannot be read or used."""

    @classmethod
    def of(cls, streamapp: StreamApp, found: ClientProperties, topology: str) -> "ClusterAccess":
        """The access of a StreamApp with the properties that its Secrets give."""
        return cls(
            bootstrap=streamapp.spec.kafka.bootstrap_servers,
            properties=found.properties,
            application_id=streamapp.spec.application_id,
            topology=topology,
            namespace=streamapp.metadata.namespace,
            fault=found.fault,
        )


Connect = Callable[[ClusterAccess], ApplicationGroup]


@dataclass(slots=True)
class Application:
    """One application."""

    memory: Memory
    client_properties: ClientProperties = field(default_factory=ClientProperties)
    """As last read."""
    properties_read_at: float = float("-inf")
    """When its Secrets were last read, on the monotonic clock."""
    cluster_access: Hashable = None
    watch: GroupPoller | None = None
    polling: asyncio.Task[None] | None = None
    parsed: Parsed | None = None
    """The StreamApp as the last pass read it."""
    last: LastPass | None = None
    """What the last pass gathered; None before the first."""
    request: asyncio.Future[None] | None = None
    """What brokers or agents were asked to do last; where a raise ended the pass, it goes on without the pass."""

    def disconnect(self) -> None:
        """Stop polling and drop the connections."""
        if self.request is not None:
            self.request.cancel()
        if self.polling is not None:
            self.polling.cancel()
        if self.watch is not None:
            self.watch.group.close()
        self.cluster_access, self.watch, self.polling, self.request = None, None, None, None


class Applications:
    """All of them, by the key of their StreamApp."""

    def __init__(
        self,
        connect: Connect,
        pace: PollIntervals,
        request_pass: Callable[[Key], None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        unlisted: Callable[[], UnlistedNamespaces] = lambda: ALL_LISTED,
        bindings: Bindings = FREE,
        *,
        can_have_statefulset: Callable[[Key, str], bool] = lambda *_: True,
    ) -> None:
        self.can_have_statefulset = can_have_statefulset
        """Says whether the StreamApp with this UID has a StatefulSet, or whether that is not known."""
        self.bindings = bindings
        """Which namespaces may use which application IDs."""
        self.unlisted = unlisted
        """Names the watched namespaces whose StreamApps were never listed: what is known here is not all."""
        self._connect = connect
        self._pace = pace
        self._request_pass = request_pass
        self._now = now
        self._applications: dict[Key, Application] = {}
        self._resources: dict[Key, Json] = {}
        self._parsed: dict[Key, Parsed] = {}
        """Rivals as they were last read: each pass asks for them several times, and there can be very many."""
        self._received: dict[Key, asyncio.Event] = {}
        """Of the applications whose next version is waited for."""

    def remember_resource(self, key: Key, resource: Json) -> Json:
        """Remember a version of a StreamApp, unless a newer one was received; give the newer of the two."""
        known = self._resources.get(key)
        if known is not None and 0 < version_of(resource) < version_of(known):
            return known
        self._resources[key] = resource
        received = self._received.pop(key, None)
        if received is not None:
            received.set()
        return resource

    def forget_resources(self, namespace: str | None) -> None:
        """Drop what was received of a namespace, None: of all; their versions count from the beginning again."""
        for key in [key for key in self._resources if namespace in {None, key.namespace}]:
            del self._resources[key]
            self._parsed.pop(key, None)

    def desired(self, key: Key) -> int | None:
        """Return the desired replicas of a StreamApp as last received; None if they are unknown."""
        spec = self._resources.get(key, {}).get("spec")
        replicas = spec.get("replicas") if isinstance(spec, Mapping) else None
        return replicas if isinstance(replicas, int) else None

    def desires_more(self, key: Key, current: int) -> bool:
        """Whether the StreamApp, as last received, desires more replicas than there are."""
        desired = self.desired(key)
        return desired is not None and desired > current

    def watch_raises(self, key: Key, current: int) -> RaiseWatch:
        """Watch for more desired replicas than there are."""

        async def receive() -> None:
            while not self.desires_more(key, current):
                await self._received.setdefault(key, asyncio.Event()).wait()

        return RaiseWatch(lambda: self.desires_more(key, current), receive, partial(self.received, key))

    def keys(self) -> Iterator[Key]:
        """All keys of a known StreamApp."""
        return iter({*self._applications, *self._resources})

    def contains(self, key: Key) -> bool:
        """Whether there is such a StreamApp, even before its first pass."""
        return key in self._applications or key in self._resources

    def get(self, key: Key, uid: str) -> Application:
        """Give an application, with an empty memory if it is new."""
        application = self._applications.get(key)
        if application is None or application.memory.uid != uid:
            self.forget(key)
            application = self._applications[key] = Application(Memory(uid))
        return application

    def received(self, key: Key) -> Json | None:
        """Give the newest version of a StreamApp that this process has received; None if it has received none."""
        return self._resources.get(key)

    def find(self, key: Key) -> Application | None:
        """Give an application that a pass has already seen."""
        return self._applications.get(key)

    def is_replaced(self, key: Key) -> bool:
        """Whether the StreamApp as last received is another one of the same name than the one that passes have seen."""
        known, resource = self._applications.get(key), self._resources.get(key)
        return known is not None and resource is not None and str(resource["metadata"]["uid"]) != known.memory.uid

    def connect_group(self, key: Key, application: Application, cluster_access: ClusterAccess) -> None:
        """Poll its group over a connection with this access; replace an older connection.

        Nothing where the application was forgotten while a pass was under way: nobody would end that poller.
        """
        is_forgotten = self._applications.get(key) is not application
        if is_forgotten or application.cluster_access == cluster_access:
            return
        application.disconnect()
        application.memory.forget_group()
        application.cluster_access = cluster_access
        group = self._connect(cluster_access)
        watch = GroupPoller(group, application.memory, self._pace, lambda: self._request_pass(key), self._now)
        application.watch = watch
        application.polling = asyncio.create_task(watch.run(), name=f"poll {key}")

    def forget(self, key: Key) -> None:
        """Drop the memory and the connections of a deleted application."""
        application = self._applications.pop(key, None)
        if application is not None:
            application.disconnect()

    def drop_deleted(self, key: Key) -> None:
        """Drop a deleted StreamApp; but not yet its application, if the next pass has to put its group's setting back.

        The StatefulSet goes with the StreamApp, and then only this memory has the old value.
        """
        application = self._applications.get(key)
        if application is None or application.memory.raised_standbys is None:
            self.remove(key)
            return
        self._drop_resource(key)

    def remove(self, key: Key) -> None:
        """Drop a deleted application and its resource."""
        self.forget(key)
        self._drop_resource(key)

    def _drop_resource(self, key: Key) -> None:
        self._resources.pop(key, None)
        self._parsed.pop(key, None)
        self._received.pop(key, None)

    def close(self) -> None:
        """Drop all applications."""
        for key in list(self._applications):
            self.forget(key)

    def conflicting(self, key: Key, streamapp: StreamApp) -> tuple[ConflictingStreamApp, ...]:
        """Give the other StreamApps with the same application ID on the same Kafka cluster, as last received.

        Whose pods are in the group is read in this StreamApp's own reading of it: a rival can name a broker that lies.
        """
        brokers, hosts, found = _brokers(streamapp), _hosts(self._applications.get(key)), []
        for other_key, resource in self._resources.items():
            if other_key == key or not _names_application(resource, streamapp.spec.application_id):
                continue
            if self.bindings.fault(other_key.namespace, streamapp.spec.application_id):
                continue
            other = self._read(other_key, resource)
            if isinstance(other, StreamApp) and _brokers(other) & brokers:
                in_group = _are_among(hosts, self._applications.get(other_key))
                has_statefulset = self.can_have_statefulset(other_key, other.metadata.uid)
                found.append(as_rival(other, in_group=in_group, has_statefulset=has_statefulset))
        return tuple(found)

    def claims_fault(self, streamapp: StreamApp, *, has_statefulset: bool) -> str | None:
        """Why a StreamApp must not be served: the StatefulSet of another one has claims of the same names."""
        return claim_names.fault(
            streamapp,
            self._resources.items(),
            has_statefulset=has_statefulset,
            can_have_statefulset=self.can_have_statefulset,
        )

    def _read(self, key: Key, resource: Json) -> StreamApp | InvalidStreamApp:
        """Read a StreamApp as last received, once for each version of it: one costs up to some milliseconds.

        Of StreamApps that name one application ID each pass asks for all the others. A tenant can make hundreds of
        them, and no other StreamApp would get its turn.
        """
        known = self._parsed.get(key)
        if known is None or known.resource is not resource:
            known = self._parsed[key] = Parsed(resource, parse(resource, known))
        return known.streamapp

    def is_in_group(self, key: Key) -> bool:
        """Whether a member of the group runs in one of this application's own pods, as last read."""
        own = self._applications.get(key)
        return _are_among(_hosts(own), own)


def _hosts(reader: Application | None) -> frozenset[str]:
    """The addresses of the members of the group that the reader has read last."""
    group = reader.memory.readings[0].group if reader is not None and reader.memory.readings else None
    return frozenset(one.client_host for one in group.members) if isinstance(group, GroupDescription) else frozenset()


def _are_among(hosts: frozenset[str], owner: Application | None) -> bool:
    """Whether these are addresses of the owner's running pods.

    Addresses only: a tenant can write process IDs on his own volumes, but no pod's address.
    """
    if owner is None or owner.memory.workload is None:
        return False
    return any(pod.is_running and not hosts.isdisjoint(pod.ips) for pod in owner.memory.workload.pods)


def _names_application(resource: Mapping[str, Any], application_id: str) -> bool:
    spec = resource.get("spec")
    return isinstance(spec, Mapping) and spec.get("applicationId") == application_id


def _brokers(streamapp: StreamApp) -> frozenset[str]:
    return frozenset(server.strip() for server in streamapp.spec.kafka.bootstrap_servers.split(","))
