"""A process while the stock assignor works on it, and the queue of processes by load."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from streamapp.core.assignors.group import ClientState
from streamapp.core.assignors.java_order import PriorityQueue, hash_set_order, uuid_hash
from streamapp.core.facts.ids import ProcessId, TaskId


@dataclass(slots=True, eq=False)
class Client:
    """One process with what it gets; `load` is tasks of either kind per thread."""

    rank: int
    """Its place in the order of the IDs."""
    process: ProcessId
    threads: int
    lags: Mapping[TaskId, int]
    actives: set[TaskId] = field(default_factory=set)
    standbys: set[TaskId] = field(default_factory=set)
    count: int = 0
    load: float = 0.0
    key: tuple[float, int] = (0.0, 0)
    """Load, then place: the order of queues."""

    def __post_init__(self) -> None:
        self._counted(0)

    @classmethod
    def of(cls, rank: int, state: ClientState) -> "Client":
        """A process without tasks; ValueError if it has no thread."""
        if state.threads < 1:
            raise ValueError(f"process {state.process} has {state.threads} threads; at least one is needed")
        return cls(rank, state.process, state.threads, state.lags)

    def has(self, task: TaskId) -> bool:
        """Whether it gets the task, of either kind."""
        return task in self.actives or task in self.standbys

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
        self.load = self.count / self.threads
        self.key = self.load, self.rank


class ClientQueue:
    """Processes by load and then in Java's order of their IDs: Kafka's `ConstrainedPrioritySet`.

    A load can change while its process waits in the heap, so the heap's layout is a part of the answer.
    Processes are numbered in the order of their IDs.
    """

    def __init__(self, group: Sequence[Client], members: Iterable[int]) -> None:
        self._group = group
        self._queue: PriorityQueue[Client] = PriorityQueue(attrgetter("key"))
        self._inside: set[int] = set()
        self._hashes = [uuid_hash(client.process.value) for client in group]
        for at in members:
            self.offer(at)

    def poll(self, is_eligible: Callable[[int], bool]) -> int | None:
        """Take out the least loaded eligible process; None if there is none."""
        refused: list[tuple[int, int]] = []
        found = None
        while self._queue and found is None:
            at = self._queue.poll().rank
            self._inside.discard(at)
            if is_eligible(at):
                found = at
            else:
                refused.append((at, self._hashes[at]))
        for at in hash_set_order(refused):
            self.offer(at)
        return found

    def offer(self, at: int) -> None:
        """Put a process in, or put it at its new place."""
        if at in self._inside:
            self._queue.remove(self._group[at])
        else:
            self._inside.add(at)
        self._queue.add(self._group[at])
