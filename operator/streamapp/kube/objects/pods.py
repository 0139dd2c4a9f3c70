"""The one write to a pod: deleting it, so that the StatefulSet makes it anew from the newest template."""

from streamapp.kube.client.client import Check, Json, KubeClient
from streamapp.kube.client.kinds import PODS


async def restart(client: KubeClient, live: Json, last_check: Check | None = None) -> None:
    """Delete exactly the pod that was read as `live`, and no later one of its name: ConflictError then.

    `last_check` as in `KubeClient.apply`.
    """
    metadata = live["metadata"]
    await client.delete(
        PODS,
        metadata["namespace"],
        metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        last_check=last_check,
    )
