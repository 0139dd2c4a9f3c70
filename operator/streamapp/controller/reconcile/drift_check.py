"""Whether another writer changed a StatefulSet of ours: asked of the API server, which alone knows its defaults.

Called by `reconcile.gather`. Only a dry run is sent, and only for a generation that was not compared yet or whose
comparison is old. It never fails a pass and never delays a raise: where nothing was learned, the fields on which a
removal rests are compared all the same.
"""

from collections.abc import Callable

import structlog

from streamapp.api.objects import drift, manifests
from streamapp.api.validation.parse import StreamApp
from streamapp.controller.apps.memory import Compared, Memory
from streamapp.kube.client.client import FIELD_MANAGER, Json, KubeClient
from streamapp.kube.client.errors import ConflictError, KubeError
from streamapp.kube.objects import statefulsets

log = structlog.get_logger()

COMPARE_AGAIN_SECONDS = 300.0
"""At least this often, whatever the generation says: a webhook or a default can be another one by then."""


class DriftCheck:
    """Compares StatefulSets with what their StreamApps say."""

    def __init__(
        self, client: KubeClient, installation: manifests.Installation, monotonic: Callable[[], float]
    ) -> None:
        self._client = client
        self._installation = installation
        self._monotonic = monotonic

    async def find(self, app: StreamApp, live: Json, memory: Memory) -> str:
        """Name a field that another writer changed since we wrote the template that the spec has; empty if none.

        Args:
            app: The StreamApp.
            live: Its StatefulSet, which is ours, and was last written from what the spec says now.
            memory: Keeps the last comparison.
        """
        urgent = drift.removal_drift(manifests.removal_fields(app), live)
        if urgent or app.replicas > live["spec"]["replicas"]:
            return urgent
        metadata, now = live["metadata"], self._monotonic()
        version, before = (metadata["uid"], metadata["generation"], app.metadata.generation), memory.compared
        if before is None or before.version != version or now - before.at >= COMPARE_AGAIN_SECONDS:
            found = await self._compare(manifests.statefulset(app, self._installation, live), live)
            if found is None:
                return ""
            before = memory.compared = Compared(version, now, found)
        return before.found

    async def _compare(self, manifest: Json, live: Json) -> str | None:
        """Name what a write would change; None where the object has changed meanwhile."""
        try:
            kept = drift.with_images_of(manifest, live, FIELD_MANAGER)
            return drift.difference(await statefulsets.preview(self._client, kept, live), live)
        except ConflictError:
            return None
        except KubeError as error:
            log.info("drift unknown", namespace=live["metadata"]["namespace"], error=str(error))
            return ""
