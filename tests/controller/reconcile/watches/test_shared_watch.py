"""A shared watch over real HTTP: what it takes, and what it does after every kind of interruption."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from streamapp.controller.reconcile import shared_watch
from streamapp.controller.reconcile.shared_watch import SharedWatch
from streamapp.controller.reconcile.workqueue import Pauses
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError
from streamapp.kube.client.kinds import PODS, Key, Kind
from streamapp.kube.client.object_cache import ObjectCache
from tests.kube.api_server import ApiServer
from tests.support.example import NOW

Json = dict[str, Any]
KEY = Key("demo", "counter")


class Watched:
    """A server, a watch of its pods, and what the watch told."""

    def __init__(self, server: ApiServer, client: KubeClient, relist_seconds: float) -> None:
        self.server = server
        self.told: list[tuple[str, Json | None]] = []
        self.cache = ObjectCache(asyncio.get_running_loop().time)
        self.watch = SharedWatch(
            *(client, self.cache, PODS, None, self._changed),
            relist_seconds=relist_seconds,
            pauses=Pauses(0.0, 0.05, 0.1),
        )

    def _changed(self, kind: Kind, key: Key, one: Json | None) -> None:
        assert (kind, key) == (PODS, KEY)
        self.told.append(("list" if one is None else one["metadata"]["name"], one))

    def names(self) -> list[str]:
        return [one["metadata"]["name"] for one in self.cache.of_app(PODS, KEY)]

    async def until(self, *names: str) -> None:
        async with asyncio.timeout(20):
            while self.names() != list(names):  # noqa: ASYNC110 (the cache tells nobody)
                await asyncio.sleep(0.01)


def a_pod(ordinal: int, **metadata: Any) -> Json:
    labels = {"streamapp.dev/app": "counter"}
    return {"metadata": {"name": f"counter-{ordinal}", "namespace": "demo", "labels": labels, **metadata}}


def watched(play: Callable[[Watched], Coroutine[Any, Any, None]], relist_seconds: float = 60.0) -> None:
    """Play something beside a watch that has seen one pod."""

    async def main() -> None:
        server = ApiServer(lambda: NOW)
        server.put("pods", a_pod(0))
        async with server.serving() as url:
            client = KubeClient(Configuration(host=url), deadline_seconds=5)
            one = Watched(server, client, relist_seconds)
            running = asyncio.create_task(one.watch.run())
            try:
                await one.until("counter-0")
                await play(one)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                server.cut_watches()
                await client.close()

    asyncio.run(main())


async def opened(server: ApiServer) -> None:
    """Wait until a watch is open."""
    begun = asyncio.Event()
    server.opened.append(begun.set)
    async with asyncio.timeout(20):
        await begun.wait()


def test_events_reach_the_cache_and_whoever_is_told() -> None:
    async def play(one: Watched) -> None:
        one.server.put("pods", a_pod(1))
        await one.until("counter-0", "counter-1")
        one.server.remove("pods", "demo", "counter-0")
        await one.until("counter-1")
        assert [name for name, _ in one.told] == ["list", "counter-1", "counter-0"]

    watched(play)


def test_an_object_larger_than_a_line_of_the_library_is_taken() -> None:
    async def play(one: Watched) -> None:
        one.server.put("pods", a_pod(1, annotations={"large": "x" * 300_000}))
        await one.until("counter-0", "counter-1")

    watched(play)


def test_a_broken_connection_loses_nothing() -> None:
    async def play(one: Watched) -> None:
        one.server.cut_watches()
        one.server.put("pods", a_pod(1))
        one.server.remove("pods", "demo", "counter-0")
        await one.until("counter-1")

    watched(play)


def test_a_version_that_is_too_old_lists_again_and_forgets_what_is_gone() -> None:
    async def play(one: Watched) -> None:
        server = one.server
        server.remove("pods", "demo", "counter-0")
        server.oldest_watchable = server.version + 1
        server.put("pods", a_pod(1))
        server.end_watches()
        await one.until("counter-1")

    watched(play)


def test_a_refusal_is_tried_again() -> None:
    async def play(one: Watched) -> None:
        one.server.refuse = lambda _: (403, "no")
        one.server.cut_watches()
        await asyncio.sleep(0.3)
        assert not one.watch.cache.is_current([PODS], "demo")
        one.server.put("pods", a_pod(1))
        one.server.refuse = lambda _: None
        await one.until("counter-0", "counter-1")
        assert one.watch.cache.is_current([PODS], "demo")

    watched(play)


@pytest.mark.slow
def test_an_event_that_was_never_told_is_found_by_the_next_list() -> None:
    async def play(one: Watched) -> None:
        await opened(one.server)
        hidden, one.server.history = one.server.history, []
        one.server.put("pods", a_pod(1))
        one.server.history[:] = [*hidden]  # the watch never comes to it
        await one.until("counter-0", "counter-1")
        assert one.told[-1] == ("list", None)

    watched(play, relist_seconds=2.0)


def test_lists_a_second_apart_are_no_storm() -> None:
    async def play(one: Watched) -> None:
        await asyncio.sleep(2.0)
        assert len(one.server.reads) <= 6

    watched(play, relist_seconds=0.1)


def test_a_watch_that_the_server_never_ends_is_ended_when_its_time_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(one: Watched) -> None:
        await opened(one.server)
        talk = asyncio.create_task(bookmarks(one.server))
        hidden, one.server.history = one.server.history, []
        one.server.remove("pods", "demo", "counter-0")
        one.server.history[:] = [*hidden]
        try:
            await one.until("counter-1")
        finally:
            talk.cancel()

    async def bookmarks(server: ApiServer) -> None:
        """Something else happens again and again, so that the connection is never silent."""
        for number in itertools.count():
            server.put("pods", a_pod(1, annotations={"note": str(number)}))
            await asyncio.sleep(0.1)

    monkeypatch.setattr(shared_watch, "OVERTIME_SECONDS", 0.2)
    watched(play, relist_seconds=2.0)


def test_a_busy_server_says_how_long_it_wants_to_be_left_alone() -> None:
    async def play(one: Watched) -> None:
        said = {"Retry-After": "7"}
        one.server.elsewhere = lambda *_: web.json_response({"message": "busy"}, status=429, headers=said)
        with pytest.raises(KubeError) as raised:
            await one.watch.client.get(PODS, "demo", "counter-0")
        assert raised.value.retry_after_seconds == 7

    watched(play)


def test_a_busy_server_is_listed_and_watched_again_no_sooner_than_it_wants() -> None:
    async def play(one: Watched) -> None:
        times: list[float] = []

        def busy(*_: object) -> web.Response:
            times.append(asyncio.get_running_loop().time())
            return web.json_response({"message": "busy"}, status=429, headers={"Retry-After": "1"})

        one.server.elsewhere = busy
        one.server.cut_watches()
        await asyncio.sleep(2.5)
        one.server.elsewhere = lambda *_: None
        one.server.put("pods", a_pod(1))
        await one.until("counter-0", "counter-1")
        assert 1 <= len(times) <= 3
        assert min([later - earlier for earlier, later in itertools.pairwise(times)], default=1.0) > 0.95

    watched(play)
