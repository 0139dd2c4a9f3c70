"""One connection to one broker, speaking the Kafka protocol in asyncio; kio knows the messages.

Opened by `connector`, used by `pool` and `group.rebalance`. One request at a time: a request that fails or is cancelled
closes the connection, so that a late answer is never taken for the next one. It retries nothing, knows nothing of the
cluster, and has no deadline of its own: callers use `deadline.within`.
"""

import asyncio
import io
import struct
from typing import TypeVar

from kio.schema.api_versions.v0.request import ApiVersionsRequest
from kio.schema.api_versions.v0.response import ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v1.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v1.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.primitive import i32
from kio.static.protocol import RequestPayload, ResponsePayload

from streamapp.kafka.connection.errors import (
    BrokerUnreachableError,
    BrokerUnsupportedError,
    NotAuthenticatedError,
    UnexpectedAnswerError,
    cause,
)
from streamapp.kafka.connection.sasl import SaslError, exchange
from streamapp.kafka.connection.settings import Address, Sasl

MAX_FRAME = 100 * 1024 * 1024
"""Bytes of the longest answer that is read; a description of 500 members of 5,000 tasks has about 30 MiB."""

Response = TypeVar("Response", bound=ResponsePayload)


class Connection:
    """A connected, authenticated broker."""

    def __init__(
        self, address: Address, client_id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.address = address
        self._client_id = client_id
        self._reader = reader
        self._writer = writer
        self._correlation = 0
        self._versions: dict[int, range] = {}

    @property
    def is_usable(self) -> bool:
        """Whether the connection is open."""
        return not self._writer.transport.is_closing()

    def close(self) -> None:
        """Drop the connection at once, whatever is under way."""
        self._writer.transport.abort()

    async def introduce(self, sasl: Sasl | None) -> None:
        """Learn which requests the broker knows, then authenticate."""
        answer = await self._exchange(ApiVersionsRequest(), ApiVersionsResponse)
        self._versions = {key.api_key: range(key.min_version, key.max_version + 1) for key in answer.api_keys}
        if sasl is not None:
            await self._authenticate(sasl)

    def knows(self, request: type[RequestPayload]) -> bool:
        """Whether the broker supports this version of this request."""
        return request.__version__ in self._versions.get(request.__api_key__, ())

    async def ask(self, request: RequestPayload, response: type[Response]) -> Response:
        """Send a request and give its answer, error codes in it included.

        Raises BrokerUnreachableError when the connection breaks, BrokerUnsupportedError before anything is sent,
        UnexpectedAnswerError for bytes that are no such answer.
        """
        if not self.knows(type(request)):
            raise BrokerUnsupportedError(
                f"broker {self.address}",
                f"it does not know {type(request).__name__} version {request.__version__}",
                "Kafka brokers of 3.2 or newer are needed",
            )
        return await self._exchange(request, response)

    async def _exchange(self, request: RequestPayload, response: type[Response]) -> Response:
        if not self.is_usable:
            raise self._unreachable("it was closed before")
        self._correlation += 1
        frame = _encode(request, self._correlation, self._client_id)
        try:
            return _decode(await self._round_trip(frame), self._correlation, response)
        except asyncio.IncompleteReadError as error:
            raise self._unreachable("the broker closed the connection") from error
        except OSError as error:
            raise self._unreachable(cause(error)) from error
        except (SerialError, LookupError, ValueError) as error:
            self.close()
            raise self._unexpected(f"its {response.__name__} cannot be read: {error}") from error

    async def _round_trip(self, frame: bytes) -> bytes:
        try:
            self._writer.write(frame)
            await self._writer.drain()
            return await self._frame()
        except BaseException:
            self.close()
            raise

    async def _frame(self) -> bytes:
        size = await self._reader.readexactly(4)
        (length,) = struct.unpack(">i", size)
        if not 0 <= length <= MAX_FRAME:
            hint = "it seems to speak TLS" if size[0] == 0x15 else "it does not seem to speak Kafka's protocol"
            raise self._unexpected(f"an answer of {length} bytes: {hint}")
        return await self._reader.readexactly(length)

    async def _authenticate(self, sasl: Sasl) -> None:
        handshake = await self._exchange(SaslHandshakeRequest(mechanism=sasl.mechanism), SaslHandshakeResponse)
        if handshake.error_code is not ErrorCode.none:
            raise self._not_authenticated(f"it offers {', '.join(handshake.mechanisms)}, not {sasl.mechanism}")
        steps = exchange(sasl)
        try:
            message = next(steps)
            while True:
                request = SaslAuthenticateRequest(auth_bytes=message)
                answer = await self._exchange(request, SaslAuthenticateResponse)
                if answer.error_code is not ErrorCode.none:
                    raise self._not_authenticated(answer.error_message or answer.error_code.name)
                message = steps.send(answer.auth_bytes)
        except StopIteration:
            return
        except SaslError as error:
            raise self._not_authenticated(str(error)) from error

    def _unreachable(self, why: str) -> BrokerUnreachableError:
        return BrokerUnreachableError(
            f"broker {self.address}", why, "see the broker's log; a broker that wants TLS closes a plain connection"
        )

    def _unexpected(self, why: str) -> UnexpectedAnswerError:
        return UnexpectedAnswerError(f"broker {self.address}", why, "check the port and security.protocol")

    def _not_authenticated(self, why: str) -> NotAuthenticatedError:
        return NotAuthenticatedError(
            f"broker {self.address}", why, "check sasl.mechanism and sasl.jaas.config in the Secret"
        )


def _encode(request: RequestPayload, correlation: int, client_id: str) -> bytes:
    header_type = request.__header_schema__
    header = header_type(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=i32(correlation),
        client_id=client_id,
    )
    buffer = io.BytesIO()
    entity_writer(header_type)(buffer, header)
    entity_writer(type(request))(buffer, request)
    frame = buffer.getvalue()
    return struct.pack(">i", len(frame)) + frame


def _decode(frame: bytes, correlation: int, response: type[Response]) -> Response:
    header, header_size = entity_reader(response.__header_schema__)(frame, 0)
    if header.correlation_id != correlation:
        raise ValueError(f"it answers request {header.correlation_id}, not {correlation}")
    answer, size = entity_reader(response)(frame, header_size)
    surplus = len(frame) - header_size - size
    if surplus:
        raise ValueError(f"{surplus} bytes left over")
    return answer
