"""Whatever the bytes are, a decoder gives a value or an UndecodableError: soon, and without much memory."""

import contextlib
import struct
import time
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamapp.wire.assignment import decode_assignment, decode_assignment_info
from streamapp.wire.errors import UndecodableError
from streamapp.wire.subscription import decode_subscription, decode_subscription_info
from tests.wire.captures import ALL_ASSIGNMENTS, ALL_METADATA

Decoder = Callable[[bytes], object]


def _assignment_info(data: bytes) -> object:
    return decode_assignment_info(data, ())


DECODERS: dict[str, Decoder] = {
    "subscription": decode_subscription,
    "subscription info": decode_subscription_info,
    "assignment": decode_assignment,
    "assignment info": _assignment_info,
}
each_decoder = pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS.keys())


@st.composite
def mutated(draw: st.DrawFn, originals: list[bytes]) -> bytes:
    """Real bytes with a few changed, cut out or put in."""
    data = bytearray(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        change = draw(st.sampled_from(["set", "cut", "insert", "number"]))
        if change == "cut":
            del data[at : at + draw(st.integers(1, 8))]
        elif change == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=8))
        elif change == "set":
            data[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
        else:
            number = draw(st.sampled_from([-(2**31), -2, -1, 0, 1, 2**16, 2**31 - 1]))
            data[at : at + 4] = struct.pack(">i", number)
    return bytes(data)


@each_decoder
@settings(deadline=None)
@given(data=st.binary(max_size=300))
def test_any_bytes_at_all(decode: Decoder, data: bytes) -> None:
    with contextlib.suppress(UndecodableError):
        decode(data)


@settings(deadline=None, max_examples=300)
@given(mutated(ALL_METADATA))
def test_real_metadata_with_some_bytes_changed(data: bytes) -> None:
    with contextlib.suppress(UndecodableError):
        decode_subscription(data)


@settings(deadline=None, max_examples=300)
@given(mutated(ALL_ASSIGNMENTS))
def test_a_real_assignment_with_some_bytes_changed(data: bytes) -> None:
    with contextlib.suppress(UndecodableError):
        decode_assignment(data)


@pytest.mark.parametrize("original", ALL_METADATA, ids=range(len(ALL_METADATA)))
def test_real_metadata_cut_short_is_undecodable_at_every_byte(original: bytes) -> None:
    for length in range(len(original)):
        with pytest.raises(UndecodableError):
            decode_subscription(original[:length])


@pytest.mark.parametrize("original", ALL_ASSIGNMENTS, ids=range(len(ALL_ASSIGNMENTS)))
def test_a_real_assignment_cut_short_is_undecodable_at_every_byte(original: bytes) -> None:
    for length in range(len(original)):
        with pytest.raises(UndecodableError):
            decode_assignment(original[:length])


@each_decoder
@pytest.mark.parametrize("number", [2**31 - 1, 2**24, -2, -(2**31)])
def test_a_length_that_lies_costs_neither_time_nor_memory(decode: Decoder, number: int) -> None:
    """Every 4 bytes in turn are made a huge or negative length."""
    info = bytes([0, 0, 0, 11, 0, 0, 0, 11]) + bytes(80)
    originals = [ALL_METADATA[0], ALL_ASSIGNMENTS[0], info]
    tracemalloc.start()
    started = time.perf_counter()
    for original in originals:
        for at in range(len(original) - 3):
            with contextlib.suppress(UndecodableError):
                decode(original[:at] + struct.pack(">i", number) + original[at + 4 :])
    elapsed = time.perf_counter() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * 1024 * 1024
    assert elapsed < 10
