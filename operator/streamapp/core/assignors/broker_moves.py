"""Where the brokers would put tasks if some members of a streams group left: the broker's own assignor, played.

Asked by `coverage_gates` before a pod of a group of the streams protocol goes. A copy on a pod that stays is not enough
there: the sticky assignor gives a task to one previous holder if that one is below its quota, and else to the least
loaded process, without any state.

What nobody can know is played in several ways, and a move counts in every one of them: in which order the threads of a
pod leave, how ties fall, which Java's hash tables decide by the names of members and processes, whether the brokers go
by a changed number of standbys before, and from 4.4 on what members will have reported by then: a broker ranks copies
by offsets that are up to a minute old, and a new coordinator has none.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from itertools import combinations, product
from types import MappingProxyType

from streamapp.core.assignors.group import Placement, Task
from streamapp.core.assignors.sticky import BrokerRelease, StickySettings, StreamsMember, assign
from streamapp.core.facts.group import Applied, GroupDescription, Member, StandbySetting, StreamsGroup
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.core.facts.tasks import TaskSet

STICKY = "sticky"
"""The assignor that is modelled, by its name in `group.streams.assignors`."""

_RELEASES = {
    "4.2": (BrokerRelease.FROM_4_2, BrokerRelease.FROM_4_2_2),
    "4.3": (BrokerRelease.FROM_4_2, BrokerRelease.FROM_4_2_2),
    "4.4": (BrokerRelease.FROM_4_4,),
}
"""How brokers of a release assign; a broker does not tell its patch, so each of its releases is played."""

_LARGE = 500
"""Tasks or members; from here on fewer ties are played, since a play takes a tenth of a second for thousands."""

_MEDIUM = 100
"""Tasks or members; from here on fewer orders are played."""

_MOST_STEPS = 16
"""Steps in which members leave. A pod can have hundreds of threads, and each step of each play is an assignment."""

_MEMBER = 6
"""A member takes as much time in an assignment as so many tasks."""

_STEPS_OF_FEW = {1: 1, 2: 5, 3: 31}
"""Steps of every order in which so many members can leave."""

_LONG = 50_000
"""Tasks in all assignments of all plays: a quarter of a second. Whoever has other work has it played in a thread."""

_MOST_WORK = 8_000_000
"""The same: most of a minute. It is enough for 5,000 tasks in pods of 16 threads; a broker can show any group."""

_MANY = 2_000
"""Tasks and their places, members, and pieces of their names. What is kept of a group of 5,000 tasks takes 4 MB, so few
answers about more are kept."""

_PIECE = 64
"""Characters: more than the ID of a member has, which any broker can make as long as its answer."""

Departures = tuple[frozenset[str], ...]
"""Who leaves before each assignment."""

_NOBODY: frozenset[str] = frozenset()


_TOO_MANY_WAYS = "more ways than are played; use fewer stream threads"


@dataclass(frozen=True, slots=True)
class _Orders:
    """How many orders of departures are played: five members that leave have 541."""

    few: int
    """Members of which every order is played under each naming."""
    few_by_true_names: int
    """The same under the true names alone."""
    drawn: int
    """Orders of more members, for each naming."""


_ORDERS, _ORDERS_OF_MEDIUM, _ORDERS_OF_LARGE = _Orders(3, 4, 8), _Orders(2, 3, 4), _Orders(2, 2, 2)


Moves = Mapping[TaskId, frozenset[ProcessId]]
"""By task that moves, the processes that it can go to."""


@dataclass(frozen=True, slots=True)
class AssignorUnknown:
    """The assignor of this broker is not modelled, so nothing can be predicted."""

    why: str


def moves_without(
    group: GroupDescription,
    task_set: TaskSet,
    leaving: frozenset[str],
    standbys_to_come: frozenset[int] = frozenset(),
) -> Moves | AssignorUnknown:
    """Predict which tasks get another process if these members leave.

    Brokers go by a changed number of standbys at the next heartbeat of any member. So a number that they tell, and
    have not placed yet, can count before the members leave: standbys can be gone by then, or new ones without state be
    there.

    Args:
        group: A settled group of the streams protocol.
        task_set: The tasks there are.
        leaving: IDs of the members that leave; at least one other stays.
        standbys_to_come: Numbers of standbys of a task that can be set by then, beside the one that brokers tell.

    Returns:
        For each task that moves, every process that any of the plays gives it to.
    """
    streams = group.streams
    if streams is None:
        return AssignorUnknown("the group does not use the streams protocol")
    doubt = why_unknown(streams)
    if doubt:
        return AssignorUnknown(doubt)
    releases = releases_of(streams)
    ranks_by_offsets = BrokerRelease.FROM_4_4 in releases
    members = tuple(_Holder.of(member, with_offsets=ranks_by_offsets) for member in group.members)
    # Brokers know state by sub-topology: a source topic that serves as changelog can be narrower than that.
    with_state = {task.id.subtopology for task in task_set.stateful}
    tasks = tuple(Task(task.id, is_stateful=task.id.subtopology in with_state) for task in task_set.tasks)
    size = len(tasks) + sum(one.size for one in members)
    standbys = _Standbys.of(members, tasks, streams, standbys_to_come)
    ways = len(releases) * (len(standbys.counts) + 2 * len(standbys.to_come))
    if _work(len(members), len(tasks), standbys.most(members), len(leaving), ways=ways) > _MOST_WORK:
        who = f"{len(leaving)} of {len(members)} members leave"
        return AssignorUnknown(f"{who}, and {len(tasks)} tasks can move in {_TOO_MANY_WAYS}")
    return (_moves if size <= _MANY else _moves_of_many)(releases, members, tasks, leaving, standbys)


@dataclass(frozen=True, slots=True)
class _Standbys:
    """How many standbys of a task the brokers can go by."""

    counts: frozenset[int]
    """Once members leave."""
    to_come: frozenset[int]
    """Perhaps before that: what the group has is another number."""

    @classmethod
    def of(
        cls,
        members: Sequence["_Holder"],
        tasks: Sequence[Task],
        streams: StreamsGroup,
        standbys_to_come: frozenset[int],
    ) -> "_Standbys":
        """Compare what was placed with what is set, or will be. More than the other processes can hold is no other."""
        placed = _placed(members, tasks)
        told = {streams.standbys.replicas} if isinstance(streams.standbys, StandbySetting) else set[int]()
        most = len({member.process_id for member in members}) - 1
        has_state = any(task.is_stateful for task in tasks)
        to_come = {count for count in told | standbys_to_come if has_state and min(count, most) != placed}
        return cls(frozenset({placed, *told}), frozenset(to_come))

    def most(self, members: Sequence["_Holder"]) -> int:
        """The most that a task can have: one on each other process."""
        return min(max(self.counts | self.to_come), len({member.process_id for member in members}))


def takes_long(group: GroupDescription, task_set: TaskSet) -> bool:
    """Tell whether it takes long to predict what becomes of a group without one of its pods.

    Args:
        group: Of any protocol.
        task_set: The tasks there are.
    """
    streams = group.streams
    if streams is None or not group.members:
        return False
    by_process = Counter(member.process_id for member in group.members)
    standbys = streams.standbys.replicas if isinstance(streams.standbys, StandbySetting) else 1
    standbys, ways = min(standbys, len(by_process)), 2 * max(1, len(releases_of(streams)))
    return _work(len(group.members), len(task_set.tasks), standbys, max(by_process.values()), ways=ways) > _LONG


def _work(members: int, tasks: int, standbys: int, leaving: int, *, ways: int) -> int:
    """How much the plays take: about so many tasks in all of their assignments."""
    scale = max(members, tasks)
    steps = _STEPS_OF_FEW.get(leaving) or 1 + (2 + _orders_at(scale).drawn) * min(leaving, _MOST_STEPS)
    return _namings_at(scale) * steps * ways * (_MEMBER * members + tasks * (1 + standbys))


def _orders_at(scale: int) -> _Orders:
    return _ORDERS_OF_LARGE if scale > _LARGE else _ORDERS_OF_MEDIUM if scale > _MEDIUM else _ORDERS


def _namings_at(scale: int) -> int:
    return 3 if scale > _LARGE else 8


def _played(
    releases: tuple[BrokerRelease, ...],
    members: tuple["_Holder", ...],
    tasks: tuple[Task, ...],
    leaving: frozenset[str],
    standbys: _Standbys,
) -> Moves:
    """Play every way; most passes ask about the group that the pass before asked about."""
    owners = {task: member.process_id for member in members for task in member.actives}
    found: dict[TaskId, set[ProcessId]] = {}
    for play in _plays(releases, members, tasks, leaving, standbys):
        for task, process in play.owners():
            if owners.get(task) != process:
                found.setdefault(task, set()).add(process)
    return MappingProxyType({task: frozenset(processes) for task, processes in found.items()})


_moves = lru_cache(maxsize=32)(_played)
_moves_of_many = lru_cache(maxsize=4)(_played)  # one decision asks about three restarts and a removal


def why_unknown(streams: StreamsGroup) -> str:
    """Why nothing can be predicted of this group; empty where its brokers' assignor is modelled."""
    if streams.assignor not in (None, STICKY):
        return f"the group's assignor is `{streams.assignor}`"
    if streams.broker_release not in _RELEASES:
        return "the coordinator is of another release than 4.2, 4.3 and 4.4"
    return ""


def releases_of(streams: StreamsGroup) -> tuple[BrokerRelease, ...]:
    """The releases that the coordinator can be of, by what it shows; none where its assignor is not modelled."""
    return () if why_unknown(streams) else _RELEASES[streams.broker_release or ""]


@dataclass(frozen=True, slots=True)
class _Holder:
    """What the assignor looks at of a member."""

    id: str
    process_id: ProcessId | None
    actives: frozenset[TaskId]
    standbys: frozenset[TaskId]
    offsets: frozenset[tuple[TaskId, int]]
    """The sums of offsets that it reported; empty for brokers that do not rank copies by them."""

    @property
    def size(self) -> int:
        """What it takes to keep it, in tasks."""
        return 1 + len(self.id) // _PIECE + len(self.actives) + len(self.standbys) + len(self.offsets)

    @classmethod
    def of(cls, member: Member, *, with_offsets: bool) -> "_Holder":
        """Take it from a member as the broker shows it."""
        said = {} if member.subscription is None or not with_offsets else member.subscription.offsets
        return cls(
            id=member.id,
            process_id=member.process_id,
            actives=frozenset() if member.assignment is None else member.assignment.active,
            standbys=frozenset() if member.assignment is None else member.assignment.standby,
            offsets=frozenset((task, one.offset_sum) for task, one in said.items() if isinstance(one, Applied)),
        )


@dataclass(frozen=True, slots=True)
class _Play:
    """One way in which it can go: a release, names, and the order in which members leave."""

    release: BrokerRelease
    naming: int
    """0: the true names; else names that fall elsewhere in hash tables. It also chooses how copies rank."""
    departures: Departures
    members: tuple[_Holder, ...]
    tasks: tuple[Task, ...]
    standbys: int
    has_offsets: bool = True
    """Whether the coordinator knows offsets; by those, copies that were dropped can still draw their tasks."""

    def owners(self) -> Iterator[tuple[TaskId, ProcessId]]:
        """Each task with the process that has it in the end."""
        left = {self._name(member.id): self._member(member) for member in self.members}
        process_of = {self._name(member.id): member.process_id for member in self.members}
        settings = StickySettings(release=self.release, num_standby_replicas=self.standbys)
        given: Mapping[str, Placement] = {}
        for gone in self.departures:
            for member in gone:
                left.pop(self._name(member), None)
            given = assign(self.tasks, left.values(), settings)
            left = {
                name: replace(member, actives=given[name].actives, standbys=given[name].standbys)
                for name, member in left.items()
            }
        for name, placed in given.items():
            process = process_of[name]
            if process is not None:
                yield from ((task, process) for task in placed.actives)

    def _member(self, member: _Holder) -> StreamsMember:
        return StreamsMember(
            id=self._name(member.id),
            process=self._name(str(member.process_id)),
            actives=member.actives,
            standbys=member.standbys,
            offsets=self._offsets(member),
        )

    def _offsets(self, member: _Holder) -> dict[TaskId, int]:
        """What the coordinator knows by then: as it was read, nothing, the other way round, or in any order.

        Members report by themselves and up to a minute late, so each copy can be older or younger than every other.
        """
        if not self.has_offsets:
            return {}
        known = dict(member.offsets)
        copies = known.keys() | member.standbys
        match self.naming:
            case 0:
                return known
            case 1:
                return {}
            case 2:
                return {task: -offset for task, offset in known.items()}
            case _:
                return {task: _rank(f"{self.naming}/{task}/{member.id}") for task in copies}

    def _name(self, name: str) -> str:
        return name if self.naming == 0 else sha256(f"{self.naming}/{name}".encode()).hexdigest()[:22]


def _plays(
    all_releases: tuple[BrokerRelease, ...],
    members: tuple[_Holder, ...],
    tasks: tuple[Task, ...],
    leaving: frozenset[str],
    standbys: _Standbys,
) -> Iterator[_Play]:
    scale = max(len(members), len(tasks))
    for naming in range(_namings_at(scale)):
        for departures in _orders(leaving, naming, scale):
            # The releases differ in standbys alone, which a single assignment of actives does not look at.
            of_standbys = list(product(all_releases, sorted(standbys.counts)))
            for release, count in of_standbys if len(departures) > 1 else of_standbys[:1]:
                yield _Play(release, naming, departures, members, tasks, count)
            for release, count in product(all_releases, sorted(standbys.to_come)):
                play = _Play(release, naming, (_NOBODY, *departures), members, tasks, count)
                yield from (play, replace(play, has_offsets=False))


def _orders(leaving: frozenset[str], naming: int, scale: int) -> list[Departures]:
    """Give the orders in which members can leave: all of them for few members, else the plain ones and some drawn.

    A thread can leave before, with or after another one: the broker assigns anew whenever a member that stays
    heartbeats in between. Each naming draws other orders. Of very many members, several leave with each step.
    """
    most = _orders_at(scale)
    if len(leaving) <= (most.few if naming else most.few_by_true_names):
        return list(_every_order(leaving))
    names, at_once = sorted(leaving), -(-len(leaving) // _MOST_STEPS)
    one_by_one = tuple(frozenset(names[at : at + at_once]) for at in range(0, len(names), at_once))
    return [(leaving,), one_by_one, one_by_one[::-1], *(_drawn(leaving, f"{naming}/{at}") for at in range(most.drawn))]


def _every_order(leaving: frozenset[str]) -> Iterator[Departures]:
    """Give every way to leave one after the other, some together: 1, 3 and 13 for 1, 2 and 3 members."""
    if not leaving:
        yield ()
    for size in range(len(leaving), 0, -1):
        for first in combinations(sorted(leaving), size):
            yield from ((frozenset(first), *later) for later in _every_order(leaving - set(first)))


def _drawn(leaving: frozenset[str], seed: str) -> Departures:
    """Draw one order: a number for each member says when it leaves, equal ones together."""
    turns: dict[int, set[str]] = {}
    for member in leaving:
        turns.setdefault(_rank(f"{seed}/{member}") % min(len(leaving), _MOST_STEPS), set()).add(member)
    return tuple(frozenset(turns[turn]) for turn in sorted(turns))


def _placed(members: Iterable[_Holder], tasks: Iterable[Task]) -> int:
    """How many standbys a task has: the most of any.

    The group's setting is not always known, and it can be another number already: brokers go by a new one at the next
    assignment.
    """
    counts = {task.id: 0 for task in tasks if task.is_stateful}
    for member in members:
        for task in member.standbys & counts.keys():
            counts[task] += 1
    return max(counts.values(), default=0)


def _rank(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:4])
