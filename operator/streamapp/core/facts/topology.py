"""Which tasks an application has, and which changelogs lie behind each: the task universe.

Known from the topology, never from who happens to hold what: from the brokers where they assign (the streams protocol),
from the text of `Topology#describe()` that `spec.topology` carries, or, where that is safe, inferred from the group.
Called by the gathering, once per topology. A changelog that is missing from the universe makes a lag look small, so
whatever is in doubt is `TopologyUnknown`.

Facts of Kafka Streams this rests on: a sub-topology has as many tasks as its widest source topic has partitions; task p
reads partition p of every source that has one; a logged store has the changelog `<application id>-<store>-changelog`
with one partition per task; repartition topics carry the application id in front of the name the text gives; with
`topology.optimization` a table read straight from a topic has no changelog of its own but that topic; the leader
creates internal topics before it assigns anything, so topics read after the group was Stable are complete.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from streamapp.core.facts.ids import TaskId, TopicPartition
from streamapp.core.facts.tasks import TaskFacts, TaskSet, TopologyUnknown

_SUBTOPOLOGY = re.compile(
    r"Sub-topology: (?P<id>\d{1,9})(?P<isglobal> for global store \(will not generate tasks\))?", re.ASCII
)
_SOURCE = re.compile(r"Source: (?P<name>\S+) \(topics: (?P<topics>.*)\)")
_PROCESSOR = re.compile(r"Processor: (?P<name>\S+) \(stores: \[(?P<stores>.*)\]\)")
_SINK = re.compile(r"Sink: (?P<name>\S+) \((?:topic: (?P<topic>\S+)|extractor class: .*)\)")
_ARROW = re.compile(r"(?P<way>-->|<--) (?P<nodes>.+)")
_TABLE_SOURCE = "KTABLE-SOURCE-"
_INTERNAL_ENDS = ("-repartition", "-subscription-registration-topic", "-subscription-response-topic")
_INTERNAL_START = "KTABLE-FK-JOIN-SUBSCRIPTION-"
MOST_PARTS = 300_000
"""Of a universe: tasks, with the partitions that each reads and that are behind its stores. 5,000 tasks of 50 stores
are less. Real sub-topologies share no topic, but any text and any broker can say so, and the product is without end."""


@dataclass(frozen=True, slots=True)
class SubTopology:
    """One sub-topology of the text, global ones left out."""

    number: int
    sources: frozenset[str]
    """Topics it reads, as the text names them."""
    stores: frozenset[str]
    tables: Mapping[str, str]
    """Store of a table read straight from a topic → that topic, for tables that Kafka Streams named itself."""
    near_source: Mapping[str, str]
    """Store of any other processor directly below a source of one topic → that topic: it may be a table too."""


@dataclass(frozen=True, slots=True)
class Topology:
    """The text, parsed."""

    subtopologies: tuple[SubTopology, ...]
    sinks: frozenset[str]
    """Topics that some sub-topology writes, as the text names them."""

    def source_topics(self, application_id: str) -> frozenset[str]:
        """Name the topics on the cluster that the tasks read; their partition counts are needed for the universe."""
        return frozenset(
            self.on_cluster(topic, application_id) for each in self.subtopologies for topic in each.sources
        )

    def on_cluster(self, topic: str, application_id: str) -> str:
        """Give a topic's real name: internal topics carry the application id."""
        is_internal = topic.endswith(_INTERNAL_ENDS) or topic.startswith(_INTERNAL_START)
        return f"{application_id}-{topic}" if is_internal and topic in self.sinks else topic


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSubtopology:
    """One sub-topology, with the names that topics have on the cluster."""

    number: int
    sources: frozenset[str]
    """Topics that its tasks read, repartition topics among them."""
    changelogs: frozenset[str]
    """Topics behind its logged stores; a source topic where it serves as changelog."""


@dataclass(frozen=True, slots=True)
class GroupEvidence:
    """What a Stable group shows of its topology."""

    active: Mapping[TaskId, frozenset[TopicPartition]]
    """Every active task of all members, with its source partitions."""
    stateful: frozenset[TaskId]
    """Tasks that are assigned as standby, or for which a member reports a position of any kind."""
    subscribed: frozenset[str]
    """Every topic that a member subscribes to."""


@dataclass(frozen=True, slots=True)
class TopicEvidence:
    """What the cluster shows of the application's topics, read after the group was Stable."""

    application_id: str
    partitions: Mapping[str, int]
    """Number of partitions of each source topic that exists."""
    changelogs: Mapping[str, int]
    """Every topic `<application id>-…-changelog`, with its number of partitions."""
    other_applications: Collection[str] = ()
    """Other application ids on the cluster: `orders-eu` owns what also looks like a changelog of `orders`."""

    def changelog(self, store: str) -> str:
        """Name the changelog of a logged store."""
        return f"{self.application_id}-{store}-changelog"

    def store(self, changelog: str) -> str:
        """Name the store behind a changelog."""
        return changelog.removeprefix(f"{self.application_id}-").removesuffix("-changelog")

    def contested(self) -> frozenset[str]:
        """Name the changelogs that may as well belong to an application whose id continues this one's."""
        longer = tuple(f"{other}-" for other in self.other_applications if other.startswith(f"{self.application_id}-"))
        return frozenset(topic for topic in self.changelogs if topic.startswith(longer))


class _DoubtError(Exception):
    """Carries a reason to the public function of this module that gives it back as a value."""


class _NotShownError(_DoubtError):
    """Nobody says yet what only members can say; they say it anew at every join."""


def parse_topology(text: str) -> Topology | TopologyUnknown:
    """Parse the text of `Topology#describe()`, of any release."""
    try:
        return _Parser().parse(text)
    except _DoubtError as doubt:
        return TopologyUnknown(str(doubt))


def universe_of(topology: Topology, topics: TopicEvidence) -> TaskSet | TopologyUnknown:
    """Join the text with the topics on the cluster.

    A store without a changelog counts as one that is not logged. But a broker that is cut off from its controller can
    list topics as they were before that changelog was made: `readings.state_beyond` asks who has seen more state.
    """
    try:
        _refuse_too_large(_parts_by_text(topology, each, topics) for each in topology.subtopologies)
        tasks, doubts = _tasks_and_doubts(topology, topics)
        stores = {store for each in topology.subtopologies for store in each.stores}
        if not doubts:
            _refuse_strangers(topics, {topics.changelog(store) for store in stores})
    except _DoubtError as doubt:
        return TopologyUnknown(str(doubt))
    if doubts:
        # Before a leader of the version that brings a sub-topology has assigned, its internal topics do not exist.
        settled = TaskSet(tuple(tasks)) if tasks else None
        return TopologyUnknown(next(iter(doubts.values())), settled=settled, doubtful=frozenset(doubts))
    return TaskSet(tuple(tasks)) if tasks else TopologyUnknown(f"the topology has no task; {_NEW_TEXT}")


def _tasks_and_doubts(topology: Topology, topics: TopicEvidence) -> tuple[list[TaskFacts], dict[int, str]]:
    """The tasks of each sub-topology, or the doubt about it."""
    tasks: list[TaskFacts] = []
    doubts: dict[int, str] = {}
    for each in topology.subtopologies:
        try:
            tasks += _tasks(topology, each, topics)
        except _DoubtError as doubt:
            doubts[each.number] = str(doubt)
    return tasks, doubts


def infer_universe(group: GroupEvidence, topics: TopicEvidence) -> TaskSet | TopologyUnknown:
    """Infer the universe from the group, without a text.

    Possible only when every partition of every subscribed topic is assigned, at most one sub-topology shows state, and
    all changelogs have its number of partitions: then they all belong to it. It cannot see a source topic that serves
    as changelog beside ordinary ones, nor that a store is not logged; for those the text or an agent is needed.
    """
    try:
        _refuse_unassigned(group, topics)
        widths = _widths(group.active)
        _refuse_contested(topics)
        owner = _owner(group.stateful, widths, topics.changelogs)
        stores = {topics.store(changelog): changelog for changelog in topics.changelogs}
        tasks = (
            _fact(task, stores if task.subtopology == owner else {}, sources) for task, sources in group.active.items()
        )
        return TaskSet(tuple(tasks)) if group.active else TopologyUnknown(f"no task is assigned; {_TEXT}")
    except _DoubtError as doubt:
        return TopologyUnknown(str(doubt), may_show_after_a_join=isinstance(doubt, _NotShownError))


def universe_of_broker(
    application_id: str,
    subtopologies: Iterable[BrokerSubtopology],
    partitions: Mapping[str, int],
    by_text: TaskSet | None,
) -> TaskSet | TopologyUnknown:
    """Join the broker's topology with the topics on the cluster.

    Args:
        application_id: The prefix of changelogs that Kafka Streams makes.
        subtopologies: All of them.
        partitions: Number of partitions of each topic that exists.
        by_text: The universe by the text of the application's topology, if there is one: it alone names the store
            behind a source topic, by which agents report positions.
    """
    known = tuple(subtopologies)
    try:
        _refuse_too_large(_parts(each.sources, each.changelogs, partitions) for each in known)
        found = [task for each in known for task in _tasks_of_broker(application_id, each, partitions)]
        if not found:
            return TopologyUnknown("the brokers show a topology without tasks; check that the source topics exist")
        universe = TaskSet(tuple(found))
    except _DoubtError as doubt:
        return TopologyUnknown(str(doubt))
    if by_text is None:
        return universe
    if universe == by_text:
        return by_text
    return TopologyUnknown(
        "spec.topology or the agents show other tasks or changelogs than the brokers; remove spec.topology, or finish "
        "the rollout that changes the topology"
    )


def _tasks_of_broker(
    application_id: str, each: BrokerSubtopology, partitions: Mapping[str, int]
) -> Iterable[TaskFacts]:
    absent = sorted((each.sources | each.changelogs) - partitions.keys())
    if absent:
        raise _DoubtError(f"topic {absent[0]} of sub-topology {each.number} is not on the cluster; create it, or wait")
    width = max((partitions[topic] for topic in each.sources), default=0)
    for topic in sorted(each.changelogs - each.sources):
        if partitions[topic] != width:
            raise _DoubtError(
                f"{topic} has {partitions[topic]} partitions, sub-topology {each.number} has {width} tasks; "
                "repartition the changelog as the application needs it"
            )
    for partition in range(width):
        read = frozenset(TopicPartition(topic, partition) for topic in each.sources if partition < partitions[topic])
        # A source topic that serves as changelog can be narrower than the sub-topology.
        behind = {
            _store_behind(topic, application_id): TopicPartition(topic, partition)
            for topic in each.changelogs
            if topic not in each.sources or TopicPartition(topic, partition) in read
        }
        yield TaskFacts(
            id=TaskId(each.number, partition),
            stateful=bool(behind),
            changelogs=tuple(behind.values()),
            source_partitions=tuple(read),
            stores=behind,
        )


def _store_behind(topic: str, application_id: str) -> str:
    """Name the store of a changelog; of a source topic nobody but the text knows it, so the topic's own name stands."""
    return topic.removeprefix(f"{application_id}-").removesuffix("-changelog")


_TEXT = "put the text of Topology#describe() into spec.topology, or enable the agent"
_NEW_TEXT = "put the text of Topology#describe() of the running version into spec.topology"


def _parts_by_text(topology: Topology, each: SubTopology, topics: TopicEvidence) -> int:
    sources = {topology.on_cluster(topic, topics.application_id) for topic in each.sources}
    stores = [store for store in each.stores if topics.changelog(store) in topics.changelogs or store in each.tables]
    return _parts(sources, stores, topics.partitions)


def _parts(sources: Collection[str], stores: Collection[str], partitions: Mapping[str, int]) -> int:
    """How many parts the tasks of one sub-topology have together."""
    width = max((partitions.get(topic, 0) for topic in sources), default=0)
    return width * (1 + len(sources) + len(stores))


def _refuse_too_large(parts: Iterable[int]) -> None:
    if sum(parts) > MOST_PARTS:
        raise _DoubtError(
            f"the topology has more than {MOST_PARTS} tasks, inputs and stores together; {_NEW_TEXT}, or use fewer "
            "partitions"
        )


def _tasks(topology: Topology, each: SubTopology, topics: TopicEvidence) -> Iterable[TaskFacts]:
    sources = {topology.on_cluster(topic, topics.application_id) for topic in each.sources}
    absent = sorted(sources - topics.partitions.keys())
    if absent:
        raise _DoubtError(f"source topic {absent[0]} of sub-topology {each.number} is not on the cluster; {_NEW_TEXT}")
    width = max((topics.partitions[topic] for topic in sources), default=0)
    behind = dict(_changelogs(each, topics, width))
    for partition in range(width):
        read = frozenset(TopicPartition(topic, partition) for topic in sources if partition < topics.partitions[topic])
        # A source topic that serves as changelog may be narrower than the sub-topology.
        mine = {
            store: topic
            for store, topic in behind.items()
            if topic not in sources or TopicPartition(topic, partition) in read
        }
        yield _fact(TaskId(each.number, partition), mine, read)


def _changelogs(each: SubTopology, topics: TopicEvidence, width: int) -> Iterable[tuple[str, str]]:
    """Give every logged store with its changelog."""
    for store in sorted(each.stores):
        changelog = topics.changelog(store)
        count = topics.changelogs.get(changelog)
        if count == width:
            yield store, changelog
        elif count is not None:
            raise _DoubtError(
                f"{changelog} has {count} partitions, sub-topology {each.number} has {width} tasks; {_NEW_TEXT}"
            )
        elif store in each.tables:
            yield store, each.tables[store]
        elif store in each.near_source:
            raise _DoubtError(
                f"store {store} has no changelog, and the text does not tell whether it is not logged or restored from "
                f"source topic {each.near_source[store]}; if it is not logged, take it out of spec.topology, else "
                f"enable the agent"
            )
        # Any other store without a changelog is not logged: nothing of it can be restored anywhere.


def _refuse_strangers(topics: TopicEvidence, known: set[str]) -> None:
    strangers = sorted(topics.changelogs.keys() - known - topics.contested())
    if strangers:
        raise _DoubtError(
            f"{strangers[0]} looks like a changelog of the application and belongs to no store of spec.topology; "
            f"{_NEW_TEXT}, or delete the topic once no pod uses it"
        )


def _refuse_contested(topics: TopicEvidence) -> None:
    contested = sorted(topics.contested())
    if contested:
        raise _DoubtError(f"{contested[0]} may belong to another application; {_TEXT}")


def _refuse_unassigned(group: GroupEvidence, topics: TopicEvidence) -> None:
    absent = sorted(group.subscribed - topics.partitions.keys())
    if absent:
        raise _DoubtError(f"topic {absent[0]} is subscribed to and not on the cluster; create it")
    existing = {TopicPartition(topic, each) for topic in group.subscribed for each in range(topics.partitions[topic])}
    times = Counter(partition for sources in group.active.values() for partition in sources)
    wrong = sorted(each for each in existing | times.keys() if times[each] != (1 if each in existing else 0))
    if wrong:
        topic, partition = wrong[0]
        raise _DoubtError(
            f"partition {partition} of {topic} is assigned to {times[wrong[0]]} tasks; wait until the group has "
            f"settled, or {_TEXT}"
        )


def _widths(active: Iterable[TaskId]) -> Mapping[int, int]:
    """Count the tasks of each sub-topology, which must be numbered without a hole."""
    partitions: dict[int, set[int]] = {}
    for task in active:
        partitions.setdefault(task.subtopology, set()).add(task.partition)
    for subtopology, found in sorted(partitions.items()):
        missing = sorted(set(range(max(found))) - found)
        if missing:
            raise _DoubtError(f"task {TaskId(subtopology, missing[0])} is assigned to nobody; {_TEXT}")
    return {subtopology: len(found) for subtopology, found in partitions.items()}


def _owner(stateful: Iterable[TaskId], widths: Mapping[int, int], changelogs: Mapping[str, int]) -> int | None:
    """Find the one sub-topology that the changelogs belong to; None where there is no state at all."""
    shown = sorted({task.subtopology for task in stateful})
    if len(shown) > 1:
        raise _DoubtError(
            f"sub-topologies {', '.join(map(str, shown))} show state, and the changelogs do not say to which of them "
            f"they belong; {_TEXT}"
        )
    if not shown:
        if changelogs:
            raise _NotShownError(f"no member shows state, yet {min(changelogs)} exists; {_TEXT}")
        return None
    if not changelogs:
        raise _DoubtError(
            f"sub-topology {shown[0]} shows state, yet there is no changelog: a source topic may serve as one; {_TEXT}"
        )
    width = widths.get(shown[0], 0)
    misfits = sorted(topic for topic, count in changelogs.items() if count != width)
    if misfits:
        raise _DoubtError(
            f"{misfits[0]} has {changelogs[misfits[0]]} partitions, sub-topology {shown[0]} has {width} tasks; {_TEXT}"
        )
    return shown[0]


def _fact(task: TaskId, stores: Mapping[str, str], sources: frozenset[TopicPartition]) -> TaskFacts:
    behind = {store: TopicPartition(topic, task.partition) for store, topic in stores.items()}
    return TaskFacts(
        id=task,
        stateful=bool(behind),
        changelogs=tuple(set(behind.values())),
        source_partitions=tuple(sources),
        stores=behind,
    )


@dataclass
class _Building:
    """A sub-topology while its lines are read."""

    number: int
    is_global: bool
    sources: dict[str, frozenset[str]] = field(default_factory=dict)
    processors: dict[str, frozenset[str]] = field(default_factory=dict)
    above: dict[str, frozenset[str]] = field(default_factory=dict)

    def finished(self) -> SubTopology:
        tables: dict[str, str] = {}
        near_source: dict[str, str] = {}
        for name, stores in self.processors.items():
            for parent in self.above.get(name, frozenset()) & self.sources.keys():
                if len(self.sources[parent]) == 1:
                    (topic,) = self.sources[parent]
                    found = tables if name.startswith(_TABLE_SOURCE) else near_source
                    found |= dict.fromkeys(stores, topic)
        return SubTopology(
            number=self.number,
            sources=frozenset(topic for topics in self.sources.values() for topic in topics),
            stores=frozenset(store for stores in self.processors.values() for store in stores),
            tables=MappingProxyType(tables),
            near_source=MappingProxyType(near_source),
        )


class _Parser:
    """Reads the text line by line; knows the node that arrows below it belong to."""

    def __init__(self) -> None:
        self._built: list[_Building] = []
        self._sinks: set[str] = set()
        self._node = ""

    def parse(self, text: str) -> Topology:
        lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1)]
        for number, line in lines:
            if line and line != "Topologies:" and not self._understood(line):
                raise _DoubtError(f"line {number} of spec.topology is not understood: {line[:120]!r}; {_NEW_TEXT}")
        numbers = Counter(building.number for building in self._built)
        twice = [number for number, times in numbers.items() if times > 1]
        if twice:
            raise _DoubtError(f"spec.topology has sub-topology {twice[0]} twice; {_NEW_TEXT}")
        if not self._built:
            raise _DoubtError(f"spec.topology has no sub-topology; {_NEW_TEXT}")
        finished = [building.finished() for building in self._built if not building.is_global]
        return Topology(tuple(sorted(finished, key=lambda each: each.number)), frozenset(self._sinks))

    def _understood(self, line: str) -> bool:
        if match := _SUBTOPOLOGY.fullmatch(line):
            self._built.append(_Building(int(match["id"]), match["isglobal"] is not None))
            return True
        if not self._built:
            return False
        if match := _SOURCE.fullmatch(line):
            self._source(match["name"], match["topics"])
        elif match := _PROCESSOR.fullmatch(line):
            self._node = match["name"]
            self._built[-1].processors[self._node] = _names(match["stores"])
        elif match := _SINK.fullmatch(line):
            self._node = match["name"]
            self._sinks |= {match["topic"]} if match["topic"] else set()
        elif match := _ARROW.fullmatch(line):
            if match["way"] == "<--":
                self._built[-1].above[self._node] = _names(match["nodes"])
        else:
            return False
        return True

    def _source(self, name: str, topics: str) -> None:
        if not (topics.startswith("[") and topics.endswith("]")):
            raise _DoubtError(
                f"source {name} of spec.topology reads the pattern {topics}; write the topics instead of it, as "
                f"[first, second], or enable the agent"
            )
        self._node = name
        self._built[-1].sources[name] = _names(topics[1:-1])


def _names(text: str) -> frozenset[str]:
    return frozenset(name for name in text.split(", ") if name and name != "none")
