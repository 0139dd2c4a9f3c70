"""The way in: measure the gaps of a window, check the counts, wait for the tail. Reads topics, prints nothing.

Called by the lab's commands, its scenarios and the benchmarks. The decisions lie in `lab.meter.gaps` and
`lab.meter.counts`; here is only which records they need and what is refused.

Both topics need `message.timestamp.type=LogAppendTime` for the gaps: Kafka Streams gives an output the timestamp of its
input, so that with CreateTime an output that came a minute late would look as if it had come in time.
The count check needs every record since the beginning, so neither compaction nor retention may have taken one.
"""

import time
from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np
import numpy.typing as npt

from lab.errors import LabError
from lab.meter.counts import CountReport, Inputs, Outputs, compare
from lab.meter.gaps import Appends, Gap, GapReport, Window, find_gaps, long_gaps
from lab.meter.outputs import Answers
from lab.meter.tail import Tail, decode_batch, last_inputs, settled, until_caught_up
from lab.meter.topics import APPEND_TIME_SETTING, Batch, Broker, Isolation, Progress, Span, in_silence, read

Ints = npt.NDArray[np.int64]

LEAD_IN_S = 60.0
"""Longer than the session timeout of 45 s, so that what waits since before the window is seen to wait."""


def measure_gaps(
    bootstrap: str,
    input_topic: str,
    output_topic: str,
    window: Window,
    *,
    isolation: Isolation = Isolation.COMMITTED,
    lead_in_s: float = LEAD_IN_S,
    progress: Progress = in_silence,
) -> GapReport:
    """Measure the gap of every input partition in a window; `lab.meter.gaps` says what a gap is.

    An input that is older than `lead_in_s` before the window is not charged.

    Args:
        bootstrap: address of the broker.
        input_topic: what the application reads.
        output_topic: what it writes, in the form of `lab.meter.outputs`.
        window: what to measure, on the broker's clock.
        isolation: with read_committed, outputs of aborted transactions do not count.
        lead_in_s: seconds to read before the window.
        progress: is told how far each topic is read.

    Raises:
        LabError: the broker does not answer, a topic lacks append times, the window is open, or an output is foreign.
    """
    topics = input_topic, output_topic
    return find_gaps(*_appends(bootstrap, topics, window, isolation, lead_in_s, progress), window)


def measure_long_gaps(
    bootstrap: str, input_topic: str, output_topic: str, window: Window, least_s: float
) -> Mapping[int, tuple[Gap, ...]]:
    """Measure every gap of at least so many seconds of each input partition; else as `measure_gaps`."""
    topics = input_topic, output_topic
    found = _appends(bootstrap, topics, window, Isolation.COMMITTED, LEAD_IN_S, in_silence)
    return long_gaps(*found, window, round(least_s * 1000))


def _appends(
    bootstrap: str,
    topics: tuple[str, str],
    window: Window,
    isolation: Isolation,
    lead_in_s: float,
    progress: Progress,
) -> tuple[Mapping[int, Appends], Mapping[int, Appends]]:
    """Read the inputs and the outputs of a window and its lead-in, by input partition."""
    broker, (input_topic, output_topic) = Broker(bootstrap), topics
    for topic in topics:
        _require_append_times(broker, topic)
    require_over(window, time.time() * 1000, (broker.newest_ms(topic) for topic in topics))
    start_ms = window.start_ms - round(lead_in_s * 1000)
    reach = {topic: _spans_between(broker, topic, start_ms, window.end_ms) for topic in topics}
    inputs, outputs = _Columns(), _Columns()
    for batch in read(bootstrap, input_topic, reach[input_topic], isolation, progress):
        inputs.add(batch.partitions, batch.offsets, batch.append_times())
    for batch in read(bootstrap, output_topic, reach[output_topic], isolation, progress):
        answers = decode_batch(batch)
        _require_known(batch, answers, input_topic, reach[input_topic])
        outputs.add(answers.partitions, answers.offsets, batch.append_times())
    return _by_partition(inputs, reach[input_topic]), _by_partition(outputs, reach[input_topic])


def require_over(window: Window, now_ms: float, newest_ms: Iterable[int | None]) -> None:
    """Refuse a window that may not be over on the broker's clock, which cannot be asked for the time.

    That clock has passed the end if it has stamped a record with it or with a later time. Where nothing was appended
    since, this machine's clock has to do.

    Args:
        window: on the broker's clock.
        now_ms: milliseconds since the epoch on this machine's clock.
        newest_ms: the newest appends of the topics, asked only if needed; None: a topic without records.

    Raises:
        LabError: by neither clock it is over.
    """
    # The window ends before `end_ms`, so that a record of the millisecond before is the last one it can hold.
    if window.end_ms > now_ms and all(newest is None or newest < window.end_ms - 1 for newest in newest_ms):
        raise LabError("window: ends in the future", "what is not written yet would count as a gap", "wait for its end")


def check_counts(
    bootstrap: str,
    input_topic: str,
    output_topic: str,
    *,
    exactly_once: bool,
    timeout_s: float = 60.0,
    progress: Progress = in_silence,
) -> CountReport:
    """Compare all outputs with all inputs, once the outputs have caught up; `lab.meter.counts` says what is promised.

    The inputs are those in the topic when the call begins. Both topics are read as the application reads: only what is
    committed under exactly-once, everything otherwise. Two million inputs, as many outputs and a million keys take
    0.6 GB.

    Args:
        bootstrap: address of the broker.
        input_topic: what the application reads.
        output_topic: what it writes, in the form of `lab.meter.outputs`.
        exactly_once: which promise to judge by.
        timeout_s: seconds to wait for the outputs of the last inputs.
        progress: is told how far each topic is read.

    Raises:
        LabError: the broker does not answer, a topic is missing, empty or no longer whole, the outputs did not catch
            up, or the output topic holds something else than outputs.
    """
    broker = Broker(bootstrap)
    for topic in (input_topic, output_topic):
        _require_whole(broker, topic)
    isolation = _eyes(exactly_once)
    ends = broker.ends(input_topic, isolation)
    numbers: dict[bytes, int] = {}
    inputs = _read_inputs(broker, input_topic, isolation, ends, numbers, progress)
    present = np.unique(inputs.partitions).tolist()
    last = {number: int(inputs.offsets[inputs.partitions == number].max()) for number in present}
    tail = Tail(broker, output_topic, isolation, progress)
    outputs, later = _read_outputs(chain(until_caught_up(tail, last, timeout_s), settled(tail)), ends, numbers)
    return compare(inputs, outputs, list(numbers), exactly_once=exactly_once, later=later)


def wait_until_caught_up(
    bootstrap: str,
    input_topic: str,
    output_topic: str,
    *,
    exactly_once: bool,
    timeout_s: float = 60.0,
    progress: Progress = in_silence,
) -> dict[int, int]:
    """Wait until the last input of every partition that is there now has an output.

    Returns:
        By input partition, the offset of that input. Partitions without inputs are left out.

    Raises:
        LabError: it took longer than `timeout_s`; the error names the partitions that lag. Or a topic is missing, the
            broker does not answer, or the output topic holds something else than outputs.
    """
    broker = Broker(bootstrap)
    isolation = _eyes(exactly_once)
    last = last_inputs(broker, input_topic, isolation)
    for _ in until_caught_up(Tail(broker, output_topic, isolation, progress), last, timeout_s):
        pass
    return last


class _Columns:
    """Parallel arrays that grow batch by batch."""

    def __init__(self) -> None:
        self._parts: list[tuple[Ints, ...]] = []

    def add(self, *columns: Ints) -> None:
        self._parts.append(columns)

    def joined(self, width: int) -> tuple[Ints, ...]:
        """Give the `width` columns whole."""
        return tuple(
            np.concatenate([np.empty(0, np.int64), *(part[column] for part in self._parts)]) for column in range(width)
        )


def _read_inputs(
    broker: Broker,
    topic: str,
    isolation: Isolation,
    ends: Mapping[int, int],
    numbers: dict[bytes, int],
    progress: Progress,
) -> Inputs:
    """Read all inputs below `ends`; gives each new key the next number in `numbers`."""
    found = _Columns()
    for batch in read(broker.bootstrap, topic, {n: Span(0, end) for n, end in ends.items()}, isolation, progress):
        names = batch.keys()
        keys = np.fromiter((numbers.setdefault(name, len(numbers)) for name in names), np.int64, len(names))
        found.add(batch.partitions, batch.offsets, keys)
    inputs = Inputs(*found.joined(3))
    if not inputs.offsets.size:
        raise LabError(f"topic {topic}: holds no input", "there is nothing to check", "produce inputs first")
    return inputs


def _read_outputs(
    batches: Iterable[tuple[Batch, Answers]], ends: Mapping[int, int], numbers: Mapping[bytes, int]
) -> tuple[Outputs, int]:
    """Give the outputs for inputs below `ends`, and how many there are for later ones."""
    found = _Columns()
    for batch, answers in batches:
        names = batch.keys()
        keys = np.fromiter((numbers.get(name, -1) for name in names), np.int64, len(names))
        found.add(answers.partitions, answers.offsets, keys, answers.counts)
    partitions, offsets, keys, counts = found.joined(4)
    now = ~np.any([(partitions == number) & (offsets >= end) for number, end in ends.items()], axis=0)
    return Outputs(partitions[now], offsets[now], keys[now], counts[now]), int((~now).sum())


def _require_known(batch: Batch, answers: Answers, input_topic: str, known: Mapping[int, Span]) -> None:
    strange = np.flatnonzero(~np.isin(answers.partitions, list(known)))
    if strange.size:
        raise LabError(
            f"{batch.place(int(strange[0]))}: answers input partition {answers.partitions[strange[0]]}",
            f"topic {input_topic} has no such partition",
            "name the input topic that the application reads",
        )


def _require_append_times(broker: Broker, topic: str) -> None:
    kind = broker.settings(topic)[APPEND_TIME_SETTING]
    if kind != "LogAppendTime":
        raise LabError(
            f"topic {topic}: its records do not carry the time of their append",
            f"{APPEND_TIME_SETTING} is {kind}",
            f"kafka-configs --alter --topic {topic} --add-config {APPEND_TIME_SETTING}=LogAppendTime, then run anew",
        )


def _require_whole(broker: Broker, topic: str) -> None:
    policy = broker.settings(topic)["cleanup.policy"]
    cut = {number: start for number, start in broker.starts(topic).items() if start > 0}
    if "compact" in policy or cut:
        gone = "; ".join(f"partition {number} begins at offset {start}" for number, start in sorted(cut.items()))
        raise LabError(
            f"topic {topic}: the counts cannot be checked, its records are not all there",
            gone or f"cleanup.policy is {policy}",
            "run with new topics, cleanup.policy=delete and a retention longer than the run",
        )


def _eyes(exactly_once: bool) -> Isolation:
    return Isolation.COMMITTED if exactly_once else Isolation.UNCOMMITTED


def _spans_between(broker: Broker, topic: str, start_ms: int, end_ms: int) -> dict[int, Span]:
    """Find the offsets appended in [start, end), of what is there now."""
    ends = broker.ends(topic, Isolation.UNCOMMITTED)
    first, beyond = broker.offsets_at(topic, start_ms), broker.offsets_at(topic, end_ms)

    def or_end(offset: int | None, end: int) -> int:
        return end if offset is None else min(offset, end)

    return {number: Span(or_end(first[number], end), or_end(beyond[number], end)) for number, end in ends.items()}


def _by_partition(columns: _Columns, partitions: Mapping[int, Span]) -> dict[int, Appends]:
    """Sort (partition, offset, time) columns into the partitions, those without records included."""
    numbers, offsets, times = columns.joined(3)
    return {number: Appends(offsets[numbers == number], times[numbers == number]) for number in partitions}
