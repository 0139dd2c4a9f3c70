"""WordCountDemo's outputs, brought to the inputs that they answer."""

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Message

from lab.errors import LabError
from lab.meter.gaps import Window
from lab.meter.topics import Batch
from lab.meter.word_count_gaps import find_word_gaps

WINDOW = Window(1_000, 2_000)


def batch(topic: str, *rows: tuple[int, int, int, str, bytes]) -> Batch:
    """Make records of partition, offset, time, key and value."""
    return Batch.of(
        topic,
        [
            Message(
                topic=topic,
                partition=partition,
                offset=offset,
                key=key.encode(),
                value=value,
                timestamp=(TIMESTAMP_LOG_APPEND_TIME, time_ms),
            )
            for partition, offset, time_ms, key, value in rows
        ],
    )


def count(number: int) -> bytes:
    return number.to_bytes(8)


INPUTS = batch(
    "in",
    (0, 0, 900, "a", b"a"),
    (0, 1, 1_100, "b", b"b"),
    (0, 2, 1_200, "a", b"a"),
    (1, 0, 1_300, "c", b"c"),
)


def gaps(*outputs: tuple[int, int, int, str, bytes]) -> dict[int, float | None]:
    (report,) = find_word_gaps([INPUTS], [batch("out", *outputs)], [0, 1, 2], [WINDOW])
    return {row.partition: row.seconds for row in report.partitions}


def test_the_nth_count_of_a_word_answers_its_nth_input_whatever_was_written_first() -> None:
    found = gaps(
        (0, 0, 950, "a", count(1)),
        (1, 0, 1_310, "c", count(1)),
        (0, 1, 1_400, "b", count(1)),
        (0, 2, 1_800, "a", count(2)),
    )
    assert found == {0: 0.4, 1: 0.01, 2: None}


def test_an_input_without_its_count_waits_to_the_end() -> None:
    found = gaps((0, 0, 950, "a", count(1)), (0, 1, 1_150, "b", count(1)), (1, 0, 1_310, "c", count(1)))
    assert found == {0: 0.8, 1: 0.01, 2: None}


def test_a_count_that_is_too_high_stands_for_the_last_input_of_its_word() -> None:
    found = gaps((0, 0, 1_250, "a", count(9)), (1, 0, 1_310, "c", count(1)))
    assert found == {0: 0.25, 1: 0.01, 2: None}


@pytest.mark.parametrize(
    ("word", "value"), [("stranger", count(1)), ("a", b"1"), ("a", b"")], ids=["unknown word", "text", "empty"]
)
def test_what_is_no_count_of_a_word_is_named(word: str, value: bytes) -> None:
    with pytest.raises(LabError) as raised:
        gaps((1, 7, 1_250, word, value))
    assert raised.value.what == "topic out partition 1 offset 7: is no count of a word of the input"
