"""The annotation on a volume claim that says what lay there when its pod was removed: to text and back.

Pure. Whoever may write the claim may write the text, so it is bounded, and anything odd reads as nothing.
"""

import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.workload import KeptState

MOST_CHARACTERS = 16_384
"""Some 800 tasks. Every claim of a fleet stays in memory with its text."""
_LARGEST = 2**63 - 1


def encode(state: KeptState) -> str | None:
    """Give the text; None if it would be too long."""
    offsets = {str(task): position for task, position in sorted(state.positions.items())}
    told = {"at": state.at.isoformat(timespec="seconds"), "offsets": offsets}
    text = json.dumps(told, separators=(",", ":"))
    return text if len(text) <= MOST_CHARACTERS else None


@lru_cache(maxsize=512)
def decode(text: str) -> KeptState | None:
    """Read the text; None for anything that `encode` does not write. Every pass asks for the same texts again."""
    if len(text) > MOST_CHARACTERS:
        return None
    try:
        told = json.loads(text)
        at = datetime.fromisoformat(told["at"]).astimezone(UTC)
        positions = {TaskId.parse(task): _offset(position) for task, position in told["offsets"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    return KeptState(at, positions)


def _offset(position: Any) -> int:
    if type(position) is not int or not 0 <= position <= _LARGEST:
        raise ValueError(f"{position!r} is no offset")
    return position
