"""An API server that wants to be left alone is, and that loses no raise and keeps no other application back."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from streamapp.controller.process import Operator
from streamapp.controller.settings import Settings
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.kinds import STATEFUL_SETS, STREAM_APPS, Key
from tests.controller.doubles.bench import a_stream_app
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.kube.api_server import ApiServer
from tests.kube.field_ownership import Json
from tests.support.example import NOW

BUSY, QUIET = Key(NAMESPACE, "busy"), Key(NAMESPACE, "quiet")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@dataclass
class Fleet:
    """Two applications, the operator, and the requests that one of them costs."""

    server: ApiServer
    operator: Operator
    refused: list[tuple[float, str]] = field(default_factory=list)
    """When the API server refused a request, and its method."""

    def answer(self, after: str, *methods: str) -> None:
        """Answer 429 from now on to these requests about the objects of the busy application; none: to no request."""

        def answer(request: web.Request, _: Json) -> web.Response | None:
            if request.method not in methods or not request.path.split("/")[-1].startswith(BUSY.name):
                return None
            self.refused.append((time.monotonic(), request.method))
            return web.json_response({"message": "too many"}, status=429, headers={"Retry-After": after})

        self.server.elsewhere = answer

    def put(self, key: Key, **spec: Any) -> None:
        """Write a StreamApp, and tell the operator as its watch does."""
        before = self.server.get(STREAM_APPS.plural, key.namespace, key.name) or a_stream_app()
        metadata = {**before["metadata"], "name": key.name, "labels": {"edited": str(time.monotonic())}}
        spec = {**before["spec"], "applicationId": key.name, **spec}
        self.server.put(STREAM_APPS.plural, {**before, "metadata": metadata, "spec": spec})
        resource = self.server.get(STREAM_APPS.plural, key.namespace, key.name)
        assert resource is not None
        self.operator.on_streamapp_event(key, resource, is_gone=False)

    def replicas(self, key: Key) -> int:
        """Of the StatefulSet."""
        found = self.server.get(STATEFUL_SETS.plural, key.namespace, key.name) or {}
        return int(found.get("spec", {}).get("replicas", -1))

    async def until(self, condition: Callable[[], bool], seconds: float = 20) -> float:
        """Wait; give the seconds."""
        began = time.monotonic()
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.01)
        return time.monotonic() - began


@asynccontextmanager
async def a_fleet() -> AsyncIterator[Fleet]:
    """Give both with their StatefulSets, at rest."""
    server = ApiServer(lambda: NOW)
    async with server.serving() as url:
        client = KubeClient(Configuration(host=url), deadline_seconds=5, at_once=2)
        operator = Operator(Settings(seed_image="seed:test", agent_image="agent:test"), client)
        fleet = Fleet(server, operator)
        work = [asyncio.create_task(part) for part in (operator.resync(), operator.watch_objects())]
        try:
            for key in (BUSY, QUIET):
                fleet.put(key, replicas=1)
            await fleet.until(lambda: fleet.replicas(BUSY) == fleet.replicas(QUIET) == 1)
            await asyncio.sleep(1.5)  # the passes after it
            yield fleet
        finally:
            server.elsewhere = lambda *_: None
            for one in work:
                one.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            server.cut_watches()
            await operator.close()
            await client.close()


async def edit(fleet: Fleet, seconds: float, replicas: int) -> None:
    """Change the busy one twenty times a second, each time with more replicas."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        replicas += 1
        fleet.put(BUSY, replicas=replicas)
        await asyncio.sleep(0.05)


@pytest.mark.guarantee(3)
def test_a_refused_raise_is_asked_for_again_when_the_time_has_passed_and_no_sooner_whatever_happens() -> None:
    async def main() -> tuple[list[float], float, float]:
        async with a_fleet() as fleet:
            fleet.answer("1", "PATCH")
            await edit(fleet, 3.5, 2)
            times = [at for at, _ in fleet.refused]
            desired = (fleet.server.get(STREAM_APPS.plural, BUSY.namespace, BUSY.name) or {})["spec"]["replicas"]
            began = time.monotonic()
            fleet.put(QUIET, replicas=4)
            quiet = await fleet.until(lambda: fleet.replicas(QUIET) == 4)
            fleet.answer("1")
            await fleet.until(lambda: fleet.replicas(BUSY) == desired)
            return times, quiet, time.monotonic() - began

    times, quiet, busy = asyncio.run(main())
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert 2 <= len(times) <= 5, times
    assert min(gaps) > 0.95, gaps
    assert quiet < 1
    assert busy < 8


@pytest.mark.guarantee(3)
def test_what_refuses_the_status_for_a_minute_delays_no_raise() -> None:
    async def main() -> tuple[float, int]:
        async with a_fleet() as fleet:

            def answer(request: web.Request, _: Json) -> web.Response | None:
                if request.method != "PATCH" or not request.path.endswith("busy/status"):
                    return None
                fleet.refused.append((time.monotonic(), request.method))
                return web.json_response({"message": "too many"}, status=429, headers={"Retry-After": "60"})

            fleet.server.elsewhere = answer
            fleet.put(BUSY, paused=True)
            await fleet.until(lambda: bool(fleet.refused))
            await asyncio.sleep(1)
            refused = len(fleet.refused)
            fleet.put(BUSY, paused=False, replicas=3)
            return await fleet.until(lambda: fleet.replicas(BUSY) == 3), refused

    took, refused = asyncio.run(main())
    assert took < 1
    assert refused == 1
