"""The judge of what a process knew: it lets no pod go against a fact that it held as it sent the write.

The other judge forgives what became untrue after a process had looked, since nobody could know. What the process had
heard by the moment at which its request left is another matter, however young it is: the newest reading of the group in
its memory, and all that the agents had told it. How much of that its judgement made use of is not asked, and none of
the product's own comparisons is used.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from streamapp.core.facts.agent_reports import AgentReply, AgentReport, TaskState
from streamapp.core.facts.group import (
    Applied,
    GroupDescription,
    GroupReading,
    GroupState,
    GroupUnreadable,
    Member,
    NoOffsets,
    Subscription,
)
from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.lag import EndOffsets
from tests.kube.object_store import Request
from tests.prove.calls import Process, Switchboard
from tests.prove.group import Group
from tests.prove.kubelet import Nodes

WORDS = 20
"""Of each pod that are remembered: those of at least 20 s."""
WRITTEN = frozenset({"statefulsets", "pods", "poddisruptionbudgets"})
"""What a process writes when it lets a pod go, or lets others evict it."""


@dataclass(frozen=True, slots=True)
class Word:
    """One report of one agent."""

    at: float
    """When the process heard it, in seconds of the world's clock."""
    incarnation: str
    sequence: int
    places: Mapping[TaskId, int | None]
    """How far each task is there, in records; None for one that runs."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a process knew at one moment."""

    newest: GroupReading | None
    """Of the group."""
    words: Mapping[int, tuple[Word, ...]] = field(default_factory=dict)
    """Of the agents, by ordinal: those of the JVM that spoke last, its newest first."""


class MemoryJudge:
    """Of one StreamApp in one story."""

    def __init__(self, group: Group, nodes: Nodes, board: Switchboard, now: Callable[[], float]) -> None:
        self._group, self._nodes, self._now = group, nodes, now
        self._heard: dict[Process, dict[int, deque[Word]]] = {}
        self._known: dict[Process, Known] = {}
        """By the writes that each process sent last: it sends one of these at a time."""
        board.sent.append(self._sent)
        board.heard.append(self._hears)

    # What the processes know.

    def _hears(self, process: Process, group: Group, replies: Sequence[AgentReply]) -> None:
        if group is not self._group:
            return
        heard = self._heard.setdefault(process, {})
        own = self._nodes.truth.runs
        for reply in replies:
            if isinstance(reply, AgentReport) and reply.incarnation in own and reply.tasks is not None:
                heard.setdefault(reply.ordinal, deque(maxlen=WORDS)).append(_word(reply, self._now()))

    def _sent(self, process: Process, request: Request) -> None:
        if request.plural not in WRITTEN or not self._nodes.is_own(request.plural, _metadata(request)):
            return
        memory = process.memory(self._nodes.key)
        newest = memory.readings[0] if memory is not None and memory.readings else None
        words = {ordinal: _of_one_jvm(said) for ordinal, said in self._heard.get(process, {}).items()}
        self._known[process] = Known(newest, words)

    # What they do.

    def against(self, process: Process, going: AbstractSet[int], judged_at: float, *, asks_copies: bool) -> str | None:
        """Say which fact speaks against letting these ordinals go, if the process held one.

        Args:
            process: Who wrote it.
            going: The ordinals.
            judged_at: When the judgement began, in seconds of the world's clock.
            asks_copies: Whether others must have copies of what goes; else only the group must be known and at rest.
        """
        known = self._known.get(process)
        if known is None or known.newest is None:
            return "and had never read the group"
        group = known.newest.group
        if isinstance(group, GroupUnreadable):
            return f"and knew that it does not know the group: {group.detail}"
        if group.state is not GroupState.STABLE:
            return f"and knew that the group is {group.state.value}"
        by_group = self._left_by_the_group(group, known.newest, going) if asks_copies else ()
        by_agents = self._lost_by_agents(known.words, going, judged_at) if asks_copies else ()
        left = {f"{task} by the group": None for task in by_group} | {
            f"{task} by the agents": None for task in by_agents
        }
        return f"and knew that nobody who remains has {', '.join(left)}" if left else None

    def _left_by_the_group(
        self, group: GroupDescription, reading: GroupReading, going: AbstractSet[int]
    ) -> Iterator[TaskId]:
        """The tasks that nobody was given who stays, or only who did not say at the last join that it is caught up."""
        hosts = {run.host: run.ordinal for run in self._nodes.truth.runs.values()}
        own = [one for one in group.members if one.client_host in hosts]
        if not any(_share(one) for one in own if hosts[one.client_host] in going):
            return  # an idle pod takes nothing away
        staying = [one for one in own if hosts[one.client_host] not in going]
        for task in self._group.tasks:
            places = {one.client_host for one in staying if task in _share(one)}
            words = [one.subscription for one in staying if one.client_host in places]
            if not places or not (self._has_agents or any(self._is_near(one, task, reading) for one in words)):
                yield task

    def _is_near(self, word: Subscription | None, task: TaskId, reading: GroupReading) -> bool:
        """Whether a member of a classic group has said at its last join that it runs a task, or is caught up."""
        ends = None if reading.rebalance is None else reading.rebalance.ends
        said = None if word is None else word.offsets.get(task)
        if said is NoOffsets.RUNNING or not isinstance(said, Applied) or not isinstance(ends, EndOffsets):
            return said is NoOffsets.RUNNING
        end = max((one.end for at, one in ends.partitions.items() if at.partition == task.partition), default=0)
        return end - said.offset_sum <= self._group.truth.shape.limit

    def _lost_by_agents(
        self, words: Mapping[int, Sequence[Word]], going: AbstractSet[int], judged_at: float
    ) -> Iterator[TaskId]:
        """The tasks that had a copy on who stays by an earlier word, and have none there by the newest words."""
        staying = [said for ordinal, said in words.items() if ordinal not in going]
        for task in self._group.tasks if self._has_agents else ():
            had = [said for said in staying if any(task in one.places for one in said)]
            if had and all(self._is_lost(said, task, judged_at) for said in had):
                yield task

    def _is_lost(self, said: Sequence[Word], task: TaskId, judged_at: float) -> bool:
        """Whether a copy is gone, or is lower than it was: at all since the judgement, by the limit since ever."""
        newest = said[0]
        if task not in newest.places:
            return True
        now = newest.places[task]
        if now is None:
            return False
        for number, earlier in enumerate(said[1:]):
            before = earlier.places.get(task)
            allowed = 0 if number == 0 and newest.at >= judged_at else self._group.truth.shape.limit
            if before is not None and before - now > allowed:
                return True
        return False

    @property
    def _has_agents(self) -> bool:
        return self._group.truth.shape.on_demand or self._group.truth.shape.streams


def _share(member: Member) -> frozenset[TaskId]:
    """What it was given."""
    given = member.assignment
    return frozenset() if given is None else given.active | given.standby


def _word(report: AgentReport, at: float) -> Word:
    places = {
        task.id: None if task.state is TaskState.RUNNING else min(task.positions.values(), default=0)
        for task in report.tasks or ()
    }
    return Word(at, report.incarnation, report.sequence, places)


def _of_one_jvm(said: Sequence[Word]) -> tuple[Word, ...]:
    """By the count of the JVM itself: an answer can be an old one that comes late."""
    own = {word.sequence: word for word in said if word.incarnation == said[-1].incarnation}
    return tuple(own[sequence] for sequence in sorted(own, reverse=True))


def _metadata(request: Request) -> dict[str, dict[str, str]]:
    return {"metadata": {"namespace": request.namespace, "name": request.name}}
