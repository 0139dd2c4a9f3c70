"""What an API server keeps, in small: versions, generations, preconditions, subresources, server-side apply, history.

No HTTP and no time of its own: `api_server` puts it behind a socket, `tests.prove` calls it directly. Whatever was
stored is never changed in place, so an older version can be read again, as from a server that is behind.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.kube.field_ownership import Json, OwnershipConflictError, Path, apply, leaves, managed_fields

Identity = tuple[str, str, str]
"""Plural, namespace (empty for an object of the cluster), name."""
_PARTS = (dict, list)
"""JSON that has more JSON in it."""


class RefusalError(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Stored:
    """One object and who owns its fields."""

    body: Json
    owners: dict[str, set[Path]] = field(default_factory=dict)
    fields: list[Json] | None = None
    """The `managedFields` of these owners, once they were made; owners of what is stored never change."""


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the history, as a watch tells it."""

    version: int
    identity: Identity
    body: Json | None
    """None: it was deleted."""
    before: Json | None

    @property
    def kind(self) -> str:
        """The type of the event."""
        return "DELETED" if self.body is None else "ADDED" if self.before is None else "MODIFIED"

    @property
    def told(self) -> Json:
        """The object of the event; of a deletion, the last one there was, in the version of its deletion."""
        body: Json = self.body or self.before or {}
        return {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}


@dataclass(frozen=True, slots=True)
class Request:
    """One request, taken apart."""

    method: str
    plural: str
    namespace: str
    name: str
    subresource: str
    query: Mapping[str, str]
    body: Json
    is_merge: bool = False
    """Whether a PATCH is a JSON merge patch; else it is a server-side apply."""

    @classmethod
    def of(
        cls, method: str, path: str, query: Mapping[str, str], body: Json, content_type: str = "application/json"
    ) -> "Request":
        """Take a path apart; what it does not name is empty."""
        parts = path.strip("/").split("/")
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource, *_ = [*rest, "", "", ""]
        is_merge = content_type == "application/merge-patch+json"
        return cls(method, plural, namespace, name, subresource, query, body, is_merge)

    @property
    def identity(self) -> Identity:
        """Which object."""
        return self.plural, self.namespace, self.name

    def asks_for(self, body: Json) -> bool:
        """Whether an object is in the namespace and has the fields that a list or a watch asks for."""
        selected = (part.partition("=") for part in self.query.get("fieldSelector", "").split(",") if part)
        return self.namespace in {"", body["metadata"].get("namespace", "")} and all(
            _at(body, path) == value for path, _, value in selected
        )

    @property
    def is_write(self) -> bool:
        """Whether it would change something."""
        return self.method != "GET" and self.query.get("dryRun") != "All"


class ObjectStore:
    """The objects, what was done to them, and how they were before."""

    def __init__(self, now: Callable[[], datetime], version: int = 100) -> None:
        self.objects: dict[Identity, Stored] = {}
        self.changed: list[Callable[[str, Json, Json | None], None]] = []
        """Told of every change: plural, the object (empty: deleted), the object before."""
        self.history: list[Change] = []
        self.graceful: frozenset[str] = frozenset()
        """Plurals whose objects are only marked when deleted; somebody removes them when they have ended."""
        self._now = now
        self._first = version
        self._versions = itertools.count(version + 1)

    @property
    def version(self) -> int:
        """Of the newest change."""
        return self.history[-1].version if self.history else self._first

    def get(self, plural: str, namespace: str, name: str) -> Json | None:
        """An object as it is, or None."""
        stored = self.objects.get((plural, namespace, name))
        return None if stored is None else stored.body

    def put(self, plural: str, body: Json, *, as_is: bool = False) -> Json:
        """Make or change an object as somebody else would: no preconditions, owners as they were.

        With `as_is` its generation and its `managedFields` are those that it comes with.
        """
        metadata = body["metadata"]
        identity = (plural, metadata.get("namespace", ""), metadata["name"])
        before = self.objects.get(identity)
        stored = (
            Stored(clone(body), before.owners, before.fields) if before else Stored(clone(body), {"somebody": set()})
        )
        self._store(identity, stored, None if before is None else before.body, as_is=as_is)
        return stored.body

    def remove(self, plural: str, namespace: str, name: str) -> None:
        """Delete an object at once."""
        identity = (plural, namespace, name)
        before = self.objects.pop(identity).body
        self._remember(Change(next(self._versions), identity, None, before))
        for tell in self.changed:
            tell(plural, {}, before)

    def answer(self, request: Request, as_of: int | None = None) -> Json:
        """Do what a request asks; RefusalError if it cannot be.

        Args:
            request: The request.
            as_of: For a read: answer from this version of the world.
        """
        if request.method == "GET" and request.name and as_of is None:
            return self._present(request.identity).body
        if request.method == "GET":
            return self._read(request, self._objects_at(as_of))
        if request.method == "POST":
            return self._create(request)
        if request.method == "DELETE":
            return self._delete(request)
        return self._merge(request) if request.is_merge else self._apply(request)

    def _objects_at(self, version: int | None) -> Mapping[Identity, Json]:
        present = {identity: stored.body for identity, stored in self.objects.items()}
        if version is None:
            return present
        for change in reversed(self.history):
            if change.version <= version:
                break
            if change.before is None:
                present.pop(change.identity, None)
            else:
                present[change.identity] = change.before
        return present

    def _read(self, request: Request, objects: Mapping[Identity, Json]) -> Json:
        if not request.plural:
            return {"resources": [{"name": "streamapps"}]}
        if request.name:
            if request.identity not in objects:
                raise RefusalError(404, f"{request.plural} {request.name} not found")
            return objects[request.identity]
        wanted = dict(part.split("=") for part in request.query.get("labelSelector", "").split(",") if "=" in part)
        items = [
            objects[identity]
            for identity in sorted(identity for identity in objects if identity[0] == request.plural)
            if request.asks_for(objects[identity])
            if wanted.items() <= objects[identity]["metadata"].get("labels", {}).items()
        ]
        return {"items": items, "metadata": {"resourceVersion": str(self.version)}}

    def _create(self, request: Request) -> Json:
        identity = (request.plural, request.namespace, request.body["metadata"]["name"])
        if identity in self.objects:
            raise RefusalError(409, "already exists")
        stored = Stored(clone(request.body), {request.query["fieldManager"]: set()})
        return self._store(identity, stored, None)

    def _delete(self, request: Request) -> Json:
        live = self._present(request.identity).body
        _check(live, request.body.get("preconditions", {}))
        if request.plural in self.graceful:
            if "deletionTimestamp" not in live["metadata"]:
                self.put(request.plural, marked(live, self._now()))
            return {}
        if request.body.get("propagationPolicy") == "Orphan":
            self._orphan(live["metadata"]["uid"])
        self.remove(*request.identity)
        return {}

    def _orphan(self, uid: str) -> None:
        """Take an owner away from all that it owns; a real one does so before the owner is gone."""
        for (plural, _, _), stored in list(self.objects.items()):
            owners = stored.body["metadata"].get("ownerReferences", [])
            if any(owner["uid"] == uid for owner in owners):
                left = [owner for owner in owners if owner["uid"] != uid]
                self.put(plural, {**stored.body, "metadata": {**stored.body["metadata"], "ownerReferences": left}})

    def _apply(self, request: Request) -> Json:
        identity, subresource, body = request.identity, request.subresource, request.body
        found = self.objects.get(identity)
        asked = {key: body["metadata"][key] for key in ("uid", "resourceVersion") if key in body["metadata"]}
        if found is None and (asked or subresource):
            raise RefusalError(409 if asked and not subresource else 404, "no such object")
        before = None if found is None else found.body
        if found is not None:
            _check(found.body, asked)
            stored = Stored(clone(found.body), {manager: set(owned) for manager, owned in found.owners.items()})
        else:
            stored = Stored({"metadata": clone(body["metadata"]), **_kind(body)})
        part = {subresource: body[subresource]} if subresource else body
        try:
            force = request.query["force"] == "true"
            apply(stored.body, clone(part), request.query["fieldManager"], stored.owners, force=force)
        except OwnershipConflictError as error:
            raise RefusalError(409, str(error)) from error
        if identity[0] == "statefulsets":
            stored.body["spec"].setdefault("replicas", 1)
            lost = [name for name in ("selector", "template") if name not in stored.body["spec"]]
            if lost:  # as when its only owner gives it up
                raise RefusalError(422, f"spec.{lost[0]}: Required value")
        if request.query.get("dryRun") == "All":
            return stored.body
        if before is not None and found is not None and found.owners == stored.owners:
            if _content(before) == _content(stored.body):
                return found.body
            stored.fields = found.fields
        return self._store(identity, stored, before)

    def _merge(self, request: Request) -> Json:
        """Lay a merge patch over an object; through `scale` it is one over its Scale.

        Of who owns what only the fields of the patch are kept, by the name of the manager; a field that is removed is
        nobody's.
        """
        before = self._present(request.identity)
        part = clone(request.body)
        version = part.get("metadata", {}).pop("resourceVersion", None)
        part = {name: value for name, value in part.items() if name != "metadata" or value}
        _check(before.body, {} if version is None else {"resourceVersion": version})
        stored = Stored(merged(before.body, part), {name: set(owned) for name, owned in before.owners.items()})
        written = dict(leaves(part))
        stored.owners.setdefault(request.query["fieldManager"], set()).update(written)
        for owned in stored.owners.values():
            owned.difference_update(path for path, value in written.items() if value is None)
        if _content(before.body) == _content(stored.body):
            return before.body
        return self._store(request.identity, stored, before.body)

    def _remember(self, change: Change) -> None:
        self.history.append(change)

    def _store(self, identity: Identity, stored: Stored, before: Json | None, *, as_is: bool = False) -> Json:
        metadata = stored.body["metadata"]
        version = next(self._versions)
        metadata["resourceVersion"] = str(version)
        metadata["uid"] = before["metadata"]["uid"] if before else metadata.get("uid", f"uid-{version}")
        metadata.setdefault("creationTimestamp", self._now().strftime("%Y-%m-%dT%H:%M:%SZ"))
        if not as_is:
            changed = before is None or before.get("spec") != stored.body.get("spec")
            metadata["generation"] = (before["metadata"]["generation"] if before else 0) + changed
            stored.fields = managed_fields(stored.owners) if stored.fields is None else stored.fields
            metadata["managedFields"] = stored.fields
        self.objects[identity] = stored
        self._remember(Change(version, identity, stored.body, before))
        for tell in self.changed:
            tell(identity[0], stored.body, before)
        return stored.body

    def _present(self, identity: Identity) -> Stored:
        if identity not in self.objects:
            raise RefusalError(404, f"{identity[0]} {identity[2]} not found")
        return self.objects[identity]


def clone(part: Any) -> Any:
    """A copy of JSON, several times faster than `copy.deepcopy`."""
    if isinstance(part, dict):
        return {name: clone(value) if isinstance(value, _PARTS) else value for name, value in part.items()}
    if isinstance(part, list):
        return [clone(value) if isinstance(value, _PARTS) else value for value in part]
    return part


def merged(live: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7396): None takes a field away, maps are gone into, all else is set."""
    if not isinstance(patch, dict):
        return patch
    result = dict(live) if isinstance(live, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def marked(body: Json, now: datetime) -> Json:
    """The object with a deletion timestamp."""
    metadata = {**body["metadata"], "deletionTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {**body, "metadata": metadata}


def _at(body: Json, path: str) -> Any:
    place: Any = body
    for name in path.split("."):
        place = place.get(name) if isinstance(place, dict) else None
    return place


def _check(live: Json, asked: Json) -> None:
    for key, value in asked.items():
        if live["metadata"][key] != value:
            raise RefusalError(409, f"precondition failed: {key} is {live['metadata'][key]}, not {value}")


def _content(body: Json) -> Any:
    metadata = {key: body["metadata"].get(key) for key in ("labels", "annotations", "ownerReferences")}
    return {**body, "metadata": metadata}


def _kind(body: Json) -> Json:
    return {key: body[key] for key in ("apiVersion", "kind") if key in body}
