"""An API server in small, over real HTTP: the objects of `object_store` behind a socket, watches, and faults on demand.

For tests that need a fault at an exact write or in a watch, which a real one cannot be asked for. Schemas, admission
and rights are left to the lab.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from aiohttp import web

from tests.kube.field_ownership import Json
from tests.kube.object_store import Change, ObjectStore, RefusalError, Request
from tests.kube.port_forward import tunnel
from tests.support.listening import serving


@dataclass(frozen=True, slots=True)
class Write:
    """One request that would change something."""

    number: int
    """From 1, over the server's whole life."""
    method: str
    plural: str
    subresource: str


Refuse = Callable[[web.Request], tuple[int, str] | None]
"""What becomes of a read: None, or the HTTP status and the message that are given instead of it."""

Elsewhere = Callable[[web.Request, Json], web.Response | None]
"""What answers in place of the objects: discovery, reviews, a pod's proxy; None for all the rest."""

Forwarded = Callable[[str, str, str], tuple[int, bytes] | str]
"""What a pod answers behind a port-forward: its name, the port and the path; or why there is no connection."""

Fault = Callable[[Write], str | None]
"""What becomes of a write: None for nothing unusual, `before` and `after` cut the connection without an answer before
or after it is made, `conflict` answers 409 and `busy` 429."""


class ApiServer(ObjectStore):
    """The objects, and what is done to them."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(now)
        self.writes: list[Write] = []
        self.fault: Fault = lambda _: None
        self.refuse_write: Callable[[Request], tuple[int, str] | None] = lambda _: None
        """What becomes of a write: None, or the HTTP status and the message that are given instead of it."""
        self.reads: list[str] = []
        """Path and query of every read, watches too."""
        self.refuse: Refuse = lambda _: None
        self.elsewhere: Elsewhere = lambda *_: None
        self.forwarded: Forwarded = lambda pod, *_: f"nobody stands in for pod {pod}"
        self.oldest_watchable = 0
        """Watches from an older version end with 410."""
        self.opened: list[Callable[[], None]] = []
        """Called whenever a watch has begun."""
        self._told = asyncio.Event()
        self._cuts = 0
        self._is_closed = False
        self._ends = 0
        self._numbers = itertools.count(1)

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
        app.router.add_route("*", "/{path:.*}", self._serve)
        async with serving(app) as port:
            try:
                yield f"http://127.0.0.1:{port}"
            finally:
                # A watch that was asked for last may not have begun yet, and the server waits for all to end.
                self._is_closed = True
                self._wake()

    async def _serve(self, received: web.Request) -> web.StreamResponse:
        if received.method == "GET":
            return await self._serve_read(received)
        body = json.loads(await received.read() or b"{}")
        elsewhere = self.elsewhere(received, body)
        if elsewhere is not None:
            return elsewhere
        request = Request.of(received.method, received.path, received.query, body, received.content_type)
        refused = self.refuse_write(request)
        if not request.is_write:  # a dry run: it counts as a read, and no fault of a write strikes it
            return self._said(request) if refused is None else _refused(refused)
        write = Write(next(self._numbers), request.method, request.plural, request.subresource)
        self.writes.append(write)
        return _refused(refused) if refused is not None else self._serve_write(received, request, write)

    def _serve_write(self, received: web.Request, request: Request, write: Write) -> web.Response:
        fault = self.fault(write)
        if fault in {"before", "after"}:
            if fault == "after":
                self._said(request)
            _abort(received)
        if fault == "conflict":
            return web.json_response({"message": "injected conflict"}, status=409)
        if fault == "busy":
            return web.json_response({"message": "injected: too many requests"}, status=429)
        return self._said(request)

    async def _serve_read(self, received: web.Request) -> web.StreamResponse:
        self.reads.append(received.path_qs)
        refused = self.refuse(received)
        if refused is not None:
            return web.json_response({"message": refused[1]}, status=refused[0])
        elsewhere = self.elsewhere(received, {})
        if elsewhere is not None:
            return elsewhere
        if received.path.endswith("/portforward"):
            pod, port = received.path.split("/")[-2], received.query["ports"]
            return await tunnel(received, lambda path: self.forwarded(pod, port, path))
        request = Request.of("GET", received.path, received.query, {})
        if received.query.get("watch") == "true":
            return await self._watch(received, request)
        return self._said(request)

    async def _watch(self, received: web.Request, request: Request) -> web.StreamResponse:
        version, cuts, ends = int(received.query["resourceVersion"]), self._cuts, self._ends
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(received)
        for tell in self.opened:
            tell()
        while True:
            told = self._told
            if version < self.oldest_watchable:
                status = {"kind": "Status", "code": 410, "message": f"too old resource version: {version}"}
                await _send(response, "ERROR", status)
                return response
            for change in [change for change in self.history if change.version > version]:
                version = change.version
                if change.identity[0] == request.plural and request.asks_for(change.told):
                    await _send(response, change.kind, change.told)
            if not self._is_closed:
                await told.wait()
            if self._is_closed:
                return response
            if self._cuts != cuts:
                _abort(received)
                return response
            if self._ends != ends:
                return response

    def _remember(self, change: Change) -> None:
        super()._remember(change)
        self._wake()

    def _wake(self) -> None:
        self._told.set()
        self._told = asyncio.Event()

    def _said(self, request: Request) -> web.Response:
        try:
            return web.json_response(self.answer(request))
        except RefusalError as refusal:
            return web.json_response({"message": str(refusal)}, status=refusal.status)


def _refused(refused: tuple[int, str]) -> web.Response:
    return web.json_response({"message": refused[1]}, status=refused[0])


async def _send(response: web.StreamResponse, kind: str, body: Json) -> None:
    await response.write(json.dumps({"type": kind, "object": body}).encode() + b"\n")


def _abort(received: web.Request) -> None:
    """Drop the connection, unless the client has done so already."""
    if received.transport is not None:
        received.transport.abort()
