"""Volume claims: reading those of one StreamApp, and what is written there: process ID, what its pod left, size.

Called by the controller's gatherer and applier. Nothing here deletes a claim; the operator has no right to.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from streamapp.api.names import PROCESS_ID
from streamapp.api.objects.manifests import claim_patch
from streamapp.api.validation.parse import StreamApp
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.core.facts.workload import KeptState
from streamapp.kube.client.client import EXPANDING_MANAGER, Json, KubeClient
from streamapp.kube.client.errors import ConflictError
from streamapp.kube.client.kinds import CLAIMS, Key
from streamapp.kube.objects import kept_states
from streamapp.kube.objects.from_json import recorded_process_id


async def missing_from(client: KubeClient, key: Key, labelled: list[Json], names: AbstractSet[str]) -> list[Json]:
    """Read the claims of these names that the label did not find: a StatefulSet uses claims by name, whatever they say.

    One request for all of them, and none where the label finds every claim, which is the rule: a request for each name
    would be 200 in every pass of a large application, and a list of the namespace in every pass would read the claims
    of all its neighbours. A watch would answer from a cache, on which no removal must rest.

    Args:
        client: With the right to list claims.
        key: Whose claims they are.
        labelled: Those that have its label.
        names: Those that its pods use.
    """
    missing = names - {claim["metadata"]["name"] for claim in labelled}
    if not missing:
        return []
    return [one for one in await client.list(CLAIMS, key.namespace) if one["metadata"]["name"] in missing]


async def lost_since(client: KubeClient, key: Key, before: Sequence[Json]) -> str:
    """Say which claim of those that were judged is gone, going, another one or without its volume; empty if none is.

    The pod object is all that keeps a claim that is being deleted, and the state on its volume.
    """
    labelled = await client.list(CLAIMS, key.namespace, key.selector)
    judged = {claim["metadata"]["name"]: _as_kept(claim) for claim in before}
    others = await missing_from(client, key, labelled, judged.keys())
    now = {claim["metadata"]["name"]: _as_kept(claim) for claim in (*labelled, *others)}
    changed = sorted(name for name, kept in judged.items() if now.get(name) != kept)
    return f"persistentvolumeclaim {', '.join(changed)} is gone or has changed since" if changed else ""


def _as_kept(claim: Json) -> tuple[str, bool, str]:
    """What keeps the state on its volume: which claim it is, whether it is being deleted, whether it has the volume."""
    metadata = claim["metadata"]
    return metadata["uid"], "deletionTimestamp" in metadata, claim.get("status", {}).get("phase", "")


async def record_process_id(
    client: KubeClient, app: StreamApp, live: Json, ordinal: Ordinal, process_id: ProcessId
) -> None:
    """Annotate the claim that was read as `live`.

    An ID that stands there for this application is never replaced (ConflictError); the ID of another application is.
    """
    metadata = live["metadata"]
    recorded = recorded_process_id(live, app.spec.application_id)
    if recorded is not None and recorded != str(process_id):
        raise ConflictError(
            f"annotate persistentvolumeclaim {metadata['namespace']}/{metadata['name']}",
            f"it has the process ID {recorded} on record, not {process_id}",
            f"see whether the volume was replaced; if so, remove the annotation {PROCESS_ID}",
        )
    await _write(client, live, claim_patch(app, ordinal, str(process_id)))


async def record_state(client: KubeClient, app: StreamApp, live: Json, ordinal: Ordinal, state: KeptState) -> None:
    """Annotate the claim that was read as `live` with what lies on the volume.

    Nothing is written where no process ID is on record, and where the text would be too long.
    """
    process_id, text = recorded_process_id(live, app.spec.application_id), kept_states.encode(state)
    if process_id is not None and text is not None:
        await _write(client, live, claim_patch(app, ordinal, process_id, text))


async def expand(client: KubeClient, live: Json, storage: str) -> None:
    """Have the claim that was read as `live` ask for so much storage."""
    body = {"metadata": _fence(live), "spec": {"resources": {"requests": {"storage": storage}}}}
    await client.apply(CLAIMS, body, manager=EXPANDING_MANAGER)


async def _write(client: KubeClient, live: Json, written: Json) -> None:
    await client.apply(CLAIMS, {"metadata": {**written["metadata"], **_fence(live)}})


def _fence(live: Json) -> Json:
    return {name: live["metadata"][name] for name in ("namespace", "name", "uid", "resourceVersion")}
