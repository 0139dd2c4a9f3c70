"""When a StreamApp was last written, and by whom: from the book that the API server itself keeps (`managedFields`).

Used by the command line, which has no other sign of how old a status is, and by the controller's `autoscaling`. A write
that changed nothing leaves no trace, so an old time proves nothing by itself.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from streamapp.api.v1alpha1.spec import StreamAppSpec

_DEFAULT = StreamAppSpec.model_fields["replicas"].default
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Where kubectl keeps the manifest that it applied last, when it does so in the old way."""
_KUBECTL = "kubectl-client-side-apply"


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


def writers_of_replicas(resource: Mapping[str, Any]) -> tuple[str, ...]:
    """Who sets `spec.replicas` otherwise than through the scale subresource, by field manager, sorted.

    Whoever was overwritten by an autoscaler is no longer on record there, but kubectl keeps its manifest. Whoever made
    the object owns what the API server filled in, so an owner of the default is not named: it may have left it out.
    """
    metadata = resource.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    spec = resource.get("spec")
    is_default = isinstance(spec, Mapping) and spec.get("replicas") == _DEFAULT
    found = {
        str(entry.get("manager", ""))
        for entry in _entries(resource)
        if entry.get("subresource", "") == "" and _owns_replicas(entry)
        # What a server-side apply owns is what it said; of an update that is not known.
        if entry.get("operation") == "Apply" or not is_default
    }
    if _is_in_last_applied(metadata.get("annotations")):
        found.add(_KUBECTL)
    return tuple(sorted(found - {""}))


def _owns_replicas(entry: Mapping[str, Any]) -> bool:
    fields = entry.get("fieldsV1")
    spec = fields.get("f:spec") if isinstance(fields, Mapping) else None
    return isinstance(spec, Mapping) and "f:replicas" in spec


def _is_in_last_applied(annotations: object) -> bool:
    text = annotations.get(_LAST_APPLIED) if isinstance(annotations, Mapping) else None
    try:
        applied = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return False
    spec = applied.get("spec") if isinstance(applied, Mapping) else None
    return isinstance(spec, Mapping) and "replicas" in spec


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
