"""The task universe: every task an application has, known from its topology and never from who holds what.

Made by `topology` from the text of `Topology#describe()` or, where that is safe, by inference; read by `lag`,
`coverage` and the gates. A task that nobody holds at the moment must still be missed, so nothing here comes from the
group's assignment alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from streamapp.core.facts.ids import TaskId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """What the topology says about one task."""

    id: TaskId
    stateful: bool
    """Has at least one store with a changelog. A store that is not logged does not count: no copy of it can exist."""
    changelogs: tuple[TopicPartition, ...] = ()
    """The partition behind each logged store, once each; where a source topic serves as changelog, that one's."""
    source_partitions: tuple[TopicPartition, ...] = ()
    """The partitions the task consumes, repartition topics included."""
    stores: Mapping[str, TopicPartition] = field(default_factory=dict, compare=False)
    """Each logged store with its partition in `changelogs`, since agents tell positions by store; empty where only the
    changelogs are known."""
    source_changelogs: tuple[TopicPartition, ...] = field(init=False, repr=False, compare=False)
    """The changelogs that are source topics; what is to be applied there ends at the committed offset."""

    def __post_init__(self) -> None:
        """Sort and check, so that two descriptions of one task are equal.

        Raises:
            ValueError: Stateful without a changelog (its lag would look like nothing at all), stateless with one, or a
                partition named twice (its lag would count twice).
        """
        if self.stateful != bool(self.changelogs):
            claim = "stateful, but names no changelog" if self.stateful else "stateless, but names a changelog"
            raise ValueError(f"task {self.id}: {claim}")
        object.__setattr__(self, "changelogs", _sorted_once(self.id, self.changelogs))
        object.__setattr__(self, "source_partitions", _sorted_once(self.id, self.source_partitions))
        sources = tuple(partition for partition in self.changelogs if partition in self.source_partitions)
        object.__setattr__(self, "source_changelogs", sources)

    def by_changelog(self, positions: Mapping[str, int]) -> Mapping[TopicPartition, int] | None:
        """Give positions told by store as positions by changelog; None where one of the changelogs would have none."""
        if not self.stores.keys() <= positions.keys():
            return None
        found: dict[TopicPartition, int] = {}
        for store, behind in self.stores.items():
            found[behind] = min(positions[store], found.get(behind, positions[store]))
        return found if found.keys() == set(self.changelogs) else None


@dataclass(frozen=True, slots=True)
class TaskSet:
    """Every task of the application, once each, in the order of their IDs."""

    tasks: tuple[TaskFacts, ...]
    ids: frozenset[TaskId] = field(init=False, repr=False, compare=False)
    """The IDs of all tasks."""
    stateful: tuple[TaskFacts, ...] = field(init=False, repr=False, compare=False)
    """The tasks that have state to lose."""
    stateful_ids: frozenset[TaskId] = field(init=False, repr=False, compare=False)
    stateless_ids: frozenset[TaskId] = field(init=False, repr=False, compare=False)
    sole_changelog: Mapping[TaskId, TopicPartition] = field(init=False, repr=False, compare=False)
    """The changelog of each task that has just one, which is no source topic: its lag needs no sums."""
    _by_id: Mapping[TaskId, TaskFacts] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Sort and check.

        Raises:
            ValueError: No task at all (everything would be covered), or one described twice.
        """
        if not self.tasks:
            raise ValueError("universe: an application has at least one task")
        by_id = {task.id: task for task in sorted(self.tasks, key=lambda task: task.id)}
        if len(by_id) != len(self.tasks):
            raise ValueError("universe: a task is described twice")
        object.__setattr__(self, "tasks", tuple(by_id.values()))
        object.__setattr__(self, "ids", frozenset(by_id))
        object.__setattr__(self, "stateful", tuple(task for task in self.tasks if task.stateful))
        object.__setattr__(self, "stateful_ids", frozenset(task.id for task in self.stateful))
        object.__setattr__(self, "stateless_ids", self.ids - self.stateful_ids)
        plain = (task for task in self.stateful if len(task.changelogs) == 1 and not task.source_changelogs)
        object.__setattr__(self, "sole_changelog", MappingProxyType({task.id: task.changelogs[0] for task in plain}))
        object.__setattr__(self, "_by_id", MappingProxyType(by_id))

    @property
    def changelogs(self) -> frozenset[TopicPartition]:
        """Every partition whose end must be known before a lag can be."""
        return frozenset(partition for task in self.tasks for partition in task.changelogs)

    @property
    def topics(self) -> frozenset[str]:
        """The topics behind the stores."""
        return frozenset(partition.topic for partition in self.changelogs)

    def get(self, task: TaskId) -> TaskFacts | None:
        """The facts of one task, or None where the topology has no such task."""
        return self._by_id.get(task)

    def __getitem__(self, task: TaskId) -> TaskFacts:
        """The facts of one task.

        Raises:
            KeyError: The topology has no such task.
        """
        return self._by_id[task]


@dataclass(frozen=True, slots=True)
class TopologyUnknown:
    """The universe could not be established; nothing may be removed on a guess."""

    reason: str
    """The cause and what would settle it, as a sentence for the user."""
    may_show_after_a_join: bool = False
    """Members that joined before they had any state say nothing of it until they join again."""
    settled: TaskSet | None = None
    """The tasks of the other sub-topologies, where the cause is one of some alone; None: it is one of all."""
    doubtful: frozenset[int] = frozenset()
    """The numbers of these sub-topologies."""


def settled_tasks(found: TaskSet | TopologyUnknown) -> TaskSet | TopologyUnknown:
    """The tasks that are known beyond doubt, of all sub-topologies or of some; else why none are."""
    return found if isinstance(found, TaskSet) else found.settled or found


def _sorted_once(task: TaskId, partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    ordered = tuple(sorted(partitions))
    if len(set(ordered)) != len(ordered):
        raise ValueError(f"task {task}: a partition is named twice")
    return ordered
