"""What the user asks of a StreamApp, as far as a write rests on it: two versions that say the same here are alike.

Called by `reconcile.apply` right before a write. It compares nothing by itself, and knows no other object.
"""

from streamapp.api.names import HOLD, MIGRATION, OVERRIDE, RESTART
from streamapp.kube.client.client import Json


def of_raises(app: Json) -> tuple[object, ...]:
    """All that a raise depends on: which object it is, its spec, its deletion, and the user's word about holds."""
    metadata = app["metadata"]
    annotations = metadata.get("annotations", {})
    return (
        metadata["uid"],
        metadata["generation"],
        metadata.get("deletionTimestamp"),
        annotations.get(HOLD),
        annotations.get(OVERRIDE),
    )


def of_pods(app: Json) -> tuple[object, ...]:
    """All that taking a pod depends on: also the restarts asked for, and whether all pods stop for a migration."""
    annotations = app["metadata"].get("annotations", {})
    return (*of_raises(app), annotations.get(RESTART, ""), MIGRATION in annotations)
