"""A broker whose answers a test writes: it speaks the real protocol over a real socket, and knows nothing by itself.

For what a real broker cannot be made to do on demand: move its groups, lose an answer, stay silent. What a real one
does is tested in `tests/lab`. Run as a program, it is a broker in a process of its own, to be stopped by a signal.
"""

import asyncio
import contextlib
import io
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from ssl import SSLContext
from types import ModuleType

from kio.schema.api_versions.v0 import request as api_versions
from kio.schema.api_versions.v0.response import ApiVersion, ApiVersionsResponse
from kio.schema.api_versions.v3 import request as api_versions_v3
from kio.schema.api_versions.v3 import response as v3
from kio.schema.describe_configs.v4 import request as describe_configs
from kio.schema.describe_groups.v5 import request as describe_groups
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12 import request as fetch
from kio.schema.find_coordinator.v4 import request as find_coordinator
from kio.schema.find_coordinator.v4.response import Coordinator, FindCoordinatorResponse
from kio.schema.heartbeat.v4 import request as heartbeat
from kio.schema.incremental_alter_configs.v1 import request as incremental_alter_configs
from kio.schema.init_producer_id.v4 import request as init_producer_id
from kio.schema.join_group.v9 import request as join_group
from kio.schema.leave_group.v5 import request as leave_group
from kio.schema.list_groups.v4 import request as list_groups
from kio.schema.list_offsets.v7 import request as list_offsets
from kio.schema.metadata.v12 import request as metadata
from kio.schema.offset_fetch.v8 import request as offset_fetch
from kio.schema.produce.v9 import request as produce
from kio.schema.sasl_authenticate.v1 import request as sasl_authenticate
from kio.schema.sasl_handshake.v1 import request as sasl_handshake
from kio.schema.streams_group_describe.v0 import request as streams_group_describe
from kio.schema.streams_group_heartbeat.v0 import request as streams_group_heartbeat
from kio.schema.types import BrokerId
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32, i32Timedelta
from kio.static.protocol import RequestPayload, ResponsePayload

from streamapp.kafka.connection.settings import Address, KafkaSettings, Sasl, Tls
from streamapp.kafka.group import streams_describe_v1
from tests.support.listening import listening

NO_THROTTLE = i32Timedelta.parse(timedelta(0))


class CloseConnectionError(Exception):
    """Raised by a handler that drops the connection instead of answering."""


@dataclass(frozen=True)
class Seen:
    """One request that arrived."""

    connection: int
    client_id: str | None
    request: RequestPayload


Handler = Callable[[RequestPayload], Awaitable[ResponsePayload]]


def _requests(*modules: ModuleType) -> dict[tuple[int, int], type[RequestPayload]]:
    found = {}
    for module in modules:
        name = next(name for name in vars(module) if name.endswith("Request"))
        request = vars(module)[name]
        found[request.__api_key__, request.__version__] = request
    return found


KNOWN = _requests(
    api_versions,
    api_versions_v3,
    describe_configs,
    describe_groups,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    metadata,
    offset_fetch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    streams_describe_v1,
    streams_group_describe,
    streams_group_heartbeat,
)


@dataclass
class ScriptedBroker:
    """Answers each request by the handler of its name, for example `DescribeGroups`; without one it stays silent."""

    handlers: dict[str, Handler] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    port: int = 0
    hidden: frozenset[str] = frozenset()
    """Requests that ApiVersions leaves out, as an old broker would: all of a name, or `<name> <version>`."""
    features: dict[str, int] = field(default_factory=lambda: {"metadata.version": 29})
    """The highest level of each feature that it supports; by default those of Kafka 4.2."""
    _connections: int = 0

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self.port)

    def settings(self, tls: Tls | None = None, sasl: Sasl | None = None) -> KafkaSettings:
        return KafkaSettings((self.address,), tls, sasl)

    def names(self) -> list[str]:
        """Name the requests that arrived, in order, without those that open a connection."""
        names = [name_of(type(each.request)) for each in self.seen]
        return [name for name in names if name not in {"ApiVersions", "SaslHandshake", "SaslAuthenticate"}]

    @asynccontextmanager
    async def running(self, tls: SSLContext | None = None) -> AsyncIterator["ScriptedBroker"]:
        async with listening(self._serve, self.port, tls) as self.port:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        number = self._connections
        with contextlib.suppress(CloseConnectionError):
            while True:
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                await self._answer(number, await reader.readexactly(length), writer)
        writer.transport.abort()

    async def _answer(self, connection: int, frame: bytes, writer: asyncio.StreamWriter) -> None:
        request_type = KNOWN[struct.unpack(">hh", frame[:4])]
        header, size = entity_reader(request_type.__header_schema__)(frame, 0)
        request, _ = entity_reader(request_type)(frame, size)
        self.seen.append(Seen(connection, header.client_id, request))
        handler = self.handlers.get(name_of(request_type))
        if handler is None and name_of(request_type) == "ApiVersions":
            handler = self._api_versions
        if handler is None:
            await asyncio.Event().wait()
            return
        answer = await handler(request)
        buffer = io.BytesIO()
        response_header = answer.__header_schema__
        entity_writer(response_header)(buffer, response_header(correlation_id=header.correlation_id))
        entity_writer(type(answer))(buffer, answer)
        writer.write(struct.pack(">i", buffer.tell()) + buffer.getvalue())
        await writer.drain()

    async def _api_versions(self, request: RequestPayload) -> ResponsePayload:
        highest: dict[int, int] = {}
        for (key, version), known in KNOWN.items():
            if not self.hidden & {name_of(known), f"{name_of(known)} {version}"}:
                highest[key] = max(version, highest.get(key, 0))
        if not isinstance(request, api_versions_v3.ApiVersionsRequest):
            old = (
                ApiVersion(api_key=i16(key), min_version=i16(0), max_version=i16(version))
                for key, version in highest.items()
            )
            return ApiVersionsResponse(error_code=ErrorCode.none, api_keys=tuple(old))
        keys = (
            v3.ApiVersion(api_key=i16(key), min_version=i16(0), max_version=i16(version))
            for key, version in highest.items()
        )
        features = (
            v3.SupportedFeatureKey(name=name, min_version=i16(1), max_version=i16(level))
            for name, level in self.features.items()
        )
        return v3.ApiVersionsResponse(
            error_code=ErrorCode.none,
            api_keys=tuple(keys),
            throttle_time=NO_THROTTLE,
            supported_features=tuple(features),
        )

    def coordinates(self, *groups: str) -> None:
        """Say of itself that it coordinates these groups."""

        async def answer(_: RequestPayload) -> ResponsePayload:
            return coordinator_answer(self.address, *groups)

        self.handlers["FindCoordinator"] = answer


def name_of(request: type[RequestPayload]) -> str:
    return request.__name__.removesuffix("Request")


def coordinator_answer(
    address: Address, *groups: str, error_code: ErrorCode = ErrorCode.none
) -> FindCoordinatorResponse:
    found = (
        Coordinator(
            key=group,
            node_id=BrokerId(1),
            host=address.host,
            port=i32(address.port),
            error_code=error_code,
            error_message=None,
        )
        for group in groups
    )
    return FindCoordinatorResponse(throttle_time=NO_THROTTLE, coordinators=tuple(found))


def always(answer: ResponsePayload) -> Handler:
    """Give the same answer every time."""

    async def handler(_: RequestPayload) -> ResponsePayload:
        return answer

    return handler


def in_turn(*answers: ResponsePayload | Exception) -> Handler:
    """Give these answers one after the other, then the last one for ever."""
    left = list(answers)

    async def handler(_: RequestPayload) -> ResponsePayload:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return handler


async def _main() -> None:
    broker = ScriptedBroker()
    broker.coordinates("app")
    async with broker.running():
        sys.stdout.write(f"{broker.port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
