"""What the count check finds in a handful of records."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.meter.counts import CountReport, CountVerdict, Foreign, Inputs, KeyCount, Outputs, Record, compare

KEYS = [b"a", b"b", b"\xff"]
INPUTS = [(0, 0, 0), (0, 1, 1), (0, 4, 0), (1, 0, 2)]
"""(partition, offset, number of the key)."""
OUTPUTS = [(0, 0, 0, 1), (0, 1, 1, 1), (0, 4, 0, 2), (1, 0, 2, 1)]
"""(partition, offset, number of the key, count): one for each input."""

CLEAN = CountReport(
    exactly_once=True,
    inputs=4,
    outputs=4,
    keys=3,
    lost=0,
    doubled=0,
    undercounted=0,
    overcounted=0,
    foreign=0,
    later=0,
    lost_examples=(),
    doubled_examples=(),
    undercounted_examples=(),
    overcounted_examples=(),
    foreign_examples=(),
)


def inputs_of(rows: Sequence[tuple[int, int, int]]) -> Inputs:
    table = np.array(rows, np.int64).reshape(-1, 3)
    return Inputs(table[:, 0], table[:, 1], table[:, 2])


def outputs_of(rows: Sequence[tuple[int, int, int, int]]) -> Outputs:
    table = np.array(rows, np.int64).reshape(-1, 4)
    return Outputs(table[:, 0], table[:, 1], table[:, 2], table[:, 3])


def checked(rows: Sequence[tuple[int, int, int, int]], *, exactly_once: bool = True) -> CountReport:
    return compare(inputs_of(INPUTS), outputs_of(rows), KEYS, exactly_once=exactly_once)


def test_one_output_for_each_input_and_right_counts_keep_both_promises() -> None:
    assert checked(OUTPUTS) == CLEAN
    assert CLEAN.verdict is CountVerdict.KEPT


def test_an_input_without_an_output_is_lost_under_either_promise() -> None:
    rows = [(0, 0, 0, 1), (0, 1, 1, 1), (0, 4, 0, 2)]
    found = checked(rows)

    assert found == replace(
        CLEAN,
        outputs=3,
        lost=1,
        undercounted=1,
        lost_examples=(Record(1, 0, "\\xff", 0),),
        undercounted_examples=(KeyCount(1, "\\xff", 1, None),),
    )
    assert [found.verdict, checked(rows, exactly_once=False).verdict] == [CountVerdict.LOST, CountVerdict.LOST]


def test_a_count_that_starts_anew_is_lost_though_every_input_has_an_output() -> None:
    found = checked([*OUTPUTS[:2], (0, 4, 0, 1), OUTPUTS[3]])

    assert found == replace(CLEAN, undercounted=1, undercounted_examples=(KeyCount(0, "a", 2, 1),))
    assert found.verdict is CountVerdict.LOST


def test_a_repeated_output_breaks_exactly_once_and_is_a_figure_under_at_least_once() -> None:
    rows = [*OUTPUTS[:3], (0, 4, 0, 3), (0, 4, 0, 3), OUTPUTS[3]]
    found = checked(rows)

    assert found == replace(
        CLEAN,
        outputs=6,
        doubled=2,
        overcounted=1,
        doubled_examples=(Record(0, 4, "a", 3),),
        overcounted_examples=(KeyCount(0, "a", 2, 3),),
    )
    assert [found.verdict, checked(rows, exactly_once=False).verdict] == [CountVerdict.DOUBLED, CountVerdict.KEPT]


def test_the_last_output_in_the_log_is_the_final_count() -> None:
    assert checked([*OUTPUTS, (0, 4, 0, 9), (0, 4, 0, 2)]).overcounted == 0


def test_outputs_for_no_input_or_with_another_key_are_foreign_and_answer_nothing() -> None:
    found = checked([*OUTPUTS, (0, 2, 0, 3), (7, 0, 0, 3), (0, 1, 0, 3), (0, 1, -1, 3)], exactly_once=False)

    assert found == replace(
        CLEAN,
        exactly_once=False,
        outputs=8,
        foreign=4,
        foreign_examples=(Foreign(0, 2), Foreign(7, 0), Foreign(0, 1), Foreign(0, 1)),
    )
    assert found.verdict is CountVerdict.FOREIGN


def test_a_key_in_two_partitions_is_counted_in_each_from_one() -> None:
    inputs = inputs_of([(0, 0, 0), (1, 0, 0), (1, 1, 0)])
    found = compare(inputs, outputs_of([(0, 0, 0, 1), (1, 0, 0, 1), (1, 1, 0, 1)]), [b"a"], exactly_once=True)

    assert found == replace(
        CLEAN,
        inputs=3,
        outputs=3,
        keys=2,
        undercounted=1,
        undercounted_examples=(KeyCount(1, "a", 2, 1),),
    )


def test_examples_are_the_first_five_by_partition_and_offset() -> None:
    rows = [(partition, offset, 0) for partition in (1, 0) for offset in (2, 1, 0)]
    found = compare(inputs_of(rows), outputs_of([]), [b"a"], exactly_once=True)

    assert (found.lost, [(example.partition, example.offset) for example in found.lost_examples]) == (
        6,
        [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)],
    )


def test_without_inputs_every_output_is_foreign() -> None:
    found = compare(inputs_of([]), outputs_of([(0, 0, -1, 1)]), [], exactly_once=True)

    assert (found.foreign, found.verdict) == (1, CountVerdict.FOREIGN)


def test_the_report_becomes_json_with_its_verdict() -> None:
    text = json.dumps(checked(OUTPUTS[:3]).to_json())

    assert json.loads(text) == {
        "verdict": "lost",
        "exactly_once": True,
        "inputs": 4,
        "outputs": 3,
        "keys": 3,
        "lost": 1,
        "doubled": 0,
        "undercounted": 1,
        "overcounted": 0,
        "foreign": 0,
        "later": 0,
        "lost_examples": [{"partition": 1, "offset": 0, "key": "\\xff", "outputs": 0}],
        "doubled_examples": [],
        "undercounted_examples": [{"partition": 1, "key": "\\xff", "inputs": 1, "final": None}],
        "overcounted_examples": [],
        "foreign_examples": [],
    }


@settings(deadline=None)  # how busy the machine is, is not what is tested
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), unique=True, min_size=1),
    st.data(),
)
def test_any_outputs_are_tallied_as_plain_counting_does(records: list[tuple[int, int]], data: st.DataObject) -> None:
    inputs = [(*record, data.draw(st.integers(0, 2))) for record in records]
    outputs = data.draw(st.lists(st.tuples(st.sampled_from(inputs), st.integers(1, 5))))
    found = compare(
        inputs_of(inputs), outputs_of([(*record, count) for record, count in outputs]), KEYS, exactly_once=True
    )
    answers = Counter(record for record, _ in outputs)
    final = {(partition, key): count for (partition, _, key), count in outputs}
    expected = Counter((partition, key) for partition, _, key in inputs)

    assert (found.lost, found.doubled, found.undercounted, found.overcounted) == (
        len(inputs) - len(answers),
        sum(answers.values()) - len(answers),
        sum(final.get(key, 0) < number for key, number in expected.items()),
        sum(final.get(key, 0) > number for key, number in expected.items()),
    )
