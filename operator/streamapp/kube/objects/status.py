"""The status of a StreamApp, written through its own subresource."""

from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.kinds import STREAM_APPS


async def write(client: KubeClient, app: Json, status: Json) -> None:
    """Make the status of the StreamApp `app`, as read, what it is here; fields of ours that are left out go.

    Not fenced by a version: it says what was found, and the next pass says it again.
    """
    metadata = app["metadata"]
    body = {
        "metadata": {"namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]},
        "status": status,
    }
    await client.apply(STREAM_APPS, body, subresource="status")
