"""An agent's HTTP side in small, over real sockets: answers as it is told to, and keeps what it was asked."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any

from aiohttp import web

from streamapp.agents.answers import AgentAddress
from streamapp.agents.tls import AgentTls
from streamapp.core.facts.ids import Ordinal
from tests.support.listening import listening, serving
from tests.wire.agent_reports import FULL, POD_UID

TOKEN = "t" * 64
Answer = Callable[[web.Request], Any]


@dataclass(slots=True)
class AgentServer:
    """One agent."""

    answer: Answer | None = None
    """Instead of the usual one."""
    port: int = 0
    address: str = "127.0.0.1"
    serves: SSLContext | None = None
    """With its certificate; None: plain HTTP."""
    expects: AgentTls | None = None
    """What the operator is to expect of it."""
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)
    together: int = 0
    """Requests that were under way at the same time, at most."""
    _now: int = 0

    @property
    def place(self) -> AgentAddress:
        """Where it is."""
        return AgentAddress(
            ordinal=Ordinal(1),
            pod="wordcount-1",
            pod_uid=POD_UID,
            address=self.address,
            port=self.port,
            tls=self.expects,
        )

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._now += 1
        self.together = max(self.together, self._now)
        try:
            self.tokens.append(request.headers.get("Authorization"))
            self.asked.append((request.method, request.path, await request.read()))
            if self.answer is not None:
                response: web.StreamResponse = await self.answer(request)
                return response
            if request.method == "GET":
                return web.json_response(FULL)
            return web.json_response({"epoch": json.loads(self.asked[-1][2])["epoch"]})
        finally:
            self._now -= 1

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["AgentServer"]:
        """Listen."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        async with serving(app, self.address, patience=0.01, tls=self.serves) as self.port:
            yield self


@asynccontextmanager
async def raw_server(write: Callable[[asyncio.StreamWriter], Any]) -> AsyncIterator[AgentAddress]:
    """Accept connections, read a request and write whatever the test wants."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await write(writer)

    async with listening(serve) as port:
        yield AgentAddress(ordinal=Ordinal(1), pod="wordcount-1", pod_uid=POD_UID, address="127.0.0.1", port=port)
