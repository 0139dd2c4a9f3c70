"""What counts as an output of the demo application."""

import pytest

from lab.meter.outputs import NotAnOutputError, decode

GOOD = b'{"partition":3,"offset":41,"count":7}'


def test_values_are_decoded_in_their_order_whatever_the_spacing_and_the_order_of_names() -> None:
    found = decode([GOOD, b' { "count" : 1, "offset" : 0, "partition" : 5, "extra" : "x" } '])

    assert (found.partitions.tolist(), found.offsets.tolist(), found.counts.tolist()) == ([3, 5], [41, 0], [7, 1])


def test_no_values_are_no_outputs() -> None:
    found = decode([])

    assert [column.tolist() for column in (found.partitions, found.offsets, found.counts)] == [[], [], []]


@pytest.mark.parametrize(
    "bad",
    [
        None,
        b"",
        b"17",
        b"[]",
        b"\xff",
        b"{}",
        b'{"partition":3,"offset":41}',
        b'{"partition":"3","offset":41,"count":7}',
        b'{"partition":3,"offset":41.5,"count":7}',
        b'{"partition":3,"offset":-1,"count":7}',
        b'{"partition":3,"offset":41,"count":99999999999999999999999}',
        b'{"partition":3,"offset":41,"count":null}',
        GOOD + b"," + GOOD,
    ],
)
def test_a_value_that_is_no_output_is_named(bad: bytes | None) -> None:
    with pytest.raises(NotAnOutputError) as caught:
        decode([GOOD, GOOD, bad, GOOD])

    assert (caught.value.index, caught.value.value) == (2, bad)
