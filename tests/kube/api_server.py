"""An API server in small, over real HTTP: versions, preconditions, server-side apply, selectors, and faults on demand.

For tests that need a fault at an exact write, which a real one cannot be asked for. Watches, schemas, admission and
rights are left to the lab.
"""

import copy
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aiohttp import web

from tests.kube.field_ownership import Json, OwnershipConflictError, Path, apply, managed_fields

Identity = tuple[str, str, str]
"""Plural, namespace, name."""


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


@dataclass(frozen=True, slots=True)
class Write:
    """One request that would change something."""

    number: int
    """From 1, over the server's whole life."""
    method: str
    plural: str
    subresource: str


Fault = Callable[[Write], str | None]
"""What becomes of a write: None for nothing unusual, `before` and `after` cut the connection without an answer before
or after it is made, `conflict` answers 409 and `busy` 429."""


class ApiServer:
    """The objects, and what is done to them."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self.objects: dict[Identity, Stored] = {}
        self.writes: list[Write] = []
        self.fault: Fault = lambda _: None
        self.changed: list[Callable[[str, Json, Json | None], None]] = []
        """Told of every change: plural, the object, the object before."""
        self._now = now
        self._versions = itertools.count(100)
        self._numbers = itertools.count(1)

    def get(self, plural: str, namespace: str, name: str) -> Json | None:
        """An object as it is, or None."""
        stored = self.objects.get((plural, namespace, name))
        return None if stored is None else stored.body

    def put(self, plural: str, body: Json) -> Json:
        """Make or change an object as somebody else would: no preconditions, owners as they were."""
        metadata = body["metadata"]
        identity = (plural, metadata["namespace"], metadata["name"])
        before = self.objects.get(identity)
        stored = Stored(copy.deepcopy(body), before.owners if before else {"somebody": set()})
        self._store(identity, stored, None if before is None else before.body)
        return stored.body

    def remove(self, plural: str, namespace: str, name: str) -> None:
        """Delete an object at once."""
        del self.objects[plural, namespace, name]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Listen; give the address."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        (address,) = runner.addresses
        try:
            yield f"http://127.0.0.1:{address[1]}"
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return self._said(lambda: self._read(request))
        body = json.loads(await request.read() or b"{}")
        parts = _parts(request)
        write = Write(next(self._numbers), request.method, parts[0], parts[3])
        if request.query.get("dryRun") != "All":
            self.writes.append(write)
        fault = self.fault(write)
        if fault in {"before", "after"}:
            if fault == "after":
                self._said(lambda: self._write(request, parts, body))
            assert request.transport is not None
            request.transport.abort()
        if fault == "conflict":
            return web.json_response({"message": "injected conflict"}, status=409)
        if fault == "busy":
            return web.json_response({"message": "injected: too many requests"}, status=429)
        return self._said(lambda: self._write(request, parts, body))

    def _said(self, make: Callable[[], Json]) -> web.Response:
        try:
            return web.json_response(make())
        except RefusalError as refusal:
            return web.json_response({"message": str(refusal)}, status=refusal.status)

    def _read(self, request: web.Request) -> Json:
        plural, namespace, name, _ = _parts(request)
        if not plural:
            return {"resources": [{"name": "streamapps"}]}
        if name:
            return self._present((plural, namespace, name)).body
        wanted = dict(part.split("=") for part in request.query.get("labelSelector", "").split(",") if "=" in part)
        items = [
            stored.body
            for (kind, where, _), stored in sorted(self.objects.items())
            if kind == plural and namespace in {"", where}
            if wanted.items() <= stored.body["metadata"].get("labels", {}).items()
        ]
        return {"items": items, "metadata": {}}

    def _write(self, request: web.Request, parts: tuple[str, str, str, str], body: Json) -> Json:
        plural, namespace, name, subresource = parts
        if request.method == "POST":
            identity = (plural, namespace, body["metadata"]["name"])
            if identity in self.objects:
                raise RefusalError(409, "already exists")
            stored = Stored(body, {request.query["fieldManager"]: set()})
            return self._store(identity, stored, None)
        identity = (plural, namespace, name)
        if request.method == "DELETE":
            live = self._present(identity).body
            _check(live, body.get("preconditions", {}))
            self.remove(*identity)
            for tell in self.changed:
                tell(plural, {}, live)
            return {}
        return self._apply(request, identity, subresource, body)

    def _apply(self, request: web.Request, identity: Identity, subresource: str, body: Json) -> Json:
        found = self.objects.get(identity)
        asked = {key: body["metadata"][key] for key in ("uid", "resourceVersion") if key in body["metadata"]}
        if found is None and (asked or subresource):
            raise RefusalError(409 if asked and not subresource else 404, "no such object")
        before = copy.deepcopy(found.body) if found else None
        stored = copy.deepcopy(found) if found else Stored({"metadata": copy.deepcopy(body["metadata"]), **_kind(body)})
        if before is not None:
            _check(before, asked)
        part = {subresource: body[subresource]} if subresource else body
        try:
            force = request.query["force"] == "true"
            apply(stored.body, part, request.query["fieldManager"], stored.owners, force=force)
        except OwnershipConflictError as error:
            raise RefusalError(409, str(error)) from error
        if identity[0] == "statefulsets":
            stored.body["spec"].setdefault("replicas", 1)
        if before is not None and found is not None and _content(before) == _content(stored.body):
            found.owners = stored.owners
            found.body["metadata"]["managedFields"] = managed_fields(found.owners)
            return found.body
        return self._store(identity, stored, before)

    def _store(self, identity: Identity, stored: Stored, before: Json | None) -> Json:
        metadata = stored.body["metadata"]
        version = str(next(self._versions))
        metadata["resourceVersion"] = version
        metadata["uid"] = before["metadata"]["uid"] if before else metadata.get("uid", f"uid-{version}")
        changed = before is None or before.get("spec") != stored.body.get("spec")
        metadata["generation"] = (before["metadata"]["generation"] if before else 0) + changed
        metadata.setdefault("creationTimestamp", self._now().strftime("%Y-%m-%dT%H:%M:%SZ"))
        metadata["managedFields"] = managed_fields(stored.owners)
        self.objects[identity] = stored
        for tell in self.changed:
            tell(identity[0], stored.body, before)
        return stored.body

    def _present(self, identity: Identity) -> Stored:
        if identity not in self.objects:
            raise RefusalError(404, f"{identity[0]} {identity[2]} not found")
        return self.objects[identity]


def _parts(request: web.Request) -> tuple[str, str, str, str]:
    """Plural, namespace, name and subresource; empty where the path names none."""
    parts = request.path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource, *_ = [*rest, "", "", ""]
    return plural, namespace, name, subresource


def _check(live: Json, asked: Json) -> None:
    for key, value in asked.items():
        if live["metadata"][key] != value:
            raise RefusalError(409, f"precondition failed: {key} is {live['metadata'][key]}, not {value}")


def _content(body: Json) -> Any:
    metadata = {key: body["metadata"].get(key) for key in ("labels", "annotations", "ownerReferences")}
    return {**body, "metadata": metadata}


def _kind(body: Json) -> Json:
    return {key: body[key] for key in ("apiVersion", "kind") if key in body}
