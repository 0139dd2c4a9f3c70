"""The members of a streams group with their target assignments, and what the broker makes of them at each change."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from streamapp.core.assignors.group import NO_TASKS, Placement, Task
from streamapp.core.assignors.sticky import StickySettings, StreamsMember, assign
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.simulator.broker.ways import Way


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One stream thread."""

    id: str
    process: ProcessId
    actives: frozenset[TaskId] = NO_TASKS
    standbys: frozenset[TaskId] = NO_TASKS
    offsets: Mapping[TaskId, int] = field(default_factory=dict)
    """Sums of offsets that it reports; brokers from 4.4 on rank copies by them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerGroup:
    """The group in one way."""

    way: Way
    tasks: tuple[Task, ...]
    members: Mapping[str, GroupMember]
    standbys: int
    """`streams.num.standby.replicas`."""

    def left_by(self, process: ProcessId) -> "BrokerGroup":
        """The group when all members of a process have left; at least one other member stays."""
        group, going = self, sorted(name for name, one in self.members.items() if one.process == process)
        for batch in self.way.batches(going):
            left = {name: one for name, one in group.members.items() if name not in batch}
            group = replace(group, members=left).dealt()
        return group

    def joined_by(self, joining: Sequence[GroupMember]) -> "BrokerGroup":
        """The group when these have joined."""
        group = self
        for batch in self.way.batches(joining):
            more = {one.id: one for one in batch}
            group = replace(group, members={**group.members, **more}).dealt()
        return group

    def with_standbys(self, count: int) -> "BrokerGroup":
        """The group after `streams.num.standby.replicas` was set."""
        return replace(self, standbys=count).dealt()

    def placements(self) -> dict[ProcessId, Placement]:
        """What each process has of its members' targets."""
        found: dict[ProcessId, Placement] = {}
        for one in self.members.values():
            before = found.get(one.process, Placement())
            found[one.process] = Placement(before.actives | one.actives, before.standbys | one.standbys)
        return found

    def dealt(self) -> "BrokerGroup":
        """The group with the next target assignment."""
        way, settings = self.way, StickySettings(release=self.way.release, num_standby_replicas=self.standbys)
        given = assign(self.tasks, [_asked(one, way) for one in self.members.values()], settings)
        dealt = {name: given[way.name(name)] for name in self.members}
        members = {
            name: replace(one, actives=dealt[name].actives, standbys=dealt[name].standbys)
            for name, one in self.members.items()
        }
        return replace(self, members=members)


def _asked(one: GroupMember, way: Way) -> StreamsMember:
    return StreamsMember(
        id=way.name(one.id),
        process=way.name(str(one.process)),
        actives=one.actives,
        standbys=one.standbys,
        offsets=_offsets(one, one.standbys, way),
    )


def _offsets(one: GroupMember, standbys: Collection[TaskId], way: Way) -> Mapping[TaskId, int]:
    """What the coordinator knows by then: as it was read, nothing, the other way round, or in any order.

    Members report by themselves and up to a minute late, so each copy can be older or younger than every other.
    """
    match way.naming:
        case 0:
            return one.offsets
        case 1:
            return {}
        case 2:
            return {task: -offset for task, offset in one.offsets.items()}
        case _:
            return {task: way.rank(f"{task}/{one.id}") for task in {*one.offsets, *standbys}}
