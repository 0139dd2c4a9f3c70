"""Makes lines of the flight record about what the changelogs of an application took: their growth is its throughput.

The operator reads the ends of changelogs at each rebalance, and while it waits for copies; this asks for none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from streamapp.core.facts.lag import EndOffsets, written_to
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.flightrecord.lines import Head
from streamapp.flightrecord.schema import ChangelogsLine

PAUSE = timedelta(seconds=30)
"""Between two lines, at least."""


@dataclass(slots=True)
class ChangelogLog:
    """The last line of one application."""

    _last: ChangelogsLine | None = None

    def lines(self, head: Head, snapshot: Snapshot) -> Iterator[ChangelogsLine]:
        """Give a line if the ends of all changelogs were read since the last one."""
        ends, task_set = _newest(snapshot), snapshot.task_set
        if ends is None or not isinstance(task_set, TaskSet):
            return
        # The clock can have been set back.
        if self._last is not None and abs(ends.read_at - self._last.ts) < PAUSE:
            return
        slots = [written_to(task, ends) for task in task_set.stateful]
        known = [one for one in slots if one is not None]
        if known and len(known) == len(slots):
            self._last = ChangelogsLine(**head, seq=0, ts=ends.read_at, slots=sum(known), tasks=len(known))
            yield self._last


def _newest(snapshot: Snapshot) -> EndOffsets | None:
    looks = () if snapshot.agents is None else snapshot.agents.ends
    after_reports = [one.ends for one in looks]
    at_joins = [reading.rebalance.ends for reading in snapshot.readings if reading.rebalance is not None]
    found = [ends for ends in (*after_reports, *at_joins) if isinstance(ends, EndOffsets)]
    return max(found, key=lambda ends: ends.read_at, default=None)
