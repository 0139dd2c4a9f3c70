"""All facts that one decision may use, gathered in one pass; time enters here and nowhere else.

Made by the controller's gatherer, consumed by `decide.decide`. What comes from memory can be missing after a restart:
the history of desired replicas (but for how long the last number has been there), older readings, observed members,
triggered rebalances. It is empty then, and what needs it waits.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

from streamapp.core.facts.agent_reports import AgentsSeen
from streamapp.core.facts.autoscalers import NOT_LISTED, ReplicaWriters, ReplicaWritersUnknown
from streamapp.core.facts.containers import ContainerEnd, ObservedMembers
from streamapp.core.facts.group import GroupReading
from streamapp.core.facts.hold_record import RaisedStandbys
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.topic_configs import ConfigUnread, TopicConfig
from streamapp.core.facts.workload import Workload

MOST_RATES = 200
MOST_PAUSES = 20


@dataclass(frozen=True, slots=True)
class DesiredSample:
    """From `at` on `spec.replicas` had this value, until the next such entry."""

    at: datetime
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredReplicas:
    """`spec.replicas`, which belongs to the user or the HPA, and what this process saw it be before."""

    replicas: int
    history: tuple[DesiredSample, ...]
    unchanged_since: datetime | None = None
    """Since when the field has its value, or longer, as a process that took over can read it: the API server's date
    of the last write, or what an earlier process noted. None: it is not known."""

    def __post_init__(self) -> None:
        """Sort by time."""
        object.__setattr__(self, "history", tuple(sorted(self.history, key=lambda seen: (seen.at, seen.replicas))))

    def highest_within(self, window: timedelta, now: datetime) -> int | None:
        """The highest desired replicas during the window; None if neither memory nor the field's date goes so far back.

        What this process saw itself counts beside the date, whose clock is another machine's.
        """
        opening = now - window
        known = [seen.replicas for seen in self.history if seen.at <= opening][-1:]
        if not known and (self.unchanged_since is None or self.unchanged_since > opening):
            return None
        later = [seen.replicas for seen in self.history if opening < seen.at <= now]
        return max([self.replicas, *known, *later])

    @property
    def same_since(self) -> datetime | None:
        """Since when this number is desired without a break, as far back as is known; None if nothing is known."""
        latest = self.history[-1] if self.history else None
        seen = None if latest is None or latest.replicas != self.replicas else latest.at
        return min((at for at in (seen, self.unchanged_since) if at is not None), default=None)

    def lower_since(self, granted: int) -> datetime | None:
        """When desired replicas fell below current replicas, as far back as is known; None if nothing is known."""
        since: datetime | None = None
        for seen in self.history:
            if seen.replicas >= granted:
                since = None
            elif since is None:
                since = seen.at
        if since is None or self.unchanged_since is None:
            return since
        return min(since, self.unchanged_since)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictingStreamApp:
    """Another StreamApp with the same application ID on the same Kafka cluster."""

    name: str
    uid: str
    created_at: datetime
    in_group: bool = False
    """Whether its pods run members of the consumer group, as this application's own brokers say."""
    has_statefulset: bool = False
    """Whether it has a StatefulSet, or can have one: no watch says that it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlistedNamespaces:
    """Watched namespaces whose StreamApps this process has never listed: an older one with our ID can be there."""

    silent: tuple[str, ...] = ()
    """Those that gave no answer when they were last asked, or an error of the server."""
    refusing: tuple[str, ...] = ()
    """Those that the API server answers about: they are gone, or the operator may not list them."""

    @property
    def names(self) -> tuple[str, ...]:
        """All of them; `*` stands for the whole cluster."""
        return tuple(sorted((*self.silent, *self.refusing)))


ALL_LISTED = UnlistedNamespaces()


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldOverride:
    """`streamapp.dev/override`: the user's word that one hold need not wait for coverage any longer."""

    hold_id: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartRequest:
    """`streamapp.dev/restart`: the user's word that one pod is to restart as soon as it is covered.

    The UID fences it: the pod that comes next has another one, so the request is over without anybody's write.
    """

    pod_uid: str
    new_volume: bool = False
    """The user deletes the pod's claim; the restart waits until that has begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """The StreamApp resource, as far as a decision needs it."""

    uid: str
    generation: int
    created_at: datetime
    desired: DesiredReplicas
    paused: bool = False
    dry_run: bool = False
    deleting: bool = False
    keeps_state: bool = True
    """`spec.state` is set: every ordinal has a volume with its process ID."""
    max_idle_time: timedelta | None = None
    """`spec.state.maxIdleTime`: how long state may lie unused before it is removed; None where no state is kept."""
    volume_size: int | None = None
    """Bytes that each volume claim is to ask for; None where no state is kept."""
    fault: str | None = None
    """What is wrong with the spec, as a sentence; None where it is valid."""
    is_rejected: bool = False
    """The API server alone says that, of an object that the spec makes: it can accept a raise before it is valid."""
    conflicting: tuple[ConflictingStreamApp, ...] = ()
    in_group: bool = False
    """Whether own pods run members of the consumer group."""
    unlisted: UnlistedNamespaces = ALL_LISTED
    held_because: str | None = None
    """The reason given in `streamapp.dev/hold`; None without that annotation."""
    override: HoldOverride | None = None
    restarts: tuple[RestartRequest, ...] = ()
    is_migrating: bool = False
    """`streamapp.dev/migration` is there: with 0 desired replicas, no pod is to take over, so all stop together."""
    granted_before: int | None = None
    """`status.stateful_set_replicas`: only used to re-create a StatefulSet that is gone, and only to make it larger."""

    def served_instead(self, *, has_statefulset: bool) -> ConflictingStreamApp | None:
        """Which StreamApp is served in our place: one whose pods are in the group, or that has a StatefulSet.

        Among those it is the oldest. A StatefulSet counts because the group says nothing before it was read: an older
        StreamApp that is received late, or by a new process, must not put pods beside those of the one that is served.

        Args:
            has_statefulset: Whether this StreamApp has one.
        """

        def rank(one: ConflictingStreamApp) -> tuple[bool, bool, datetime, str]:
            return not one.in_group, not one.has_statefulset, one.created_at, one.uid

        own = not self.in_group, not has_statefulset, self.created_at, self.uid
        return min((one for one in self.conflicting if rank(one) < own), key=rank, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """How far the way to convergence was and how far it was come, as the last decision said."""

    began_at: datetime
    lag_at_start: int
    least_lag: int
    improved_at: datetime | None = None
    """When the lag last fell below all that was seen of this layout; None while it has not."""
    lowest: int | None = None
    """The least lag of this layout, also before it rose above `lag_at_start`; None: it is `least_lag`."""
    layout_since: datetime | None = None
    """Since when this layout is there, as the `RebalanceHistory` has it."""

    @property
    def progress_at(self) -> datetime:
        """When the lag last showed progress, or was first measured."""
        return self.improved_at or self.began_at


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedTriggers:
    """Rebalance triggers that failed, one after the other."""

    times: int
    at: datetime
    """When the last one failed."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceHistory:
    """What this process remembers of the rebalances that it triggered."""

    sent: tuple[datetime, ...] = ()
    """Those of the last ten minutes at least."""
    layout_since: datetime | None = None
    """Since when members and their tasks are as they are; None while no change was seen."""
    refused: RefusedTriggers | None = None
    """Those since the last one that did not fail, and since members or tasks last changed."""

    def __post_init__(self) -> None:
        """Sort by time."""
        object.__setattr__(self, "sent", tuple(sorted(self.sent)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """Replicas that were raised before anything but the StreamApp and the StatefulSet was read."""

    from_replicas: int
    to_replicas: int
    cancelled_hold: str | None = None
    """ID of the hold that ended with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionTurn:
    """How a pod that is on a node that must be drained was given its turn to be evicted."""

    allowed_since: datetime | None = None
    """Since when it may be evicted in this turn; None: not yet."""
    passed: int = 0
    """Turns that ended without an eviction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlace:
    """What the budget of its Kafka cluster leaves to an application: one place, for all of its learners."""

    is_held: bool = False
    """The application has a place: granted, or since its learners were found to be under way."""
    is_granted: bool = False
    """It has one that was free when it began."""
    is_free: bool = True
    """It has such a one, or can take one now."""
    ahead: int = 0
    """Applications that have a place, or have waited longer for one."""
    most: int = 0
    """Places of the cluster; 0: there is no limit."""


class Direction(Enum):
    """Of a change of the replicas."""

    UP = "up"
    DOWN = "down"

    @classmethod
    def of(cls, before: int, after: int) -> "Direction":
        """More replicas, or not."""
        return cls.UP if after >= before else cls.DOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Speeds:
    """How fast the application was seen to restore, and what its changes took beside their rebalances; newest last.

    For predictions only: no step of the operator depends on them.
    """

    restore: tuple[float, ...] = ()
    """Records a second of one process that restores."""
    pauses_up: tuple[float, ...] = ()
    """Seconds that a change to more replicas took beside its rebalances."""
    pauses_down: tuple[float, ...] = ()

    def with_rates(self, rates: Iterable[float]) -> "Speeds":
        """And these rates."""
        return replace(self, restore=(*self.restore, *rates)[-MOST_RATES:])

    def with_pause(self, direction: Direction, seconds: float) -> "Speeds":
        """And one more change."""
        if direction is Direction.UP:
            return replace(self, pauses_up=(*self.pauses_up, seconds)[-MOST_PAUSES:])
        return replace(self, pauses_down=(*self.pauses_down, seconds)[-MOST_PAUSES:])


NOTHING_SEEN = Speeds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything."""

    now: datetime
    """Aware; every age is measured against it."""
    app: App
    workload: Workload
    task_set: TaskSet | TopologyUnknown
    readings: tuple[GroupReading, ...]
    """Newest first: every poll of the last minute, and at least the last one of each of the last two joins."""
    observed: tuple[ObservedMembers, ...] = ()
    """Members seen per container since this process started (`eviction.remember`)."""
    container_ends: tuple[ContainerEnd, ...] = ()
    rebalances: RebalanceHistory = RebalanceHistory()
    episode: Episode | None = None
    was_at_rest: bool = False
    """The last decision of this process found the application converged, and had nothing to do."""
    topic_configs: Mapping[str, TopicConfig | ConfigUnread] = field(default_factory=dict)
    """Of the topics behind the stores; one that was not asked for yet is missing. Nothing waits for them."""
    agents: AgentsSeen | None = None
    """What the agents in the pods say; None where the application runs without."""
    speeds: Speeds = NOTHING_SEEN
    """For predictions; no step depends on them."""
    replica_writers: ReplicaWriters | ReplicaWritersUnknown = NOT_LISTED
    """Who drives the replicas. Told to people; no step depends on it."""
    lease: int = 0
    """Transitions of the operator's Lease."""
    eviction_turns: Mapping[str, EvictionTurn] = field(default_factory=dict)
    """By UID of the pods that are on nodes that must be drained."""
    raised: Raise | None = None
    """The raise that this pass has made already; the StatefulSet is as the raise left it."""

    lost_standbys: RaisedStandbys | None = None
    """What must be put back by a hold record that is gone, with its StatefulSet or by another hand."""
    place: RestorePlace = RestorePlace()
    """Whether learners can be asked for beside those of other applications."""

    def __post_init__(self) -> None:
        """Bring every collection into one order, so that none means anything.

        Raises:
            ValueError: `now` has no zone, or two readings ended at the same instant.
        """
        if self.now.tzinfo is None:
            raise ValueError("snapshot: now must be aware of its zone")
        if len({reading.ended_at for reading in self.readings}) != len(self.readings):
            raise ValueError("snapshot: two readings ended at the same instant, so neither is the newer one")
        newest_first = sorted(self.readings, key=lambda reading: reading.ended_at, reverse=True)
        object.__setattr__(self, "readings", tuple(newest_first))
        by_container = sorted(
            self.observed, key=lambda seen: (seen.ordinal, seen.container_id, seen.seen_at, seen.members)
        )
        object.__setattr__(self, "observed", tuple(by_container))
        ends = sorted(self.container_ends, key=lambda end: (end.container_id, end.finished_at, end.pod_uid))
        object.__setattr__(self, "container_ends", tuple(ends))

    @property
    def latest(self) -> GroupReading | None:
        """The newest poll, whatever it says."""
        return self.readings[0] if self.readings else None
