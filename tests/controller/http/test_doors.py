"""What each address of the operator serves: the pod network gets probes and metrics, and nothing of an application."""

import asyncio

import aiohttp
from aiohttp import web

from streamapp.controller.http.probes import Health, serve
from streamapp.controller.http.routes import serve_people
from streamapp.controller.metrics import Metrics

OF_APPLICATIONS = ("/v1/operator", "/v1/apps/demo/counter/tasks", "/v1/apps/demo/counter/history")


def test_the_address_of_the_pod_serves_probes_and_metrics_alone() -> None:
    async def statuses() -> dict[str, int]:
        runner = await serve(0, Health(lambda: 0.0, 1, 1), Metrics())
        port = next(address[1] for address in runner.addresses if len(address) == 2)
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
                return {path: (await session.get(path)).status for path in ("/metrics", *OF_APPLICATIONS)}
        finally:
            await runner.cleanup()

    assert asyncio.run(statuses()) == {"/metrics": 200, **dict.fromkeys(OF_APPLICATIONS, 404)}


def test_applications_are_served_on_the_loopback_address_alone() -> None:
    async def addresses() -> list[str]:
        async def answer(_: web.Request) -> web.Response:
            return web.Response()

        runner = await serve_people([web.get("/v1/operator", answer)], 0)
        try:
            return [address[0] for address in runner.addresses]
        finally:
            await runner.cleanup()

    assert asyncio.run(addresses()) == ["127.0.0.1"]
