"""Headers of record batches: real ones, made-up ones, and bytes that are none."""

import contextlib
import json
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamapp.wire.batches import Aborted, Batch, Batches, data_end, decode_batches
from streamapp.wire.errors import UndecodableError
from tests.wire.encoding import batch, marker

_LOG = json.loads((Path(__file__).parent / "logs" / "4.2.1-transactions.json").read_text())
REAL = bytes.fromhex(_LOG["records"])
ABORTED = [Aborted(each["producer_id"], each["first_offset"]) for each in _LOG["aborted"]]
ONE, TWO = 45, 46


def whole(data: bytes) -> list[Batch]:
    found = decode_batches(data)
    assert found.cut == 0
    return list(found.whole)


def plain(first: int, last: int, records: int | None = None) -> Batch:
    return Batch(first, last, last - first + 1 if records is None else records, -1, False, False)


def of(producer: int, first: int, last: int, *, control: bool = False) -> Batch:
    return Batch(first, last, last - first + 1, producer, True, control)


def test_a_real_log_with_interleaved_transactions() -> None:
    assert whole(REAL) == [
        plain(0, 2),
        of(ONE, 3, 4),
        of(TWO, 5, 24),
        of(TWO, 25, 28),
        of(ONE, 29, 29, control=True),
        of(TWO, 30, 30, control=True),
        of(ONE, 31, 35),
        of(ONE, 36, 36, control=True),
    ]
    assert data_end(whole(REAL), ABORTED) == 5


@pytest.mark.parametrize("upto", range(1, 9))
def test_after_every_real_batch_the_last_applied_record_is_the_one_that_a_reader_is_given(upto: int) -> None:
    given_to_readers = [3, 5, 5, 5, 5, 5, 5, 5]
    assert data_end(whole(REAL)[:upto], ABORTED) == given_to_readers[upto - 1]


def test_a_real_log_cut_short_at_any_byte_gives_the_whole_batches_and_the_rest() -> None:
    for length in range(len(REAL)):
        found = decode_batches(REAL[:length])
        assert list(found.whole) == whole(REAL)[: len(found.whole)]
        assert decode_batches(REAL[: length - found.cut]) == Batches(found.whole, 0)


MADE_UP = {
    "nothing": ([], [], None),
    "plain records": ([batch(5, 3)], [], 8),
    "a marker behind them": ([batch(5, 3, producer_id=1, transactional=True), marker(8, 1)], [], 8),
    "an aborted transaction": (
        [batch(0, 2), batch(2, 3, producer_id=1, transactional=True), marker(5, 1)],
        [(1, 2)],
        2,
    ),
    "aborted records alone": ([batch(2, 3, producer_id=1, transactional=True), marker(5, 1)], [(1, 2)], None),
    "an aborted transaction that began long before": (
        [batch(90, 3, producer_id=1, transactional=True), marker(93, 1)],
        [(1, 2)],
        None,
    ),
    "a commit after an abort of the same producer": (
        [
            batch(0, 2, producer_id=1, transactional=True),
            marker(2, 1),
            batch(3, 4, producer_id=1, transactional=True),
            marker(7, 1),
        ],
        [(1, 0)],
        7,
    ),
    "an abort after a commit of the same producer": (
        [
            batch(0, 2, producer_id=1, transactional=True),
            marker(2, 1),
            batch(3, 4, producer_id=1, transactional=True),
            marker(7, 1),
        ],
        [(1, 3)],
        2,
    ),
    "plain records of a producer in between": (
        [batch(0, 2, producer_id=1, transactional=True), batch(2, 1, producer_id=1), marker(3, 1)],
        [(1, 0)],
        3,
    ),
    "a batch that compaction emptied": ([batch(0, 2), batch(2, 5, kept=0)], [], 2),
    "a batch from which compaction took records": ([batch(0, 2), batch(2, 5, kept=1)], [], 7),
}


@pytest.mark.parametrize(("log", "aborted", "end"), MADE_UP.values(), ids=MADE_UP.keys())
def test_the_last_applied_record(log: list[bytes], aborted: list[tuple[int, int]], end: int | None) -> None:
    assert data_end(whole(b"".join(log)), [Aborted(*each) for each in aborted]) == end


REFUSED = {
    "a length below the header": (struct.pack(">qi", 0, 48) + bytes(60), "batchLength at byte 8"),
    "a negative length": (struct.pack(">qi", 0, -1) + bytes(60), "batchLength at byte 8"),
    "an older format": (batch(0, 1, magic=1), "magic at byte 16"),
    "another checksum": (batch(0, 1)[:-1] + b"x", "crc at byte 17"),
    "offsets that go back": (batch(5, 3) + batch(7, 1), "baseOffset at byte 68"),
    "a negative offset": (batch(-2, 1), "baseOffset at byte 0"),
    "no offsets": (batch(0, 0), "records at byte 57"),
    "more records than offsets": (batch(0, 2, kept=3), "records at byte 57"),
    "fewer than none": (batch(0, 2, kept=-1), "records at byte 57"),
    "attributes that nobody knows": (batch(0, 1, attributes=1 << 7), "attributes at byte 21"),
    "a transaction of nobody": (batch(0, 1, transactional=True), "producerId at byte 43"),
}


@pytest.mark.parametrize(("data", "where"), REFUSED.values(), ids=REFUSED.keys())
def test_what_no_leader_hands_out_is_refused_with_its_place(data: bytes, where: str) -> None:
    with pytest.raises(UndecodableError) as caught:
        decode_batches(data)
    assert caught.value.where == where


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_at_all_are_accounted_for(data: bytes) -> None:
    with contextlib.suppress(UndecodableError):
        found = decode_batches(data)
        assert 0 <= found.cut <= len(data)


@settings(deadline=None, max_examples=300)
@given(st.integers(0, len(REAL) - 1), st.integers(1, 255))
def test_no_changed_byte_makes_the_end_lower_unnoticed(at: int, change: int) -> None:
    """The checksum covers all but the offset, the length and the epoch of a batch."""
    changed = REAL[:at] + bytes([REAL[at] ^ change]) + REAL[at + 1 :]
    try:
        found = decode_batches(changed)
    except UndecodableError:
        return
    starts = [0]
    for _ in whole(REAL):
        (length,) = struct.unpack_from(">i", REAL, starts[-1] + 8)
        starts.append(starts[-1] + 12 + length)
    place = at - max(start for start in starts if start <= at)
    assert place < 16  # first offset, length, leader epoch
    if place >= 12:
        assert list(found.whole) == whole(REAL)


@pytest.mark.parametrize("number", [2**31 - 1, 2**24])
def test_a_length_beyond_the_end_is_taken_for_a_cut(number: int) -> None:
    assert decode_batches(_with_length(number)) == Batches((), len(REAL))


@pytest.mark.parametrize("number", [48, 0, -2, -(2**31)])
def test_a_length_below_the_header_is_refused(number: int) -> None:
    with pytest.raises(UndecodableError, match="batchLength at byte 8"):
        decode_batches(_with_length(number))


def _with_length(number: int) -> bytes:
    return REAL[:8] + struct.pack(">i", number) + REAL[12:]
