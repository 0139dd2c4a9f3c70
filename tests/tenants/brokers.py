"""Brokers of tenants who wish the operator ill: real sockets, answers that no honest broker gives."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.support.listening import listening

API_VERSIONS, METADATA, FIND_COORDINATOR, DESCRIBE_GROUPS = 18, 3, 10, 15
KNOWN = (1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 32, 36)
"""Requests that the operator sends."""

Answer = Callable[[int], bytes]
"""The body of an answer, from the port of the broker."""


@dataclass
class HostileBroker:
    """Answers each request with prepared bytes."""

    answers: Mapping[int, Answer] = field(default_factory=dict)
    """By API key; without one it sends nothing more."""
    trickles: bool = False
    """Whether it sends a large answer for ever, little by little."""
    port: int = 0
    connections: int = 0

    @property
    def address(self) -> str:
        """Where it listens, as `bootstrapServers` names it."""
        return f"127.0.0.1:{self.port}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator["HostileBroker"]:
        """Listen."""
        async with listening(self._serve) as self.port:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while True:
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            frame = await reader.readexactly(length)
            key, _, correlation = struct.unpack(">hhi", frame[:8])
            await self._answer(writer, key, correlation)

    async def _answer(self, writer: asyncio.StreamWriter, key: int, correlation: int) -> None:
        if key not in self.answers:
            await asyncio.Event().wait()
        header = b"" if key == API_VERSIONS else b"\0"
        body = struct.pack(">i", correlation) + header + self.answers[key](self.port)
        frame = struct.pack(">i", len(body)) + body
        if not self.trickles or key == API_VERSIONS:
            writer.write(frame)
            await writer.drain()
            return
        for start in range(0, len(frame), 256 * 1024):
            writer.write(frame[start : start + 256 * 1024])
            await writer.drain()
            await asyncio.sleep(0.2)


def api_versions(_: int) -> bytes:
    """An honest list of requests."""
    return struct.pack(">hi", 0, len(KNOWN)) + b"".join(struct.pack(">hhh", key, 0, 20) for key in KNOWN)


def endless_api_versions(size: int) -> Answer:
    """A list of requests with so many bytes."""
    count = size // 6
    body = struct.pack(">hi", 0, count) + struct.pack(">hhh", 1, 0, 20) * count
    return lambda _: body


def itself_as_coordinator(group: str) -> Answer:
    """Name itself as the coordinator of a group."""

    def answer(port: int) -> bytes:
        return (
            bytes(4) + _varint(2) + _string(group) + struct.pack(">i", 1) + _string("127.0.0.1")
            + struct.pack(">ih", port, 0) + b"\0" + b"\0" + b"\0"
        )  # fmt: skip

    return answer


def crowded_group(group: str, members: int) -> Answer:
    """A group with so many members, each of the fewest bytes that there are."""
    member = b"\x01\x00\x01\x01\x01\x01\x00"
    body = (
        bytes(4) + _varint(2) + bytes(2) + _string(group) + _string("Stable") + _string("consumer")
        + _string("stream") + _varint(members + 1) + member * members + struct.pack(">i", -(2**31)) + b"\0\0"
    )  # fmt: skip
    return lambda _: body


def _string(text: str) -> bytes:
    return _varint(len(text) + 1) + text.encode()


def _varint(number: int) -> bytes:
    parts = []
    while number >= 128:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])
