"""Whether another writer changed a StatefulSet of ours: asked of the API server, which alone knows its defaults.

Called by `reconcile.gather`. Only a dry run is sent, and only for a generation that was not compared yet or whose
comparison is old. It never fails a pass and never delays a raise: where nothing was learned, the fields on which a
removal rests are compared all the same.

A webhook can write another value at each request. Putting that back makes a new revision each time, and each revision
restarts all pods. So a field that does not stay is put back ever more rarely.
"""

import math
from collections.abc import Callable

import structlog

from streamapp.api.objects import drift, manifests
from streamapp.api.validation.parse import StreamApp
from streamapp.controller.apps.memory import Compared, Memory, PutBack
from streamapp.kube.client.client import FIELD_MANAGER, Json, KubeClient
from streamapp.kube.client.errors import ConflictError, KubeError
from streamapp.kube.objects import statefulsets

log = structlog.get_logger()

COMPARE_AGAIN_SECONDS = 300.0
"""At least this often, whatever the generation says: a webhook or a default can be another one by then."""
PUT_BACK_AGAIN_SECONDS = 60.0
"""After a field was put back once and is another one again; five times as long after each further time."""
MOST_PUT_BACK_AGAIN_SECONDS = 86_400.0


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
        if before is None or before.version != version or now >= before.again_at:
            found = await self._compare(manifests.statefulset(app, self._installation, live), live)
            if found is None:
                return ""
            before = memory.compared = self._to_put_back(version, found, memory)
        return before.found

    def _to_put_back(self, version: tuple[str, int, int], found: str, memory: Memory) -> Compared:
        """Have a field put back at once, but one that did not stay only after a pause."""
        now, last = self._monotonic(), memory.put_back
        if not found:
            return Compared(version, now + COMPARE_AGAIN_SECONDS, "")
        times, pause = 0, 0.0
        if last is not None and last.field == found:
            times, pause = last.times, _pause(last.times)
            if now < last.at + pause:
                log.warning("drift is put back later", uid=version[0], field=found, times=times, seconds=pause)
                return Compared(version, last.at + pause, "")
            times = times if now < last.at + 2 * pause else 0
        memory.put_back = PutBack(found, now, times + 1)
        return Compared(version, now + COMPARE_AGAIN_SECONDS, found)

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


def _pause(times: int) -> float:
    """Seconds between putting a field back for the n-th time and doing so again."""
    return min(MOST_PUT_BACK_AGAIN_SECONDS, PUT_BACK_AGAIN_SECONDS * math.pow(5, min(times - 1, 10)))
