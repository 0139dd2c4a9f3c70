"""Connections to the brokers of one cluster, kept for repeated requests.

Used by `coordinator` and `topics`. Only requests that may be sent twice without harm go through here: a broker closes
idle connections, and then the request is sent once more over a fresh one.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from kio.static.protocol import RequestPayload

from streamapp.kafka.connection.connection import Connection, Response
from streamapp.kafka.connection.connector import Connector
from streamapp.kafka.connection.errors import BrokerUnreachableError, KafkaAccessError
from streamapp.kafka.connection.settings import Address, KafkaSettings

CLIENT_ID = "streamapp-operator"


@dataclass
class _Broker:
    """One broker: its connection, if any, and whose turn it is."""

    connection: Connection | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Pool:
    """The brokers of one cluster."""

    def __init__(self, settings: KafkaSettings, connector: Connector) -> None:
        self._bootstrap = settings.bootstrap
        self._connector = connector
        self._brokers: dict[Address, _Broker] = {}

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
        broker = self._brokers.setdefault(address, _Broker())
        async with broker.turn:
            if broker.connection is not None and broker.connection.is_usable:
                try:
                    return await broker.connection.ask(request, response)
                except BrokerUnreachableError:
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
