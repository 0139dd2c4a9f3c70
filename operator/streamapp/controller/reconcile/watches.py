"""kopf's watch of StreamApps: each event is remembered, raises replicas, and marks a key dirty, nothing more.

All other kinds are watched by `shared_watch`: kopf does not say how far a watch has come, nor what a list left out.
kopf calls an `on.event` handler for each event and never again after an error, so handlers do no work and await
nothing. kopf writes nothing: no finalizer, no annotation, no Event.
"""

from collections.abc import Awaitable, Callable, Iterator
from itertools import chain, repeat
from typing import Any, Protocol

import kopf

from streamapp.controller.settings import Settings
from streamapp.kube.client.client import Json
from streamapp.kube.client.kinds import STREAM_APPS, Key
from streamapp.kube.client.own_access import Login


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
    # Not used, since nothing is written; if something ever were, it would carry our name.
    chosen.persistence.finalizer = f"{STREAM_APPS.group}/operator"
    chosen.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=STREAM_APPS.group)
    chosen.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=STREAM_APPS.group)
    return chosen
