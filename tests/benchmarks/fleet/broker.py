"""A broker of a fleet: it speaks the real protocol, knows every group, and none of them has a member."""

import asyncio

from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
from kio.schema.describe_groups.v5.response import DescribeGroupsResponse
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from tests.kafka.answers import described
from tests.kafka.scripted import NO_THROTTLE, ScriptedBroker, coordinator_answer


class FleetBroker(ScriptedBroker):
    """One broker that coordinates every group."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        """Requests so far, those that open a connection included."""
        self.connections = 0
        """How many are open."""
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
        return coordinator_answer(self.address, *request.coordinator_keys)

    async def _describe(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, DescribeGroupsRequest)
        found = tuple(described("Empty", group=group).groups[0] for group in request.groups)
        return DescribeGroupsResponse(throttle_time=NO_THROTTLE, groups=found)
