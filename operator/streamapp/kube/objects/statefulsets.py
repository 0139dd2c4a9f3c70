"""Writes of the StatefulSet: each is one server-side apply, fenced by the version that was judged.

Called by the controller's applier. Two field managers share the object: `GRANTING_MANAGER` has the replicas and the
hold record, `FIELD_MANAGER` all the rest. So a changed template can never change the replicas, nor the other way round,
and neither write needs to know what the other one wrote.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from streamapp.api.names import FENCE, HOLD_GENERATION, HOLD_RECORD
from streamapp.api.objects.manifests import with_creation, with_replicas
from streamapp.core.actions.decision import Fence
from streamapp.core.facts.hold_annotation import encode, encode_generation
from streamapp.core.facts.hold_record import Epoch, HoldRecord
from streamapp.kube.client.client import FIELD_MANAGER, GRANTING_MANAGER, Check, Json, KubeClient
from streamapp.kube.client.errors import ConflictError
from streamapp.kube.client.kinds import STATEFUL_SETS, Key

HAND_OVER_ATTEMPTS = 5


async def create(client: KubeClient, manifest: Json, replicas: int) -> None:
    """Create it; ConflictError if there is one already.

    The first apply makes the whole object in the name of the granting manager, since an object without replicas would
    start with one pod; then everything but the replicas is handed over. If that is interrupted, `is_handed_over` tells.

    A request can arrive late: of a process that froze, or of a try that had no answer. No apply can ask that nothing be
    there, and a late one would conflict with nothing, since the granting manager sends it: it would set the replicas of
    then, and give the hold record up. So each try writes a word of its own, which belongs to the template's manager
    once that was handed over. A late try has another word, and the API server refuses all of it.
    """
    manifest = with_creation(manifest, secrets.token_hex(8))
    whole = with_replicas(manifest, replicas)
    # Not by force: where another one was made meanwhile, this must fail and not take it over.
    made = await client.apply(STATEFUL_SETS, whole, manager=GRANTING_MANAGER, force=False)
    await _hand_over(client, await _describe(client, manifest, made))


async def write_template(client: KubeClient, manifest: Json, live: Json) -> None:
    """Write everything but replicas and record, on exactly the version `live`."""
    written = await client.apply(STATEFUL_SETS, _fenced(manifest, live))
    if not is_handed_over(written):
        await _hand_over(client, written)


async def keep_claims(client: KubeClient, live: Json, retained: Json) -> None:
    """Write these fields of the retention policy alone, on exactly the version `live`.

    A merge patch: an apply without the template would give the template up.
    """
    metadata = live["metadata"]
    patch = {
        "metadata": {"resourceVersion": metadata["resourceVersion"]},
        "spec": {"persistentVolumeClaimRetentionPolicy": retained},
    }
    await client.merge(STATEFUL_SETS, metadata["namespace"], metadata["name"], patch, manager=FIELD_MANAGER)


async def preview(client: KubeClient, manifest: Json, live: Json) -> Json:
    """Give the whole object as `write_template` would make it of exactly the version `live`; nothing is written."""
    return await client.apply(STATEFUL_SETS, _fenced(manifest, live), dry_run=True)


def _fenced(manifest: Json, live: Json) -> Json:
    fence = {name: live["metadata"][name] for name in ("uid", "resourceVersion")}
    return {**manifest, "metadata": {**manifest["metadata"], **fence}}


async def _describe(client: KubeClient, manifest: Json, made: Json) -> Json:
    """Write everything but replicas and record, on what the first write made; ConflictError if its spec has changed.

    Another process can have gone on since, with a newer template.
    """

    async def write(live: Json) -> Json:
        if live["metadata"]["generation"] != made["metadata"]["generation"]:
            raise _OvertakenError("complete the StatefulSet", "its spec has changed since", "it is read again")
        return await client.apply(STATEFUL_SETS, _fenced(manifest, live))

    return await _tried_again(client, made, write)


async def _hand_over(client: KubeClient, live: Json) -> None:
    """Have the granting manager say no more than the replicas and the record as they are."""

    async def write(live: Json) -> Json:
        metadata = live["metadata"]
        key = Key(metadata["namespace"], metadata["name"])
        fence = Fence(metadata["uid"], metadata["resourceVersion"])
        return await grant(client, key, fence, live["spec"]["replicas"], record_as_it_stands(live) or None)

    await _tried_again(client, live, write)


class _OvertakenError(ConflictError):
    """Another process has gone on: to try again would undo what it wrote."""


async def _tried_again(client: KubeClient, live: Json, write: Callable[[Json], Awaitable[Json]]) -> Json:
    """Make a write, again where the StatefulSet's controller was faster, which writes its status in these moments."""
    for _ in range(HAND_OVER_ATTEMPTS - 1):
        try:
            return await write(live)
        except _OvertakenError:
            raise
        except ConflictError:
            live = await client.get(STATEFUL_SETS, live["metadata"]["namespace"], live["metadata"]["name"])
    return await write(live)


async def grant(
    client: KubeClient,
    key: Key,
    fence: Fence,
    replicas: int,
    record: HoldRecord | Mapping[str, str] | None,
    last_check: Check | None = None,
    *,
    epoch: Epoch | None = None,
) -> Json:
    """Write replicas and hold record in one request.

    Args:
        client: The API server.
        key: Which StatefulSet.
        fence: The version that was judged; ConflictError, and nothing written, where it is another one.
        replicas: What is granted.
        record: What the annotation says; annotations are taken as they are, None removes them. If another manager
            wrote the record, too, that takes a second request.
        last_check: As in `KubeClient.apply`.
        epoch: Written beside the record, so that the object gets another version though the text stays.
    """
    metadata: Json = {
        "namespace": key.namespace,
        "name": key.name,
        "uid": fence.uid,
        "resourceVersion": fence.resource_version,
    }
    if record is not None:
        metadata["annotations"] = _annotations(record) if isinstance(record, HoldRecord) else dict(record)
    if epoch is not None:
        metadata.setdefault("annotations", {})[FENCE] = f"{epoch.lease}/{epoch.counter}"
    body = {"metadata": metadata, "spec": {"replicas": replicas}}
    written = await client.apply(STATEFUL_SETS, body, manager=GRANTING_MANAGER, last_check=last_check)
    is_left = record is None and HOLD_RECORD in (written["metadata"].get("annotations") or {})
    return await _remove_record(client, written) if is_left else written


def record_as_it_stands(live: Json) -> dict[str, str]:
    """Give the annotations of a hold record, whether or not this version can read it; empty if there is none."""
    annotations = live["metadata"].get("annotations") or {}
    return {name: annotations[name] for name in (HOLD_RECORD, HOLD_GENERATION) if name in annotations}


def _annotations(record: HoldRecord) -> dict[str, str]:
    generation = encode_generation(record)
    return {HOLD_RECORD: encode(record)} | ({} if generation is None else {HOLD_GENERATION: generation})


async def _remove_record(client: KubeClient, live: Json) -> Json:
    """Remove the annotation that another manager wrote, too, on exactly the version `live`.

    An apply that leaves it out gives up only our own part. The record would stay, and the next scale-down would
    continue a hold that is over, with its deadline.
    """
    metadata = live["metadata"]
    ours = {HOLD_RECORD: None, HOLD_GENERATION: None}
    patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": ours}}
    return await client.merge(STATEFUL_SETS, metadata["namespace"], metadata["name"], patch, manager=GRANTING_MANAGER)


async def raise_to(
    client: KubeClient,
    live: Json,
    fence: Fence,
    replicas: int,
    record: HoldRecord | Mapping[str, str] | None,
    last_check: Check | None = None,
) -> Json:
    """Write more replicas, and the hold record, as `grant`; also where the creation of `live` was cut off.

    The granting manager owns all of it then. An apply of replicas alone would give up the rest, and the API server
    refuses a StatefulSet without a template. A merge patch gives nothing up; such an object has no record yet.
    """
    key = Key(live["metadata"]["namespace"], live["metadata"]["name"])
    if not is_half_made(live):
        return await grant(client, key, fence, replicas, record, last_check)
    patch = {"metadata": {"resourceVersion": fence.resource_version}, "spec": {"replicas": replicas}}
    return await client.merge(
        STATEFUL_SETS, key.namespace, key.name, patch, manager=GRANTING_MANAGER, last_check=last_check
    )


def is_handed_over(live: Mapping[str, Any]) -> bool:
    """Whether the granting manager owns only replicas and record."""
    managers = {entry.get("manager") for entry in live["metadata"].get("managedFields", ())}
    return FIELD_MANAGER in managers and not is_half_made(live)


def is_half_made(live: Mapping[str, Any]) -> bool:
    """Whether its creation was cut off: the granting manager owns more than replicas and record."""
    for entry in live["metadata"].get("managedFields", ()):
        if entry.get("manager") == GRANTING_MANAGER:
            fields = entry["fieldsV1"]
            if set(fields.get("f:spec", ())) - {"f:replicas"} or "f:labels" in fields.get("f:metadata", ()):
                return True
    return False
