"""Server-side apply in small: who owns which field of an object, and what an apply makes of it.

Enough for the operator's writes: maps are merged field by field, lists are taken whole (an API server merges some by
key; the operator never shares one). Used by the fake API server alone; the real rules are tried in the lab.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]
Path = tuple[str, ...]

NOT_APPLIED = {("apiVersion",), ("kind",)}
IDENTITY = {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"}


class OwnershipConflictError(Exception):
    """A field belongs to another manager and has another value."""


def leaves(body: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every field that is no map with content, with its value."""
    for name, value in body.items():
        here = (*path, name)
        if here in NOT_APPLIED or (path == ("metadata",) and name in IDENTITY):
            continue
        if isinstance(value, dict) and value:
            yield from leaves(value, here)
        else:
            yield here, value


def apply(live: Json, body: Json, manager: str, owners: dict[str, set[Path]], *, force: bool) -> None:
    """Bring `live` and `owners` to what the apply makes of them, in place."""
    wanted = dict(leaves(body))
    for path, value in wanted.items():
        others = [other for other, owned in owners.items() if other != manager and path in owned]
        if others and _get(live, path) != value:
            if not force:
                raise OwnershipConflictError(f"conflict with {others[0]}: .{'.'.join(path)}")
            for other in others:
                owners[other].discard(path)
    given_up = owners.get(manager, set()) - wanted.keys()
    for path in given_up:
        if not any(path in owned for other, owned in owners.items() if other != manager):
            _remove(live, path)
    for path, value in wanted.items():
        _set(live, path, value)
    owners[manager] = set(wanted)


def managed_fields(owners: Mapping[str, set[Path]]) -> list[Json]:
    """The entries of `metadata.managedFields`."""
    entries = []
    for manager, owned in owners.items():
        fields: Json = {}
        for path in owned:
            place = fields
            for name in path:
                place = place.setdefault(f"f:{name}", {})
        entries.append({"manager": manager, "operation": "Apply", "fieldsV1": fields})
    return entries


def _get(live: Mapping[str, Any], path: Path) -> Any:
    place: Any = live
    for name in path:
        if not isinstance(place, dict) or name not in place:
            return None
        place = place[name]
    return place


def _set(live: Json, path: Path, value: Any) -> None:
    place = live
    for name in path[:-1]:
        place = place.setdefault(name, {})
    place[path[-1]] = value


def _remove(live: Json, path: Path) -> None:
    """Remove a field, and a map that has nothing left with it."""
    name, *rest = path
    if not rest:
        live.pop(name, None)
    elif isinstance(live.get(name), dict):
        _remove(live[name], tuple(rest))
        if not live[name]:
            del live[name]
