"""Writes of the StatefulSet: each is one server-side apply, fenced by the version that was judged.

Called by the controller's applier. Two field managers share the object: `GRANTING_MANAGER` has the replicas and the
hold record, `FIELD_MANAGER` all the rest. So a changed template can never change the replicas, nor the other way round,
and neither write needs to know what the other one wrote.
"""

from collections.abc import Mapping
from typing import Any

from streamapp.api.manifests import with_replicas
from streamapp.api.names import HOLD_RECORD
from streamapp.core.decision import Fence
from streamapp.core.holds import HoldRecord
from streamapp.core.record_text import encode
from streamapp.kube.client import FIELD_MANAGER, GRANTING_MANAGER, Check, Json, KubeClient
from streamapp.kube.places import STATEFUL_SETS, Key


async def create(client: KubeClient, manifest: Json, replicas: int) -> Json:
    """Create it, or finish a creation that was interrupted; give it as it is then.

    The first apply makes the whole object in the name of the granting manager, since an object without replicas would
    start with one pod; the other two hand everything but the replicas over. After any of them `is_handed_over` tells
    whether that was finished.
    """
    whole = with_replicas(manifest, replicas)
    # Not by force: where somebody made another one meanwhile, this must fail and not take it over.
    made = await client.apply(STATEFUL_SETS, whole, manager=GRANTING_MANAGER, force=False)
    return await write_template(client, manifest, made)


async def write_template(client: KubeClient, manifest: Json, live: Json) -> Json:
    """Write everything but replicas and record, on exactly the version `live`; give the object as it is then."""
    fenced = {**manifest, "metadata": {**manifest["metadata"], **_fence(live["metadata"])}}
    written = await client.apply(STATEFUL_SETS, fenced)
    if is_handed_over(written):
        return written
    key = Key(written["metadata"]["namespace"], written["metadata"]["name"])
    fence = Fence(written["metadata"]["uid"], written["metadata"]["resourceVersion"])
    record = written["metadata"].get("annotations", {}).get(HOLD_RECORD)
    return await _grant(client, key, fence, written["spec"]["replicas"], record)


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
    text = encode(record) if isinstance(record, HoldRecord) else record
    return await _grant(client, key, fence, replicas, text, last_check)


def is_handed_over(live: Mapping[str, Any]) -> bool:
    """Tell whether the granting manager has nothing but replicas and record."""
    for entry in live["metadata"].get("managedFields", ()):
        if entry.get("manager") == GRANTING_MANAGER:
            fields = entry["fieldsV1"]
            if set(fields.get("f:spec", ())) - {"f:replicas"} or "f:labels" in fields.get("f:metadata", ()):
                return False
    return any(entry.get("manager") == FIELD_MANAGER for entry in live["metadata"].get("managedFields", ()))


async def _grant(
    client: KubeClient,
    key: Key,
    fence: Fence,
    replicas: int,
    record: str | None,
    last_check: Check | None = None,
) -> Json:
    metadata: Json = {
        "namespace": key.namespace,
        "name": key.name,
        "uid": fence.uid,
        "resourceVersion": fence.resource_version,
    }
    if record is not None:
        metadata["annotations"] = {HOLD_RECORD: record}
    body = {"metadata": metadata, "spec": {"replicas": replicas}}
    return await client.apply(STATEFUL_SETS, body, manager=GRANTING_MANAGER, last_check=last_check)


def _fence(metadata: Mapping[str, Any]) -> Json:
    return {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
