"""The one write to a volume claim: recording the process ID that the volume runs as, once."""

from streamapp.api.names import PROCESS_ID
from streamapp.api.objects.manifests import claim_patch
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.errors import ConflictError
from streamapp.kube.client.kinds import CLAIMS


async def record_process_id(client: KubeClient, live: Json, ordinal: Ordinal, process_id: ProcessId) -> None:
    """Annotate the claim that was read as `live`; an ID that stands there already is never replaced (ConflictError)."""
    metadata = live["metadata"]
    recorded = metadata.get("annotations", {}).get(PROCESS_ID)
    if recorded is not None and recorded != str(process_id):
        raise ConflictError(
            f"annotate persistentvolumeclaim {metadata['namespace']}/{metadata['name']}",
            f"it has the process ID {recorded} on record, not {process_id}",
            f"see whether the volume was replaced; if so, remove the annotation {PROCESS_ID}",
        )
    fence = {name: metadata[name] for name in ("namespace", "name", "uid", "resourceVersion")}
    written = claim_patch(ordinal, process_id)["metadata"]
    await client.apply(CLAIMS, {"metadata": {**written, **fence}})
