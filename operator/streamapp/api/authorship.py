"""When a StreamApp was last written, and by whom: from the book that the API server itself keeps (`managedFields`).

Used by the command line, which has no other sign of how old a status is. A write that changed nothing leaves no trace,
so an old time proves nothing by itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Author:
    """Who owns a field."""

    manager: str
    """As it calls itself: `kubectl`, `kube-controller-manager` (the autoscalers), `kubectl-streamapp`."""
    subresource: str
    """Through which it wrote, for example `scale`; empty: the object itself."""
    at: datetime | None
    """When it last changed any of its fields."""


def authors_of(resource: Mapping[str, Any], *path: str) -> tuple[Author, ...]:
    """Who owns a field, the latest writer first; none where that is not on record.

    Args:
        resource: The whole object.
        path: The names of the field and of all above it: `"spec", "replicas"`.
    """
    authors = []
    for entry in _entries(resource):
        place: Any = entry.get("fieldsV1")
        for name in path:
            place = place.get(f"f:{name}") if isinstance(place, Mapping) else None
        if place is not None:
            manager, subresource = str(entry.get("manager", "")), str(entry.get("subresource", ""))
            authors.append(Author(manager, subresource, _time(entry.get("time"))))
    return tuple(sorted(authors, key=lambda one: 0.0 if one.at is None else -one.at.timestamp()))


def told_at(resource: Mapping[str, Any]) -> datetime | None:
    """When its status was last written; None where that is not on record."""
    return max((time for subresource, time in _writes(resource) if subresource == "status"), default=None)


def asked_at(resource: Mapping[str, Any]) -> datetime | None:
    """When anything else of it was last written, through `scale` too; None where that is not on record."""
    return max((time for subresource, time in _writes(resource) if subresource != "status"), default=None)


def _writes(resource: Mapping[str, Any]) -> Iterator[tuple[str, datetime]]:
    for entry in _entries(resource):
        time = _time(entry.get("time"))
        if time is not None:
            yield str(entry.get("subresource", "")), time


def _entries(resource: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    metadata = resource.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, Mapping) else None
    yield from (entry for entry in (entries if isinstance(entries, list) else ()) if isinstance(entry, Mapping))


def _time(text: object) -> datetime | None:
    try:
        time = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return time if time is not None and time.tzinfo is not None else None
