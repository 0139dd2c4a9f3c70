"""Connections to the brokers of one cluster, kept for repeated requests.

Used by `coordinator` and `topics`. Only requests that may be sent twice without harm go through here: a broker closes
idle connections, and then the request is sent once more over a fresh one.

The brokers say which other brokers there are, and a hostile one can name thousands, or send the largest answer again
and again. So few brokers are asked at once, and one that sent too much is left alone for a while.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from kio.static.protocol import RequestPayload

from streamapp.kafka.connection.connection import Connection, Response
from streamapp.kafka.connection.connector import Connector
from streamapp.kafka.connection.errors import (
    AnswerTooLargeError,
    BrokerUnreachableError,
    KafkaAccessError,
    unexpected,
)
from streamapp.kafka.connection.settings import Address, KafkaSettings

CLIENT_ID = "streamapp-operator"
AT_ONCE = 16
"""Brokers of one application that are asked at the same time."""
MOST_BROKERS = 500
"""Addresses that one application's brokers may have named since the operator connected to them."""
FIRST_PAUSE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 60.0
"""For a broker that sent too much: doubled with each such answer in a row."""


@dataclass
class _Broker:
    """One broker: its connection, if any, and whose turn it is."""

    connection: Connection | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    too_large: AnswerTooLargeError | None = None
    """Its last answer, if that was larger than the operator takes."""
    pause_seconds: float = 0.0
    paused_until: float = float("-inf")
    """On the monotonic clock."""

    def punish(self, error: AnswerTooLargeError) -> None:
        """Leave it alone for a while."""
        self.too_large = error
        self.pause_seconds = min(max(FIRST_PAUSE_SECONDS, 2 * self.pause_seconds), LONGEST_PAUSE_SECONDS)
        self.paused_until = time.monotonic() + self.pause_seconds

    def forgive(self) -> None:
        """It has sent an answer that can be used."""
        self.too_large, self.pause_seconds = None, 0.0

    def check(self) -> None:
        """Raise the error of its last answer while it is left alone."""
        if self.too_large is not None and time.monotonic() < self.paused_until:
            raise self.too_large


class Pool:
    """The brokers of one cluster."""

    def __init__(self, settings: KafkaSettings, connector: Connector) -> None:
        self._bootstrap = settings.bootstrap
        self._connector = connector
        self._brokers: dict[Address, _Broker] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)

    def close(self) -> None:
        """Drop every connection."""
        for broker in self._brokers.values():
            if broker.connection is not None:
                broker.connection.close()
        self._brokers.clear()

    async def connect(self, address: Address, client_id: str) -> Connection:
        """Open a connection that belongs to the caller, who closes it."""
        return await self._connector.connect(address, client_id)

    async def ask(self, address: Address, request: RequestPayload, response: type[Response]) -> Response:
        """Send a repeatable request to one broker; the errors of a connection."""
        broker = self._broker(address)
        async with broker.turn, self._turns:
            broker.check()
            try:
                answer = await self._ask(broker, address, request, response)
            except AnswerTooLargeError as error:
                broker.punish(error)
                raise
            broker.forgive()
            return answer

    def _broker(self, address: Address) -> _Broker:
        if address not in self._brokers and len(self._brokers) >= MOST_BROKERS:
            raise unexpected(f"broker {address}", f"the brokers have named {MOST_BROKERS} other addresses already")
        return self._brokers.setdefault(address, _Broker())

    async def _ask(
        self, broker: _Broker, address: Address, request: RequestPayload, response: type[Response]
    ) -> Response:
        if broker.connection is not None:
            if broker.connection.is_usable:
                with contextlib.suppress(BrokerUnreachableError):
                    return await broker.connection.ask(request, response)
            broker.connection.close()
        broker.connection = await self._connector.connect(address, CLIENT_ID)
        return await broker.connection.ask(request, response)

    async def ask_any(self, request: RequestPayload, response: type[Response]) -> Response:
        """Send a repeatable request to any bootstrap server, in their order; the first one's error if none answers."""
        failures: list[KafkaAccessError] = []
        for address in self._preferred():
            try:
                return await self.ask(address, request, response)
            except BrokerUnreachableError as error:
                failures.append(error)
        raise failures[0]

    def _preferred(self) -> Sequence[Address]:
        """Put those first that are connected: trying a dead one costs its connection timeout."""

        def is_waiting(address: Address) -> bool:
            broker = self._brokers.get(address)
            return broker is None or broker.connection is None or not broker.connection.is_usable

        return sorted(self._bootstrap, key=is_waiting)
