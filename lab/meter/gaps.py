"""The gap of an input partition: how long its users waited without an output. Arrays in, frozen values out.

Called by `lab.meter.measure` with what was read from a broker. Never reads a broker, a clock or a file.

All times are whole milliseconds since the epoch on the *broker's* clock, as written into the records at append.

**The gap.** An input *waits* from its append until an output appears for it or for a later offset of its partition. (A
partition is processed in offset order. What was passed over without an output of its own is lost, which the count check
finds; it is not late for ever.) The outputs of a partition cut time into *silences*. In a silence nothing is answered,
so each silence falls into two: first *idle*, nothing waits; then, from the first input that is not answered yet,
*waiting*, up to the next output. The gap in a window is the longest waiting part, cut to the window. So a pause of the
input is never charged to the application, and an input left over from before the window is.

Every output ends a silence, also one that repeats an older answer: the application is back at work on the partition.

**The resolution.** Let T be the longest time for which the application truly left the partition alone. No output
appears meanwhile, so that time lies in one silence: its waiting part is at most the gap, the rest is idle. Hence
T ≤ gap + *idle*, the longest idle stretch of the window; an interruption shorter than that may hide where no input was
waiting. On the other side even an application that is never interrupted lets inputs wait, for the producer's linger and
the batches; that *quiet* spacing is the 95th percentile of the other waiting parts (those of the lead-in before the
window included). Hence T ≥ gap − quiet. `resolution` is the width of that interval, idle + quiet. It is unknown where
there is nothing to compare the gap with.

Under exactly-once a read_committed consumer sees an output only once its transaction is committed, and no client is
told when that was. The meter still goes by the append, so what such a consumer noticed may differ by one commit
interval (`commit.interval.ms`, 100 ms unless set), and after a crash by the time for which the open transaction blocks
its readers.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.errors import LabError

Ints = npt.NDArray[np.int64]

_EARLIEST = np.iinfo(np.int64).min
_NEVER = np.iinfo(np.int64).max
_QUIET_SHARE = 0.95


@dataclass(frozen=True)
class Window:
    """The time that is measured, [start, end), in milliseconds since the epoch on the broker's clock."""

    start_ms: int
    end_ms: int

    def __post_init__(self) -> None:
        """Refuse an empty window.

        Raises:
            LabError: the end is not after the start.
        """
        if self.end_ms <= self.start_ms:
            raise LabError(
                f"window from {_moment(self.start_ms)} to {_moment(self.end_ms)}: holds no time",
                "its end is not after its start",
                "give the earlier time first",
            )

    @classmethod
    def between(cls, start: datetime, end: datetime) -> "Window":
        """Take the window between two times that know their zone.

        Raises:
            LabError: one of them has no zone, so that it names no moment; or the window is empty.
        """
        for moment in (start, end):
            if moment.utcoffset() is None:
                raise LabError(
                    f"window: {moment.isoformat()} names no moment",
                    "it has no time zone",
                    "write the zone, for example 2026-01-31T12:00:00Z",
                )
        return cls(round(start.timestamp() * 1000), round(end.timestamp() * 1000))

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_ms - self.start_ms) / 1000


@dataclass(frozen=True, eq=False)
class Appends:
    """Records that belong to one input partition: parallel arrays, in any order.

    Of inputs the own offset of each; of outputs the offset of the *input* that each answers.
    """

    offsets: Ints
    times_ms: Ints
    """When the broker appended them."""


@dataclass(frozen=True)
class Gap:
    """A stretch of time in which inputs waited and no output appeared."""

    start_ms: int
    end_ms: int
    before_ms: int
    """For how long it had lasted already when the window began, as far as was read; 0: it began within."""
    open: bool
    """No output ended it within the window: the true gap is at least this long."""

    @property
    def seconds(self) -> float:
        """Its length within the window."""
        return (self.end_ms - self.start_ms) / 1000


@dataclass(frozen=True)
class PartitionGap:
    """What the window shows of one input partition."""

    partition: int
    inputs: int
    """Appended within the window."""
    outputs: int
    """Appended within the window for inputs of this partition, repeated ones included."""
    gap: Gap | None
    """None: no input arrived or waited in the window, so nothing can be said. Never a gap of zero in its place."""
    idle_ms: int
    """The longest stretch of the window in which no input waited and no output appeared."""
    quiet_ms: int | None
    """The spacing of outputs while nothing is wrong; None: nothing to take it from."""

    @property
    def seconds(self) -> float | None:
        """Length of the gap; None: unknown."""
        return None if self.gap is None else self.gap.seconds

    @property
    def resolution(self) -> float | None:
        """Seconds by which the gap may differ from the true interruption (see the module); None: unknown."""
        if self.gap is None or self.quiet_ms is None:
            return None
        return (self.idle_ms + self.quiet_ms) / 1000

    @property
    def at_least(self) -> bool:
        """Whether the window's edges cut the gap, so that its length is a lower bound.

        A window often begins while inputs wait as they do in quiet time; that much is no reason for a mark.
        """
        return self.gap is not None and (self.gap.open or self.gap.before_ms > (self.quiet_ms or 0))

    def to_json(self) -> dict[str, Any]:
        """Give the figures in seconds and the moments in ISO 8601, UTC."""
        gap = self.gap
        return {
            "partition": self.partition,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "gap_s": self.seconds,
            "began": None if gap is None else _moment(gap.start_ms),
            "ended": None if gap is None else _moment(gap.end_ms),
            "before_s": None if gap is None else gap.before_ms / 1000,
            "open": None if gap is None else gap.open,
            "at_least": self.at_least,
            "resolution_s": self.resolution,
            "longest_idle_s": self.idle_ms / 1000,
            "quiet_spacing_s": None if self.quiet_ms is None else self.quiet_ms / 1000,
        }


@dataclass(frozen=True)
class GapReport:
    """The gaps of all input partitions in one window, by partition."""

    window: Window
    partitions: tuple[PartitionGap, ...]

    def worst(self, among: Collection[int] | None = None) -> PartitionGap | None:
        """Find the partition with the longest gap, of all or of those given; None: none of them has a known gap."""
        known = [row for row in self.partitions if row.gap and (among is None or row.partition in among)]
        return max(known, key=lambda row: row.seconds or 0.0, default=None)

    def to_json(self) -> dict[str, Any]:
        """Give everything as `json.dump` takes it."""
        return {
            "window": {
                "start": _moment(self.window.start_ms),
                "end": _moment(self.window.end_ms),
                "seconds": self.window.seconds,
            },
            "partitions": [row.to_json() for row in self.partitions],
        }


@dataclass(frozen=True, eq=False)
class _Silences:
    """All silences of a partition in order: idle from `begins` to `splits`, waiting from there to `ends`."""

    begins: Ints
    splits: Ints
    ends: Ints


def find_gaps(inputs: Mapping[int, Appends], outputs: Mapping[int, Appends], window: Window) -> GapReport:
    """Find the gap of every partition of `inputs`.

    Args:
        inputs: by input partition, its records, from some time before the window (the lead-in) up to its end; every
            partition of the topic, also one without records.
        outputs: by input partition, the outputs for it over the same time; none at all may be left out.
        window: what is measured.
    """
    nothing = Appends(np.empty(0, np.int64), np.empty(0, np.int64))
    rows = (partition_gap(number, inputs[number], outputs.get(number, nothing), window) for number in sorted(inputs))
    return GapReport(window, tuple(rows))


def long_gaps(
    inputs: Mapping[int, Appends], outputs: Mapping[int, Appends], window: Window, least_ms: int
) -> Mapping[int, tuple[Gap, ...]]:
    """Find every gap of at least so many milliseconds of each partition, in the order of time; else as `find_gaps`."""
    nothing = Appends(np.empty(0, np.int64), np.empty(0, np.int64))
    return {
        number: tuple(_long(_silences(inputs[number], outputs.get(number, nothing), window.end_ms), window, least_ms))
        for number in sorted(inputs)
    }


def partition_gap(partition: int, inputs: Appends, outputs: Appends, window: Window) -> PartitionGap:
    """Find the gap of one input partition; the module's docstring defines it."""
    silences = _silences(inputs, outputs, window.end_ms)
    waiting_from = np.maximum(silences.splits, window.start_ms)
    waiting = np.maximum(silences.ends - waiting_from, 0)
    idle = silences.splits.clip(max=window.end_ms) - np.maximum(silences.begins, window.start_ms)
    longest = int(waiting.argmax())
    arrived = inputs.times_ms[_inside(inputs, window)]
    return PartitionGap(
        partition=partition,
        inputs=int(arrived.size),
        outputs=int(_inside(outputs, window).sum()),
        gap=_gap(silences, longest, window, arrived),
        idle_ms=max(int(idle.max()), 0),
        quiet_ms=_quiet(silences, longest),
    )


def _silences(inputs: Appends, outputs: Appends, until_ms: int) -> _Silences:
    """Cut the time up to `until_ms` at every output, and each silence where the first unanswered input arrives."""
    seen = outputs.times_ms < until_ms
    times, which = np.unique(outputs.times_ms[seen], return_inverse=True)
    highest = np.full(times.size, -1, np.int64)
    np.maximum.at(highest, which, outputs.offsets[seen])
    answered = np.maximum.accumulate(np.concatenate(([-1], highest)))
    order = np.argsort(inputs.offsets)
    # Earliest append among an input and all after it: the broker's clock may have been set back in between.
    earliest = np.minimum.accumulate(inputs.times_ms[order][::-1])[::-1]
    first_waiting = np.append(earliest, _NEVER)[np.searchsorted(inputs.offsets[order], answered, side="right")]
    begins = np.concatenate(([_EARLIEST], times))
    ends = np.concatenate((times, [until_ms]))
    return _Silences(begins, np.clip(first_waiting, begins, ends), ends)


def _gap(silences: _Silences, longest: int, window: Window, arrived: Ints) -> Gap | None:
    """Cut the longest waiting part to the window; a gap of zero needs an input that was answered at once."""
    begun, end = int(silences.splits[longest]), int(silences.ends[longest])
    start = max(begun, window.start_ms)
    if start < end:
        return Gap(start, end, start - begun, longest == silences.ends.size - 1)
    if arrived.size:
        return Gap(int(arrived.min()), int(arrived.min()), before_ms=0, open=False)
    return None


def _long(silences: _Silences, window: Window, least_ms: int) -> Iterator[Gap]:
    starts = np.maximum(silences.splits, window.start_ms)
    for number in np.flatnonzero(silences.ends - starts >= least_ms).tolist():
        begun, start, end = (int(each[number]) for each in (silences.splits, starts, silences.ends))
        yield Gap(start, end, start - begun, number == silences.ends.size - 1)


def _quiet(silences: _Silences, longest: int) -> int | None:
    """Take the 95th percentile of the waiting parts that an output ended, the gap's own left out."""
    lengths = silences.ends - silences.splits
    lengths[[longest, -1]] = 0
    others = lengths[lengths > 0]
    return int(np.quantile(others, _QUIET_SHARE, method="higher")) if others.size else None


def _inside(records: Appends, window: Window) -> npt.NDArray[np.bool_]:
    return (records.times_ms >= window.start_ms) & (records.times_ms < window.end_ms)


def _moment(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="milliseconds")
