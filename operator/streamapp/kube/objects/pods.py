"""The one write to a pod: deleting it, so that the StatefulSet makes it anew from the newest template."""

from streamapp.kube.client.client import Check, Json, KubeClient
from streamapp.kube.client.errors import ConflictError
from streamapp.kube.client.kinds import PODS


async def restart(client: KubeClient, live: Json, uid: str, last_check: Check | None = None) -> None:
    """Delete the pod that was read as `live`, if it is the one that was judged; ConflictError if it is another.

    `last_check` as in `KubeClient.apply`.
    """
    metadata = live["metadata"]
    if metadata["uid"] != uid:
        raise ConflictError(
            f"delete pod {metadata['namespace']}/{metadata['name']}",
            "it is not the pod that was judged any more",
            "it is read again and judged anew",
        )
    await client.delete(
        PODS,
        metadata["namespace"],
        metadata["name"],
        uid=uid,
        resource_version=metadata["resourceVersion"],
        last_check=last_check,
    )
