"""The broker that coordinates one consumer group: where it is, and requests to it.

Used by `groups`, `eviction`, `rebalance` and `offsets`. Looks the coordinator up again if it has moved.
"""

import asyncio
from collections.abc import Callable, Iterable

from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v4.response import FindCoordinatorResponse
from kio.static.protocol import RequestPayload

from streamapp.kafka.brokers.pool import Pool
from streamapp.kafka.connection.connection import Connection, Response
from streamapp.kafka.connection.error_codes import failure
from streamapp.kafka.connection.errors import BrokerUnreachableError, unexpected
from streamapp.kafka.connection.settings import Address

ATTEMPTS = 5
PAUSE_SECONDS = 0.2
"""Five attempts over about a second: a coordinator that loads or moves for longer is worth an error to the caller."""

MOVED = {
    ErrorCode.not_coordinator,
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
}


class Coordinator:
    """The coordinator of one group."""

    def __init__(self, pool: Pool, group_id: str) -> None:
        self.group_id = group_id
        self._pool = pool
        self._address: Address | None = None

    @property
    def address(self) -> Address | None:
        """Where the broker is, as it was last looked up; None if that is to be done anew."""
        return self._address

    def forget(self) -> None:
        """Look the coordinator up anew next time: the caller has reason to think that it moved."""
        self._address = None

    async def connect(self, client_id: str) -> Connection:
        """Open a connection to the coordinator that belongs to the caller, who closes it."""
        address = await self._resolve()
        try:
            return await self._pool.connect(address, client_id)
        except BrokerUnreachableError:
            self.forget()
            raise

    async def ask(
        self, request: RequestPayload, response: type[Response], codes: Callable[[Response], Iterable[ErrorCode]]
    ) -> Response:
        """Send a repeatable request; `codes` finds the error codes in the answer.

        While they say that the coordinator moves or loads, it is looked up and asked again, for about a second; then
        the last answer is given as it is. Raises the errors of a connection.
        """
        answer = await self._ask_once(request, response)
        for _ in range(ATTEMPTS - 1):
            if MOVED.isdisjoint(codes(answer)):
                break
            self.forget()
            await asyncio.sleep(PAUSE_SECONDS)
            answer = await self._ask_once(request, response)
        return answer

    async def _ask_once(self, request: RequestPayload, response: type[Response]) -> Response:
        address = await self._resolve()
        try:
            return await self._pool.ask(address, request, response)
        except BrokerUnreachableError:
            self.forget()
            raise

    async def _resolve(self) -> Address:
        if self._address is None:
            self._address = await self._find()
        return self._address

    async def _find(self) -> Address:
        what = f"group {self.group_id}: find coordinator"
        code = ErrorCode.none
        for _ in range(ATTEMPTS):
            request = FindCoordinatorRequest(coordinator_keys=(self.group_id,))
            answer = await self._pool.ask_any(request, FindCoordinatorResponse)
            if [entry.key for entry in answer.coordinators] != [self.group_id]:
                raise unexpected(what, "the answer is of other groups")
            (entry,) = answer.coordinators
            code = entry.error_code
            if code is ErrorCode.none:
                return Address(entry.host, entry.port)
            if code not in MOVED:
                break
            await asyncio.sleep(PAUSE_SECONDS)
        raise failure(code, what, f"DESCRIBE on group {self.group_id}")
