"""Lines on their way: nothing is lost without a word, and nobody waits."""

import json

from hypothesis import given
from hypothesis import strategies as st

from streamapp.controller.record.queue import QueuedLine, RecordQueue

MOST = 200


def told(seq: int, dropped: int) -> QueuedLine:
    return QueuedLine(seq, json.dumps({"dropped": dropped}).encode())


actions = st.lists(st.one_of(st.lists(st.integers(1, 90), max_size=6), st.none()), max_size=40)
"""Lengths of the lines that are added together; None: all are taken."""


@given(actions)
def test_numbers_have_no_gap_that_is_not_told_and_none_comes_twice(actions: list[list[int] | None]) -> None:
    queue, number, expected = RecordQueue(told, MOST), 0, 0
    for lengths in [*actions, None]:
        if lengths is not None:
            queue.add([QueuedLine(number + index, b"x" * length) for index, length in enumerate(lengths)])
            number += len(lengths)
            continue
        for entry in queue.take(0):
            if entry.text.startswith(b"{"):
                expected += json.loads(entry.text)["dropped"] - 1
            assert entry.seq == expected
            expected += 1
    assert expected == number


@given(st.lists(st.integers(1, 90), max_size=40))
def test_what_waits_is_bounded_and_the_newest_are_kept(lengths: list[int]) -> None:
    queue = RecordQueue(told, MOST)
    queue.add([QueuedLine(index, b"x" * length) for index, length in enumerate(lengths)])
    kept = [entry for entry in queue.take(0) if not entry.text.startswith(b"{")]
    assert sum(len(entry.text) for entry in kept) <= MOST
    assert [entry.seq for entry in kept] == list(range(len(lengths)))[len(lengths) - len(kept) :]
    assert len(kept) + queue.dropped_in_all == len(lengths)
    assert bool(queue.dropped_in_all) is (sum(lengths) > MOST)
