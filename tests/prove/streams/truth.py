"""The truth about one group of the streams protocol (KIP-1071): epochs, targets, and what was given to whom.

The coordinator's view of a member (`Placed`) and what its process really has (`Member.active`, `Member.standby`) differ
between two heartbeats.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from streamapp.core.facts.group import GroupState
from streamapp.core.facts.ids import TaskId
from tests.prove.group import GroupTruth, Member

MOST_STANDBYS = 2
"""`group.streams.max.standby.replicas`, as brokers have it by default."""


@dataclass(slots=True)
class Share:
    """Tasks of one member."""

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()

    def __and__(self, other: "Share") -> "Share":
        """What is in both, each as the same kind."""
        return Share(self.active & other.active, self.standby & other.standby)

    def __or__(self, other: "Share") -> "Share":
        """What is in either."""
        return Share(self.active | other.active, self.standby | other.standby)

    def __sub__(self, other: "Share") -> "Share":
        """What the other has not, as the same kind."""
        return Share(self.active - other.active, self.standby - other.standby)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.active or self.standby)


@dataclass(slots=True)
class Placed:
    """One member as the coordinator has it."""

    epoch: int = 0
    given: Share = field(default_factory=Share)
    revoking: Share = field(default_factory=Share)
    """Taken away; the member has not said yet that it gave it up."""

    @property
    def held(self) -> Share:
        """What no other process may get yet."""
        return self.given | self.revoking


@dataclass(slots=True)
class StreamsTruth(GroupTruth):
    """Everything but the timers; can be copied. `generation` is the epoch of the group."""

    assigned_epoch: int = 0
    """The epoch that the targets are of."""
    targets: dict[str, Share] = field(default_factory=dict)
    placed: dict[str, Placed] = field(default_factory=dict)
    setting: int | None = None
    """`streams.num.standby.replicas` of the group; None: it is not set, so there are none."""
    shown: int | None = None
    """The same as the coordinator and the other brokers know it: some milliseconds late."""
    used: int = 0
    """Standbys by which the group was assigned last."""

    def share(self, member: Member) -> Share:
        """What the process of a member really has."""
        return Share(frozenset(member.active), frozenset(member.standby))

    def given_to(self, member: Member) -> frozenset[TaskId]:
        """The active tasks that brokers show for a member: its process takes them up a moment later."""
        return self.placed[member.id].given.active

    def unsettled(self) -> Iterator[str]:
        """The members that are not where the target has them."""
        for name, placed in self.placed.items():
            is_there = placed.epoch == self.assigned_epoch and placed.given == self.targets.get(name)
            if placed.revoking or not is_there:
                yield name

    def state_now(self) -> GroupState:
        """As the coordinator shows it."""
        if not self.members:
            return GroupState.EMPTY
        if self.assigned_epoch < self.generation:
            return GroupState.ASSIGNING
        return GroupState.RECONCILING if any(True for _ in self.unsettled()) else GroupState.STABLE
