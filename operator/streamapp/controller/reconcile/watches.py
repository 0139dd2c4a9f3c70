"""kopf's watches: each event is remembered and marks a key dirty, nothing more.

kopf calls an `on.event` handler for each event and never again after an error, so handlers do no work and await
nothing. kopf writes nothing: no finalizer, no annotation, no Event.
"""

from collections.abc import Awaitable, Callable, Iterator
from itertools import chain, repeat
from typing import Any, Protocol

import kopf

from streamapp.api.names import APP_LABEL
from streamapp.controller.settings import Settings
from streamapp.kube.client.client import Json, Login
from streamapp.kube.client.kinds import PODS, STATEFUL_SETS, STREAM_APPS, Key, Kind


class EndlessPauses:
    """Seconds before each further try of a request of kopf, without end.

    When kopf has no more tries left, it ends, and the process with it: for one namespace whose Role is gone.
    """

    FIRST = (1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0)
    LONGEST = 30.0

    def __iter__(self) -> Iterator[float]:
        return chain(self.FIRST, repeat(self.LONGEST))


class Listener(Protocol):
    """Receives the events of the watches."""

    def on_streamapp_event(self, key: Key, resource: Json, *, is_gone: bool) -> None:
        """A StreamApp was listed, added, changed or deleted."""

    def on_pod_event(self, key: Key, pod: Json) -> None:
        """A pod was; the object of a deletion is the last one there was, with its containers' ends."""

    def on_owned_event(self, key: Key, kind: Kind) -> None:
        """Something else that belongs to a StreamApp was."""


def registry_for(listener: Listener, login: Callable[[], Awaitable[Login]]) -> kopf.OperatorRegistry:
    """Give kopf's registry with our handlers: an own one, so that nothing is global."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def log_in(**_: Any) -> kopf.ConnectionInfo:
        credentials = await login()
        return kopf.ConnectionInfo(
            server=credentials.server,
            ca_path=credentials.ca_path,
            insecure=credentials.insecure or None,
            certificate_path=credentials.certificate_path,
            private_key_path=credentials.key_path,
            token=credentials.token,
        )

    @kopf.on.event(STREAM_APPS.group, STREAM_APPS.version, STREAM_APPS.plural, registry=registry)
    async def app(event: kopf.RawEvent, **_: Any) -> None:
        resource: Json = {**event["object"]}
        key = Key(resource["metadata"]["namespace"], resource["metadata"]["name"])
        listener.on_streamapp_event(key, resource, is_gone=event["type"] == "DELETED")

    @kopf.on.event(STATEFUL_SETS.group, STATEFUL_SETS.version, STATEFUL_SETS.plural, registry=registry)
    async def statefulset(event: kopf.RawEvent, **_: Any) -> None:
        listener.on_owned_event(_owner({**event["object"]}), STATEFUL_SETS)

    @kopf.on.event(PODS.version, PODS.plural, registry=registry)
    async def pod(event: kopf.RawEvent, **_: Any) -> None:
        resource: Json = {**event["object"]}
        listener.on_pod_event(_owner(resource), resource)

    return registry


def kopf_settings(settings: Settings) -> kopf.OperatorSettings:
    """Give kopf's settings: as little as it can do, with deadlines."""
    chosen = kopf.OperatorSettings()
    chosen.scanning.disabled = True  # no watch of namespaces and definitions, so no right to them
    chosen.peering.standalone = True
    chosen.posting.enabled = False
    chosen.networking.request_timeout = settings.request_deadline_seconds
    chosen.networking.connect_timeout = min(5.0, settings.request_deadline_seconds)
    chosen.networking.error_backoffs = EndlessPauses()
    chosen.watching.chunk_size = 500
    # On the server: kopf's own filters come after every pod of the cluster was sent to us.
    for kind in (PODS, STATEFUL_SETS):
        selector = (kind.group, kind.version, kind.plural) if kind.group else (kind.version, kind.plural)
        chosen.watching.label_selectors[selector] = APP_LABEL
    # Not used, since nothing is written; if something ever were, it would carry our name.
    chosen.persistence.finalizer = f"{STREAM_APPS.group}/operator"
    chosen.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=STREAM_APPS.group)
    chosen.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=STREAM_APPS.group)
    return chosen


def _owner(resource: Json) -> Key:
    """Give the StreamApp that an object names in its label; the watch's selector sees to it that it has one."""
    metadata = resource["metadata"]
    return Key(metadata["namespace"], metadata.get("labels", {}).get(APP_LABEL, ""))
