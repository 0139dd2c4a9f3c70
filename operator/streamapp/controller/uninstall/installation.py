"""Lists what this installation of the operator made."""

from streamapp.api.names import OPERATOR_LABEL
from streamapp.controller.settings import Settings
from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.kinds import Kind


async def made_by_us(client: KubeClient, settings: Settings, kind: Kind) -> list[Json]:
    """All objects of a kind in the namespaces that are watched; KubeError."""
    scopes = settings.namespaces or (None,)
    listed = [await client.list(kind, one, f"{OPERATOR_LABEL}={settings.installation}") for one in scopes]
    return [live for objects in listed for live in objects]
