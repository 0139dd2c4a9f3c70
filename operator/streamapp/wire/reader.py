"""A cursor over one structure of big-endian Kafka bytes.

Used by the decoders of this package only. Whatever the bytes say, reading ends in time and memory proportional to
their number: a length is believed only after it was compared with what is left. The number of elements is bounded, too.
"""

import struct
from collections.abc import Callable
from typing import NoReturn, TypeVar
from uuid import UUID

from streamapp.wire.errors import UndecodableError

T = TypeVar("T")

MOST_ELEMENTS = 100_000
"""Of all arrays in one structure together; a table of 5,000 tasks with two input topics and two standbys has 30,000."""


class Reader:
    """Reads one structure from its first byte to its last; every failure is an `UndecodableError` with its place."""

    def __init__(self, what: str, data: bytes) -> None:
        self._what = what
        self._data = data
        self._at = 0
        self._elements = 0
        self._path: list[str] = []
        self.version: int | None = None
        """Set by the decoder as soon as it has read it; from then on part of every error."""

    def fail(self, field: str, why: str) -> NoReturn:
        """Raise with the path to `field`."""
        place = ".".join([*self._path, field])
        raise UndecodableError(self._what, f"{place} at byte {self._at}", self.version, why)

    def int8(self, field: str) -> int:
        """Read a signed big-endian number of 1 byte."""
        return self._number(field, "b", 1)

    def int16(self, field: str) -> int:
        """Read a signed big-endian number of 2 bytes."""
        return self._number(field, "h", 2)

    def int32(self, field: str) -> int:
        """Read a signed big-endian number of 4 bytes."""
        return self._number(field, "i", 4)

    def int64(self, field: str) -> int:
        """Read a signed big-endian number of 8 bytes."""
        return self._number(field, "q", 8)

    def uuid(self, field: str) -> UUID:
        """Read 16 bytes, most significant half first."""
        return UUID(bytes=self._take(field, 16))

    def string(self, field: str) -> str:
        """Read a Kafka string: int16 length, UTF-8."""
        text = self.nullable_string(field)
        if text is None:
            self.fail(field, "null where a string must be")
        return text

    def nullable_string(self, field: str) -> str | None:
        """Read a Kafka string whose length −1 means null."""
        length = self._length(field, self.int16(field), 1)
        return None if length is None else self._text(field, self._take(field, length))

    def java_utf(self, field: str) -> str:
        """Read what Java's `DataOutput.writeUTF` wrote: uint16 length, modified UTF-8.

        Topic and host names are ASCII, where both forms are the same; anything that is not also UTF-8 is refused.
        """
        length = self._number(field, "H", 2)
        return self._text(field, self._take(field, length))

    def nullable_blob(self, field: str) -> bytes | None:
        """Read Kafka bytes: int32 length, −1 for null."""
        length = self._length(field, self.int32(field), 1)
        return None if length is None else self._take(field, length)

    def blob(self, field: str) -> bytes:
        """Read Kafka bytes that must not be null."""
        data = self.nullable_blob(field)
        if data is None:
            self.fail(field, "null where bytes must be")
        return data

    def array(self, field: str, smallest: int, read: Callable[[], T]) -> tuple[T, ...]:
        """Read an int32 count and as many elements, each of at least `smallest` bytes."""
        count = self._length(field, self.int32(field), smallest)
        if count is None:
            self.fail(field, "null where an array must be")
        self._elements += count
        if self._elements > MOST_ELEMENTS:
            self.fail(field, f"more than {MOST_ELEMENTS} elements, which is more than the operator keeps")
        elements = []
        for index in range(count):
            self._path.append(f"{field}[{index}]")
            elements.append(read())
            self._path.pop()
        return tuple(elements)

    def all_but(self, size: int, field: str) -> bytes:
        """Read everything up to the last `size` bytes."""
        remaining = len(self._data) - self._at
        if remaining < size:
            self.fail(field, f"{remaining} bytes left, the end alone needs {size}")
        return self._take(field, remaining - size)

    def end(self) -> None:
        """Assert that nothing is left."""
        remaining = len(self._data) - self._at
        if remaining:
            self.fail("end", f"{remaining} bytes left over")

    def _number(self, field: str, form: str, size: int) -> int:
        number: int = struct.unpack(f">{form}", self._take(field, size))[0]
        return number

    def _take(self, field: str, size: int) -> bytes:
        remaining = len(self._data) - self._at
        if size > remaining:
            self.fail(field, f"needs {size} bytes, {remaining} left")
        data = self._data[self._at : self._at + size]
        self._at += size
        return data

    def _length(self, field: str, length: int, smallest: int) -> int | None:
        if length == -1:
            return None
        if length < 0:
            self.fail(field, f"length {length}")
        remaining = len(self._data) - self._at
        if length * smallest > remaining:
            self.fail(field, f"length {length} needs at least {length * smallest} bytes, {remaining} left")
        return length

    def _text(self, field: str, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            self.fail(field, f"no UTF-8: {error.reason} at its byte {error.start}")
