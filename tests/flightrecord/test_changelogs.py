"""Lines of the flight record about what all changelogs took: the sum of their ends, as often as these are read."""

from dataclasses import replace
from datetime import timedelta

from streamapp.core.facts.agent_reports import AgentsSeen, EndsAfter
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.flightrecord.changelogs import PAUSE, ChangelogLog
from streamapp.flightrecord.schema import ChangelogsLine
from tests.flightrecord.test_lines import HEAD
from tests.support import example
from tests.support.example import NOW


def added(log: ChangelogLog, snapshot: Snapshot) -> list[ChangelogsLine]:
    return list(log.lines(HEAD, snapshot))


def read(at: timedelta, more: int = 0, without: int = 0) -> AgentsSeen:
    """Ends that were read after reports of agents, each so many slots further on; some are missing."""
    ends = example.ends(NOW + at)
    partitions = dict(list(ends.partitions.items())[without:])
    moved = {where: replace(end, end=end.end + more) for where, end in partitions.items()}
    return AgentsSeen(
        {}, (EndsAfter(NOW + at, EndOffsets(read_at=NOW + at, partitions=moved, committed=ends.committed)),)
    )


def test_the_ends_of_a_rebalance_are_summed_up_once() -> None:
    log, snapshot = ChangelogLog(), example.snapshot()
    (line,) = added(log, snapshot)
    assert isinstance(snapshot.task_set, TaskSet)
    rebalance = snapshot.readings[0].rebalance
    assert rebalance is not None
    assert isinstance(rebalance.ends, EndOffsets)
    assert (line.ts, line.tasks) == (rebalance.ends.read_at, len(snapshot.task_set.stateful))
    assert line.slots == sum(end.end for end in rebalance.ends.partitions.values())
    assert added(log, snapshot) == []


def test_newer_ends_make_a_line_after_a_pause() -> None:
    log, snapshot = ChangelogLog(), example.snapshot()
    (first,) = added(log, snapshot)
    again = first.ts - NOW
    assert added(log, replace(snapshot, agents=read(again + PAUSE / 2, 7))) == []
    (later,) = added(log, replace(snapshot, agents=read(again + PAUSE, 7)))
    assert later.slots - first.slots == 7 * first.tasks
    assert later.ts - first.ts == PAUSE


def test_ends_that_are_missing_or_could_not_be_read_make_none() -> None:
    log, snapshot = ChangelogLog(), replace(example.snapshot(), readings=())
    assert added(log, snapshot) == []
    assert added(log, replace(snapshot, agents=read(PAUSE, without=1))) == []
    unread = AgentsSeen({}, (EndsAfter(NOW, EndsUnreadable("no answer")),))
    assert added(log, replace(snapshot, agents=unread)) == []
    assert len(added(log, replace(snapshot, agents=read(PAUSE)))) == 1
