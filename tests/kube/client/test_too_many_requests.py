"""An API server that answers 429 over real HTTP: what it asks for is known to whoever asked, and no turn is held."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError, UnavailableError
from streamapp.kube.client.kinds import PODS, STATEFUL_SETS, Key
from streamapp.kube.client.watch import ObjectWatch
from tests.kube.api_server import ApiServer
from tests.kube.field_ownership import Json
from tests.support.example import NOW


def busy(after: str, asked: list[str], *words: str) -> Callable[[web.Request, Json], web.Response | None]:
    """Answer 429 to each request whose address has all of these words, and note its method."""

    def answer(request: web.Request, _: Json) -> web.Response | None:
        if not all(word in request.path_qs for word in words):
            return None
        asked.append(request.method)
        said = {"Retry-After": after} if after else {}
        return web.json_response({"message": "too many requests"}, status=429, headers=said)

    return answer


def play(story: Callable[[ApiServer, KubeClient], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def main() -> None:
        server = ApiServer(lambda: NOW)
        server.put("pods", {"metadata": {"name": "quiet", "namespace": "demo"}})
        async with server.serving() as url:
            client = KubeClient(Configuration(host=url), deadline_seconds=5, **settings)
            try:
                await story(server, client)
            finally:
                server.cut_watches()
                await client.close()

    asyncio.run(main())


CALLS: dict[str, Callable[[KubeClient], Coroutine[Any, Any, object]]] = {
    "GET": lambda client: client.get(PODS, "demo", "busy"),
    "LIST": lambda client: client.listing(PODS, "demo"),
    "WATCH": lambda client: anext(client.watch(PODS, "demo", version="1", seconds=5)),
    "PATCH": lambda client: client.apply(STATEFUL_SETS, {"metadata": {"namespace": "demo", "name": "busy"}}),
    "POST": lambda client: client.create(PODS, {"metadata": {"namespace": "demo", "name": "busy"}}),
    "DELETE": lambda client: client.delete(PODS, "demo", "busy", uid="u", resource_version="1"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_each_kind_of_request_says_how_long_to_wait_and_is_sent_once(
    call: Callable[[KubeClient], Coroutine[Any, Any, object]],
) -> None:
    async def story(server: ApiServer, client: KubeClient) -> None:
        asked: list[str] = []
        server.elsewhere = busy("7", asked)
        with pytest.raises(UnavailableError) as raised:
            await call(client)
        assert (raised.value.retry_after_seconds, len(asked)) == (7, 1)

    play(story)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("1", 1), ("0", 0), ("3600", 60), ("9" * 400, 60), ("", 0), ("soon", 0), ("-5", 0), ("1.5", 0), ("²", 0)],
)
def test_the_wait_is_bounded_and_nonsense_is_none(header: str, seconds: float) -> None:
    async def story(server: ApiServer, client: KubeClient) -> None:
        server.elsewhere = busy(header.encode().decode("latin-1"), [])
        with pytest.raises(KubeError) as raised:
            await client.get(PODS, "demo", "busy")
        assert raised.value.retry_after_seconds == seconds

    play(story)


def test_whoever_is_asked_to_wait_holds_no_turn() -> None:
    async def story(server: ApiServer, client: KubeClient) -> None:
        server.elsewhere = busy("60", [], "busy")

        async def wait_as_asked() -> None:
            try:
                await client.get(PODS, "demo", "busy")
            except KubeError as error:
                await asyncio.sleep(error.retry_after_seconds)

        waiting = [asyncio.create_task(wait_as_asked()) for _ in range(5)]
        async with asyncio.timeout(3):
            assert (await client.get(PODS, "demo", "quiet"))["metadata"]["name"] == "quiet"
        assert not any(one.done() for one in waiting)
        for one in waiting:
            one.cancel()

    play(story, at_once=1)


def test_a_watch_of_the_command_line_waits_as_long_as_it_is_asked_to() -> None:
    paused: list[float] = []

    async def story(server: ApiServer, client: KubeClient) -> None:
        asked: list[str] = []

        async def connect() -> KubeClient:
            return KubeClient(Configuration(host=client._api.configuration.host), deadline_seconds=5)

        async def sleep(seconds: float) -> None:
            paused.append(seconds)
            server.elsewhere = lambda *_: None

        watch = ObjectWatch(connect=connect, kind=PODS, namespace="demo", name=None, sleep=sleep)
        events = watch.events()
        first = await anext(events)
        server.elsewhere = busy("9", asked)
        server.cut_watches()
        second, third = await anext(events), await anext(events)
        assert [type(one).__name__ for one in (first, second, third)] == ["ListEvent", "WatchInterrupted", "ListEvent"]
        await events.aclose()

    play(story)
    assert paused[0] in {1.0, 9.0}
    assert Key("demo", "quiet") is not None
