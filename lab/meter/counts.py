"""The counts against the inputs: was anything lost, was anything counted twice. Arrays in, frozen values out.

Called by `lab.meter.measure` with what was read from a broker. Never reads a broker, a clock or a file.

What is promised: every input has an output, and the final count of a key is at least the number of its inputs (*nothing
lost*). Under exactly-once also: every input has one output only, and the final count is exactly the number of inputs
(*nothing doubled*). Under at-least-once repeated outputs and counts that are too high are figures, not failures.

Counts belong to a key *within an input partition*: every partition has its own state, so a key that a careless producer
spread over two partitions is counted in each from one. Here such a pair is called a key.

The inputs that count are the records that were read. Offsets of a log are not contiguous where transactions wrote to
it (their markers take offsets too), so nothing is ever derived from the distance of two offsets.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

EXAMPLES = 5
"""How many examples of each finding a report keeps."""
_OFFSET_BITS = 48
"""Partition and offset share one integer; 2^48 records are more than any partition ever held."""


class CountVerdict(StrEnum):
    """Whether the promise was kept; the worst finding wins."""

    KEPT = "kept"
    LOST = "lost"
    """An input without an output, or a key whose final count is too low."""
    FOREIGN = "foreign"
    """Outputs that answer no input: the topics do not belong together, or the application makes things up."""
    DOUBLED = "doubled"
    """Under exactly-once: an input with two outputs, or a key whose final count is too high."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """The input records read: parallel arrays, in any order, each (partition, offset) once."""

    partitions: Ints
    offsets: Ints
    keys: Ints
    """Numbers of the keys: indices into the list of keys."""


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs read: parallel arrays, those of one key in the order of the log."""

    partitions: Ints
    """The input partition each answers."""
    offsets: Ints
    """The input offset each answers."""
    keys: Ints
    """Numbers of the keys; −1: no input has this key."""
    counts: Ints


@dataclass(frozen=True)
class Record:
    """One input record, as an example of a finding."""

    partition: int
    offset: int
    key: str
    outputs: int
    """How many outputs answer it."""


@dataclass(frozen=True)
class KeyCount:
    """One key, as an example of a finding."""

    partition: int
    key: str
    inputs: int
    final: int | None
    """The count in its last output; None: it has no output."""


@dataclass(frozen=True)
class Foreign:
    """The input that a foreign output claims to answer."""

    partition: int
    offset: int


@dataclass(frozen=True)
class CountReport:
    """What the comparison found; examples are the first few only."""

    exactly_once: bool
    """Which promise is judged."""
    inputs: int
    outputs: int
    keys: int
    """Distinct keys, each partition's for itself."""
    lost: int
    """Inputs without an output."""
    doubled: int
    """Outputs beyond the first of each input."""
    undercounted: int
    """Keys whose final count is below the number of their inputs."""
    overcounted: int
    """Keys whose final count is above the number of their inputs."""
    foreign: int
    """Outputs for an input that does not exist, or with another key than it."""
    later: int
    """Outputs for inputs that came after the check began: not judged and in no other figure."""
    lost_examples: tuple[Record, ...]
    doubled_examples: tuple[Record, ...]
    undercounted_examples: tuple[KeyCount, ...]
    overcounted_examples: tuple[KeyCount, ...]
    foreign_examples: tuple[Foreign, ...]

    @property
    def nothing_lost(self) -> bool:
        """Whether each input has an output and no final count is too low."""
        return self.lost == 0 and self.undercounted == 0

    @property
    def nothing_doubled(self) -> bool:
        """Whether no input has two outputs and no final count is too high."""
        return self.doubled == 0 and self.overcounted == 0

    @property
    def verdict(self) -> CountVerdict:
        """Judge by the promise of `exactly_once`."""
        if not self.nothing_lost:
            return CountVerdict.LOST
        if self.foreign:
            return CountVerdict.FOREIGN
        if self.exactly_once and not self.nothing_doubled:
            return CountVerdict.DOUBLED
        return CountVerdict.KEPT

    def to_json(self) -> dict[str, Any]:
        """Give everything, the verdict included, as `json.dump` takes it."""
        return {"verdict": self.verdict.value, **asdict(self)}


def compare(
    inputs: Inputs, outputs: Outputs, keys: Sequence[bytes], *, exactly_once: bool, later: int = 0
) -> CountReport:
    """Compare the outputs with the inputs.

    Args:
        inputs: all records of the input topic.
        outputs: all outputs for them.
        keys: the distinct keys of the inputs, in the order of their numbers.
        exactly_once: which promise to judge by.
        later: how many outputs were left out because their inputs are not among `inputs` yet; only passed on.
    """
    place, fits = _match(inputs, outputs)
    answers = np.bincount(place[fits], minlength=inputs.offsets.size)
    tally = _tally(inputs, place[fits], outputs.counts[fits])
    under, over = tally.final < tally.expected, tally.final > tally.expected
    return CountReport(
        exactly_once=exactly_once,
        inputs=int(inputs.offsets.size),
        outputs=int(outputs.offsets.size),
        keys=int(tally.expected.size),
        lost=int((answers == 0).sum()),
        doubled=int((answers[answers > 1] - 1).sum()),
        undercounted=int(under.sum()),
        overcounted=int(over.sum()),
        foreign=int((~fits).sum()),
        later=later,
        lost_examples=_records(answers == 0, answers, inputs, keys),
        doubled_examples=_records(answers > 1, answers, inputs, keys),
        undercounted_examples=_key_counts(under, tally, inputs, keys),
        overcounted_examples=_key_counts(over, tally, inputs, keys),
        foreign_examples=tuple(
            Foreign(int(outputs.partitions[at]), int(outputs.offsets[at])) for at in np.flatnonzero(~fits)[:EXAMPLES]
        ),
    )


@dataclass(frozen=True, eq=False)
class _Tally:
    """By key within a partition."""

    sample: Ints
    """Place of one input with it."""
    expected: Ints
    """Inputs."""
    final: Ints
    """Count of the last output."""
    answered: Flags
    """Whether there is an output at all."""


def _tally(inputs: Inputs, answered: Ints, counts: Ints) -> _Tally:
    """Count the inputs of each key and take the count of its last output.

    Args:
        inputs: all of them.
        answered: for each output, in the order of the log, the place of its input.
        counts: for each output, its count.
    """
    pairs = inputs.partitions * (inputs.keys.max(initial=0) + 1) + inputs.keys
    _, sample, which, expected = np.unique(pairs, return_index=True, return_inverse=True, return_counts=True)
    final = np.zeros(expected.size, np.int64)
    # Where a key appears repeatedly the last assignment stays: the last output in the log.
    final[which[answered]] = counts
    return _Tally(sample, expected, final, np.bincount(which[answered], minlength=expected.size) > 0)


def _records(found: Flags, answers: Ints, inputs: Inputs, keys: Sequence[bytes]) -> tuple[Record, ...]:
    """Take the first found inputs by partition and offset."""
    places = np.flatnonzero(found)
    first = places[np.argsort(_codes(inputs.partitions[places], inputs.offsets[places]))][:EXAMPLES]
    return tuple(
        Record(int(inputs.partitions[at]), int(inputs.offsets[at]), _text(keys[inputs.keys[at]]), int(answers[at]))
        for at in first
    )


def _key_counts(found: Flags, tally: _Tally, inputs: Inputs, keys: Sequence[bytes]) -> tuple[KeyCount, ...]:
    """Take the first found keys by partition and number."""
    return tuple(
        KeyCount(
            int(inputs.partitions[tally.sample[at]]),
            _text(keys[inputs.keys[tally.sample[at]]]),
            int(tally.expected[at]),
            int(tally.final[at]) if tally.answered[at] else None,
        )
        for at in np.flatnonzero(found)[:EXAMPLES]
    )


def _match(inputs: Inputs, outputs: Outputs) -> tuple[Ints, Flags]:
    """Find for each output the place of its input, and whether it is one with the same key."""
    if inputs.offsets.size == 0:
        return np.zeros(outputs.offsets.size, np.int64), np.zeros(outputs.offsets.size, np.bool_)
    known = _codes(inputs.partitions, inputs.offsets)
    order = np.argsort(known)
    wanted = _codes(outputs.partitions, outputs.offsets)
    place = order[np.searchsorted(known, wanted, sorter=order).clip(max=known.size - 1)]
    same_record = (inputs.partitions[place] == outputs.partitions) & (inputs.offsets[place] == outputs.offsets)
    return place, same_record & (inputs.keys[place] == outputs.keys)


def _codes(partitions: Ints, offsets: Ints) -> Ints:
    return (partitions << _OFFSET_BITS) | offsets


def _text(key: bytes) -> str:
    return key.decode(errors="backslashreplace")
