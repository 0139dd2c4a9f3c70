"""One application's way to the brokers of its cluster, over connections that it shares with others.

Used by `coordinator` and `topics`. Only requests that may be sent twice without harm go through here.

The brokers say which other brokers there are, and a hostile one can name thousands, or send the largest answer again
and again. So few brokers are asked at once, and one that sent too much is left alone for a while: all of that is
counted for each application by itself.
"""

import asyncio
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from kio.static.protocol import RequestPayload

from streamapp.kafka.brokers.shared_brokers import SharedBrokers, Use
from streamapp.kafka.connection.answer_limits import DEFAULT_LIMITS, AnswerLimits
from streamapp.kafka.connection.connection import Connection, Response
from streamapp.kafka.connection.errors import (
    AnswerTooLargeError,
    BrokerUnreachableError,
    KafkaAccessError,
    unexpected,
)
from streamapp.kafka.connection.settings import Address

AT_ONCE = 16
"""Brokers of one application that are asked at the same time."""
MOST_BROKERS = 500
"""Addresses that one application's brokers may have named since the operator connected to them."""
FIRST_PAUSE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 60.0
"""For a broker that sent too much: doubled with each such answer in a row."""


@dataclass(slots=True)
class _Broker:
    """One broker as this application knows it, and whose turn it is among the application's own requests."""

    use: Use
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
    """The brokers of one cluster for one application."""

    def __init__(self, shared: SharedBrokers, limits: AnswerLimits = DEFAULT_LIMITS, tenant: Hashable = None) -> None:
        self._shared = shared
        self._limits, self._tenant = limits, tenant
        self._brokers: dict[Address, _Broker] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)

    def close(self) -> None:
        """End every request that is under way."""
        for broker in self._brokers.values():
            broker.use.end()
        self._brokers.clear()

    async def connect(self, address: Address, client_id: str) -> Connection:
        """Open a connection that belongs to the caller, who closes it."""
        return await self._shared.connect(address, client_id, self._new_use())

    async def ask(self, address: Address, request: RequestPayload, response: type[Response]) -> Response:
        """Send a repeatable request to one broker; the errors of a connection."""
        broker = self._broker(address)
        async with broker.turn, self._turns:
            broker.check()
            try:
                answer = await self._shared.ask(address, request, response, broker.use)
            except AnswerTooLargeError as error:
                broker.punish(error)
                raise
            broker.forgive()
            return answer

    def _broker(self, address: Address) -> _Broker:
        if address not in self._brokers and len(self._brokers) >= MOST_BROKERS:
            raise unexpected(f"broker {address}", f"the brokers have named {MOST_BROKERS} other addresses already")
        return self._brokers.setdefault(address, _Broker(self._new_use()))

    def _new_use(self) -> Use:
        return Use(self._limits, self._tenant)

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
        return sorted(self._shared.settings.bootstrap, key=lambda address: not self._shared.is_connected(address))
