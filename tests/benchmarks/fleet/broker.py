"""Brokers of a fleet: they speak the real protocol, know every group, and no group has a member."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from zlib import crc32

from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
from kio.schema.describe_groups.v5.response import DescribeGroupsResponse
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from tests.kafka.answers import described
from tests.kafka.scripted import NO_THROTTLE, ScriptedBroker, coordinator_answer


class FleetBroker(ScriptedBroker):
    """One broker; by itself it coordinates every group."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        """Requests so far, those that open a connection included."""
        self.connections = 0
        """How many are open."""
        self.described_at: list[float] = []
        """When a group was asked for."""
        self.slow: dict[str, float] = {}
        """Groups that are described after so many seconds."""
        self.coordinators: Sequence[FleetBroker] = ()
        """Of all groups, by a hash of their names; empty: this broker."""
        self.handlers |= {"FindCoordinator": self._find, "DescribeGroups": self._describe}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await super()._serve(reader, writer)
        finally:
            self.connections -= 1

    async def _answer(self, connection: int, frame: bytes, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        self.seen.clear()
        await super()._answer(connection, frame, writer)

    async def _find(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, FindCoordinatorRequest)
        (group,) = request.coordinator_keys
        all_of_them = self.coordinators or (self,)
        return coordinator_answer(all_of_them[crc32(group.encode()) % len(all_of_them)].address, group)

    async def _describe(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, DescribeGroupsRequest)
        self.described_at.append(time.monotonic())
        await asyncio.sleep(max((self.slow.get(group, 0.0) for group in request.groups), default=0.0))
        found = tuple(described("Empty", group=group).groups[0] for group in request.groups)
        return DescribeGroupsResponse(throttle_time=NO_THROTTLE, groups=found)


@asynccontextmanager
async def brokers(count: int) -> AsyncIterator[list[FleetBroker]]:
    """Run so many brokers of one cluster, each of which coordinates its share of the groups."""
    async with AsyncExitStack() as stack:
        all_of_them = [FleetBroker() for _ in range(count)]
        for one in all_of_them:
            await stack.enter_async_context(one.running())
        for one in all_of_them:
            one.coordinators = all_of_them
        yield all_of_them


def merged(of_brokers: Sequence[Sequence[float]], window_seconds: float) -> int:
    """Count the requests that would be left if those to one broker within a window were one."""
    count = 0
    for times in of_brokers:
        ends_at = float("-inf")
        for at in sorted(times):
            if at >= ends_at:
                count, ends_at = count + 1, at + window_seconds
    return count
