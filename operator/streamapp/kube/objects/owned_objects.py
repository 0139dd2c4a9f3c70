"""The objects beside the StatefulSet: its headless Service and its PodDisruptionBudget. One apply each.

Called by the controller's applier. An object of the same name with another owner is never touched.
"""

from streamapp.api.objects.drift import covers
from streamapp.kube.client.client import Check, Json, KubeClient
from streamapp.kube.client.errors import InvalidError
from streamapp.kube.client.kinds import BUDGETS, SERVICES, Kind
from streamapp.kube.objects.from_json import is_controlled_by


async def apply_service(client: KubeClient, manifest: Json, owner_uid: str, *, if_changed: bool = False) -> None:
    """Make it what the manifest says, perhaps only if it is gone or differs; InvalidError if another one is there."""
    metadata = manifest["metadata"]
    live = await client.find(SERVICES, metadata["namespace"], metadata["name"])
    _refuse_foreign(SERVICES, live, owner_uid)
    if live is None or not if_changed or not covers(live, manifest):
        await client.apply(SERVICES, manifest)


async def apply_budget(
    client: KubeClient, manifest: Json, live: Json | None, owner_uid: str, last_check: Check | None = None
) -> None:
    """Make it what the manifest says, pods that may be away included; InvalidError if another one is there.

    `last_check`, and `metadata.resourceVersion` in the manifest, as in `KubeClient.apply`.
    """
    _refuse_foreign(BUDGETS, live, owner_uid)
    await client.apply(BUDGETS, manifest, last_check=last_check)


def _refuse_foreign(kind: Kind, live: Json | None, owner_uid: str) -> None:
    if live is not None and not is_controlled_by(live, owner_uid):
        metadata = live["metadata"]
        raise InvalidError(
            f"{kind.name} {metadata['namespace']}/{metadata['name']}",
            "an object of this name has another owner",
            "rename the StreamApp, or delete that object",
        )
