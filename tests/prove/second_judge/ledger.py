"""What is written down of an example: each write with what it changed, each look at the group with the truth behind it.

The ledger stands where the world asks for a `Witness`. It judges nothing; it reports to listeners, the guarantees.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamapp.controller.ports import Poll
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.ids import ProcessId, TopicPartition
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable, PartitionEnd, Unknown
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.topic_configs import ConfigUnread, TopicConfig
from tests.kube.object_store import ObjectStore, Request
from tests.prove.calls import PortedGroup, Process, Switchboard
from tests.prove.group import Group, Run
from tests.prove.kubelet import NAME, NAMESPACE, Nodes
from tests.prove.second_judge.truth import View, view_of
from tests.prove.virtual_time import VirtualLoop

if TYPE_CHECKING:
    from tests.prove.second_judge.stage import Stage

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Write:
    """One request that would change something, as it arrived at the API server."""

    at: float
    process: int
    request: Request
    before: Json | None
    after: Json | None
    refusal: str | None = None
    lower_since: float | None = None
    """Since when fewer replicas were desired than there were, as the write arrived."""

    def replicas(self) -> tuple[int, int] | None:
        """Current replicas before and after, of a write to the StatefulSet."""
        if self.request.plural != "statefulsets" or self.refusal is not None:
            return None
        return _replicas(self.before), _replicas(self.after)


@dataclass(frozen=True, slots=True)
class Look:
    """One answer or failure of the brokers to DescribeGroups, with the truth of its moment."""

    at: float
    process: int
    view: View | None
    """None: there was no answer."""


@dataclass
class Figures:
    """What a whole run counts, over all its examples."""

    stakes: Counter[str] = field(default_factory=Counter)
    """How often each guarantee was at stake, as `<number> <by what>`."""
    delays: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Seconds from a raise of the desired replicas to the raise of the current replicas, by circumstances."""
    rules: Counter[str] = field(default_factory=Counter)
    """How often each rule was played."""
    seconds: float = 0.0
    """Of the worlds' time."""
    examples: int = 0

    @property
    def steps(self) -> int:
        """Deeds, faults and planned faults."""
        return self.rules.total()


class Listener:
    """Receives what is written down. Each method does nothing unless a guarantee needs it."""

    number: int
    """Of the guarantee."""
    sentences: tuple[str, ...]
    """README's, which are all that it judges by."""
    stage: "Stage"

    def began(self, stage: "Stage") -> None:
        """The example begins."""
        self.stage = stage

    def wrote(self, write: Write) -> None:
        """A process sent a write."""

    def user_wrote(self, app: Json | None, before: Json | None) -> None:
        """The user changed the StreamApp; None: it is gone."""

    def looked(self, look: Look) -> None:
        """A process described the group, or failed to."""

    def evicts(self, process: int, members: Sequence[MemberKey]) -> None:
        """LeaveGroup arrives."""

    def passed(self) -> None:
        """Some time has passed."""


@dataclass
class Ledger:
    """All that is known of an example so far."""

    store: ObjectStore
    group: Group
    nodes: Nodes
    board: Switchboard
    loop: VirtualLoop
    listeners: list[Listener] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    looks: dict[int, list[Look]] = field(default_factory=lambda: defaultdict(list))
    apps: list[tuple[float, Json | None]] = field(default_factory=list)
    """Each state of the StreamApp that its user made, with its time."""
    reads: dict[tuple[int, str], float] = field(default_factory=dict)
    """When a process last got a fresh answer about a kind, by process and plural."""
    wrongs: list[str] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    visited: set[str] = field(default_factory=set)
    """What the product came past, in its own words; nothing is judged by it."""
    struck_at: float = -1000.0
    """When the last fault struck."""
    joined_at: float = -1000.0
    """When the last rebalance was complete."""
    slow_until: float = -1000.0
    slowness: float = 0.0
    """Seconds that each answer of the API server takes, or took last."""
    brokers_back_at: float = -1000.0
    lower_since: float | None = None
    """Since when fewer replicas are desired than there are; None: they are not."""
    wait_began: float | None = None
    """The same, but a StatefulSet that is deleted and made again ends no wait of its user."""
    _pending: dict[int, View] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store.changed.append(self._changed)
        self.board.disturbed = self._struck
        self.group.completed.append(self._completed)
        self.apps.append((self.loop.time(), self.store.get("streamapps", NAMESPACE, NAME)))

    @property
    def now(self) -> float:
        """The world's clock, in seconds."""
        return self.loop.time()

    def limit(self) -> int:
        """Records that a caught-up copy can be behind, by the StreamApp."""
        since = self.states_since(self.now - 60.0)
        learners = [app["spec"].get("learners", {}) for app in since if app is not None]
        return max((one.get("acceptableRecoveryLag", 10_000) for one in learners), default=10_000)

    def view(self) -> View:
        """The truth about the tasks, now."""
        return view_of(self.group, self.limit(), self.joined_at)

    def states_since(self, time: float) -> list[Json | None]:
        """Every state that the user's StreamApp had from that time until now."""
        ended = [end for end, _ in self.apps[1:]] + [float("inf")]
        return [app for (_, app), end in zip(self.apps, ended, strict=True) if end > time]

    def wrong(self, number: int, what: str) -> None:
        """A guarantee is broken; the first few times are enough."""
        if len(self.wrongs) < 5:
            self.wrongs.append(f"guarantee {number}, at {self.now:.3f} s: {what}")

    def stake(self, number: int, what: str, count: int = 1) -> None:
        """A guarantee was at stake."""
        self.figures.stakes[f"{number} {what}"] += count

    def wrote(self, write: Write) -> None:
        """A write arrived."""
        self.writes.append(write)
        for one in self.listeners:
            one.wrote(write)

    def described(self, process: int, poll: Poll) -> None:
        """DescribeGroups was answered, or failed."""
        is_answer = isinstance(poll.group, GroupDescription)
        view = self._pending.get(process)
        look = Look(self.now, process, view if is_answer else None)
        self.looks[process].append(look)
        for one in self.listeners:
            one.looked(look)

    # What the world asks of a `Witness`.

    def read(self, process: Process, request: Request, answer: Json, *, is_stale: bool) -> None:  # noqa: ARG002 (the world's)
        """The API server gave this answer."""
        if not is_stale:
            self.reads[process.number, request.plural] = self.now

    def looked(self, process: Process, group: Group) -> None:  # noqa: ARG002 (there is one)
        """The group, or an agent, was looked at."""
        self._pending[process.number] = self.view()

    def evicts(self, process: Process, group: Group, members: Sequence[MemberKey]) -> None:  # noqa: ARG002 (as above)
        """LeaveGroup arrives at the brokers."""
        for one in self.listeners:
            one.evicts(process.number, members)

    def rebalances(self, process: Process, group: Group) -> None:
        """A probe member joins; no guarantee is about that alone."""

    def announces(self, process: Process, group: Group, named: frozenset[ProcessId], to: Sequence[Run]) -> None:
        """Agents learn which processes leave; no guarantee is about that alone."""

    def passed(self) -> None:
        """Some time has passed."""
        for one in self.listeners:
            one.passed()

    def _completed(self) -> None:
        self.joined_at = self.now

    def _struck(self) -> None:
        self.struck_at = self.now

    def _compare(self) -> None:
        """Look whether fewer replicas are desired than there are."""
        app = self.store.get("streamapps", NAMESPACE, NAME)
        own = self.store.get("statefulsets", NAMESPACE, NAME)
        is_lower = app is not None and own is not None and int(app["spec"].get("replicas", 1)) < _replicas(own)
        if not is_lower:
            self.lower_since = None
        elif self.lower_since is None:
            self.lower_since = self.now
        if is_lower:
            self.wait_began = self.lower_since if self.wait_began is None else self.wait_began
        elif app is None or own is not None:
            self.wait_began = None

    def _changed(self, plural: str, body: Json, before: Json | None) -> None:
        if plural in {"streamapps", "statefulsets"}:
            self._compare()
        if plural != "streamapps" or self.board.writer is not None:
            return
        app = body or None
        self.apps.append((self.now, app))
        for one in self.listeners:
            one.user_wrote(app, before)


class ListeningGroup:
    """A process's way to the brokers, which writes down each look with what the process learned by it."""

    def __init__(self, inner: PortedGroup, ledger: Ledger, process: int) -> None:
        self._inner, self._ledger, self._process = inner, ledger, process

    def close(self) -> None:
        """Close it."""
        self._inner.close()

    async def describe(self) -> Poll:
        """Describe the group."""
        poll = await self._inner.describe()
        self._ledger.described(self._process, poll)
        return poll

    async def task_set(self) -> TaskSet | TopologyUnknown:
        """Find out which tasks there are."""
        return await self._inner.task_set()

    async def ends(self, task_set: TaskSet) -> EndOffsets | EndsUnreadable:
        """Read the end offsets."""
        return await self._inner.ends(task_set)

    async def tails(self, ends: Mapping[TopicPartition, PartitionEnd]) -> Mapping[TopicPartition, int | Unknown]:
        """Look at the tails."""
        return await self._inner.tails(ends)

    async def configs(self, topics: Iterable[str]) -> Mapping[str, TopicConfig | ConfigUnread]:
        """Read settings of topics."""
        return await self._inner.configs(topics)

    async def trigger_rebalance(self, like_member: str) -> None:
        """Trigger a rebalance."""
        await self._inner.trigger_rebalance(like_member)

    async def evict(self, members: Sequence[MemberKey], reason: str) -> None:
        """Evict members."""
        await self._inner.evict(members, reason)


def _replicas(statefulset: Json | None) -> int:
    return 0 if statefulset is None else int(statefulset["spec"].get("replicas", 1))
