"""A cluster to run commands against: the API server in small, in a thread of its own, and a kubeconfig for it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import yaml
from aiohttp import web

from tests.builders import NOW
from tests.kube.api_server import ApiServer, Write
from tests.kube.object_store import Request

Json = dict[str, Any]
Made = TypeVar("Made")

NAMESPACE = "demo"
NO_DEFINITION = (404, "404 page not found")


class Cluster:
    """The server, and the way to it."""

    def __init__(self, folder: Path) -> None:
        self.server = ApiServer(lambda: NOW)
        self.kubeconfig = folder / "config"
        self.url = ""
        self._loop = asyncio.new_event_loop()

    def do(self, act: Callable[[ApiServer], Made]) -> Made:
        """Change something, in the server's own thread."""

        async def acted() -> Made:
            return act(self.server)

        return asyncio.run_coroutine_threadsafe(acted(), self._loop).result(60)

    def put(self, resource: Json) -> None:
        """Write a StreamApp as it is, with its generation and its status."""
        self.do(lambda server: server.put("streamapps", resource, as_is=True))

    def get(self, name: str, namespace: str = NAMESPACE) -> Json:
        """A StreamApp as it is."""
        found = self.do(lambda server: server.get("streamapps", namespace, name))
        assert found is not None
        return found

    @property
    def written(self) -> list[tuple[str, str]]:
        """Every write that was tried: the method and what it went to, `streamapps/scale`."""
        writes = self.do(lambda server: list(server.writes))
        return [(one.method, f"{one.plural}/{one.subresource}".rstrip("/")) for one in writes]

    def before_write(self, *acts: Callable[[ApiServer], object]) -> None:
        """Do the first when the first write comes in, before it is made, the second before the second, and so on."""
        waiting = list(acts)

        def act(_: Write) -> None:
            if waiting:
                waiting.pop(0)(self.server)

        self.do(lambda server: setattr(server, "fault", act))

    def refuse_write(self, status: int, message: str, *, name: str = "") -> None:
        """Answer writes so, of this name or of all."""

        def answer(request: Request) -> tuple[int, str] | None:
            return (status, message) if name in {"", request.name} else None

        self.do(lambda server: setattr(server, "refuse_write", answer))

    def remove(self, name: str) -> None:
        """Delete one."""
        self.do(lambda server: server.remove("streamapps", NAMESPACE, name))

    def when_watched(self, *acts: Callable[[], None]) -> None:
        """Do the first when a watch begins for the first time, the second when one begins again, and so on."""
        waiting = list(acts)

        def opened() -> None:
            if waiting:
                threading.Thread(target=waiting.pop(0)).start()

        self.do(lambda server: server.opened.append(opened))

    def refuse(self, status: int, message: str, *, path: str = "", query: str = "") -> None:
        """Answer reads so whose path and query have these parts in them."""

        def answer(request: web.Request) -> tuple[int, str] | None:
            asked = path in request.path and query in request.query_string
            return (status, message) if asked else None

        self.do(lambda server: setattr(server, "refuse", answer))

    def accept(self) -> None:
        """Answer reads again."""
        self.do(lambda server: setattr(server, "refuse", lambda _: None))

    def write_kubeconfig(self, url: str, **context: str) -> None:
        """Write one with the one context `here`."""
        self.url = url
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "there", "cluster": {"server": url}}],
            "users": [{"name": "me", "user": {"token": "secret"}}],
            "contexts": [{"name": "here", "context": {"cluster": "there", "user": "me", **context}}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(content))

    @contextmanager
    def running(self) -> Iterator["Cluster"]:
        """Serve, in a thread."""
        ready, stop = threading.Event(), asyncio.Event()

        async def serve() -> None:
            async with self.server.serving() as url:
                self.write_kubeconfig(url, namespace=NAMESPACE)
                ready.set()
                await stop.wait()

        thread = threading.Thread(target=lambda: self._loop.run_until_complete(serve()))
        thread.start()
        try:
            assert ready.wait(60)
            yield self
        finally:
            self.do(lambda server: server.cut_watches())
            self._loop.call_soon_threadsafe(stop.set)
            thread.join(60)
            self._loop.close()
