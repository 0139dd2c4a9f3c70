"""What the stock assignor does with tasks whose new process is not caught up: Kafka's `TaskMovement`.

The active task stays on a process that is caught up, or on the one with the least lag.
The new process gets a warm-up while the budget lasts; standbys share the budget after the actives.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streamapp.core.assignors.group import RUNNING
from streamapp.core.assignors.java_order import PriorityQueue
from streamapp.core.facts.ids import TaskId
from streamapp.simulator.stock_client import Client, ClientQueue


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Which processes are caught up on which task; processes are numbers in the order of their IDs."""

    processes: Mapping[TaskId, frozenset[int]]
    group: Sequence[Client]
    has_next_best: bool
    """Whether the least lag counts where no process is caught up."""

    @classmethod
    def of(
        cls, group: Sequence[Client], tasks: Sequence[TaskId], acceptable_lag: int | None, has_next_best: bool
    ) -> "CaughtUp":
        """Compare each lag with the bound; None is no bound."""
        found: dict[TaskId, set[int]] = {task: set() for task in tasks}
        changelogs = group[0].state.changelogs
        small = [task for task in tasks if task in changelogs and _is_caught_up(changelogs[task], acceptable_lag)]
        for at, client in enumerate(group):
            lags = client.state.lags
            for task, lag in lags.items():
                if task in found and _is_caught_up(lag, acceptable_lag):
                    found[task].add(at)
            for task in small:
                if task not in lags:
                    found[task].add(at)
        return cls({task: frozenset(places) for task, places in found.items()}, group, has_next_best)

    def must_wait(self, task: TaskId, at: int) -> bool:
        """Whether another process is closer to processing the task than this one, which is not caught up."""
        caught_up = self.processes[task]
        if at in caught_up:
            return False
        if not self.has_next_best:
            return bool(caught_up)
        own = self.group[at].lag(task)
        # A lag that is known is above the bound here, and so above every lag within it.
        return bool(caught_up and own >= 0) or any(client.lag(task) < own for client in self.group)

    def closest(self, task: TaskId, destination: int, *, without: bool) -> int | None:
        """The process with the least lag, unless the destination comes first; `without`: it has no copy yet."""
        if not self.has_next_best:
            return None
        _, at = min(
            (client.lag(task), at)
            for at, client in enumerate(self.group)
            if at == destination or not without or not client.has(task)
        )
        return None if at == destination else at


def _is_caught_up(lag: int, acceptable: int | None) -> bool:
    return lag == RUNNING or acceptable is None or 0 <= lag <= acceptable


class Movement(NamedTuple):
    """A task that cannot yet be where it was dealt; ordered as Kafka orders them."""

    caught_up: int
    """How many processes are caught up."""
    task: TaskId
    destination: int


class Movements:
    """Moves of one assignment, and the budget of warm-ups."""

    def __init__(self, group: Sequence[Client], caught_up: CaughtUp, budget: int) -> None:
        self._group = group
        self._caught_up = caught_up
        self._budget = budget
        self.warmups: list[tuple[int, TaskId]] = []
        """Of actives, then of standbys: process and task."""

    def move_actives(self, *, is_in_array_order: bool, standbys: int) -> int:
        """Keep actives where they are caught up; give how many movements were needed."""
        waiting = [(at, task) for at, client in enumerate(self._group) for task in sorted(client.actives)]
        movements = self._ordered(waiting, is_in_array_order)
        sources: _Sources = (
            _QueuedSources(self._group, self._caught_up) if standbys > 1 else _Sources(self._group, self._caught_up)
        )
        for movement in movements:
            source, has_standby = sources.find(movement)
            if has_standby:
                self._swap(movement, source)
            else:
                self._keep_and_warm_up(movement, source)
            sources.give_back(source, movement.destination)
        return len(movements)

    def move_standbys(self, *, is_in_array_order: bool) -> int:
        """Place standbys where they are caught up; give how many movements were made."""
        warm = set(self.warmups)
        waiting = [
            (at, task)
            for at, client in enumerate(self._group)
            for task in sorted(client.standbys)
            if (at, task) not in warm
        ]
        movements = self._ordered(waiting, is_in_array_order)
        queue = ClientQueue(self._group, range(len(self._group))) if movements else None
        return sum(self._move_standby(movement, queue) for movement in movements if queue is not None)

    def _ordered(self, waiting: Sequence[tuple[int, TaskId]], is_in_array_order: bool) -> list[Movement]:
        found = [
            Movement(len(self._caught_up.processes[task]), task, at)
            for at, task in waiting
            if self._caught_up.must_wait(task, at)
        ]
        keys = {(one.caught_up, one.task) for one in found}
        if len(keys) == len(found) and not is_in_array_order:
            return sorted(found)
        queue: PriorityQueue[Movement] = PriorityQueue(lambda one: (one.caught_up, one.task), found)
        if is_in_array_order:
            return queue.heap
        return [queue.poll() for _ in range(len(queue))]

    def _swap(self, movement: Movement, source: int) -> None:
        there, here = self._group[source], self._group[movement.destination]
        there.remove_standby(movement.task)
        there.add_active(movement.task)
        here.remove_active(movement.task)
        here.add_standby(movement.task)

    def _keep_and_warm_up(self, movement: Movement, source: int) -> None:
        here = self._group[movement.destination]
        self._group[source].add_active(movement.task)
        here.remove_active(movement.task)
        if self._takes_from_budget():
            here.add_standby(movement.task)
            self.warmups.append((movement.destination, movement.task))

    def _move_standby(self, movement: Movement, queue: ClientQueue) -> bool:
        group, task = self._group, movement.task
        able = {at for at in self._caught_up.processes[task] if not group[at].has(task)}
        source = queue.poll(able.__contains__)
        if source is None:
            source = self._caught_up.closest(task, movement.destination, without=True)
        if source is None:
            return False
        group[source].add_standby(task)
        if self._takes_from_budget():
            self.warmups.append((movement.destination, task))
        else:
            group[movement.destination].remove_standby(task)
        queue.offer(source)
        queue.offer(movement.destination)
        return True

    def _takes_from_budget(self) -> bool:
        self._budget -= 1
        return self._budget >= 0


class _Sources:
    """Who keeps an active task: exact with at most one standby, where no heap's layout can decide.

    The first of Kafka's two searches then finds the only planned standby, or empties and fills the whole heap again.
    """

    def __init__(self, group: Sequence[Client], caught_up: CaughtUp) -> None:
        self._group = group
        self._caught_up = caught_up

    def find(self, movement: Movement) -> tuple[int, bool]:
        """The process that keeps the task, and whether it has the planned standby."""
        caught_up = self._caught_up.processes[movement.task]
        source = self._standby_of(movement.task, caught_up)
        if source is not None:
            return source, True
        source = self._least_loaded(caught_up)
        if source is not None:
            return source, False
        closest = self._caught_up.closest(movement.task, movement.destination, without=False)
        if closest is None:
            raise RuntimeError(f"task {movement.task}: no process is closer than its new one")
        return closest, movement.task in self._group[closest].standbys

    def give_back(self, source: int, destination: int) -> None:
        """Note that both loads have changed."""

    def _standby_of(self, task: TaskId, caught_up: frozenset[int]) -> int | None:
        return next((at for at in caught_up if task in self._group[at].standbys), None)

    def _least_loaded(self, caught_up: frozenset[int]) -> int | None:
        return min(caught_up, key=lambda at: (self._group[at].load, at), default=None)


class _QueuedSources(_Sources):
    """The same by Kafka's own queue, whose layout decides between several planned standbys."""

    def __init__(self, group: Sequence[Client], caught_up: CaughtUp) -> None:
        super().__init__(group, caught_up)
        self._queue = ClientQueue(group, range(len(group)))

    def give_back(self, source: int, destination: int) -> None:
        """Put both at their new places."""
        self._queue.offer(source)
        self._queue.offer(destination)

    def _standby_of(self, task: TaskId, caught_up: frozenset[int]) -> int | None:
        able = {at for at in caught_up if task in self._group[at].standbys}
        return self._queue.poll(able.__contains__)

    def _least_loaded(self, caught_up: frozenset[int]) -> int | None:
        return self._queue.poll(caught_up.__contains__)
