"""Connections of the client: watches hold theirs for a minute and more, and no request waits for one of them."""

import asyncio

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from streamapp.kube.client.client import KubeClient, ahead
from streamapp.kube.client.errors import UnavailableError
from streamapp.kube.client.kinds import PODS, STREAM_APPS
from tests.builders import NOW
from tests.kube.api_server import ApiServer

WATCHES = 125
"""Five of each of 25 namespaces; by itself the library has a hundred connections."""


@pytest.mark.guarantee(3)
def test_watches_take_no_connection_from_a_raise() -> None:
    async def follow(client: KubeClient, namespace: str) -> None:
        async for _ in client.watch(PODS, namespace, version="1", seconds=50):
            pass

    async def main() -> None:
        server, opened = ApiServer(lambda: NOW), asyncio.Semaphore(0)
        server.opened.append(opened.release)
        server.put("streamapps", {"metadata": {"namespace": "demo", "name": "words"}, "spec": {"replicas": 1}})
        async with server.serving() as url:
            client = KubeClient(Configuration(host=url), deadline_seconds=5)
            following = [asyncio.create_task(follow(client, f"team-{number}")) for number in range(WATCHES)]
            try:
                for _ in range(WATCHES):
                    await asyncio.wait_for(opened.acquire(), 20)
                with ahead():
                    found = await client.get(STREAM_APPS, "demo", "words")
                assert found["spec"]["replicas"] == 1
            finally:
                for one in following:
                    one.cancel()
                await asyncio.gather(*following, return_exceptions=True)
                server.cut_watches()
                await client.close()

    asyncio.run(main())


def test_an_answer_that_is_no_json_says_so() -> None:
    async def main() -> None:
        server = ApiServer(lambda: NOW)
        async with server.serving() as url:
            client = KubeClient(Configuration(host=url), deadline_seconds=5)
            server.elsewhere = lambda *_: web.Response(text="<html>sign in first</html>")
            try:
                with pytest.raises(UnavailableError, match="no JSON"):
                    await client.get(STREAM_APPS, "demo", "words")
            finally:
                await client.close()

    asyncio.run(main())
