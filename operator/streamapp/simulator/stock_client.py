"""A process while the stock assignor works on it, and the queue of processes by load."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import lcm
from operator import attrgetter

from streamapp.core.assignors.group import ClientState, Placement
from streamapp.core.assignors.java_order import PriorityQueue, hash_set_order, uuid_hash
from streamapp.core.facts.ids import TaskId


@dataclass(slots=True, eq=False)
class Client:
    """One process with what it gets; `load` is tasks of either kind per thread."""

    rank: int
    """Its place in the order of the IDs."""
    state: ClientState
    step: int
    """By how much one task more raises `key`."""
    actives: set[TaskId] = field(default_factory=set)
    standbys: set[TaskId] = field(default_factory=set)
    count: int = 0
    load: float = 0.0
    key: int = 0
    """Load, then place, as one number: the order of queues."""

    def __post_init__(self) -> None:
        self.key = self.rank

    @property
    def threads(self) -> int:
        """Members of the process."""
        return self.state.threads

    def lag(self, task: TaskId) -> int:
        """What the process reported."""
        return self.state.lag(task)

    def has(self, task: TaskId) -> bool:
        """Whether it gets the task, of either kind."""
        return task in self.actives or task in self.standbys

    def take(self, placed: Placement) -> None:
        """Begin with these tasks."""
        self.actives, self.standbys = set(placed.actives), set(placed.standbys)
        self._counted(len(self.actives) + len(self.standbys) - self.count)

    def add_active(self, task: TaskId) -> None:
        """Give it the active task."""
        self.actives.add(task)
        self._counted(1)

    def remove_active(self, task: TaskId) -> None:
        """Take the active task away."""
        self.actives.remove(task)
        self._counted(-1)

    def add_standby(self, task: TaskId) -> None:
        """Give it a standby."""
        self.standbys.add(task)
        self._counted(1)

    def remove_standby(self, task: TaskId) -> None:
        """Take the standby away."""
        self.standbys.remove(task)
        self._counted(-1)

    def _counted(self, by: int) -> None:
        self.count += by
        self.load = self.count / self.state.threads
        self.key += by * self.step


def clients_of(states: Sequence[ClientState]) -> list[Client]:
    """Processes without tasks, in the order of their IDs; ValueError for one without threads."""
    for state in states:
        if state.threads < 1:
            raise ValueError(f"process {state.process} has {state.threads} threads; at least one is needed")
    common = lcm(*(state.threads for state in states))
    return [Client(at, state, common // state.threads * len(states)) for at, state in enumerate(states)]


class ClientQueue:
    """Processes by load and then in Java's order of their IDs: Kafka's `ConstrainedPrioritySet`.

    A load can change while its process waits in the heap, so the heap's layout is a part of the answer.
    Processes are numbered in the order of their IDs.
    """

    def __init__(self, group: Sequence[Client], members: Iterable[int]) -> None:
        self._group = group
        self._queue: PriorityQueue[Client] = PriorityQueue(attrgetter("key"))
        self._is_inside = [False] * len(group)
        self._hashes = [uuid_hash(client.state.process.value) for client in group]
        for at in members:
            self.offer(at)

    def poll(self, is_eligible: Callable[[int], bool]) -> int | None:
        """Take out the least loaded eligible process; None if there is none."""
        queue, refused, found = self._queue, list[Client](), None
        while queue.heap:
            client = queue.poll()
            if is_eligible(client.rank):
                found = client.rank
                self._is_inside[found] = False
                break
            refused.append(client)
        if len(refused) > 1:
            refused = hash_set_order([(client, self._hashes[client.rank]) for client in refused])
        for client in refused:
            queue.add(client)
        return found

    def offer(self, at: int) -> None:
        """Put a process in, or put it at its new place."""
        if self._is_inside[at]:
            self._queue.remove(self._group[at])
        self._is_inside[at] = True
        self._queue.add(self._group[at])
