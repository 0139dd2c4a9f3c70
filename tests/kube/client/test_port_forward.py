"""One HTTP exchange over a port-forward: in pieces, refused, cut off, and with something that speaks no HTTP."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import NotFoundError, RefusedError, UnavailableError
from tests.kube.port_forward import DATA, ERROR, tunnel
from tests.support.listening import serving

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
WHERE = "/api/v1/namespaces/system/pods/operator-a/portforward"


def asked(handler: Handler, deadline_seconds: float = 10) -> bytes:
    async def answered(request: web.Request) -> web.StreamResponse:
        return await handler(request)

    async def ask() -> bytes:
        app = web.Application()
        app.router.add_get(WHERE, answered)
        async with serving(app) as port:
            configuration = Configuration(host=f"http://127.0.0.1:{port}")
            client = KubeClient(configuration, deadline_seconds=deadline_seconds)
            try:
                return await client.forwarded("system", "operator-a", 8081, "/v1/operator?x=1")
            finally:
                await client.close()

    return asyncio.run(ask())


@pytest.mark.parametrize("piece", [1, 7, 100_000])
def test_an_answer_comes_whole_in_pieces_of_any_size(piece: int) -> None:
    body, paths = b"0123456789" * 50, []

    def pod(path: str) -> tuple[int, bytes]:
        paths.append(path)
        return 200, body

    assert asked(lambda request: tunnel(request, pod, piece)) == body
    assert paths == ["/v1/operator?x=1"]


def test_what_the_pod_refuses_is_an_error_with_its_words() -> None:
    with pytest.raises(NotFoundError, match="no such app"):
        asked(lambda request: tunnel(request, lambda _: (404, b"no such app")))
    with pytest.raises(UnavailableError, match="503: does not lead"):
        asked(lambda request: tunnel(request, lambda _: (503, b"does not lead")))


def test_a_port_that_nobody_serves_is_told_in_the_kubelets_words() -> None:
    with pytest.raises(UnavailableError, match="connect: connection refused"):
        asked(lambda request: tunnel(request, lambda _: "dial tcp4 127.0.0.1:8081: connect: connection refused"))


def test_a_missing_right_is_told_in_the_api_servers_words() -> None:
    async def forbidden(_: web.Request) -> web.Response:
        return web.json_response({"message": 'pods "operator-a" is forbidden: User "me" cannot create'}, status=403)

    with pytest.raises(RefusedError, match='User "me" cannot create'):
        asked(forbidden)


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        pytest.param([DATA + b"\x91\x1f"], "ended before the answer was whole", id="nothing"),
        pytest.param(
            [DATA + b"\x91\x1f", DATA + b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n1234"],
            "ended before the answer was whole",
            id="a part",
        ),
        pytest.param([DATA + b"\x91\x1f", DATA + b"SSH-2.0-x\r\n\r\n"], "does not speak HTTP", id="another protocol"),
        pytest.param(
            [DATA + b"\x91\x1f", DATA + b"HTTP/1.0 200 OK\r\n\r\n1234"], "does not speak HTTP", id="no length"
        ),
        pytest.param([ERROR + b"\x91\x1f", ERROR + b"lost connection to pod"], "lost connection", id="an error"),
    ],
)
def test_an_answer_that_is_none_is_told(frames: list[bytes], why: str) -> None:
    async def kubelet(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        for frame in frames:
            await socket.send_bytes(frame)
        await socket.close()
        return socket

    with pytest.raises(UnavailableError, match=why):
        asked(kubelet)


def test_a_pod_that_says_nothing_meets_the_deadline() -> None:
    async def silent(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        await socket.receive()  # what is asked
        await socket.receive()  # the end
        return socket

    with pytest.raises(UnavailableError, match=r"no answer within 0\.3 s"):
        asked(silent, deadline_seconds=0.3)
