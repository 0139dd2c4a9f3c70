"""The connection to the API server: the product's `KubeClient` and its library run as they are, down to the sending.

A request connects, the product's last checks run, it travels, the server answers, and the answer travels back. Each
part can go wrong by itself. A request that was sent arrives also if its process is frozen, dead or waits no longer.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from unittest.mock import patch
from urllib.parse import parse_qsl, urlsplit

import aiohttp
from kubernetes.aio.client import rest
from kubernetes.aio.client.configuration import Configuration

from streamapp.kube.client import client
from streamapp.kube.client.client import Check, KubeClient
from streamapp.kube.client.kinds import LEASES
from tests.kube.object_store import ObjectStore, RefusalError, Request
from tests.prove.calls import Process, Switchboard, Witness, froze_as_it_sent, told
from tests.prove.fleet.requests import app_of
from tests.prove.replicas.gate import GatedLoop
from tests.prove.story import Disturbance

Json = dict[str, Any]
HOST = "http://api-server"


class Caller(Process, Protocol):
    """What a connection needs to know of its process."""

    is_dead: bool
    identity: str
    """As the Lease names it."""

    @property
    def is_cut_off(self) -> bool:
        """Whether nothing comes through between it and the API server."""

    def be_cut_off(self, seconds: float) -> None:
        """Let nothing come through for so long."""


class _Answer:
    """As the library gives it."""

    def __init__(self, status: int, body: Json, retry_after: str = "") -> None:
        self.status, self._body = status, body
        self.response = _Headers({"Retry-After": retry_after} if retry_after else {})

    async def read(self) -> bytes:
        return json.dumps(self._body).encode()


@dataclass(frozen=True, slots=True)
class _Headers:
    headers: Mapping[str, str]


@dataclass(slots=True)
class Connection:
    """Stands where the library has its connection pool."""

    configuration: Configuration
    loop: GatedLoop
    store: ObjectStore
    board: Switchboard
    process: Caller
    witness: Witness
    _checks: list[aiohttp.TraceConfig] = field(init=False)

    def __post_init__(self) -> None:
        self._checks = list(self.configuration.trace_configs or ())
        for one in self._checks:
            one.freeze()

    async def close(self) -> None:
        """Nothing is open."""

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: Json | None = None,
        **_: object,
    ) -> _Answer:
        """Make one request; the deadline is the client's."""
        if self.process.is_dead:
            raise aiohttp.ClientError("the process is dead")
        parts = urlsplit(url)
        content = (headers or {}).get("Content-Type", "application/json")
        request = Request.of(method, parts.path, dict(parse_qsl(parts.query)), body or {}, content)
        fates, refusal = await self.loop.outside(self._connect(request))
        if refusal is not None:
            return refusal
        for one in self._checks:
            await one.on_connection_reuseconn.send(None, None, None)  # type: ignore[arg-type]
        self.board.sending(self.process, request)
        self.board.leaves(self.process, request)
        return await self.loop.outside(self._exchange(request, fates))

    # The world's part.

    async def _connect(self, request: Request) -> tuple[Sequence[Disturbance], _Answer | None]:
        """Let time pass and happen what is planned for this call before it is sent."""
        await self.board.latency()
        is_lease = request.plural == LEASES.plural
        if self.board.slowness:
            await asyncio.sleep(self.board.slowness)
        self.board.about = (self.board.has_several and app_of(request)) or None
        fates = self.board.arrive("lease" if is_lease else "write" if request.is_write else "read")
        refusal: _Answer | None = None
        for fate in fates:
            match fate.what:
                case "crash-before":
                    self.process.die()
                    await _for_ever()
                case "freeze" | "freeze-raise":
                    self.process.freeze(fate.what.removeprefix("freeze"), fate.which)
                case "cut":
                    self.process.be_cut_off(fate.which)
                case "timeout-before":
                    await _for_ever()
                case "403" | "409" | "429" | "500":
                    refusal = _Answer(int(fate.what), {"message": "injected"})
        await self.process.turn()
        if self.process.is_cut_off or self.board.namespaces_away.get(request.namespace) == 0:
            await _for_ever()
        return fates, refusal

    async def _exchange(self, request: Request, fates: Sequence[Disturbance]) -> _Answer:
        for fate in fates:
            if fate.what.startswith("freeze-sending"):
                self.process.freeze(fate.what.removeprefix("freeze-sending"), fate.which)
                await self.process.turn()
            if fate.what == "slow":
                await asyncio.sleep(fate.which / 2)
        if self.process.is_cut_off:
            await _for_ever()
        answer = self._answer(request, fates)
        for fate in fates:
            if fate.what == "crash-after":
                self.process.die()
            if fate.what == "timeout-after":
                await _for_ever()
            if fate.what == "slow":
                await asyncio.sleep(fate.which / 2)
        await self.board.latency()
        if self.process.is_cut_off:
            await _for_ever()
        return answer

    def _answer(self, request: Request, fates: Sequence[Disturbance]) -> _Answer:
        board = self.board
        if request.namespace in board.namespaces_away:
            return _Answer(board.namespaces_away[request.namespace], {"message": f"{request.namespace} is away"})
        if request.method == "GET" and request.plural in board.kinds_away:
            return _Answer(429, {"message": f"{request.plural} are away"})
        if status := board.refuses(request):
            return _Answer(status, {"message": "injected: an admission policy refuses it"})
        if request.is_write:
            board.writing(request)
        behind = next((fate.which for fate in fates if fate.what == "stale"), 0)
        as_of = None
        if behind and request.method == "GET" and self.store.history:
            as_of = self.store.history[-min(behind, len(self.store.history))].version - 1
        board.writer, board.froze_as_it_sent = self.process, froze_as_it_sent(fates)
        try:
            answer = self.store.answer(request, as_of)
        except RefusalError as refusal:
            return _Answer(refusal.status, {"message": str(refusal)})
        finally:
            board.writer = None
        self.witness.read(self.process, request, answer, is_stale=as_of is not None)
        if request.is_write and request.plural != LEASES.plural:
            board.tell(f"{self.process.identity}: {told(request)}{board.place_of(request)}")
        return _Answer(200, answer)


def connected_client(
    loop: GatedLoop,
    store: ObjectStore,
    board: Switchboard,
    process: Caller,
    witness: Witness,
    *,
    deadline_seconds: float,
    may_write: Check = lambda: None,
    at_once: int = 50,
) -> KubeClient:
    """The product's client, with this connection below it."""

    def connection(configuration: Configuration) -> Connection:
        return Connection(configuration, loop, store, board, process, witness)

    # The first of the two is what the product replaces by the second.
    with patch.object(rest, "RESTClientObject", connection), patch.object(client, "Connections", connection):
        configuration = Configuration(host=HOST)
        return KubeClient(configuration, deadline_seconds=deadline_seconds, at_once=at_once, may_write=may_write)


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()
