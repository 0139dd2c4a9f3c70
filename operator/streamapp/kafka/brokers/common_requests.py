"""Requests whose answer is the same for every application of one cluster: all topics, all brokers, all groups.

Used by `topics.topics` and `group.group_prefixes`. The answer grows with the number of applications, and so does the
number of those who ask: after a start each of them asks. So a request that waits is shared by all who ask for the same.
One that was sent already is not: its answer can be older than the question.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, cast

from kio.static.protocol import RequestPayload

from streamapp.kafka.brokers.pool import Pool
from streamapp.kafka.connection.connection import Response
from streamapp.kafka.connection.settings import Address


@dataclass(slots=True, eq=False)
class _Flight:
    """One request, and how many wait for its answer."""

    task: asyncio.Task[Any]
    askers: int = 0


class CommonRequests:
    """Of one cluster; they have a pool of their own, so that no application waits for a request of another one."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._waiting: dict[Hashable, _Flight] = {}
        """Not sent yet."""
        self._sent: dict[Hashable, _Flight] = {}
        """The last one of each key that was sent and has not ended."""

    def close(self) -> None:
        """End every request."""
        for flight in [*self._waiting.values(), *self._sent.values()]:
            flight.task.cancel()
        self._pool.close()

    async def ask(self, address: Address, request: RequestPayload, response: type[Response]) -> Response:
        """Send a repeatable request to one broker; the errors of a connection."""
        answer = await self._joined((address, request), lambda: self._pool.ask(address, request, response))
        return cast("Response", answer)

    async def ask_any(self, request: RequestPayload, response: type[Response]) -> Response:
        """Send a repeatable request to any bootstrap server; the errors of a connection."""
        answer = await self._joined((None, request), lambda: self._pool.ask_any(request, response))
        return cast("Response", answer)

    async def _joined(self, key: Hashable, send: Callable[[], Awaitable[object]]) -> object:
        """Wait for the answer to a request that is sent from now on; it ends early only if all who wait have left."""
        flight = self._waiting.get(key)
        if flight is None:
            flight = self._waiting[key] = _Flight(asyncio.create_task(self._fly(key, send)))
        flight.askers += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.askers -= 1
            if not flight.askers and not flight.task.done():
                flight.task.cancel()
                if self._waiting.get(key) is flight:
                    del self._waiting[key]

    async def _fly(self, key: Hashable, send: Callable[[], Awaitable[object]]) -> object:
        if key in self._sent:
            await asyncio.wait([self._sent[key].task])
        flight = self._sent[key] = self._waiting.pop(key)  # from here on nobody joins it
        try:
            return await send()
        finally:
            if self._sent.get(key) is flight:
                del self._sent[key]
