"""When a StreamApp was last written, and by whom: from the book that the API server itself keeps (`managedFields`).

Used by the command line, which has no other sign of how old a status is. A write that changed nothing leaves no trace,
so an old time proves nothing by itself.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any


def told_at(resource: Mapping[str, Any]) -> datetime | None:
    """When its status was last written; None where that is not on record."""
    return max((time for subresource, time in _writes(resource) if subresource == "status"), default=None)


def asked_at(resource: Mapping[str, Any]) -> datetime | None:
    """When anything else of it was last written, through `scale` too; None where that is not on record."""
    return max((time for subresource, time in _writes(resource) if subresource != "status"), default=None)


def _writes(resource: Mapping[str, Any]) -> Iterator[tuple[str, datetime]]:
    metadata = resource.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, Mapping) else None
    for entry in entries if isinstance(entries, list) else ():
        time = _time(entry.get("time")) if isinstance(entry, Mapping) else None
        if time is not None:
            yield str(entry.get("subresource", "")), time


def _time(text: object) -> datetime | None:
    try:
        time = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return time if time is not None and time.tzinfo is not None else None
