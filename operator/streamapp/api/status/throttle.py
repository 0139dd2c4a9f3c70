"""When a new status is worth a write: what somebody may act upon at once, what only moves every ten seconds.

Called by the controller before it writes. Each write is stored, sent to every watcher and wakes the operator's own
watch; a figure that moves with every poll must not cost that much.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

GAP = timedelta(seconds=10)
"""Between two writes for nothing but progress."""

_ESTIMATE = frozenset(
    {"estimatedCompletionTime", "earliestCompletionTime", "latestCompletionTime", "estimateSource", "lagFalling"}
)

_MOVING: Mapping[str, frozenset[str]] = {
    "convergence": frozenset(
        {"progress", "running", "learners", "caughtUp", "remainingLag", "slowest", *_ESTIMATE},
    ),
    "scaleDown": frozenset({"desired", "lastProgress", "waitingFor", *_ESTIMATE}),
    "members": frozenset({"active", "learners"}),
    "conditions": frozenset({"message"}),
}
"""Fields that move while something goes on, or change with `observedGeneration`, by the part that they are in."""


def is_worth_writing(
    old: Mapping[str, Any], new: Mapping[str, Any], last_written: datetime | None, now: datetime
) -> bool:
    """Tell whether to write `new` now.

    Args:
        old: The status as it was last written, or as it stands on the resource.
        new: What `translate.status_of` has made.
        last_written: When this process last wrote it; None where it has not.
        now: The time.
    """
    if old == new:
        return False
    if _standing(old) != _standing(new):
        return True
    return last_written is None or now - last_written >= GAP


def _standing(status: Mapping[str, Any]) -> dict[str, Any]:
    """What is left without the fields that move."""
    return {name: _without(_MOVING.get(name, frozenset()), part) for name, part in status.items()}


def _without(moving: frozenset[str], part: Any) -> Any:
    if isinstance(part, Mapping):
        return {name: value for name, value in part.items() if name not in moving}
    return [_without(moving, one) for one in part] if isinstance(part, list) else part
