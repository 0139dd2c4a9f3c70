"""Gaps of Kafka's own WordCountDemo, whose outputs say a word and its count, and not which input they answer.

Called by `lab.matrix`. The n-th count of a word answers its n-th input: so inputs and outputs are brought into the form
of `lab.meter.gaps`, which knows what a gap is. All inputs are read from the beginning, and a word never changes its
partition. Where work was done twice after a crash a count is too high; it then stands for the word's last input.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from lab.errors import LabError
from lab.meter.gaps import Appends, GapReport, Window, find_gaps
from lab.meter.topics import Batch, Broker, Isolation, Span, read

Place = tuple[int, int]
"""Partition and offset of an input."""
_COUNT_BYTES = 8


def measure_word_gaps(
    bootstrap: str, input_topic: str, output_topic: str, windows: Iterable[Window]
) -> list[GapReport]:
    """Measure the gap of every input partition in each window; both topics are read once.

    Raises:
        LabError: the broker does not answer, a topic is missing or does not keep append times, or the output topic
            holds something else than counts of words that were in the input.
    """
    broker = Broker(bootstrap)
    partitions = broker.partitions(input_topic)
    return find_word_gaps(_all(broker, input_topic), _all(broker, output_topic), partitions, windows)


def find_word_gaps(
    inputs: Iterable[Batch], outputs: Iterable[Batch], partitions: Iterable[int], windows: Iterable[Window]
) -> list[GapReport]:
    """Find the gaps in each window from all inputs and all outputs, of all partitions of the input topic."""
    arrived, places = _inputs(inputs, partitions)
    answered = _outputs(outputs, places)
    return [find_gaps(arrived, answered, window) for window in windows]


def _all(broker: Broker, topic: str) -> Iterable[Batch]:
    spans = {number: Span(0, end) for number, end in broker.ends(topic, Isolation.UNCOMMITTED).items()}
    return read(broker.bootstrap, topic, spans, Isolation.UNCOMMITTED)


def _inputs(batches: Iterable[Batch], partitions: Iterable[int]) -> tuple[dict[int, Appends], dict[bytes, list[Place]]]:
    found: dict[int, list[Place]] = {number: [] for number in partitions}
    places: dict[bytes, list[Place]] = defaultdict(list)
    for batch in batches:
        times = batch.append_times().tolist()
        rows = zip(batch.partitions.tolist(), batch.offsets.tolist(), times, batch.values(), strict=True)
        for partition, offset, time_ms, word in rows:
            found[partition].append((offset, time_ms))
            places[word or b""].append((partition, offset))
    return {number: _appends(rows) for number, rows in found.items()}, places


def _outputs(batches: Iterable[Batch], places: Mapping[bytes, list[Place]]) -> dict[int, Appends]:
    found: dict[int, list[Place]] = defaultdict(list)
    for batch in batches:
        times = batch.append_times().tolist()
        for index, (word, count, time_ms) in enumerate(zip(batch.keys(), batch.values(), times, strict=True)):
            if word not in places or count is None or len(count) != _COUNT_BYTES:
                raise LabError(
                    f"{batch.place(index)}: is no count of a word of the input",
                    f"its key is {word!r:.100} and its value {count!r:.100}",
                    "name the topics that WordCountDemo reads and writes",
                )
            of_word = places[word]
            partition, offset = of_word[min(int.from_bytes(count, signed=True), len(of_word)) - 1]
            found[partition].append((offset, time_ms))
    return {number: _appends(rows) for number, rows in found.items()}


def _appends(rows: list[Place]) -> Appends:
    columns = np.array(rows, np.int64).reshape(-1, 2)
    return Appends(columns[:, 0], columns[:, 1])
