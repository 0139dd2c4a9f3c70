"""One connection to one broker, speaking the Kafka protocol in asyncio; kio knows the messages.

Opened by `connector`, used by `brokers` and `group.rebalance`. One request at a time: a request that fails or is
cancelled closes the connection, so that a late answer is never taken for the next one, which can be of another
application. It retries nothing, knows nothing of the cluster, and has no deadline of its own: callers use
`deadline.within`.

Whoever can write a StreamApp chooses the broker, so every answer is bounded: by its request, more tightly before the
broker has accepted our credentials, and by what all applications hold together.
"""

import asyncio
import io
import ssl
import struct
import time
from contextlib import suppress
from datetime import timedelta
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

from streamapp.kafka.connection.answer_limits import DEFAULT_LIMITS, AnswerLimits
from streamapp.kafka.connection.errors import (
    AnswerTooLargeError,
    BrokerUnreachableError,
    BrokerUnsupportedError,
    NotAuthenticatedError,
    UnexpectedAnswerError,
    cause,
    certificate_refusal,
)
from streamapp.kafka.connection.large_answers import TooManyValuesError, decode_in_thread
from streamapp.kafka.connection.sasl import SaslError, exchange
from streamapp.kafka.connection.settings import Address, Sasl
from streamapp.kafka.connection.tokens import BearerToken
from streamapp.wire.byte_budget import BudgetExceededError, Share

_CHUNK_BYTES = 64 * 1024
_SMALL_BYTES = 64 * 1024
"""An answer up to this size is decoded at once: 11,000 values of the shortest kind take some 40 ms."""
_HEADER_BYTES = 1024
"""More than any header of an answer has."""
_NOT_KAFKA = "it does not seem to speak Kafka's protocol"
_OTHER_PROTOCOLS = {0x15: "it seems to speak TLS", ord("H"): _NOT_KAFKA}
"""By the first byte: a TLS alert, and `HTTP`."""

_LOGIN_ADVICE = "check sasl.mechanism and sasl.jaas.config in the Secret"
_ISSUER_ADVICE = (
    "compare the token's issuer and audience with those that the broker expects; the broker's log has the reason"
)

SESSION_SHARE = 0.8
"""Of the lifetime of a session (`connections.max.reauth.ms`, or that of a token)."""

Response = TypeVar("Response", bound=ResponsePayload)


class Connection:
    """A connected, authenticated broker."""

    def __init__(
        self,
        address: Address,
        client_id: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        limits: AnswerLimits = DEFAULT_LIMITS,
    ) -> None:
        self.address = address
        self._limits = limits
        self._left_before_login: int | None = limits.before_login
        """Bytes that the broker may still send before it has accepted our credentials; None after that."""
        self._client_id = client_id
        self._reader = reader
        self._writer = writer
        self._correlation = 0
        self._versions: dict[int, range] = {}
        self._ends_at: float | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the connection is open, and authenticated for a while yet."""
        is_authenticated = self._ends_at is None or time.monotonic() < self._ends_at
        return is_authenticated and not self._writer.transport.is_closing() and not self._reader.at_eof()

    def close(self) -> None:
        """Drop the connection at once, whatever is under way."""
        with suppress(AttributeError):  # Python 3.11.1 to 3.11.3, where a TLS connection has ended by itself
            self._writer.transport.abort()

    async def introduce(self, sasl: Sasl | BearerToken | None) -> None:
        """Learn which requests the broker knows, then authenticate."""
        answer = await self._exchange(ApiVersionsRequest(), ApiVersionsResponse, self._limits)
        self._versions = {key.api_key: range(key.min_version, key.max_version + 1) for key in answer.api_keys}
        if sasl is not None:
            await self._authenticate(sasl)
        self._left_before_login = None

    def knows(self, request: type[RequestPayload]) -> bool:
        """Whether the broker supports this version of this request."""
        return request.__version__ in self._versions.get(request.__api_key__, ())

    async def ask(
        self, request: RequestPayload, response: type[Response], limits: AnswerLimits | None = None
    ) -> Response:
        """Send a request and give its answer, error codes in it included; `limits` are those of the application.

        Raises BrokerUnreachableError when the connection breaks, BrokerUnsupportedError before anything is sent,
        UnexpectedAnswerError for bytes that are no such answer.
        """
        if not self.knows(type(request)):
            raise BrokerUnsupportedError(
                f"broker {self.address}",
                f"it does not know {type(request).__name__} version {request.__version__}",
                "Kafka brokers of 3.2 or newer are needed",
            )
        return await self._exchange(request, response, limits or self._limits)

    async def _exchange(self, request: RequestPayload, response: type[Response], limits: AnswerLimits) -> Response:
        if self._writer.transport.is_closing():
            raise self._unreachable("it was closed before")
        self._correlation += 1
        frame = _encode(request, self._correlation, self._client_id)
        try:
            with limits.budget.share(limits.owner, self.close) as share:
                body = await self._round_trip(frame, share, limits.most_bytes)
                return await _decode(body, self._correlation, response, limits.most_values)
        except asyncio.IncompleteReadError as error:
            raise self._unreachable("the broker closed the connection") from error
        except OSError as error:
            if isinstance(error, ssl.SSLError) and (refusal := certificate_refusal(error)) is not None:
                raise certificate_refused(self.address, refusal) from error
            raise self._unreachable(cause(error)) from error
        except (SerialError, LookupError, ValueError) as error:
            self.close()
            raise self._unexpected(f"its {response.__name__} cannot be read: {error}") from error
        except TooManyValuesError as error:
            self.close()
            why = f"its {response.__name__} has more than {limits.most_values} values"
            raise self._too_large(why) from error
        except BudgetExceededError as error:
            self.close()
            raise self._too_large("the answers to all applications together need more memory than there is") from error

    async def _round_trip(self, frame: bytes, share: Share, most_bytes: int) -> bytes:
        try:
            self._writer.write(frame)
            await self._writer.drain()
            return await self._frame(share, most_bytes)
        except BaseException:
            self.close()
            raise

    async def _frame(self, share: Share, most_bytes: int) -> bytes:
        size = await self._reader.readexactly(4)
        (length,) = struct.unpack(">i", size)
        if length < 0 or size[0] in _OTHER_PROTOCOLS:
            raise self._unexpected(f"an answer of {length} bytes: {_OTHER_PROTOCOLS.get(size[0], _NOT_KAFKA)}")
        most = self._most_now(most_bytes)
        if length > most:
            raise self._too_large(f"an answer of {length} bytes, at most {most} are read")
        if self._left_before_login is not None:
            self._left_before_login -= length
        body = bytearray()
        try:
            await self._fill(body, length, share)
            return bytes(body)
        finally:
            body.clear()  # an error that somebody keeps would keep this frame, and megabytes that no budget counts

    async def _fill(self, body: bytearray, length: int, share: Share) -> None:
        while len(body) < length:
            # Counted as it arrives: a broker that announces much and sends nothing takes no room from others.
            chunk = await self._reader.read(min(_CHUNK_BYTES, length - len(body)))
            if not chunk:
                if share.is_revoked:
                    raise BudgetExceededError
                raise asyncio.IncompleteReadError(bytes(body[:8]), length)
            share.add(len(chunk))
            body += chunk

    def _most_now(self, most_bytes: int) -> int:
        if self._left_before_login is None:
            return most_bytes
        return min(self._limits.each_before_login, self._left_before_login)

    async def _authenticate(self, sasl: Sasl | BearerToken) -> None:
        handshake = await self._exchange(
            SaslHandshakeRequest(mechanism=sasl.mechanism), SaslHandshakeResponse, self._limits
        )
        if handshake.error_code is not ErrorCode.none:
            raise self._not_authenticated(f"it offers {', '.join(handshake.mechanisms)}, not {sasl.mechanism}")
        started = time.monotonic()
        steps = exchange(sasl)
        try:
            message = next(steps)
            while True:
                proof = SaslAuthenticateRequest(auth_bytes=message)
                answer = await self._exchange(proof, SaslAuthenticateResponse, self._limits)
                if answer.error_code is not ErrorCode.none:
                    raise self._refused(sasl, answer.error_message or answer.error_code.name)
                self._end_with(answer.session_lifetime, started)
                message = steps.send(answer.auth_bytes)
        except StopIteration:
            return
        except SaslError as error:
            raise self._refused(sasl, str(error)) from error

    def _end_with(self, session: timedelta, started: float) -> None:
        """Use the connection for a part of its session: a broker cuts it off at the end, without a word."""
        if session:
            self._ends_at = started + SESSION_SHARE * session.total_seconds()

    def _unreachable(self, why: str) -> BrokerUnreachableError:
        return BrokerUnreachableError(
            f"broker {self.address}", why, "see the broker's log; a broker that wants TLS closes a plain connection"
        )

    def _unexpected(self, why: str) -> UnexpectedAnswerError:
        return UnexpectedAnswerError(f"broker {self.address}", why, "check the port and security.protocol")

    def _too_large(self, why: str) -> AnswerTooLargeError:
        return AnswerTooLargeError(
            f"broker {self.address}",
            why,
            "check that it is a Kafka broker; STREAMAPP_KAFKA_ANSWER_BYTES allows larger answers",
        )

    def _refused(self, sasl: Sasl | BearerToken, why: str) -> NotAuthenticatedError:
        if isinstance(sasl, BearerToken):
            # Of a wrong issuer, audience, key or scope a broker says `invalid_token` alone.
            return self._not_authenticated(why, _ISSUER_ADVICE)
        return self._not_authenticated(why)

    def _not_authenticated(self, why: str, next_step: str = _LOGIN_ADVICE) -> NotAuthenticatedError:
        return NotAuthenticatedError(f"broker {self.address}", why, next_step)


def certificate_refused(address: Address, why: str) -> NotAuthenticatedError:
    """Build the error for a broker that wants another certificate of this client, or any."""
    return NotAuthenticatedError(
        f"broker {address}",
        f"it refuses the client's certificate: {why}",
        "check ssl.keystore.certificate.chain, ssl.keystore.key, their end date, and whom the brokers trust",
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


async def _decode(frame: bytes, correlation: int, response: type[Response], most_values: int) -> Response:
    header, header_size = entity_reader(response.__header_schema__)(frame[:_HEADER_BYTES], 0)
    if header.correlation_id != correlation:
        raise ValueError(f"it answers request {header.correlation_id}, not {correlation}")
    if len(frame) > _SMALL_BYTES:
        return await decode_in_thread(response, frame, header_size, most_values)
    answer, size = entity_reader(response)(frame, header_size)
    surplus = len(frame) - header_size - size
    if surplus:
        raise ValueError(f"{surplus} bytes left over")
    return answer
