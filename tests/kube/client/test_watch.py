"""Following objects: what is told of them, and how it goes on after everything that ends a watch."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from streamapp.kube.client import watch
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import (
    KubeError,
    NotFoundError,
    RefusedError,
    UnauthenticatedError,
    UnavailableError,
)
from streamapp.kube.client.kinds import STREAM_APPS, Key
from streamapp.kube.client.watch import ChangeEvent, DeleteEvent, ListEvent, ObjectWatch, WatchEvent, WatchInterrupted
from tests.builders import NOW
from tests.kube.api_server import ApiServer

WORDS, COUNTS = Key("demo", "words"), Key("demo", "counts")


class Follower:
    """One that follows, and what it slept and how often it connected meanwhile."""

    def __init__(self, server: ApiServer, url: str) -> None:
        self.server = server
        self.slept: list[float] = []
        self.connected = 0
        self._url = url
        self._news: AsyncGenerator[WatchEvent, None] | None = None

    def follow(self, name: str | None = None, namespace: str | None = "demo") -> AsyncGenerator[WatchEvent, None]:
        follows = ObjectWatch(
            connect=self._connect, kind=STREAM_APPS, namespace=namespace, name=name, pauses=(1, 2), sleep=self._sleep
        )
        return follows.events()

    async def _connect(self) -> KubeClient:
        self.connected += 1
        return KubeClient(Configuration(host=self._url), deadline_seconds=5)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def put(server: ApiServer, key: Key, replicas: int = 1) -> None:
    metadata = {"namespace": key.namespace, "name": key.name}
    server.put("streamapps", {"metadata": metadata, "spec": {"replicas": replicas}})


def told(news: WatchEvent) -> Any:
    """News in a form that is easily compared."""
    match news:
        case ListEvent(objects):
            return "listed", {key.name: one["spec"]["replicas"] for key, one in objects.items()}
        case ChangeEvent(key, resource):
            assert (resource["apiVersion"], resource["kind"]) == ("streamapp.dev/v1alpha1", "StreamApp")
            return "changed", key.name, resource["spec"]["replicas"]
        case DeleteEvent(key):
            return "deleted", key.name
        case WatchInterrupted(error, pause):
            return "interrupted", type(error).__name__, pause


def following_test(test: Callable[[Follower], Awaitable[None]]) -> Callable[[], None]:
    """Run a test with a server of its own."""

    def run() -> None:
        async def with_server() -> None:
            server = ApiServer(lambda: NOW)
            async with server.serving() as url:
                try:
                    async with asyncio.timeout(20):
                        await test(Follower(server, url))
                finally:
                    server.cut_watches()

        asyncio.run(with_server())

    run.__name__ = test.__name__
    return run


def refuse(status: int, part: str) -> Callable[[web.Request], tuple[int, str] | None]:
    """Answer reads so whose query has this part."""
    return lambda request: (status, "injected") if part in request.query_string else None


@following_test
async def test_changes_are_told_in_their_order(follower: Follower) -> None:
    put(follower.server, WORDS)
    async with aclosing(follower.follow()) as news:
        assert told(await anext(news)) == ("listed", {"words": 1})
        put(follower.server, WORDS, 2)
        put(follower.server, COUNTS, 5)
        follower.server.remove("streamapps", "demo", "words")
        assert [told(await anext(news)) for _ in range(3)] == [
            ("changed", "words", 2),
            ("changed", "counts", 5),
            ("deleted", "words"),
        ]
    assert (follower.connected, follower.slept) == (1, [])


@following_test
async def test_what_changes_between_list_and_watch_is_not_missed(follower: Follower) -> None:
    put(follower.server, WORDS)
    async with aclosing(follower.follow()) as news:
        await anext(news)
        put(follower.server, WORDS, 2)
        put(follower.server, WORDS, 3)
        assert told(await anext(news)) == ("changed", "words", 2)
        assert told(await anext(news)) == ("changed", "words", 3)


@following_test
async def test_one_name_hears_nothing_of_others(follower: Follower) -> None:
    put(follower.server, WORDS)
    put(follower.server, COUNTS)
    async with aclosing(follower.follow("words")) as news:
        assert told(await anext(news)) == ("listed", {"words": 1})
        put(follower.server, COUNTS, 2)
        put(follower.server, WORDS, 2)
        assert told(await anext(news)) == ("changed", "words", 2)


@following_test
async def test_a_version_that_is_too_old_is_listed_anew_without_alarm(follower: Follower) -> None:
    put(follower.server, WORDS)
    async with aclosing(follower.follow()) as news:
        await anext(news)
        put(follower.server, WORDS, 2)
        follower.server.remove("streamapps", "demo", "words")
        put(follower.server, COUNTS)
        follower.server.oldest_watchable = 103
        assert told(await anext(news)) == ("listed", {"counts": 1})
    assert follower.slept == [1]


@following_test
async def test_a_watch_whose_time_has_passed_goes_on_where_it_was(follower: Follower) -> None:
    put(follower.server, WORDS)
    async with aclosing(follower.follow()) as news:
        await anext(news)
        put(follower.server, WORDS, 2)
        assert told(await anext(news)) == ("changed", "words", 2)
        follower.server.end_watches()
        put(follower.server, WORDS, 3)
        assert told(await anext(news)) == ("changed", "words", 3)
    lists = [read for read in follower.server.reads if "watch=true" not in read]
    assert (len(lists), follower.connected) == (1, 1)


@following_test
async def test_watches_that_end_at_once_are_not_asked_for_without_pause(follower: Follower) -> None:
    put(follower.server, WORDS)
    async with aclosing(follower.follow()) as news:
        await anext(news)
        ended = 0

        def end() -> None:
            nonlocal ended
            ended += 1
            if ended <= 3:
                asyncio.get_running_loop().call_soon(follower.server.end_watches)
            else:
                put(follower.server, WORDS, 2)

        follower.server.opened.append(end)
        assert told(await anext(news)) == ("changed", "words", 2)
    assert follower.slept == [1, 1, 1]


@following_test
async def test_a_broken_connection_is_said_and_everything_listed_anew(follower: Follower) -> None:
    put(follower.server, WORDS)
    async with aclosing(follower.follow()) as news:
        await anext(news)
        opened = asyncio.Event()
        follower.server.opened.append(opened.set)
        coming = asyncio.ensure_future(anext(news))
        await opened.wait()
        follower.server.cut_watches()
        assert told(await coming) == ("interrupted", "UnavailableError", 1)
        follower.server.remove("streamapps", "demo", "words")
        assert told(await anext(news)) == ("listed", {})
    assert follower.connected == 2


@following_test
async def test_it_waits_longer_each_time_until_something_is_heard_again(follower: Follower) -> None:
    put(follower.server, WORDS)
    async with aclosing(follower.follow()) as news:
        await anext(news)
        follower.server.refuse = refuse(500, "")
        assert [told(await anext(news))[2] for _ in range(3)] == [1, 2, 2]
        follower.server.refuse = lambda _: None
        assert told(await anext(news))[0] == "listed"
        put(follower.server, WORDS, 2)
        assert told(await anext(news))[0] == "changed"
        follower.server.refuse = refuse(500, "")
        follower.server.cut_watches()
        assert told(await anext(news))[2] == 1


@following_test
async def test_watches_that_never_hold_do_not_make_it_ask_without_pause(follower: Follower) -> None:
    put(follower.server, WORDS)
    follower.server.oldest_watchable = 10_000
    async with aclosing(follower.follow()) as news:
        for _ in range(4):
            assert told(await anext(news))[0] == "listed"
    assert follower.slept == [1, 2, 2]


@following_test
async def test_credentials_that_have_expired_are_renewed_by_another_connection(follower: Follower) -> None:
    put(follower.server, WORDS)
    async with aclosing(follower.follow()) as news:
        await anext(news)
        follower.server.refuse = refuse(401, "watch=true")
        assert told(await anext(news)) == ("interrupted", "UnauthenticatedError", 1)
        follower.server.refuse = lambda _: None
        assert told(await anext(news))[0] == "listed"
    assert follower.connected == 2


@pytest.mark.parametrize(
    ("status", "error"),
    [(401, UnauthenticatedError), (403, RefusedError), (404, NotFoundError), (503, UnavailableError)],
)
def test_a_beginning_that_fails_is_an_error(status: int, error: type[KubeError]) -> None:
    @following_test
    async def fails(follower: Follower) -> None:
        follower.server.refuse = refuse(status, "")
        with pytest.raises(error):
            await anext(follower.follow())

    fails()


@following_test
async def test_a_kind_that_is_gone_ends_it(follower: Follower) -> None:
    async with aclosing(follower.follow()) as news:
        await anext(news)
        follower.server.refuse = refuse(404, "")
        with pytest.raises(NotFoundError):
            await anext(news)


@following_test
async def test_the_server_is_asked_for_a_limited_watch_with_bookmarks(follower: Follower) -> None:
    async with aclosing(follower.follow("words")) as news:
        await anext(news)
        opened = asyncio.Event()
        follower.server.opened.append(opened.set)
        coming = asyncio.ensure_future(anext(news))
        await opened.wait()
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)
    listed, watched = follower.server.reads
    assert "fieldSelector=metadata.name" in listed
    for part in ("watch=true", "allowWatchBookmarks=true", "fieldSelector=metadata.name"):
        assert part in watched
    assert f"timeoutSeconds={watch.WATCH_SECONDS}" in watched
