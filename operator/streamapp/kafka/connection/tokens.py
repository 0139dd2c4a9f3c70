"""Tokens for OAUTHBEARER by client credentials (RFC 6749, 4.4): asks a token server and keeps the token while it lasts.

Used by `connector`. The server's URL comes from the Secret of an application's owner: nothing of an answer but an
OAuth error code reaches a message, no redirection is followed, and an answer has a bound.
"""

import asyncio
import base64
import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from urllib.parse import quote

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from streamapp.kafka.connection.blocking_calls import BlockingCalls
from streamapp.kafka.connection.errors import (
    BrokerUnreachableError,
    InvalidSettingsError,
    KafkaAccessError,
    NotAuthenticatedError,
    cause,
)
from streamapp.kafka.connection.settings import ClientCredentials

MAX_ANSWER = 256 * 1024
"""Bytes of an answer; a token has a few KiB."""
RENEWAL_SHARE = 0.8
"""A token is used for this part of its lifetime, as Kafka's Java client does (`sasl.login.refresh.window.factor`)."""
PAUSE_SECONDS = 10.0
"""A failure is given again for so long before the server is asked again: a locked account must not get worse."""
UNKNOWN_LIFETIME_SECONDS = 30.0
"""Of a token of which the server gives none."""
MAX_LIFETIME_SECONDS = 366 * 86_400.0
"""Of any token, whatever the server says."""

_ERROR_CODE = re.compile(r"[a-z_]{1,40}")
_PRINTABLE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class BearerToken:
    """What a client shows a broker."""

    text: str = field(repr=False)
    extensions: tuple[tuple[str, str], ...] = ()

    @property
    def mechanism(self) -> str:
        """How Kafka calls it."""
        return "OAUTHBEARER"


class TokenSource:
    """The tokens of one client at one token server; used from one event loop."""

    def __init__(
        self,
        credentials: ClientCredentials,
        context: ssl.SSLContext | None,
        names: BlockingCalls,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._credentials = credentials
        self._context = context
        self._names = names
        self._clock = clock
        self._turn = asyncio.Lock()
        self._token: BearerToken | None = None
        self._failure: KafkaAccessError | None = None
        self._asked_at = 0.0
        self._until = 0.0

    def forget(self) -> None:
        """Ask for a new token soon: a broker refused the last one."""
        self._until = min(self._until, self._asked_at + PAUSE_SECONDS)

    async def token(self, tenant: Hashable = None) -> BearerToken:
        """Give a token that lasts; BrokerUnreachableError or NotAuthenticatedError, which name the token server.

        `tenant` is who asks: the server's name is looked up in that tenant's places.
        """
        async with self._turn:
            if self._clock() < self._until:
                if self._token is not None:
                    return self._token
                if self._failure is not None:
                    raise self._failure
            self._token, self._failure = None, None
            self._asked_at = self._clock()
            try:
                text, lifetime = await self._ask(tenant)
            except KafkaAccessError as error:
                self._failure, self._until = error, self._clock() + PAUSE_SECONDS
                raise
            self._token = BearerToken(text, self._credentials.extensions)
            self._until = self._asked_at + RENEWAL_SHARE * lifetime
            return self._token

    async def _ask(self, tenant: Hashable) -> tuple[str, float]:
        own = self._credentials
        name, password = (quote(one, safe="") if own.urlencodes_header else one for one in (own.client_id, own.secret))
        basic = base64.b64encode(f"{name}:{password}".encode()).decode()
        body = {"grant_type": "client_credentials"} | ({} if own.scope is None else {"scope": own.scope})
        connector = aiohttp.TCPConnector(ssl=self._context or True, resolver=_Resolver(self._names, tenant))
        no_cookies = aiohttp.DummyCookieJar()
        try:
            async with (
                aiohttp.ClientSession(connector=connector, trust_env=False, cookie_jar=no_cookies) as http,
                http.post(
                    own.token_endpoint,
                    data=body,
                    headers={"Authorization": f"Basic {basic}", "Accept": "application/json"},
                    allow_redirects=False,
                ) as answer,
            ):
                return self._read(answer.status, await _bounded(answer))
        except aiohttp.ClientConnectorCertificateError as error:
            raise self._unreachable(f"its certificate is not trusted: {error.certificate_error}") from error
        except aiohttp.InvalidURL as error:
            raise InvalidSettingsError(
                "client properties", "sasl.oauthbearer.token.endpoint.url is no URL", "write http(s)://host/path"
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreachable(cause(error)) from error

    def _read(self, status: int, body: bytes) -> tuple[str, float]:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        answer = answer if isinstance(answer, dict) else {}
        if status != 200:
            code = answer.get("error")
            why = code if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else "no OAuth error"
            raise self._refused(f"it answers {status}: {why}")
        text = answer.get("access_token")
        if not isinstance(text, str) or _PRINTABLE.fullmatch(text) is None:
            raise self._refused("its answer has no access_token")
        return text, _lifetime(answer.get("expires_in"))

    def _unreachable(self, why: str) -> BrokerUnreachableError:
        return BrokerUnreachableError(
            self._what(), why, "check sasl.oauthbearer.token.endpoint.url, network policies and the server"
        )

    def _refused(self, why: str) -> NotAuthenticatedError:
        return NotAuthenticatedError(self._what(), why, f"check {self._suspects()} in the Secret")

    def _suspects(self) -> str:
        own = self._credentials
        if all(quote(one, safe="") == one for one in (own.client_id, own.secret)):
            return "client ID, client secret and scope"
        # Servers differ in whether they decode the header.
        return "client ID, client secret, scope and sasl.oauthbearer.header.urlencode"

    def _what(self) -> str:
        return f"token server {self._credentials.address}"


def _lifetime(expires_in: object) -> float:
    """Read seconds; some servers write the number as text, and a hostile one writes what no float can hold."""
    if isinstance(expires_in, str) and re.fullmatch(r"[0-9]{1,12}", expires_in):
        expires_in = int(expires_in)
    if isinstance(expires_in, int | float) and not isinstance(expires_in, bool) and expires_in > 0:
        return float(min(expires_in, MAX_LIFETIME_SECONDS))
    return UNKNOWN_LIFETIME_SECONDS


class _Resolver(AbstractResolver):
    """Looks names up in the places of one tenant: a dead name server never holds those of another."""

    def __init__(self, names: BlockingCalls, tenant: Hashable) -> None:
        self._names, self._tenant = names, tenant

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Look a name up; OSError."""

        def addresses() -> list[tuple[int, int, str, int]]:
            found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
            return [(kind, protocol, str(address[0]), int(address[1])) for kind, _, protocol, _, address in found]

        found = await self._names.run(self._tenant, (host, port, family), addresses)
        return [
            ResolveResult(
                hostname=host, host=address, port=number, family=kind, proto=protocol, flags=socket.AI_NUMERICHOST
            )
            for kind, protocol, address, number in found
        ]

    async def close(self) -> None:
        """Nothing to do."""


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_chunked(16 * 1024):
        body += chunk
        if len(body) > MAX_ANSWER:
            raise aiohttp.ClientPayloadError(f"an answer of more than {MAX_ANSWER} bytes")
    return bytes(body)
