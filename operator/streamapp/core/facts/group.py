"""The consumer group of one application, as one poll saw it: its members decoded, or why they could not be.

Filled by the gatherer from `kafka` and `wire`; read by `membership`, `gates`, `coverage`, `readings` and `rebalances`.
Kafka's sentinels (−2, −3, `Long.MAX_VALUE`) end at that border: here each has a name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from streamapp.core.facts.ids import ProcessId, TaskId, TopicPartition
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable
from streamapp.core.reasons import Reason


class GroupState(Enum):
    """Kafka's states of a classic group and of a group of the streams protocol."""

    STABLE = "Stable"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    EMPTY = "Empty"
    DEAD = "Dead"
    NOT_READY = "NotReady"
    """Streams: topics of the topology are missing."""
    ASSIGNING = "Assigning"
    """Streams: the target assignment is older than the group."""
    RECONCILING = "Reconciling"
    """Streams: a member has not reached the target assignment."""


class FollowUp(Enum):
    """Whether a member was told to rejoin by itself (`nextRebalanceMs`)."""

    NONE = "none"
    """Never: on every member, the stock assignor's own word for "converged"."""
    SCHEDULED = "scheduled"
    """At once or at some time: tasks are still to move."""
    UNKNOWN = "unknown"
    """The assignment is of a version that does not say."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The sum of next-fetch positions over all changelogs of a task, as of the member's last join."""

    offset_sum: int


class NoOffsets(Enum):
    """What a member says about a task instead of a sum."""

    RUNNING = "running"
    """Processed there as active when the member joined (−2)."""
    UNKNOWN = "unknown"
    """Held, but without known offsets (−3)."""


OffsetSum = Applied | NoOffsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What a member said of itself when it last joined. The broker shows it only while the group is stable."""

    process_id: ProcessId
    offsets: Mapping[TaskId, OffsetSum]
    """Per task, directories that merely lie on its disk included."""
    owned_partitions: frozenset[TopicPartition]
    """Source partitions it already owned then."""
    newest_version: int | None = None
    """The newest version of Kafka Streams' part of a subscription that the member knows; None: not read."""
    is_tagged: bool = False
    """Whether it has client tags or a rack."""
    generation: int | None = None
    """The generation that the member came from when it joined; None for a new member, and for clients before 3.4."""
    running: frozenset[TaskId] = field(init=False, repr=False, compare=False)
    """The tasks that it processed as active when it joined."""

    def __post_init__(self) -> None:
        """Collect the tasks that run, which every decision about this reading asks for."""
        running = frozenset(task for task, offsets in self.offsets.items() if offsets is NoOffsets.RUNNING)
        object.__setattr__(self, "running", running)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What the group's leader gave a member in the last rebalance."""

    active: frozenset[TaskId]
    standby: frozenset[TaskId]
    """Standbys and warm-ups; the bytes do not tell them apart."""
    follow_up: FollowUp


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One consumer: a stream thread of some instance, or a probe member of ours."""

    id: str
    client_id: str
    client_host: str
    """Its address as the broker saw it, without the leading slash."""
    instance_id: str | None = None
    """`group.instance.id` of a static member."""
    subscription: Subscription | None
    """None: the broker does not show it at present."""
    assignment: Assignment | None
    """None: it has none yet."""
    streams: "StreamsMembership | None" = None
    """What only a member of the streams protocol has."""

    @property
    def process_id(self) -> ProcessId | None:
        """The process it belongs to, as far as shown."""
        return None if self.subscription is None else self.subscription.process_id


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMembership:
    """How far a member of the streams protocol is, and where the broker wants it to be."""

    epoch: int
    """The group epoch that the member has reached."""
    target: Assignment


@dataclass(frozen=True, slots=True)
class StandbySetting:
    """`streams.num.standby.replicas` of a group, as the brokers apply it."""

    replicas: int
    is_set: bool
    """Set for this group; else the brokers' default applies."""
    cluster: str | None = field(default=None, compare=False)
    """ID of the Kafka cluster whose brokers say so; None where that is not known."""


@dataclass(frozen=True, slots=True)
class StandbySettingUnread:
    """The brokers did not give it."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroup:
    """What only a group of the streams protocol (KIP-1071) shows: there the broker assigns, and no member leads."""

    epoch: int
    """Grows with every change of members, topics or group configuration."""
    assignment_epoch: int
    """The group epoch that the target assignment is of."""
    broker_release: str | None
    """Kafka's release of the coordinator, such as `4.2`; None for one that is not known here."""
    assignor: str | None = None
    """The coordinator's assignor, as brokers from 4.4 on name it; older brokers have only `sticky`."""
    standbys: StandbySetting | StandbySettingUnread = StandbySettingUnread("it was not read")
    assignment_interval: timedelta | None = None
    """`streams.assignment.interval.ms`, as brokers from 4.3 on have it: the least time between two assignments."""
    session_timeout: timedelta | None = None
    """`streams.session.timeout.ms`: so long a member that died stays listed. None where the brokers do not tell it."""


@dataclass(frozen=True, slots=True)
class StreamsSupport:
    """What the brokers of a classic group say about the streams protocol."""

    is_on: bool
    """They know it, and the features of the cluster have it switched on."""
    release: str | None
    """Kafka's release of the coordinator, such as `4.2`; None for one that is not known here."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A successful DescribeGroups or StreamsGroupDescribe."""

    state: GroupState
    members: tuple[Member, ...] = ()
    streams: StreamsGroup | None = None
    """None: the group uses the classic protocol."""
    unused_standbys: StandbySetting | StandbySettingUnread | None = None
    """Of a classic group with members: the setting that has no effect there. It is read while it must be put back."""

    def __post_init__(self) -> None:
        """Sort by member ID, so that the order in which a broker lists them means nothing."""
        object.__setattr__(self, "members", tuple(sorted(self.members, key=lambda member: member.id)))

    @property
    def standbys(self) -> StandbySetting | StandbySettingUnread | None:
        """What brokers have set for the group, with an effect or not; None where they were not asked."""
        return self.unused_standbys if self.streams is None else self.streams.standbys

    @property
    def member_ids(self) -> frozenset[str]:
        """Who is listed, dead or alive."""
        return frozenset(member.id for member in self.members)

    @property
    def active_assignments(self) -> int:
        """How many tasks are assigned as active, one that two members were given counted twice."""
        return sum(len(member.assignment.active) for member in self.members if member.assignment is not None)

    @property
    def can_be_rebalanced(self) -> bool:
        """Large enough for a probe member to join and leave; with a single member that was never tried.

        A group of the streams protocol rebalances by itself: no join of another member would tell anything new.
        """
        return len(self.members) > 1 and self.streams is None

    @property
    def unsettled(self) -> str:
        """Why tasks of a Stable group can still move, as far as it shows; empty: each member has its target.

        Only the streams protocol has a target. A classic group says it by follow-up rebalances.
        """
        if self.streams is None:
            return ""
        epoch = self.streams.epoch
        if self.streams.assignment_epoch != epoch:
            return f"the target assignment is of epoch {self.streams.assignment_epoch}, the group is at epoch {epoch}"
        return next(filter(None, (_unsettled(member, epoch) for member in self.members)), "")

    @property
    def is_decoded(self) -> bool:
        """Every member shows both what it said and what it was given."""
        return all(member.subscription is not None and member.assignment is not None for member in self.members)


@dataclass(frozen=True, slots=True)
class GroupUnreadable:
    """No description, or one that cannot be trusted."""

    reason: Reason
    """`BrokersUnreachable`, `GroupUndecodable`, `GroupOutdated` or `GroupProtocolUnsupported`."""
    detail: str
    is_of_streams_protocol: bool = False
    """The brokers know the group as one of the streams protocol, so its members are this application's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRebalance:
    """A rebalance that this process watched from its beginning to Stable, and the ends it read right after.

    What a poll shows of positions is as old as the last join. Only a join that was watched tells how old that is; only
    ends read right after it tell the lag.
    """

    began_at: datetime
    """When the group was last seen as it was before, or the rebalance was triggered since: no position is older."""
    settled_at: datetime
    """When the group was first seen Stable again: every member joined before."""
    rejoined_members: frozenset[str]
    """The members whose subscription changed with it. A static member that is dead stays listed with its old one."""
    ends: EndOffsets | EndsUnreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReading:
    """One poll of the group."""

    ended_at: datetime
    """When its answer was in."""
    group: GroupDescription | GroupUnreadable
    rebalance: ObservedRebalance | None
    """The join whose subscriptions it shows; None where this process did not watch it."""
    asked_at: datetime | None = None
    """When it was asked for; None: its answer came at once."""
    latest_at: datetime | None = None
    """`ended_at` by the clock that was ahead, where the wall clock had been set; None: there was one time."""

    @property
    def as_of(self) -> datetime:
        """What it shows can be as old as that."""
        return self.asked_at or self.ended_at

    @property
    def seen_at(self) -> datetime:
        """When its members were seen, as compared with dates of other machines: not before this."""
        return self.latest_at or self.ended_at

    @property
    def shows_no_tasks(self) -> bool:
        """Tell whether the group has the streams protocol, whose tasks cannot be read, so that none can be covered.

        A group of another client, or one in a state that is not known, can be the wrong group: nothing rests on it.
        """
        return isinstance(self.group, GroupUnreadable) and self.group.is_of_streams_protocol


def _unsettled(member: Member, epoch: int) -> str:
    streams = member.streams
    if streams is None:
        return f"member {member.id} shows no epoch"
    if streams.epoch != epoch:
        return f"member {member.id} is at epoch {streams.epoch} of {epoch}"
    return "" if streams.target == member.assignment else f"member {member.id} does not have its target assignment"


MemberFingerprint = tuple[str, str | None, str, ProcessId | None, frozenset[TaskId], frozenset[TaskId]]


def fingerprint(group: GroupDescription) -> frozenset[MemberFingerprint]:
    """What must be the same in two readings in a row: who is a member, from where, as which process, holding what.

    Offset sums, owned partitions and generations are left out: every join changes them, a triggered one included.
    """
    return frozenset(_fingerprint(member) for member in group.members)


def _fingerprint(member: Member) -> MemberFingerprint:
    assignment = member.assignment
    active = frozenset[TaskId]() if assignment is None else assignment.active
    standby = frozenset[TaskId]() if assignment is None else assignment.standby
    return (member.id, member.instance_id, member.client_host, member.process_id, active, standby)
