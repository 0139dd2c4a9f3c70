"""What the kept readings of one group take: `python -m tests.benchmarks.reading_memory`, or `make bench-memory`.

A busy minute of a hold: a poll every two seconds, and a triggered rebalance every ten, in which every standby shows
another position and every changelog another end. Each poll is made anew, as the decoder of the brokers' answers does,
so that nothing is shared which the poller does not share. `tracemalloc` counts what the history alone keeps alive.
"""

import gc
import platform
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from rich.console import Console
from rich.table import Table

from streamapp.core.evidence.readings import remember
from streamapp.core.evidence.sharing import shared_ends, shared_group
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState, ObservedRebalance
from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.lag import EndOffsets, PartitionEnd
from tests.benchmarks.decisions import SIZES, Size, dealt
from tests.support import example

SECOND = timedelta(seconds=1)
POLL_EVERY, JOIN_EVERY, MINUTE = 2, 10, 60
WRITTEN = 1_000
"""Records that each task is written between two joins."""

Keep = Callable[[GroupReading, Sequence[GroupReading]], GroupReading]


def main() -> None:
    """Measure all sizes and print one table."""
    table = Table("tasks", "pods", "readings", "each for itself", "shared", box=None, header_style="bold")
    for column in table.columns:
        column.justify = "right"
    for size in SIZES:
        apart, readings = kept_by(partial(busy_minute, size, as_read))
        shared, _ = kept_by(partial(busy_minute, size, as_polled))
        row = (f"{size.tasks:,}", str(size.pods), str(readings), f"{apart:.1f} MiB", f"{shared:.1f} MiB")
        table.add_row(*row)
    console = Console()
    console.print(f"readings of a busy minute, Python {platform.python_version()}", style="bold")
    console.print(table)


def kept_by(play: Callable[[], tuple[GroupReading, ...]]) -> tuple[float, int]:
    """Mebibytes that the history keeps, and how many readings it has."""
    gc.collect()
    tracemalloc.start()
    history = play()
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept / 2**20, len(history)


def busy_minute(size: Size, keep: Keep) -> tuple[GroupReading, ...]:
    """The history after a minute of polls."""
    history: tuple[GroupReading, ...] = ()
    rebalance: ObservedRebalance | None = None
    for second in range(0, MINUTE + POLL_EVERY, POLL_EVERY):
        joins, since = divmod(second, JOIN_EVERY)
        if since == 0:
            seen = GroupReading(ended_at=_at(second - 1), group=rebalancing(size), rebalance=None)
            history = remember(history, keep(seen, history))
        if since == 0 or rebalance is None:
            rebalance = join(size, joins)
        reading = keep(GroupReading(ended_at=_at(second), group=group(size, joins), rebalance=rebalance), history)
        rebalance, history = reading.rebalance, remember(history, reading)
    return history


def as_read(reading: GroupReading, _: Sequence[GroupReading]) -> GroupReading:
    """Keep every poll as it was decoded."""
    return reading


def as_polled(reading: GroupReading, history: Sequence[GroupReading]) -> GroupReading:
    """Keep what the poller keeps: it shares the group at each poll, and the ends at each join."""
    shared, rebalance = shared_group(reading.group, history), reading.rebalance
    if rebalance is not None and not any(one.rebalance is rebalance for one in history):
        rebalance = replace(rebalance, ends=shared_ends(rebalance.ends, history))
    return replace(reading, group=shared, rebalance=rebalance)


def group(size: Size, joins: int) -> GroupDescription:
    """The group after so many joins."""
    return GroupDescription(GroupState.STABLE, dealt(size, lag=1_000_000 - WRITTEN * joins))


def rebalancing(size: Size) -> GroupDescription:
    """The same while it rebalances: the brokers show the members and nothing of them."""
    hidden = (replace(member, subscription=None, assignment=None) for member in dealt(size))
    return GroupDescription(GroupState.PREPARING_REBALANCE, tuple(hidden))


def join(size: Size, joins: int) -> ObservedRebalance:
    """The rebalance that the group came from, with ends of its own."""
    end = example.END + WRITTEN * joins
    changelogs = [TopicPartition("wordcount-counts-changelog", number) for number in range(size.tasks)]
    ends = {partition: PartitionEnd(log_start=0, end=end + number) for number, partition in enumerate(changelogs)}
    settled_at = _at(joins * JOIN_EVERY)
    return ObservedRebalance(
        began_at=settled_at - SECOND,
        settled_at=settled_at,
        rejoined_members=frozenset(f"wordcount-{pod}-consumer" for pod in range(size.pods)),
        ends=EndOffsets(read_at=settled_at, partitions=ends, committed={}),
    )


def _at(second: float) -> datetime:
    return example.NOW + second * SECOND


if __name__ == "__main__":
    main()
