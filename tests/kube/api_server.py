"""An API server in small, over real HTTP: versions, preconditions, server-side apply, selectors, watches, faults.

For tests that need a fault at an exact write or in a watch, which a real one cannot be asked for. Schemas, admission
and rights are left to the lab.
"""

import asyncio
import copy
import itertools
import json
from collections import deque
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


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change, as a watch tells it."""

    version: int
    plural: str
    kind: str
    body: Json


Refuse = Callable[[web.Request], tuple[int, str] | None]
"""What becomes of a read: None, or the HTTP status and the message that are given instead of it."""

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
        self.reads: list[str] = []
        """Path and query of every read, watches too."""
        self.refuse: Refuse = lambda _: None
        self.oldest_watchable = 0
        """Watches from an older version end with 410."""
        self.opened: list[Callable[[], None]] = []
        """Called whenever a watch has begun."""
        self._events: deque[WatchEvent] = deque(maxlen=1000)
        self._told = asyncio.Event()
        self._cuts = 0
        self._ends = 0
        self._now = now
        self._versions = itertools.count(100)
        self._version = 100
        self._numbers = itertools.count(1)

    def get(self, plural: str, namespace: str, name: str) -> Json | None:
        """An object as it is, or None."""
        stored = self.objects.get((plural, namespace, name))
        return None if stored is None else stored.body

    def put(self, plural: str, body: Json, *, as_is: bool = False) -> Json:
        """Make or change an object as somebody else would: no preconditions, owners as they were.

        With `as_is` its generation and its `managedFields` are those that it comes with.
        """
        metadata = body["metadata"]
        identity = (plural, metadata["namespace"], metadata["name"])
        before = self.objects.get(identity)
        stored = Stored(copy.deepcopy(body), before.owners if before else {"somebody": set()})
        self._store(identity, stored, None if before is None else before.body, as_is=as_is)
        return stored.body

    def remove(self, plural: str, namespace: str, name: str) -> None:
        """Delete an object at once."""
        gone = self.objects.pop((plural, namespace, name))
        self._tell("DELETED", plural, gone.body, next(self._versions))

    def end_watches(self) -> None:
        """End every open watch in good order, as an API server does when its time has passed."""
        self._ends += 1
        self._wake()

    def cut_watches(self) -> None:
        """Break the connection of every open watch, as a network does."""
        self._cuts += 1
        self._wake()

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
            return await self._answer_read(request)
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

    async def _answer_read(self, request: web.Request) -> web.StreamResponse:
        self.reads.append(request.path_qs)
        refused = self.refuse(request)
        if refused is not None:
            return web.json_response({"message": refused[1]}, status=refused[0])
        if request.query.get("watch") == "true":
            return await self._watch(request)
        return self._said(lambda: self._read(request))

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        plural, namespace, _, _ = _parts(request)
        version, cuts, ends = int(request.query["resourceVersion"]), self._cuts, self._ends
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for tell in self.opened:
            tell()
        while True:
            told = self._told
            if version < self.oldest_watchable:
                status = {"kind": "Status", "code": 410, "message": f"too old resource version: {version}"}
                await _send(response, "ERROR", status)
                return response
            for event in [event for event in self._events if event.version > version]:
                version = event.version
                if event.plural == plural and _is_asked_for(request, namespace, event.body):
                    await _send(response, event.kind, event.body)
            await told.wait()
            if self._cuts != cuts:
                assert request.transport is not None
                request.transport.abort()
                return response
            if self._ends != ends:
                return response

    def _tell(self, kind: str, plural: str, body: Json, version: int) -> None:
        self._version = version
        told = {**body, "metadata": {**body["metadata"], "resourceVersion": str(version)}}
        self._events.append(WatchEvent(version, plural, kind, told))
        self._wake()

    def _wake(self) -> None:
        self._told.set()
        self._told = asyncio.Event()

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
            for (kind, _, _), stored in sorted(self.objects.items())
            if kind == plural
            if wanted.items() <= stored.body["metadata"].get("labels", {}).items()
            if _is_asked_for(request, namespace, stored.body)
        ]
        return {"items": items, "metadata": {"resourceVersion": str(self._version)}}

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

    def _store(self, identity: Identity, stored: Stored, before: Json | None, *, as_is: bool = False) -> Json:
        metadata = stored.body["metadata"]
        version = str(next(self._versions))
        metadata["resourceVersion"] = version
        metadata["uid"] = before["metadata"]["uid"] if before else metadata.get("uid", f"uid-{version}")
        metadata.setdefault("creationTimestamp", self._now().strftime("%Y-%m-%dT%H:%M:%SZ"))
        if not as_is:
            changed = before is None or before.get("spec") != stored.body.get("spec")
            metadata["generation"] = (before["metadata"]["generation"] if before else 0) + changed
            metadata["managedFields"] = managed_fields(stored.owners)
        self.objects[identity] = stored
        self._tell("ADDED" if before is None else "MODIFIED", identity[0], stored.body, int(version))
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


def _is_asked_for(request: web.Request, namespace: str, body: Json) -> bool:
    name = request.query.get("fieldSelector", "").removeprefix("metadata.name=")
    return namespace in {"", body["metadata"]["namespace"]} and name in {"", body["metadata"]["name"]}


async def _send(response: web.StreamResponse, kind: str, body: Json) -> None:
    await response.write(json.dumps({"type": kind, "object": body}).encode() + b"\n")


def _check(live: Json, asked: Json) -> None:
    for key, value in asked.items():
        if live["metadata"][key] != value:
            raise RefusalError(409, f"precondition failed: {key} is {live['metadata'][key]}, not {value}")


def _content(body: Json) -> Any:
    metadata = {key: body["metadata"].get(key) for key in ("labels", "annotations", "ownerReferences")}
    return {**body, "metadata": metadata}


def _kind(body: Json) -> Json:
    return {key: body[key] for key in ("apiVersion", "kind") if key in body}
