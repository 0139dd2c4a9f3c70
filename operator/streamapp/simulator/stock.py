"""The stock assignor of the classic protocol: `HighAvailabilityTaskAssignor`, by release.

It deals stateful tasks in turn over the processes, in Java's order of their IDs, and never looks at the owners.
Then it keeps each task on a caught-up process where its new one is not, and warms the new one up.
Sources: Kafka's own sources at the tags 2.6.0 to 3.9.0, the branches 4.0 to 4.4, and the jars of `tests/model`.

Not modelled: racks and client tags, and how a process divides its tasks over its threads.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from streamapp.core.assignors.group import Assignment, ClientState, Copy, Placement, RackAwarenessNotModelledError, Task
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.simulator.stock_client import Client, ClientQueue, clients_of
from streamapp.simulator.stock_movements import CaughtUp, Movements

UNBOUNDED = 2**63 - 1
"""`acceptable.recovery.lag` without a bound: Java's `Long.MAX_VALUE`."""


class Release(Enum):
    """The releases of Kafka Streams between which the assignor's answers differ."""

    FROM_2_6 = "2.6 to 3.1"
    """Warm-ups in the order of a heap's array; a task that is caught up nowhere restores at its new process."""
    FROM_3_2 = "3.2"
    """A task that is caught up nowhere stays with the least lag."""
    FROM_3_3 = "3.3 and newer"
    """Warm-ups first for tasks that are caught up on the fewest processes."""

    @classmethod
    def of(cls, version: str) -> "Release":
        """The release of a version such as `4.2.1`; ValueError below 2.6, where another assignor was in force."""
        major, minor = (int(part) for part in version.split(".")[:2])
        if (major, minor) < (2, 6):
            raise ValueError(f"Kafka Streams {version}: the stock assignor is modelled from 2.6 on")
        if (major, minor) < (3, 2):
            return cls.FROM_2_6
        return cls.FROM_3_2 if (major, minor) == (3, 2) else cls.FROM_3_3


@dataclass(frozen=True, slots=True, kw_only=True)
class StockSettings:
    """Settings of the group's leader, with Kafka's defaults."""

    release: Release = Release.FROM_3_3
    acceptable_recovery_lag: int = 10_000
    """In records, summed over a task."""
    max_warmup_replicas: int = 2
    num_standby_replicas: int = 0
    rack_aware_tags: tuple[str, ...] = ()
    """`rack.aware.assignment.tags`: refused."""
    rack_aware_strategy: str = "none"
    """`rack.aware.assignment.strategy`: refused unless `none`."""

    def require_modelled(self) -> None:
        """Raise RackAwarenessNotModelledError where racks or tags decide."""
        if self.rack_aware_tags and self.num_standby_replicas > 0:
            raise RackAwarenessNotModelledError("rack.aware.assignment.tags")
        if self.rack_aware_strategy != "none":
            raise RackAwarenessNotModelledError("rack.aware.assignment.strategy")


@dataclass(frozen=True, slots=True)
class _Deal:
    """What the processes of one membership get before anybody asks who is caught up."""

    tasks: tuple[Task, ...]
    members: tuple[tuple[ProcessId, int], ...]
    """With their threads."""
    stateful: tuple[TaskId, ...]
    stateless: tuple[TaskId, ...]
    placed: tuple[Placement, ...]
    """By process."""


class StockAssignor:
    """The leader, round after round: it deals anew only where the members change, since it looks at nothing else."""

    def __init__(self, settings: StockSettings) -> None:
        self._settings = settings
        self._last: _Deal | None = None

    def assign(self, tasks: Iterable[Task], clients: Iterable[ClientState]) -> Assignment:
        """Return what the leader would answer.

        Raises:
            RackAwarenessNotModelledError: racks or tags are configured.
            ValueError: no process has a thread.
        """
        settings = self._settings
        settings.require_modelled()
        group = clients_of(sorted(clients, key=lambda state: state.process))
        if not group:
            raise ValueError("a group without processes has no assignment")
        deal = self._deal(tuple(tasks), group)
        for client, placed in zip(group, deal.placed, strict=True):
            client.take(placed)
        caught_up = CaughtUp.of(group, deal.stateful, _bound(settings), settings.release is not Release.FROM_2_6)
        movements = Movements(group, caught_up, settings.max_warmup_replicas)
        is_in_array_order = settings.release is not Release.FROM_3_3
        needed = movements.move_actives(is_in_array_order=is_in_array_order, standbys=settings.num_standby_replicas)
        needed += movements.move_standbys(is_in_array_order=is_in_array_order)
        _place_stateless(group, deal.stateless)
        return Assignment(
            placements={one.state.process: Placement(frozenset(one.actives), frozenset(one.standbys)) for one in group},
            learners=frozenset(Copy(task, group[at].state.process) for at, task in movements.warmups),
            is_final=needed == 0,
        )

    def _deal(self, tasks: tuple[Task, ...], group: Sequence[Client]) -> _Deal:
        members = tuple((one.state.process, one.threads) for one in group)
        if self._last is None or (self._last.tasks, self._last.members) != (tasks, members):
            self._last = _deal_of(tasks, members, clients_of([one.state for one in group]), self._settings)
        return self._last


def assign(tasks: Iterable[Task], clients: Iterable[ClientState], settings: StockSettings) -> Assignment:
    """Return what the leader would answer once; errors as of `StockAssignor.assign`."""
    return StockAssignor(settings).assign(tasks, clients)


def _deal_of(
    tasks: tuple[Task, ...],
    members: tuple[tuple[ProcessId, int], ...],
    group: Sequence[Client],
    settings: StockSettings,
) -> _Deal:
    stateful = sorted(task.id for task in tasks if task.is_stateful)
    stateless = sorted(task.id for task in tasks if not task.is_stateful)
    _deal_actives(group, stateful)
    if settings.num_standby_replicas:
        _place_standbys(group, stateful, settings.num_standby_replicas)
    placed = tuple(Placement(frozenset(one.actives), frozenset(one.standbys)) for one in group)
    return _Deal(tasks, members, tuple(stateful), tuple(stateless), placed)


def _bound(settings: StockSettings) -> int | None:
    lag = settings.acceptable_recovery_lag
    return None if lag >= UNBOUNDED else lag


def _deal_actives(group: Sequence[Client], stateful: Sequence[TaskId]) -> None:
    for number, task in enumerate(stateful):
        group[number % len(group)].add_active(task)
    _even_out(group, lambda client: client.actives, Client.remove_active, Client.add_active)


def _place_standbys(group: Sequence[Client], stateful: Sequence[TaskId], replicas: int) -> None:
    """Each to the least loaded process without the task; not sticky."""
    queue = ClientQueue(group, range(len(group)))
    for task in stateful:
        for _ in range(replicas):
            at = queue.poll(lambda at, task=task: not group[at].has(task))  # type: ignore[misc]
            if at is None:
                break
            group[at].add_standby(task)
            queue.offer(at)
    _even_out(group, lambda client: client.standbys, Client.remove_standby, Client.add_standby)


def _even_out(
    group: Sequence[Client],
    tasks_of: Callable[[Client], set[TaskId]],
    remove: Callable[[Client, TaskId], None],
    add: Callable[[Client, TaskId], None],
) -> None:
    """Move single tasks from process to process while that makes their loads per thread more alike."""
    is_moving = True
    while is_moving:
        is_moving = False
        for source in group:
            for destination in group:
                if source is destination or not _helps(source, destination):
                    continue
                for task in sorted(tasks_of(source)):
                    if not _helps(source, destination):
                        break
                    if not destination.has(task):
                        remove(source, task)
                        add(destination, task)
                        is_moving = True


def _helps(source: Client, destination: Client) -> bool:
    """Whether one task less here and one more there narrows the difference without turning it round."""
    skew = source.load - destination.load
    if skew <= 0:
        return False
    after = (source.count - 1.0) / source.threads - (destination.count + 1.0) / destination.threads
    return 0 <= after < skew


def _place_stateless(group: Sequence[Client], stateless: Sequence[TaskId]) -> None:
    """Each to the process with the least active tasks per thread."""
    loads = [(len(client.actives) / client.threads, at) for at, client in enumerate(group)]
    for task in stateless:
        _, at = min(loads)
        group[at].add_active(task)
        loads[at] = (len(group[at].actives) / group[at].threads, at)
