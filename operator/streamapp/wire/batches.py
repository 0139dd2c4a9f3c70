"""Decodes the headers of record batches, as a partition's leader hands them out, and finds the last applied record.

Called by `streamapp.kafka.topics.tails`. Records themselves are not looked at, so compression does not matter.

Written from Apache Kafka's layout of record batches (magic 2) and its rule for readers of committed records: a control
batch and a batch of an aborted transaction are never handed to an application. Compaction keeps the offsets in a
header while it takes records out, so that what is found here is never too low.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from crc32c import crc32c

from streamapp.wire.errors import UndecodableError

_FRAME = struct.Struct(">qi")
"""First offset, number of bytes that follow."""
_HEADER = struct.Struct(">ibIhiqqqhii")
"""Leader epoch, magic, checksum, attributes, last offset delta, two time stamps, producer, its epoch, its sequence,
number of records."""
_CHECKED_FROM = _FRAME.size + 9
"""The checksum covers everything from the attributes on."""
_MAGIC = 2
_TRANSACTIONAL, _CONTROL = 1 << 4, 1 << 5
_KNOWN_ATTRIBUTES = (1 << 7) - 1


@dataclass(frozen=True, slots=True)
class Batch:
    """The header of one batch."""

    base_offset: int
    last_offset: int
    """Offset of the last record that was written in it, whether it is still there or not."""
    records: int
    """How many are still there; 0 after compaction took all of them."""
    producer_id: int
    """−1 for a plain producer."""
    is_transactional: bool
    is_control: bool
    """A commit or abort marker."""


@dataclass(frozen=True, slots=True)
class Batches:
    """What one answer holds of a partition."""

    whole: tuple[Batch, ...]
    """In the order of their offsets."""
    cut: int
    """Bytes at the end that are the beginning of one more batch: a leader cuts its answer where its limit is."""


@dataclass(frozen=True, slots=True)
class Aborted:
    """An aborted transaction, as the leader lists it beside the batches."""

    producer_id: int
    first_offset: int
    """Of its first record in the partition."""


def decode_batches(data: bytes) -> Batches:
    """Decode every whole batch; raises UndecodableError for bytes that are none."""
    batches: list[Batch] = []
    at = 0
    while len(data) - at >= _FRAME.size:
        base_offset, length = _FRAME.unpack_from(data, at)
        if length < _HEADER.size:
            _fail("batchLength", at + 8, None, f"length {length}, a batch has at least {_HEADER.size} bytes")
        end = at + _FRAME.size + length
        if end > len(data):
            break
        batches.append(_batch(data, at, end, base_offset, batches[-1].last_offset if batches else -1))
        at = end
    return Batches(tuple(batches), len(data) - at)


def _batch(data: bytes, at: int, end: int, base_offset: int, before: int) -> Batch:
    header = _HEADER.unpack_from(data, at + _FRAME.size)
    _, magic, checksum, attributes, last_delta, _, _, producer_id, _, _, records = header
    if magic != _MAGIC:
        _fail("magic", at + 16, magic, "only batches of version 2 are known")
    if crc32c(memoryview(data)[at + _CHECKED_FROM : end]) != checksum:
        _fail("crc", at + 17, magic, "the checksum does not fit")
    if not 0 <= attributes <= _KNOWN_ATTRIBUTES:
        _fail("attributes", at + 21, magic, f"attributes {attributes:#x} are not known")
    if base_offset <= before:
        _fail("baseOffset", at, magic, f"offset {base_offset} after {before}")
    if last_delta < 0 or not 0 <= records <= last_delta + 1:
        _fail("records", at + 57, magic, f"{records} records from offset 0 to {last_delta}")
    is_transactional = bool(attributes & _TRANSACTIONAL)
    if is_transactional and producer_id < 0:
        _fail("producerId", at + 43, magic, f"a transaction of producer {producer_id}")
    return Batch(
        base_offset=base_offset,
        last_offset=base_offset + last_delta,
        records=records,
        producer_id=producer_id,
        is_transactional=is_transactional,
        is_control=bool(attributes & _CONTROL),
    )


def data_end(batches: Sequence[Batch], aborted: Iterable[Aborted]) -> int | None:
    """Give the offset after the last record that a reader of committed records is handed; None if there is none.

    `batches` lie below the last stable offset, in the order of their offsets; `aborted` are all aborted transactions
    that reach into them.
    """
    to_come = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
    under_way: set[int] = set()
    end: int | None = None
    for batch in batches:
        while to_come and to_come[-1].first_offset <= batch.last_offset:
            under_way.add(to_come.pop().producer_id)
        if batch.is_control:
            # Either marker ends the transaction of its producer; what it writes then belongs to another one.
            under_way.discard(batch.producer_id)
        elif batch.records and not (batch.is_transactional and batch.producer_id in under_way):
            end = batch.last_offset + 1
    return end


def _fail(field: str, at: int, version: int | None, why: str) -> NoReturn:
    raise UndecodableError("RecordBatch", f"{field} at byte {at}", version, why)
