"""Writes of the StatefulSet: each is one server-side apply, fenced by the version that was judged.

Called by the controller's applier. Two field managers share the object: `GRANTING_MANAGER` has the replicas and the
hold record, `FIELD_MANAGER` all the rest. So a changed template can never change the replicas, nor the other way round,
and neither write needs to know what the other one wrote.
"""

from collections.abc import Mapping
from typing import Any

from streamapp.api.names import HOLD_RECORD
from streamapp.api.objects.manifests import with_replicas
from streamapp.core.actions.decision import Fence
from streamapp.core.facts.hold_annotation import encode
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.kube.client.client import FIELD_MANAGER, GRANTING_MANAGER, Check, Json, KubeClient
from streamapp.kube.client.errors import ConflictError
from streamapp.kube.client.kinds import STATEFUL_SETS, Key

HAND_OVER_ATTEMPTS = 5


async def create(client: KubeClient, manifest: Json, replicas: int) -> None:
    """Create it; ConflictError if there is one already.

    The first apply makes the whole object in the name of the granting manager, since an object without replicas would
    start with one pod; then everything but the replicas is handed over. If that is interrupted, `is_handed_over` tells.
    """
    whole = with_replicas(manifest, replicas)
    # Not by force: where another one was made meanwhile, this must fail and not take it over.
    made = await client.apply(STATEFUL_SETS, whole, manager=GRANTING_MANAGER, force=False)
    metadata = {**manifest["metadata"], "uid": made["metadata"]["uid"]}
    await _hand_over(client, await client.apply(STATEFUL_SETS, {**manifest, "metadata": metadata}))


async def write_template(client: KubeClient, manifest: Json, live: Json) -> None:
    """Write everything but replicas and record, on exactly the version `live`."""
    written = await client.apply(STATEFUL_SETS, _fenced(manifest, live))
    if not is_handed_over(written):
        await _hand_over(client, written)


async def preview(client: KubeClient, manifest: Json, live: Json) -> Json:
    """Give the whole object as `write_template` would make it of exactly the version `live`; nothing is written."""
    return await client.apply(STATEFUL_SETS, _fenced(manifest, live), dry_run=True)


def _fenced(manifest: Json, live: Json) -> Json:
    fence = {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
    return {**manifest, "metadata": {**manifest["metadata"], **fence}}


async def _hand_over(client: KubeClient, live: Json) -> None:
    """Have the granting manager say no more than the replicas and the record as they are.

    Tried again where the StatefulSet's controller was faster, which writes its status in these very moments.
    """
    for attempt in range(HAND_OVER_ATTEMPTS):
        metadata = live["metadata"]
        key = Key(metadata["namespace"], metadata["name"])
        fence = Fence(metadata["uid"], metadata["resourceVersion"])
        record = metadata.get("annotations", {}).get(HOLD_RECORD)
        try:
            await grant(client, key, fence, live["spec"]["replicas"], record)
        except ConflictError:
            if attempt + 1 == HAND_OVER_ATTEMPTS:
                raise
            live = await client.get(STATEFUL_SETS, key.namespace, key.name)
        else:
            return


async def grant(
    client: KubeClient,
    key: Key,
    fence: Fence,
    replicas: int,
    record: HoldRecord | str | None,
    last_check: Check | None = None,
) -> Json:
    """Write replicas and hold record in one request.

    Args:
        client: The API server.
        key: Which StatefulSet.
        fence: The version that was judged; ConflictError, and nothing written, where it is another one.
        replicas: What is granted.
        record: What the annotation says; text is taken as it is, None removes the annotation.
        last_check: As in `KubeClient.apply`.
    """
    metadata: Json = {
        "namespace": key.namespace,
        "name": key.name,
        "uid": fence.uid,
        "resourceVersion": fence.resource_version,
    }
    if record is not None:
        text = encode(record) if isinstance(record, HoldRecord) else record
        metadata["annotations"] = {HOLD_RECORD: text}
    body = {"metadata": metadata, "spec": {"replicas": replicas}}
    return await client.apply(STATEFUL_SETS, body, manager=GRANTING_MANAGER, last_check=last_check)


def is_handed_over(live: Mapping[str, Any]) -> bool:
    """Whether the granting manager owns only replicas and record."""
    for entry in live["metadata"].get("managedFields", ()):
        if entry.get("manager") == GRANTING_MANAGER:
            fields = entry["fieldsV1"]
            if set(fields.get("f:spec", ())) - {"f:replicas"} or "f:labels" in fields.get("f:metadata", ()):
                return False
    return any(entry.get("manager") == FIELD_MANAGER for entry in live["metadata"].get("managedFields", ()))
