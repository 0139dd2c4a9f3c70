"""The truth about the tasks at one moment, as far as anything outside the pods can know it.

The container of a pod counts as alive until its kubelet has reported its end, which takes at most `REPORTED_AFTER`.
A copy counts as caught up if it is now, or if it was when its member last joined, not longer ago than `STALE_AFTER`:
brokers show positions of the last join only. Both favour the operator; what is wrong all the same is wrong.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from streamapp.core.facts.ids import ProcessId, TaskId
from tests.prove.group import Group, Member

K = TypeVar("K")
V = TypeVar("V")
REPORTED_AFTER = 2.6
"""Seconds until a kubelet of this world has reported the end of a container."""
STALE_AFTER = 30.0
"""Seconds after which what a member said when it joined is old."""


@dataclass(frozen=True, slots=True)
class View:
    """Who runs, holds and copies what."""

    at: float
    tasks: frozenset[TaskId]
    """All stateful tasks."""
    good: Mapping[TaskId, frozenset[int]]
    """Ordinals on which a task runs, or has a caught-up copy."""
    held: Mapping[int, frozenset[TaskId]]
    """Tasks, active or standby, by the ordinals that were assigned them; a dead member holds them until it leaves."""
    processes: Mapping[int, frozenset[ProcessId]]
    """Process IDs of the listed members, by ordinal."""

    def uncovered(self, remaining: int) -> frozenset[TaskId]:
        """Tasks that neither run nor are caught up below that ordinal."""
        below = range(remaining)
        return frozenset(task for task in self.tasks if not any(one in below for one in self.good.get(task, ())))

    def held_from(self, remaining: int) -> frozenset[TaskId]:
        """Tasks on that ordinal and above."""
        return frozenset(task for ordinal, tasks in self.held.items() if ordinal >= remaining for task in tasks)


def view_of(group: Group, limit: int, joined_at: float) -> View:
    """The truth now.

    Args:
        group: The consumer group.
        limit: Records that a caught-up copy can be behind.
        joined_at: When the last rebalance was complete.
    """
    is_fresh = group.time() - joined_at <= STALE_AFTER
    group.advance()
    good: dict[TaskId, set[int]] = defaultdict(set)
    held: dict[int, set[TaskId]] = defaultdict(set)
    processes: dict[int, set[ProcessId]] = defaultdict(set)
    for member in group.listed():
        assert member.run is not None
        ordinal = member.run.ordinal
        held[ordinal] |= member.active | member.standby
        if not _can_seem_alive(member, group.time()):
            continue
        processes[ordinal].add(member.process_id)
        for task in _good_on(group, member, limit, is_fresh=is_fresh):
            good[task].add(ordinal)
    return View(group.time(), frozenset(group.tasks), _frozen(good), _frozen(held), _frozen(processes))


def really_uncovered(group: Group, remaining: int, limit: int) -> frozenset[TaskId]:
    """Tasks without a running or caught-up copy below that ordinal, by the naked truth of this moment."""
    group.advance()
    fine: set[TaskId] = set()
    for member in group.listed(alive=True):
        if member.run is not None and member.run.ordinal < remaining:
            volume = member.run.volume
            copies = {task for task in member.active | member.standby if group.truth.lag(volume, task) <= limit}
            fine |= member.running | copies
    return frozenset(group.tasks) - fine


def lag_of_uncovered(group: Group, remaining: int, limit: int) -> int:
    """Records that the best copies below that ordinal miss, over all tasks that are not covered there."""
    group.advance()
    total = 0
    for task in really_uncovered(group, remaining, limit):
        lags = [
            group.truth.lag(member.run.volume, task)
            for member in group.listed(alive=True)
            if member.run is not None and member.run.ordinal < remaining and task in member.active | member.standby
        ]
        total += min(lags, default=round(group.truth.end))
    return total


def _can_seem_alive(member: Member, now: float) -> bool:
    run = member.run
    return run is not None and (run.ended_at is None or now - run.ended_at <= REPORTED_AFTER)


def _good_on(group: Group, member: Member, limit: int, *, is_fresh: bool) -> Iterable[TaskId]:
    assert member.run is not None
    for task in member.active | member.standby:
        said = member.said.lags.get(task, limit + 1) if is_fresh else limit + 1
        if task in member.running or min(said, group.truth.lag(member.run.volume, task)) <= limit:
            yield task


def _frozen(sets: Mapping[K, set[V]]) -> dict[K, frozenset[V]]:
    return {key: frozenset(values) for key, values in sets.items()}
