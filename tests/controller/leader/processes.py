"""The operator as it is installed: real processes of `python -m streamapp`, with kopf, against the fake API server.

What is played elsewhere in virtual time is done here by the kernel: processes are told to end, killed and stopped.
Their application has no brokers, so that a pass writes its status and little else.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from lab.settings import REPOSITORY
from streamapp.kube.client.kinds import LEASES, PODS, STATEFUL_SETS, STREAM_APPS, Key
from tests.controller.doubles.bench import INSTALLATION, NAME, a_stream_app
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.kube.api_server import ApiServer
from tests.kube.discovery import discovery, write_kubeconfig

Json = dict[str, Any]
LEASE = Key("system", "streamapp-operator")
SOURCES = REPOSITORY / "operator"
_DISCOVERY = discovery((STREAM_APPS, STATEFUL_SETS, PODS))


class KnowingServer(ApiServer):
    """The API server, with what kopf asks before it watches, and what each process has asked for."""

    def __init__(self) -> None:
        super().__init__(lambda: datetime.now(UTC))
        self.by_port: list[tuple[float, int, str, str]] = []

    async def _serve_read(self, received: web.Request) -> web.StreamResponse:
        known = _DISCOVERY.get(received.path)
        return await super()._serve_read(received) if known is None else web.json_response(known)

    def lease(self) -> Json:
        """What the Lease says; empty where there is none."""
        found = self.get(LEASES.plural, *_place(LEASE))
        return {} if found is None else dict(found["spec"])

    def leader(self) -> str:
        """The name of the replica that has the Lease."""
        return str(self.lease().get("holderIdentity", "")).rsplit("_", 1)[0]


class Replica:
    """One process."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name, self.process = name, process
        self.lines: list[Json] = []
        self.words: list[str] = []
        self._reading = asyncio.create_task(self._read())

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Give its exit code, when it has ended and everything it said was read."""
        code = await self.process.wait()
        await self._reading
        return code

    def said(self, event: str) -> list[Json]:
        """Its log lines of this event."""
        return [line for line in self.lines if line.get("event") == event]

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            try:
                self.lines.append(json.loads(line))
            except ValueError:
                self.words.append(line.decode())


class Replicas:
    """All processes of one test, and the server that they share."""

    def __init__(self, server: KnowingServer, environment: dict[str, str]) -> None:
        self.server, self._environment = server, environment
        self.all: dict[str, Replica] = {}

    async def start(self, name: str, **settings: object) -> Replica:
        """Start one, with settings of its own."""
        own = {f"STREAMAPP_{setting.upper()}": str(value) for setting, value in settings.items()}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "streamapp"),
            env={**self._environment, "STREAMAPP_INSTANCE": name, **own},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        self.all[name] = Replica(name, process)
        return self.all[name]

    async def until(self, what: str, holds: Callable[[], object], seconds: float = 60) -> float:
        """Wait until something is so; give the seconds that took."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while not holds():
            if loop.time() - began > seconds:
                said = {name: [*one.lines[-5:], *one.words[-5:]] for name, one in self.all.items()}
                raise AssertionError(f"{what}: not within {seconds} s; {self.server.lease()}, {said}")
            await asyncio.sleep(0.02)
        return loop.time() - began

    async def until_it_works(self, name: str, seconds: float = 60) -> float:
        """Wait until this one leads and has begun a pass; give the seconds that took."""
        passes = f"/{STREAM_APPS.plural}/{NAME}"
        before = len(self.server.reads)
        took = await self.until(f"{name} leads", lambda: self.server.leader() == name, seconds)
        return took + await self.until(
            f"{name} works", lambda: any(path.endswith(passes) for path in self.server.reads[before:]), seconds
        )

    async def close(self) -> None:
        """End those that are left."""
        for one in self.all.values():
            if one.process.returncode is None:
                one.send(signal.SIGKILL)
            await one.ended()


@asynccontextmanager
async def replicas(folder: Path, **settings: float) -> AsyncIterator[Replicas]:
    """Give a server with one StreamApp, and nobody who looks after it yet."""
    async with replicas_at(KnowingServer(), folder, **settings) as them:
        yield them


@asynccontextmanager
async def replicas_at(server: KnowingServer, folder: Path, **settings: float) -> AsyncIterator[Replicas]:
    """Give a server of one's own with one StreamApp, and nobody who looks after it yet."""
    server.put(STREAM_APPS.plural, a_stream_app())
    async with server.serving() as url:
        write_kubeconfig(folder / "kubeconfig", url)
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(SOURCES),
            "KUBECONFIG": str(folder / "kubeconfig"),
            "STREAMAPP_PORT": "0",
            "STREAMAPP_API_PORT": "0",
            "STREAMAPP_SEED_IMAGE": INSTALLATION.seed_image,
            "STREAMAPP_AGENT_IMAGE": INSTALLATION.agent_image,
            "STREAMAPP_LEASE_NAMESPACE": LEASE.namespace,
            "STREAMAPP_LEASE_NAME": LEASE.name,
            "STREAMAPP_NAMESPACES": NAMESPACE,
        }
        environment |= {f"STREAMAPP_{name.upper()}": str(value) for name, value in settings.items()}
        them = Replicas(server, environment)
        try:
            yield them
        finally:
            await them.close()


def _place(key: Key) -> tuple[str, str]:
    return key.namespace, key.name
