"""The output topic as it grows: read it to its end again and again, until the inputs are answered.

Called by `lab.meter.measure`. Never waits without a limit, and says which input partition it waited for.
"""

import time
from collections.abc import Iterator, Mapping

from lab.errors import LabError
from lab.meter.outputs import Answers, NotAnOutputError, decode
from lab.meter.topics import Batch, Broker, Isolation, Progress, Span, read

_POLL_S = 0.2
_SETTLE_S = 1.0
"""Longer than the linger and the flush of one commit: outputs of one moment are appended to their partitions apart."""


def decode_batch(batch: Batch) -> Answers:
    """Decode a batch of outputs; a LabError names the first that is none."""
    try:
        return decode(batch.values())
    except NotAnOutputError as error:
        raise LabError(
            f"{batch.place(error.index)}: is no output of the demo application",
            f"its value is {error.value!r:.200}",
            "name the topic that the application writes its counts to",
        ) from error


class Tail:
    """The output topic, read from its beginning to its end as often as asked."""

    def __init__(self, broker: Broker, topic: str, isolation: Isolation, progress: Progress) -> None:
        self.topic = topic
        self._broker = broker
        self._isolation = isolation
        self._progress = progress
        self._positions = broker.starts(topic)

    def advance(self) -> Iterator[tuple[Batch, Answers]]:
        """Read what is there now and was not read before."""
        ends = self._broker.ends(self.topic, self._isolation)
        spans = {number: Span(start, ends[number]) for number, start in self._positions.items()}
        for batch in read(self._broker.bootstrap, self.topic, spans, self._isolation, self._progress):
            yield batch, decode_batch(batch)
        self._positions = ends


def until_caught_up(tail: Tail, last: Mapping[int, int], timeout_s: float) -> Iterator[tuple[Batch, Answers]]:
    """Read outputs until each input partition is answered up to its last offset."""
    answered = dict.fromkeys(last, -1)
    deadline = time.monotonic() + timeout_s
    while True:
        for batch, answers in tail.advance():
            for number, highest in answered.items():
                offsets = answers.offsets[answers.partitions == number]
                answered[number] = max(highest, int(offsets.max(initial=-1)))
            yield batch, answers
        lagging = [number for number in sorted(last) if answered[number] < last[number]]
        if not lagging:
            return
        if time.monotonic() > deadline:
            raise _not_caught_up(
                tail.topic, {number: (answered[number], last[number]) for number in lagging}, timeout_s
            )
        time.sleep(_POLL_S)


def settled(tail: Tail) -> Iterator[tuple[Batch, Answers]]:
    """Give the outputs of the last moment time to arrive, and read them."""
    time.sleep(_SETTLE_S)
    yield from tail.advance()


def _not_caught_up(topic: str, lagging: Mapping[int, tuple[int, int]], timeout_s: float) -> LabError:
    def describe(number: int, answered: int, last: int) -> str:
        upto = "has no output at all" if answered < 0 else f"is answered up to offset {answered}"
        return f"input partition {number} {upto}, its last input is at {last}"

    return LabError(
        f"topic {topic}: the outputs have not caught up with the inputs after {timeout_s:g} s",
        "; ".join(describe(number, *offsets) for number, offsets in lagging.items()),
        "check that the application is running and owns these partitions; wait longer if it is only slow",
    )


def last_inputs(broker: Broker, topic: str, isolation: Isolation) -> dict[int, int]:
    """Find the offset of the last record of each partition: the one before the end may be a transaction's marker."""
    starts, ends = broker.starts(topic), broker.ends(topic, isolation)
    last: dict[int, int] = {}
    open_ends, step = dict(ends), 16
    while open_ends:
        spans = {number: Span(max(starts[number], end - step), end) for number, end in open_ends.items()}
        for batch in read(broker.bootstrap, topic, spans, isolation):
            last.update(zip(batch.partitions.tolist(), batch.offsets.tolist(), strict=True))
        open_ends = {n: span.start for n, span in spans.items() if n not in last and span.start > starts[n]}
        step *= 16
    return last
