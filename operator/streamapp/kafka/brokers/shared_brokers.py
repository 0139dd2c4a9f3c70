"""Connections to the brokers of one cluster, shared by all applications that reach it in the same way.

Used by `pool`, one for each application; made and ended by `shared_clusters`. A connection serves one request at a time
and is kept for the next one, whoever asks. What an application does reaches no other:

- a request that fails or is cancelled loses its own connection, and nothing else has anything in it;
- a broker has few places, given in the order of asking, and an application asks each broker for one thing at a time;
- a request that takes long gives its place to the next and goes on beside it, and one that has waited long goes on
  without a place. While its application is slow there, its requests do not even wait. So sharing costs half a second at
  worst, and at worst each application has a connection of its own, as if nothing were shared.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kio.static.protocol import RequestPayload

from streamapp.kafka.connection.answer_limits import DEFAULT_LIMITS, AnswerLimits
from streamapp.kafka.connection.connection import Connection, Response
from streamapp.kafka.connection.connector import Connector
from streamapp.kafka.connection.errors import BrokerUnreachableError
from streamapp.kafka.connection.settings import Address, KafkaSettings

CLIENT_ID = "streamapp-operator"
PLACES = 4
"""Requests under way to one broker that are not slow, of all applications together."""
SLOW_SECONDS = 0.5
"""After so long a request gives its place to the next, and waits no longer for one."""
IDLE_SECONDS = 60.0
"""A connection that was not used for so long is closed, if another one is there."""


@dataclass(slots=True)
class Use:
    """How one application uses one broker."""

    limits: AnswerLimits = DEFAULT_LIMITS
    tenant: Hashable = None
    is_slow: bool = False
    """Its last request there gave its place away."""
    connection: Connection | None = None
    """Of the request that is under way."""
    is_over: bool = False
    """Nothing more is asked for it."""

    def end(self) -> None:
        """End the request that is under way, and repeat none."""
        self.is_over = True
        if self.connection is not None:
            self.connection.close()


@dataclass(slots=True)
class _Idle:
    """A connection that serves nothing now."""

    connection: Connection
    since: float


@dataclass(slots=True)
class _Broker:
    """One broker: its places, and the connections that are open."""

    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PLACES))
    idle: list[_Idle] = field(default_factory=list)
    """Used last, last."""
    busy: set[Connection] = field(default_factory=set)
    users: int = 0
    """Requests that wait or are under way."""

    @property
    def is_connected(self) -> bool:
        """Whether the broker has answered over a connection that is still open."""
        return any(one.is_usable for one in self.busy) or any(one.connection.is_usable for one in self.idle)

    def take(self) -> Connection | None:
        """Take the connection that was used last; those that cannot be used any more are closed."""
        while self.idle:
            connection = self.idle.pop().connection
            if connection.is_usable:
                return connection
            connection.close()
        return None

    def keep(self, connection: Connection) -> None:
        """Keep a connection for the next request, and no more of them than are of use."""
        now = time.monotonic()
        self.idle.append(_Idle(connection, now))
        while len(self.idle) > PLACES or (len(self.idle) > 1 and now - self.idle[0].since > IDLE_SECONDS):
            self.idle.pop(0).connection.close()


class SharedBrokers:
    """The brokers of one cluster; connects at first use, from within the event loop."""

    def __init__(self, settings: KafkaSettings, connector: Connector) -> None:
        self.settings = settings
        self._connector = connector
        self._brokers: dict[Address, _Broker] = {}
        self._is_closed = False

    @property
    def connections(self) -> int:
        """How many are open for requests that anybody can send."""
        return sum(len(one.idle) + len(one.busy) for one in self._brokers.values())

    def close(self) -> None:
        """Drop every connection; a request that begins after this leaves none behind."""
        self._is_closed = True
        for broker in self._brokers.values():
            for connection in [*broker.busy, *(one.connection for one in broker.idle)]:
                connection.close()
            broker.idle.clear()

    def is_connected(self, address: Address) -> bool:
        """Whether there is a connection to this broker."""
        return address in self._brokers and self._brokers[address].is_connected

    async def connect(self, address: Address, client_id: str, use: Use) -> Connection:
        """Open a connection that belongs to the caller, who closes it."""
        return await self._connector.connect(address, client_id, use.limits, use.tenant)

    async def ask(self, address: Address, request: RequestPayload, response: type[Response], use: Use) -> Response:
        """Send a repeatable request to one broker; the errors of a connection.

        A broker closes idle connections; then the request is sent once more over a fresh one.
        """
        async with self._used(address) as broker, _place(broker, use):
            connection = broker.take()
            if connection is not None:
                try:
                    return await self._ask_over(broker, connection, request, response, use)
                except BrokerUnreachableError:
                    if use.is_over:
                        raise
            connection = await self._connector.connect(address, CLIENT_ID, use.limits, use.tenant)
            return await self._ask_over(broker, connection, request, response, use)

    async def _ask_over(
        self, broker: _Broker, connection: Connection, request: RequestPayload, response: type[Response], use: Use
    ) -> Response:
        broker.busy.add(connection)
        use.connection = connection
        try:
            return await connection.ask(request, response, use.limits)
        finally:
            use.connection = None
            broker.busy.discard(connection)
            if connection.is_usable and not self._is_closed:
                broker.keep(connection)
            else:
                connection.close()

    @asynccontextmanager
    async def _used(self, address: Address) -> AsyncIterator[_Broker]:
        """Give what is known of a broker; it is forgotten as soon as nothing is open or asked for there."""
        broker = self._brokers.setdefault(address, _Broker())
        broker.users += 1
        try:
            yield broker
        finally:
            broker.users -= 1
            if not broker.users and not broker.idle:
                self._brokers.pop(address, None)


@asynccontextmanager
async def _place(broker: _Broker, use: Use) -> AsyncIterator[None]:
    """Hold one of the broker's places for the block, but no longer than a request takes that is not slow."""
    has_place = not use.is_slow and await _has_come(broker.places)
    began_at = time.monotonic()

    def give() -> None:
        nonlocal has_place
        if has_place:
            has_place, use.is_slow = False, True
            broker.places.release()

    timer = asyncio.get_running_loop().call_later(SLOW_SECONDS, give)
    try:
        yield
    finally:
        timer.cancel()
        use.is_slow = time.monotonic() - began_at >= SLOW_SECONDS
        if has_place:
            broker.places.release()


async def _has_come(places: asyncio.Semaphore) -> bool:
    """Wait for a place; False if none has become free for long."""
    try:
        async with asyncio.timeout(SLOW_SECONDS):
            await places.acquire()
    except TimeoutError:
        return False
    return True
