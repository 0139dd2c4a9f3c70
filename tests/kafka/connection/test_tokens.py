"""How long a token is used, and what answers of a token server are none; the server is a real socket here."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TypeVar

import pytest

from streamapp.kafka.connection.blocking_calls import BlockingCalls
from streamapp.kafka.connection.errors import NotAuthenticatedError
from streamapp.kafka.connection.settings import ClientCredentials
from streamapp.kafka.connection.tokens import TokenSource

T = TypeVar("T")


@dataclass
class Server:
    """One that says the same to each request."""

    status: int = 200
    body: str = ""
    asked: int = 0
    port: int = 0


@dataclass
class Clock:
    """Stands until a test moves it."""

    now: float = field(default=1000.0)

    def __call__(self) -> float:
        """Read it."""
        return self.now


@pytest.fixture
def server() -> Iterator[Server]:
    """Give a server on the loopback address."""
    one = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            one.asked += 1
            self.send_response(one.status)
            self.send_header("Content-Length", str(len(one.body)))
            self.end_headers()
            self.wfile.write(one.body.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        one.port = http.server_address[1]
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield one
        http.shutdown()
        thread.join()


ME = ("me", "s3cret")


def played(server: Server, play: Callable[[TokenSource, Clock], Awaitable[T]], client: tuple[str, str] = ME) -> T:
    credentials = ClientCredentials(f"http://127.0.0.1:{server.port}/token", *client)

    async def main() -> T:
        clock = Clock()
        with closing(BlockingCalls("names")) as names:
            return await play(TokenSource(credentials, None, names, clock), clock)

    return asyncio.run(main())


UNKNOWN, YEAR = 24.0, 0.8 * 366 * 86_400

LIFETIMES: dict[str, tuple[str, float]] = {
    "a number": ("3600", 2880.0),
    "a fraction": ("0.5", 0.4),
    "a number as text": ('"3600"', 2880.0),
    "none": ("null", UNKNOWN),
    "zero": ("0", UNKNOWN),
    "a negative number": ("-1", UNKNOWN),
    "a word": ('"soon"', UNKNOWN),
    "true": ("true", UNKNOWN),
    "no number": ("NaN", UNKNOWN),
    "infinity": ("Infinity", YEAR),
    "more than a float can hold": ("1" * 400, YEAR),
}


@pytest.mark.parametrize(("expires_in", "seconds"), LIFETIMES.values(), ids=LIFETIMES.keys())
def test_a_token_is_used_for_four_fifths_of_its_lifetime(server: Server, expires_in: str, seconds: float) -> None:
    server.body = f'{{"access_token": "t", "expires_in": {expires_in}}}'

    async def play(source: TokenSource, clock: Clock) -> tuple[int, int]:
        await source.token()
        clock.now += seconds - 0.1
        await source.token()
        early = server.asked
        clock.now += 0.2
        await source.token()
        return early, server.asked

    assert played(server, play) == (1, 2)


def test_a_token_without_a_lifetime_is_used_for_a_while(server: Server) -> None:
    server.body = json.dumps({"access_token": "t"})

    async def play(source: TokenSource, clock: Clock) -> int:
        await source.token()
        clock.now += UNKNOWN - 0.1
        await source.token()
        return server.asked

    assert played(server, play) == 1


ANSWERS: dict[str, tuple[int, str, str]] = {
    "an error with a code": (400, '{"error": "invalid_scope"}', "it answers 400: invalid_scope"),
    "an error with words of its own": (400, '{"error": "give me money"}', "it answers 400: no OAuth error"),
    "an error without JSON": (502, "<html>", "it answers 502: no OAuth error"),
    "a list": (200, "[]", "its answer has no access_token"),
    "no token": (200, '{"token_type": "Bearer"}', "its answer has no access_token"),
    "a token with a line break": (200, '{"access_token": "a\\nb"}', "its answer has no access_token"),
    "JSON that is too deep to be read": (200, "[" * 100_000, "its answer has no access_token"),
}


@pytest.mark.parametrize(("status", "body", "why"), ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_that_is_no_token_is_named(server: Server, status: int, body: str, why: str) -> None:
    server.status, server.body = status, body

    async def play(source: TokenSource, _: Clock) -> str:
        with pytest.raises(NotAuthenticatedError) as caught:
            await source.token()
        return str(caught.value)

    suspects = "client ID, client secret and scope"
    assert played(server, play) == f"token server 127.0.0.1:{server.port}: {why} (check {suspects} in the Secret)"


@pytest.mark.parametrize("client", [("me", "a+b"), ("me:mine", "ab"), ("me", "100%"), ("me", "a/b=")])
def test_a_refusal_names_the_encoding_where_it_matters(server: Server, client: tuple[str, str]) -> None:
    server.status, server.body = 401, '{"error": "invalid_client"}'

    async def play(source: TokenSource, _: Clock) -> str:
        with pytest.raises(NotAuthenticatedError) as caught:
            await source.token()
        return str(caught.value)

    suspects = "client ID, client secret, scope and sasl.oauthbearer.header.urlencode"
    assert f"invalid_client (check {suspects} in the Secret)" in played(server, play, client)
