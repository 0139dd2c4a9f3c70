"""What is wrong with volumes, and holds nothing: claims that cannot grow, and another storage class.

Called by `decide`.
"""

from streamapp.core.actions.beside import too_small
from streamapp.core.actions.decision import Event
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.reasons import Reason


def not_expandable(snapshot: Snapshot) -> Event | None:
    """The lowest ordinal whose claim the API server refused to expand."""
    refused = [volume for volume, _ in too_small(snapshot) if volume.not_expandable]
    lowest = min(refused, key=lambda volume: volume.ordinal, default=None)
    if lowest is None:
        return None
    return Event(Reason.VolumeNotExpandable, f"ordinal {lowest.ordinal}: {lowest.not_expandable}")


def other_storage_class(snapshot: Snapshot) -> Event | None:
    """The class in which the StatefulSet makes claims, where the StreamApp names another one."""
    statefulset = snapshot.workload.statefulset
    if statefulset is None or not statefulset.is_ours or not statefulset.storage_class:
        return None
    return Event(Reason.StorageClassDiffers, statefulset.storage_class)
