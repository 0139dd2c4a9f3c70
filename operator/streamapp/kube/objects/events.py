"""Publishes what happened to a StreamApp as an Event of `events.k8s.io`, which `kubectl describe` shows."""

from datetime import datetime

from streamapp.kube.client.client import FIELD_MANAGER, Json, KubeClient
from streamapp.kube.client.kinds import EVENTS, Key

CONTROLLER = "streamapp.dev/operator"
NOTE_LIMIT = 1024
"""Bytes that the API server allows."""


async def publish(
    client: KubeClient, app: Json, *, reason: str, note: str, warning: bool, at: datetime, instance: str
) -> None:
    """Create one Event about the StreamApp `app`.

    Args:
        client: The API server.
        app: The StreamApp, as read.
        reason: In PascalCase.
        note: A sentence; what is too long is cut.
        warning: Whether a user should look at it.
        at: When it happened.
        instance: The operator that reports it, for example its pod's name.
    """
    metadata = app["metadata"]
    key = Key(metadata["namespace"], metadata["name"])
    short = note.encode()[:NOTE_LIMIT].decode(errors="ignore")
    time = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    body = {
        "metadata": {"namespace": key.namespace, "name": f"{key.name}.{int(at.timestamp() * 1e6):x}"},
        "eventTime": time,
        "reportingController": CONTROLLER,
        "reportingInstance": instance or FIELD_MANAGER,
        "action": "Scale",
        "reason": reason,
        "note": short,
        "type": "Warning" if warning else "Normal",
        "regarding": {
            "apiVersion": app["apiVersion"],
            "kind": app["kind"],
            "namespace": key.namespace,
            "name": key.name,
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        },
    }
    await client.create(EVENTS, body)
