"""Decodes large answers piece by piece, in a thread, and never more values than the operator has room for.

Used by `connection`. kio decodes a whole answer in one native call, which stops every other thread of the process and
cannot be interrupted: 7 MiB of the shortest members take more than a second, and become 130 MiB. So this module walks
through the arrays itself, leaves single fields to kio, and counts.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import Field, dataclass, field, fields
from functools import cache
from typing import Any, TypeVar

from kio.serial._introspect import EntityTupleField, PrimitiveTupleField, classify_field, get_field_tag
from kio.serial._parse import get_field_reader
from kio.serial.readers import read_compact_array_length, read_legacy_array_length, read_unsigned_varint
from kio.static.protocol import Entity, Payload

E = TypeVar("E", bound=Entity)
P = TypeVar("P", bound=Payload)
Read = Callable[[bytes, int], tuple[Any, int]]

MOST_VALUES = 250_000
"""Elements of arrays in one answer, at every depth together: a cluster of 200,000 partitions, or 50 MiB of memory."""

_EXECUTOR = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kafka-answers")
"""One thread for all applications: their large answers are decoded one after the other, in the order of arrival."""


class TooManyValuesError(Exception):
    """The answer has more values than the operator keeps in memory."""


class _AbandonedError(Exception):
    """Nobody waits for the answer any more."""


async def decode_in_thread(response: type[P], body: bytes, offset: int, most_values: int = MOST_VALUES) -> P:
    """Decode an answer from this offset to its end.

    Raises:
        TooManyValuesError: It has more than `most_values` elements.
        ValueError, LookupError, SerialError: It is no such answer.
    """
    abandoned = threading.Event()
    walk = _Walk(body, most_values, abandoned)

    def decode() -> P:
        answer, end = walk.entity(response, offset)
        if end != len(body):
            raise ValueError(f"{len(body) - end} bytes left over")
        return answer

    try:
        return await asyncio.get_running_loop().run_in_executor(_EXECUTOR, decode)
    finally:
        abandoned.set()


@dataclass(frozen=True, slots=True)
class _FieldPlan:
    """How one field is read."""

    name: str
    tag: int | None
    read: Read
    """Reads the whole field; for an array of entities only if it is null."""
    is_array: bool
    element: type[Entity] | None
    """Of an array of entities."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """How an entity is read."""

    untagged: tuple[_FieldPlan, ...]
    tagged: dict[int, _FieldPlan]


@cache
def _plan(entity: type[Entity]) -> _Plan:
    plans = [_field_plan(entity, each) for each in fields(entity)]
    return _Plan(
        untagged=tuple(each for each in plans if each.tag is None),
        tagged={each.tag: each for each in plans if each.tag is not None},
    )


def _field_plan(entity: type[Entity], each: Field[Any]) -> _FieldPlan:
    kind, tag = classify_field(each), get_field_tag(each)
    return _FieldPlan(
        name=each.name,
        tag=tag,
        read=get_field_reader(entity, each, is_request_header=False, is_tagged_field=tag is not None),
        is_array=isinstance(kind, EntityTupleField | PrimitiveTupleField),
        element=kind.type_ if isinstance(kind, EntityTupleField) else None,
    )


@dataclass(slots=True)
class _Walk:
    """One answer on its way through the decoder."""

    body: bytes
    most_values: int
    abandoned: threading.Event
    _values: int = field(default=0, init=False)

    def entity(self, kind: type[E], at: int) -> tuple[E, int]:
        """Read one entity; give it and the offset after it."""
        plan, values = _plan(kind), dict[str, Any]()
        for each in plan.untagged:
            values[each.name], at = self._field(kind, each, at)
        if kind.__flexible__:
            at = self._tagged(plan, values, at)
        return kind(**values), at

    def _field(self, kind: type[Entity], each: _FieldPlan, at: int) -> tuple[Any, int]:
        if each.is_array:
            read_length = read_compact_array_length if kind.__flexible__ else read_legacy_array_length
            length, size = read_length(self.body, at)
            self._count(max(0, length or 0), len(self.body) - at - size)
            if each.element is not None and length is not None and length >= 0:
                return self._entities(each.element, length, at + size)
        value, size = each.read(self.body, at)
        return value, at + size

    def _entities(self, kind: type[E], length: int, at: int) -> tuple[tuple[E, ...], int]:
        elements = []
        for _ in range(length):
            element, at = self.entity(kind, at)
            elements.append(element)
        return tuple(elements), at

    def _tagged(self, plan: _Plan, values: dict[str, Any], at: int) -> int:
        """Read the section of tagged fields; those that are not known mean nothing."""
        count, size = read_unsigned_varint(self.body, at)
        at += size
        self._count(count, len(self.body) - at)
        for _ in range(count):
            tag, size = read_unsigned_varint(self.body, at)
            at += size
            length, size = read_unsigned_varint(self.body, at)
            at += size
            if tag in plan.tagged:
                values[plan.tagged[tag].name], _ = plan.tagged[tag].read(self.body, at)
            at += length
        return at

    def _count(self, length: int, remaining: int) -> None:
        """Count elements before the first of them is read."""
        if length > remaining:
            raise ValueError(f"an array of {length} elements, and {remaining} bytes left")
        self._values += length
        if self._values > self.most_values:
            raise TooManyValuesError
        if self.abandoned.is_set():
            raise _AbandonedError
