"""A process while the broker's sticky assignor works on it: Kafka's `ProcessState`."""

from dataclasses import dataclass, field

from streamapp.core.assignors.java_order import HashOrder, PriorityQueue, string_hash
from streamapp.core.facts.ids import TaskId


@dataclass(slots=True, eq=False)
class StickyProcess:
    """One process with its members; `load` is tasks of either kind per member."""

    actives: dict[str, set[TaskId]] = field(default_factory=dict)
    standbys: dict[str, set[TaskId]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """Tasks by member."""
    tasks: set[TaskId] = field(default_factory=set)
    load: float = 0.0
    _order: HashOrder[str] = field(default_factory=lambda: HashOrder(string_hash))
    _by_count: PriorityQueue[str] | None = None

    def add_member(self, member: str) -> None:
        """Add a member without tasks."""
        self.actives[member], self.standbys[member], self.counts[member] = set(), set(), 0
        self._order.put(member)

    def add(self, member: str, task: TaskId, *, is_active: bool) -> int:
        """Give a task to a member; return how many tasks it has then."""
        self._by_count = None
        return self._add(member, task, is_active)

    def add_to_emptiest(self, task: TaskId, *, is_active: bool) -> int:
        """Give a task to the member with the fewest; return how many tasks it has then.

        Members with equally many tasks take turns as the layout of a heap has it, which `add` throws away.
        """
        if self._by_count is None:
            self._by_count = PriorityQueue(self.counts.__getitem__, self._order)
        member = self._by_count.poll()
        count = self._add(member, task, is_active)
        self._by_count.add(member)
        return count

    def _add(self, member: str, task: TaskId, is_active: bool) -> int:
        (self.actives if is_active else self.standbys)[member].add(task)
        self.tasks.add(task)
        self.counts[member] += 1
        self.load = sum(self.counts.values()) / len(self.counts)
        return self.counts[member]
