"""What the process remembers of one application beyond what can be read again; empty after every start.

Written by `apps.group_poller` (the group), `process` (ends of containers) and the passes; read by `reconcile.gather`.
If something is missing here, the core waits; it never acts on an assumption.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from streamapp.api.validation.parse import InvalidStreamApp, StreamApp
from streamapp.core.actions.decision import CompletedStep, Event
from streamapp.core.doctor.subject import PassFailure
from streamapp.core.facts.agent_reports import AgentsSeen
from streamapp.core.facts.containers import ContainerEnd, ObservedMembers
from streamapp.core.facts.group import GroupReading, StreamsSupport
from streamapp.core.facts.hold_record import HoldRecord, RaisedStandbys, RecordUnreadable
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import (
    NOTHING_SEEN,
    DesiredSample,
    Episode,
    EvictionTurn,
    Raise,
    RebalanceHistory,
    Snapshot,
    Speeds,
)
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.topic_configs import ConfigUnread, TopicConfig
from streamapp.core.facts.workload import Pod, StatefulSet, Volume, Workload
from streamapp.core.status.gaps import Gap, GapUnknown, RunningSeen

CLOCK_DOUBT = timedelta(seconds=60)
"""How far a node's clock can be ahead of ours where nothing bounds it."""
CONTAINER_END_RETENTION = timedelta(hours=1)
"""Long after every session timeout: a member that is still listed then is alive or a static one."""
DESIRED_RETENTION = timedelta(hours=25)
"""Longer than the longest `scaleDown.stabilizationWindow` (a day)."""
EVENT_INTERVAL = timedelta(minutes=10)
"""An Event is not published again within this time."""
EXPANSION_RETRY_AFTER = timedelta(minutes=5)
REJECTED_RETRY_AFTER = timedelta(minutes=1)
"""How long an object that the API server did not accept is not sent again."""
RUN_RETENTION = timedelta(minutes=10)
"""How long a container that no read shows any more keeps its date; no watch is behind for longer without a list."""
MOST_RUNNING_SAMPLES = 600
"""Looks at who runs what, from before a step until it is closed."""
MOST_RUNNING_TASKS = 250_000
"""In all of these looks together: fifty layouts of 5,000 tasks. Any broker can show another layout at each look."""


@dataclass(frozen=True, slots=True)
class RejectedObjects:
    """Objects that the API server did not accept."""

    generation: int
    """Of the StreamApp."""
    why: str
    until: datetime
    """Then the objects are sent again: an admission policy can have changed."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison of a StatefulSet with what a write would make of it."""

    version: tuple[str, int, int]
    """UID and generation of the StatefulSet, and generation of the StreamApp."""
    again_at: float
    """When to compare again, whatever the version says; on the monotonic clock."""
    found: str
    """The first field that differs and is to be put back; empty if there is none."""


@dataclass(frozen=True, slots=True)
class PutBack:
    """A field that another writer changed and that was put back."""

    field: str
    at: float
    """When it was put back last, on the monotonic clock."""
    times: int
    """How often in a row."""


@dataclass(frozen=True, slots=True)
class RefusedExpansion:
    """A volume claim that the API server did not let ask for more."""

    to_bytes: int
    why: str
    until: datetime
    """When to try again, if nothing else is asked for before."""


@dataclass(frozen=True, slots=True)
class Unreported:
    """What passes found that a raise ended before their report; no later pass can find it again."""

    events: tuple[Event, ...] = ()
    closed_step: CompletedStep | None = None
    gap: Gap | GapUnknown | None = None
    """Of that step."""


@dataclass(frozen=True, slots=True)
class LastPass:
    """One pass."""

    streamapp: StreamApp | InvalidStreamApp
    snapshot: Snapshot
    policy: ScalingPolicy

    @property
    def uid(self) -> str:
        """Of the StreamApp."""
        return self.snapshot.app.uid


@dataclass(slots=True)
class Memory:
    """One application."""

    uid: str
    """Of the StreamApp; another UID under the same name is another application."""
    desired_samples: list[DesiredSample] = field(default_factory=list)
    desired_generation: int | None = None
    """The latest generation of the StreamApp at which they were seen."""
    desired_noted_since: datetime | None = None
    """Since when they are as they are, as an earlier process noted it; None: it noted nothing of this number."""
    desired_unchanged_since: datetime | None = None
    """When `spec.replicas` was last written, as the StreamApp says that was read last."""
    readings: tuple[GroupReading, ...] = ()
    group_read_at: datetime | None = None
    """When the group was last read successfully."""
    streams_support: StreamsSupport | None = None
    """What the brokers said last about the streams protocol, while the group is a classic one."""
    task_set: TaskSet | TopologyUnknown = field(default_factory=lambda: TopologyUnknown("The group was not read yet."))
    topic_configs: Mapping[str, TopicConfig | ConfigUnread] = field(default_factory=dict)
    """Of the topics behind the stores, as they were last read."""
    agents: AgentsSeen | None = None
    """The reports of the agents; None if the application has no agents."""
    speeds: Speeds = NOTHING_SEEN
    """For predictions."""
    topology: str = ""
    """The last text that all agents reported; empty if they never agreed on one."""
    reported_topology: str = ""
    """The text that all agents reported in the last poll; else empty."""
    observed: tuple[ObservedMembers, ...] = ()
    observed_at: datetime | None = None
    """End of the reading that the captures were last brought up to."""
    unplaced_since: dict[str, datetime] = field(default_factory=dict)
    """Members, by ID, which a live read could not place in a container, with the first reading that shows each."""
    ends: dict[str, ContainerEnd] = field(default_factory=dict)
    """By container ID."""
    eviction_turns: Mapping[str, EvictionTurn] = field(default_factory=dict)
    """By UID of the pods that are on nodes that must be drained, as the last decision left them."""
    runs: dict[str, datetime] = field(default_factory=dict)
    """When each container was first seen running, by its ID."""
    unwitnessed: set[str] = field(default_factory=set)
    """Those of them that ran already when this process first saw their pod."""
    seen_pods: set[str] = field(default_factory=set)
    """The UIDs of the pods that it has seen."""
    rebalances: RebalanceHistory = field(default_factory=RebalanceHistory)
    episode: Episode | None = None
    running_samples: list[RunningSeen] = field(default_factory=list)
    published_events: dict[Event, datetime] = field(default_factory=dict)
    pods_by_version: dict[tuple[str, str, str], Pod] = field(default_factory=dict)
    """The pods as the last pass read them, for `from_json.pods`."""
    pods_with_runs: dict[str, tuple[Pod, Pod]] = field(default_factory=dict)
    """The same by UID, each beside the one whose run is dated, for `with_runs`."""
    workload: Workload | None = None
    """As the last pass read it."""
    current_replicas: int | None = None
    """Replicas of the StatefulSet, as last read or written; None if it was not read yet or is missing."""
    lag_limit: int | None = None
    """`acceptable_recovery_lag` as the last pass read it."""
    has_volumes: bool = False
    """Whether the last pass saw that ordinals have volumes; the settings of topics matter only to those."""
    active_warnings: frozenset[Event] = frozenset()
    """The warnings of the last published decision."""
    raised_standbys: RaisedStandbys | None = None
    """The setting of the group that must be put back, by the hold record as this process last read or wrote it."""
    is_record_known: bool = False
    """Whether this process has read or written a hold record, or knows by a pass that none is needed."""
    is_fenced: bool = False
    """Whether this process has written its own epoch into the hold record it found, or beside one it cannot read."""
    fenced_lease: int = 0
    """The number of that epoch's process: a larger one in the record is of a process that began to act later."""
    is_record_unread: bool = False
    """Whether it was written beside one: the epoch is written into the record as soon as that can be read."""
    rejection: RejectedObjects | None = None
    """Why the API server did not accept the objects that the spec makes."""
    refused_expansions: dict[str, RefusedExpansion] = field(default_factory=dict)
    status_written_at: datetime | None = None
    failure: PassFailure | None = None
    """How the last pass failed; None where it succeeded."""
    owned_objects_written: tuple[int, bool] | None = None
    """Generation of the StreamApp for which Service and budget were last written."""
    owned_objects_compared_at: float = float("-inf")
    """When Service and budget were last compared with what they must be, on the monotonic clock."""
    raised: Raise | None = None
    """A raise that was made beside the passes; the next one reports it."""
    had_plan: bool = False
    """Whether the last pass had something to do: then the next begins with live reads."""
    was_converged: bool = False
    """Whether the last pass found the application converged."""
    unreported: Unreported = Unreported()
    compared: Compared | None = None
    """The last comparison of the StatefulSet with what the spec makes of it."""
    put_back: PutBack | None = None
    """The field that was put back last."""

    def note_fence(self, lease: int) -> None:
        """Remember that our own epoch is written; only the first number tells which ones are of later processes."""
        self.fenced_lease = self.fenced_lease if self.is_fenced else lease
        self.is_fenced = True

    def follow_record(self, record: HoldRecord | RecordUnreadable | None) -> None:
        """Remember the setting of the group that must be put back, by a hold record that was read.

        A record that is gone tells nothing: another hand can have removed it, or the StatefulSet with it.
        """
        if isinstance(record, HoldRecord):
            self.raised_standbys, self.is_record_known = record.standbys, True

    def follow_written_record(self, record: HoldRecord | RecordUnreadable | None) -> None:
        """The same by what the record says after a pass; None: it has none any more, since nothing must be put back."""
        if not isinstance(record, RecordUnreadable):
            self.raised_standbys, self.is_record_known = (None if record is None else record.standbys), True

    def lost_standbys(self, statefulset: StatefulSet | None, in_status: RaisedStandbys | None) -> RaisedStandbys | None:
        """What must be put back though the hold record of this StatefulSet is gone.

        Args:
            statefulset: As it was read.
            in_status: What the status of the StreamApp says: it counts where this process never saw a record.
        """
        if statefulset is None or not statefulset.is_ours or statefulset.record is not None:
            return None
        return self.raised_standbys if self.is_record_known else in_status

    def forget_group(self) -> None:
        """Forget facts of another cluster or of another topology: no decision must use them."""
        self.readings, self.task_set = (), TopologyUnknown("The group was not read yet.")
        self.rebalances = replace(self.rebalances, refused=None)
        self.topic_configs = {}
        if self.agents is not None:
            self.agents = replace(self.agents, ends=())

    def record_desired(self, replicas: int, generation: int, at: datetime, noted_since: datetime | None = None) -> None:
        """Remember the desired replicas from now on; where they are new here, what was noted of just this spec, too.

        If a change of the spec was missed, they can have been others in between: what was seen before says nothing.
        """
        seen = generation if self.desired_generation is None else self.desired_generation
        if generation > seen + 1:
            self.desired_samples = []
        self.desired_generation = max(seen, generation)
        if not self.desired_samples or self.desired_samples[-1].replicas != replicas:
            self.desired_noted_since = noted_since
            self.desired_samples.append(DesiredSample(at, replicas))
        # The last sample before the horizon has the desired replicas at the horizon.
        while len(self.desired_samples) > 1 and self.desired_samples[1].at < at - DESIRED_RETENTION:
            del self.desired_samples[0]

    def record_rejection(self, generation: int, why: str, at: datetime) -> None:
        """Remember that the API server did not accept what the spec makes."""
        self.rejection = RejectedObjects(generation, why, at + REJECTED_RETRY_AFTER)

    def record_terminations(self, ends: tuple[ContainerEnd, ...], at: datetime) -> None:
        """Remember how containers ended; the first trusted report of each stays, also while members count as its own.

        A node's clock can be ahead of ours: at least by as much as it dated the start after we saw the container run.
        If an end is still dated after we received it, the time of receipt counts. Else a member of the next container
        would count as one that was there before the end: above all where the node was cut off meanwhile, so that its
        reports are late.
        """
        for reported in ends:
            end = replace(
                reported,
                finished_at=min(reported.finished_at - self._clock_ahead(reported), at),
                clock_doubt=CLOCK_DOUBT if reported.container_id in self.unwitnessed else timedelta(0),
            )
            earlier = self.ends.get(end.container_id)
            if earlier is None or (end.is_trusted and not earlier.is_trusted):
                self.ends[end.container_id] = end
            elif end.is_followed and not earlier.is_followed:
                self.ends[end.container_id] = replace(earlier, is_followed=True)
        named = {seen.container_id for seen in self.observed}
        over = [end for end in self.ends.values() if end.finished_at < at - CONTAINER_END_RETENTION]
        for old in [end for end in over if end.container_id not in named]:
            del self.ends[old.container_id]

    def _clock_ahead(self, end: ContainerEnd) -> timedelta:
        """How far the clock of a container's node is known to be ahead."""
        seen = self.runs.get(end.container_id)
        return timedelta(0) if seen is None or end.started_at is None else max(timedelta(0), end.started_at - seen)

    def record_runs(self, pod_uid: str, container_ids: Iterable[str], at: datetime) -> None:
        """Remember which containers of a pod were seen running; the first time stays, for as long as they are seen."""
        new = set(container_ids) - self.runs.keys()
        self.runs.update(dict.fromkeys(new, at))
        if pod_uid not in self.seen_pods:
            self.unwitnessed |= new
        self.seen_pods.add(pod_uid)

    def with_runs(self, workload: Workload, at: datetime) -> Workload:
        """Date the runs of the pods by this process's clock; forget those of other pods after a while.

        Not at once: a watch can be behind the live read that saw a container first. If the run were forgotten, the
        container would be dated later than the join of its members, and its copies would count only after another one.
        """
        present = {pod.container.id for pod in workload.pods}
        oldest = at - RUN_RETENTION
        self.runs = {one: seen for one, seen in self.runs.items() if one in present or seen >= oldest}
        self.unwitnessed &= self.runs.keys()
        self.seen_pods &= {pod.uid for pod in workload.pods}
        dated = [(pod, self._dated(pod)) for pod in workload.pods]
        self.pods_with_runs = {pod.uid: (pod, one) for pod, one in dated}
        return replace(workload, pods=tuple(one for _, one in dated))

    def _dated(self, pod: Pod) -> Pod:
        """Date the run of a pod; the last pass did that already for most of them."""
        seen = self.runs.get(pod.container.id or "")
        before, dated = self.pods_with_runs.get(pod.uid, (None, pod))
        if before is pod and dated.container.first_seen_at == seen:
            return dated
        return replace(pod, container=replace(pod.container, first_seen_at=seen))

    def record_refused_expansion(self, claim_uid: str, to_bytes: int, why: str, at: datetime) -> None:
        """Remember that the API server did not let a claim ask for more."""
        self.refused_expansions[claim_uid] = RefusedExpansion(to_bytes, why, at + EXPANSION_RETRY_AFTER)

    def with_refused_expansions(self, volumes: tuple[Volume, ...], to_bytes: int, at: datetime) -> tuple[Volume, ...]:
        """Say of each volume why it cannot be expanded; forget what is to be tried again."""
        self.refused_expansions = {
            uid: refused
            for uid, refused in self.refused_expansions.items()
            if at < refused.until and refused.to_bytes == to_bytes
        }
        found = self.refused_expansions
        return tuple(
            replace(volume, not_expandable=found[volume.uid].why) if volume.uid in found else volume
            for volume in volumes
        )

    def not_yet_reported(self, event: Event, at: datetime) -> bool:
        """Whether this Event was not published lately; if so, remember that it is published now."""
        self.published_events = {one: when for one, when in self.published_events.items() if at - when < EVENT_INTERVAL}
        if event in self.published_events:
            return False
        self.published_events[event] = at
        return True

    def record_running(self, sample: RunningSeen) -> None:
        """Remember which ordinal ran which task; of looks that show the same, the first and the last."""
        known = self.running_samples
        if known and known[-1].at >= sample.at:
            return
        if known and known[-1].shows_as(sample):
            sample = replace(sample, by_task=known[-1].by_task, unproven=known[-1].unproven)
            known = known[:-1] if len(known) > 1 and known[-2].shows_as(sample) else known
        kept, tasks = [sample], sample.size
        for look in reversed(known[-MOST_RUNNING_SAMPLES:]):
            tasks += look.size
            if tasks > MOST_RUNNING_TASKS:
                break
            kept.append(look)
        self.running_samples = kept[::-1]
