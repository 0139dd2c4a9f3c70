"""Sends requests to agents: a deadline on each, a bound on every answer, turns for all of them.

The controller creates one per process. It retries nothing: the next pass asks again. It follows no redirect and uses no
proxy: a token is sent to the address of a pod and nowhere else. Where the address has a certificate to expect, nothing
is sent before that certificate was seen.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import aiohttp

from streamapp.agents import tls
from streamapp.agents.answers import AgentAddress, AgentReading, AnnouncementOutcome, AnnouncementResult
from streamapp.agents.sockets import AgentSockets
from streamapp.agents.turns import ApplicationTurns, NoTurnError, Turns
from streamapp.core.facts.agent_reports import AgentSilent
from streamapp.wire.agent_report import MOST_BYTES, Expected, NotOurReportError, read_report
from streamapp.wire.announcement import epoch_in, error_in
from streamapp.wire.byte_budget import BudgetExceededError, ByteBudget, Share
from streamapp.wire.errors import UndecodableError

T = TypeVar("T")

DEADLINE_SECONDS = 2.0
"""For a request, from the beginning of the connection to the last byte of the answer."""
WAITING_DEADLINES = 2
"""How many deadlines a request waits for its turn, before its own deadline begins."""
_DECODED_AT_ONCE = 64 * 1024
"""Bytes of a report that is decoded in the event loop; a longer one is decoded in a thread."""
_REPORT = "/streamapp/v1/report"
_LEAVING = "/streamapp/v1/leaving"
_HEARTBEAT = "/streamapp/v1/heartbeat"
_NO_TLS: dict[str, Any] = {}
_MOST_TOLD = 64 * 1024
"""Bytes of an answer to an announcement."""

_ROTATED = (
    "it does not accept the operator's token: restart the pod, so that it gets the hashes of the present keys, or see "
    "that the operator has the key it was started with"
)
_UNREACHABLE = "see that the pod runs the agent, and that a network policy lets the operator reach this port"
_NOBODY_LISTENS = (
    "nothing listens there: look in the pod's log for lines of `streamapp-agent`; the agent needs Java 17 or newer"
)


class _NoAnswerError(Exception):
    """There is no answer that could be read; says why, and what to do."""


class _SilentError(_NoAnswerError):
    """The whole deadline passed."""


class _UntrustedError(_NoAnswerError):
    """Who answers has no certificate that is trusted; no request was sent."""


@dataclass(frozen=True, slots=True)
class _HttpAnswer:
    status: int
    body: bytes


@dataclass(slots=True)
class AgentClient:
    """All agents."""

    deadline_seconds: float = DEADLINE_SECONDS
    turns: Turns = field(default_factory=Turns)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    budget: ByteBudget = field(default_factory=ByteBudget)
    """Of unfinished answers."""
    _session: aiohttp.ClientSession | None = field(default=None, init=False)
    _sockets: AgentSockets = field(init=False)

    def __post_init__(self) -> None:
        """Bound the lives of sockets by the deadline."""
        self._sockets = AgentSockets(self.deadline_seconds)

    async def close(self) -> None:
        """Drop every connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
            await self._sockets.close()

    async def read(self, addresses: Iterable[AgentAddress], application_id: str, token: str) -> list[AgentReading]:
        """Read the reports of all of these at the same time; one reading for each, in their order."""
        turns = self._begin()

        async def read(address: AgentAddress) -> AgentReading:
            return await self._read(turns, address, application_id, token)

        return await self._each(addresses, read)

    async def announce(
        self, addresses: Iterable[AgentAddress], announcement: bytes, token: str
    ) -> list[AnnouncementResult]:
        """Send the announcement to all of these at the same time; one result for each, in their order."""
        return await self._put(addresses, _LEAVING, announcement, token)

    async def cap_heartbeats(
        self, addresses: Iterable[AgentAddress], cap: bytes, token: str
    ) -> list[AnnouncementResult]:
        """Send the cap of the heartbeat interval to all of these, likewise."""
        return await self._put(addresses, _HEARTBEAT, cap, token)

    async def _put(
        self, addresses: Iterable[AgentAddress], path: str, body: bytes, token: str
    ) -> list[AnnouncementResult]:
        turns = self._begin()

        async def put(address: AgentAddress) -> AnnouncementResult:
            return await self._put_one(turns, address, path, body, token)

        return await self._each(addresses, put)

    def _begin(self) -> ApplicationTurns:
        return self.turns.begin(WAITING_DEADLINES * self.deadline_seconds)

    async def _each(
        self, addresses: Iterable[AgentAddress], ask: Callable[[AgentAddress], Coroutine[None, None, T]]
    ) -> list[T]:
        """Ask all of these, and first those that answered last time: turns are given in this order."""
        numbered = list(enumerate(addresses))
        numbered.sort(key=lambda one: not self.turns.is_proven(one[1].pod_uid))
        found = await asyncio.gather(*(ask(address) for _, address in numbered))
        by_number = {number: result for (number, _), result in zip(numbered, found, strict=True)}
        return [by_number[number] for number in range(len(numbered))]

    async def _read(
        self, turns: ApplicationTurns, address: AgentAddress, application_id: str, token: str
    ) -> AgentReading:
        try:
            async with turns.turn(address.pod_uid):
                asked_at = self.now()
                answer = await self._ask("GET", address, _REPORT, token, MOST_BYTES)
                answered_at = self.now()
            if answer.status != 200:
                return _silent(address, _refusal(answer))
            expected = Expected(
                ordinal=address.ordinal,
                pod_uid=address.pod_uid,
                application_id=application_id,
                asked_at=asked_at,
                answered_at=answered_at,
            )
            if len(answer.body) <= _DECODED_AT_ONCE:
                report = read_report(answer.body, expected)
            else:
                report = await asyncio.to_thread(read_report, answer.body, expected)
        except NotOurReportError as error:
            return _silent(
                address, f"{error}; see that the pod's `application.id` is {application_id}, in one instance"
            )
        except UndecodableError as error:
            return _silent(address, f"{error}; if the agent is newer than the operator, upgrade the operator")
        except _UntrustedError as error:
            return _silent(address, str(error), is_untrusted=True)
        except (_NoAnswerError, NoTurnError) as error:
            return _silent(address, str(error))
        return AgentReading(report.report, report.topology)

    async def _put_one(
        self, turns: ApplicationTurns, address: AgentAddress, path: str, body: bytes, token: str
    ) -> AnnouncementResult:
        try:
            async with turns.turn(address.pod_uid):
                answer = await self._ask("PUT", address, path, token, _MOST_TOLD, body)
        except (_NoAnswerError, NoTurnError) as error:
            return AnnouncementResult(
                ordinal=address.ordinal,
                outcome=AnnouncementOutcome.FAILED,
                epoch=None,
                why=f"agent of {address}: {error}",
            )
        epoch = epoch_in(answer.body)
        if answer.status == 200:
            return AnnouncementResult(ordinal=address.ordinal, outcome=AnnouncementOutcome.TAKEN, epoch=epoch)
        why = f"agent of {address}: {_refusal(answer)}"
        return AnnouncementResult(ordinal=address.ordinal, outcome=AnnouncementOutcome.REFUSED, epoch=epoch, why=why)

    async def _ask(
        self, method: str, address: AgentAddress, path: str, token: str, most: int, body: bytes | None = None
    ) -> _HttpAnswer:
        """Send one request, and remember whether the agent answers at all."""
        try:
            answer = await self._send(method, address, path, token, most, body)
        except _SilentError as error:
            self.turns.silent(address.pod_uid, str(error))
            raise
        self.turns.answered(address.pod_uid)
        return answer

    async def _send(
        self, method: str, address: AgentAddress, path: str, token: str, most: int, body: bytes | None
    ) -> _HttpAnswer:
        headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"}
        headers |= {} if body is None else {"Content-Type": "application/json"}
        scheme, trust = ("http", _NO_TLS) if address.tls is None else ("https", _expected(address.tls))
        url = f"{scheme}://{address.host}:{address.port}{path}"
        try:
            async with self._http_session().request(
                method, url, data=body, headers=headers, allow_redirects=False, **trust
            ) as response:
                with self.budget.share(token, response.close) as share:
                    return _HttpAnswer(response.status, await _bounded(response, most, share))
        except TimeoutError:
            raise _SilentError(f"no whole answer within {self.deadline_seconds:g} s; {_UNREACHABLE}") from None
        except BudgetExceededError:
            why = "the reports of all agents together need more memory than there is"
            raise _NoAnswerError(f"{why}; look at the sizes of the reports") from None
        except aiohttp.ClientConnectorError as error:
            if address.tls is not None and isinstance(error, aiohttp.ClientSSLError):
                raise _UntrustedError(tls.refusal(error, address.tls)) from None
            next_step = _NOBODY_LISTENS if error.os_error.errno == errno.ECONNREFUSED else _UNREACHABLE
            raise _NoAnswerError(f"it cannot be connected to ({_cause(error)}); {next_step}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _NoAnswerError(f"the answer broke off ({_cause(error)}); look at the pod's log if it lasts") from None

    def _http_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # A pod's address can belong to another pod a moment later: no connection is used twice.
                connector=aiohttp.TCPConnector(limit=0, force_close=True, socket_factory=self._sockets.make),
                timeout=aiohttp.ClientTimeout(total=self.deadline_seconds),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session


def _expected(agent: tls.AgentTls) -> dict[str, Any]:
    """What a request needs to see the certificate of the pod, though it connects to an address."""
    return {"ssl": agent.context, "server_hostname": agent.server_name}


async def _bounded(response: aiohttp.ClientResponse, most: int, share: Share) -> bytes:
    """Read a body up to its limit; a longer body is not read to its end."""
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > most:
            response.close()
            raise _NoAnswerError(f"its answer is longer than {most} bytes; look at the agent's version")
        share.add(len(chunk))
        chunks.append(chunk)
    return b"".join(chunks)


def _refusal(answer: _HttpAnswer) -> str:
    if answer.status == 401:
        return _ROTATED
    error = error_in(answer.body)
    epoch = epoch_in(answer.body)
    parts = [f"it answered {answer.status}", *([error] if error else [])]
    if answer.status == 409 and epoch is not None:
        parts.append(f"it knows the epoch {epoch.lease}/{epoch.counter}: another operator has announced since")
    elif answer.status == 404:
        parts.append("something else than the agent listens there; see `spec.agent.port`")
    elif not error:
        parts.append("look at the agent's version")
    return "; ".join(parts)


def _cause(error: Exception) -> str:
    """What the system or the library says, in one line without the address that stands beside it anyway."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return os.strerror(error.os_error.errno) if error.os_error.errno else str(error.os_error)
    return " ".join(str(error).split())[:200] or type(error).__name__


def _silent(address: AgentAddress, why: str, *, is_untrusted: bool = False) -> AgentReading:
    return AgentReading(AgentSilent(address.ordinal, f"agent of {address}: {why}", is_untrusted))
