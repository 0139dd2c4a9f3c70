"""The consumer group of one application on real brokers: translates between `streamapp.kafka` and the core's values.

Created by `apps.apps`, one per application. Kafka's errors end here: an unreadable fact is a value with a reason, and
only a failed step raises.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import structlog

from streamapp.controller.apps.apps import ClusterAccess
from streamapp.controller.ports import ApplicationGroup, KafkaStepError, Poll
from streamapp.core.facts import group as core
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.ids import TaskId, TopicPartition
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable, PartitionEnd, Unknown
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.topic_configs import ConfigUnread, TopicConfig
from streamapp.core.facts.topology import (
    GroupEvidence,
    TopicEvidence,
    Topology,
    infer_universe,
    parse_topology,
    universe_of,
    universe_of_broker,
)
from streamapp.core.reasons import Reason
from streamapp.kafka.brokers.shared_clusters import SharedClusters
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.allowed_brokers import EVERY_BROKER, AllowedBrokers
from streamapp.kafka.connection.answer_limits import DEFAULT_LIMITS, AnswerLimits
from streamapp.kafka.connection.errors import (
    AnswerTooLargeError,
    GroupNotClassicError,
    KafkaAccessError,
    StreamsProtocolError,
)
from streamapp.kafka.connection.off_loop import MEMBER_BYTES, decode
from streamapp.kafka.connection.settings import read_settings
from streamapp.kafka.group.eviction import MemberToEvict, evict, evict_from_streams_group
from streamapp.kafka.group.group_configs import GroupConfig
from streamapp.kafka.group.groups import ClassicGroupState, DecodedGroup, read_group
from streamapp.kafka.group.rebalance import ProbeNotRemoved, RebalanceSkipped, trigger_rebalance
from streamapp.kafka.group.streams_groups import StreamsReading, read_streams_group, read_streams_support
from streamapp.kafka.topics.offsets import committed
from streamapp.wire.assignment import DecodedAssignment, NoRebalanceScheduled
from streamapp.wire.errors import UndecodableError
from streamapp.wire.members import DecodedMember
from streamapp.wire.subscription import DecodedSubscription, PositionSum, RunningActivePosition, TaskPosition

log = structlog.get_logger()

MOST_PARTITIONS = 100_000
"""Of the source topics and changelogs of one application: ten times what 5,000 tasks with a store each have."""
MOST_NAMES_LOGGED = 20
"""Of the properties without meaning here; a Secret can have many thousands."""
SUPPORT_FOR_SECONDS = 600.0
"""What brokers support changes only with their release, or by an administrator."""
REFUSED_FOR_SECONDS = 60.0
"""A write of a group's setting that brokers refused is not repeated before."""
NONE_LASTS = timedelta(minutes=2)
"""Longer than a coordinator takes to resign, and another one to load the group."""


def connect(
    cluster_access: ClusterAccess,
    deadline_seconds: float,
    limits: AnswerLimits = DEFAULT_LIMITS,
    allowed: AllowedBrokers = EVERY_BROKER,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    clusters: SharedClusters | None = None,
) -> ApplicationGroup:
    """Give the Kafka side of an application; nothing is connected before the first look.

    Applications that are given the same `clusters` share the connections to each; without them one shares with none.
    """
    try:
        if cluster_access.fault is not None:
            return UnreachableGroup(cluster_access.fault)
        settings = read_settings(cluster_access.bootstrap, dict(cluster_access.properties), allowed)
        if settings.ignored:
            log.info(
                "client properties without meaning here",
                application=cluster_access.application_id,
                names=settings.ignored[:MOST_NAMES_LOGGED],
            )
    except KafkaAccessError as error:
        return UnreachableGroup(str(error))
    application_id = cluster_access.application_id
    cluster = KafkaCluster(settings, application_id, limits, clusters=clusters, tenant=cluster_access.namespace)
    return KafkaGroup(cluster, application_id, cluster_access.topology, deadline_seconds=deadline_seconds, now=now)


@dataclass(frozen=True, slots=True)
class UnreachableGroup:
    """Stands for a group that cannot even be asked for, because of what the spec or the Secret says."""

    why: str

    def close(self) -> None:
        """Nothing to do."""

    async def describe(self) -> Poll:
        """Say why."""
        return Poll(core.GroupUnreadable(Reason.BrokersUnreachable, self.why))

    async def task_set(self) -> TaskSet | TopologyUnknown:
        """Say why."""
        return TopologyUnknown(self.why)

    async def ends(self, task_set: TaskSet) -> EndOffsets | EndsUnreadable:  # noqa: ARG002 (the protocol's argument)
        """Say why."""
        return EndsUnreadable(self.why)

    async def tails(self, ends: Mapping[TopicPartition, PartitionEnd]) -> Mapping[TopicPartition, int | Unknown]:
        """Say why."""
        return dict.fromkeys(ends, Unknown(self.why))

    async def configs(self, topics: Iterable[str]) -> Mapping[str, TopicConfig | ConfigUnread]:
        """Say why."""
        return dict.fromkeys(topics, ConfigUnread(self.why))

    async def standbys(self) -> core.StandbySettingUnread:
        """Say why."""
        return core.StandbySettingUnread(self.why)

    async def trigger_rebalance(self, like_member: str) -> None:
        """Refuse."""
        raise KafkaStepError(f"trigger rebalance like {like_member}: {self.why}")

    async def set_standbys(self, replicas: int | None, instead_of: core.StandbySetting | None = None) -> None:  # noqa: ARG002 (the protocol's argument)
        """Refuse."""
        raise KafkaStepError(f"set standbys to {replicas}: {self.why}")

    async def evict(self, members: Sequence[MemberKey], reason: str) -> None:
        """Refuse."""
        raise KafkaStepError(f"evict {len(members)} members ({reason}): {self.why}")


class KafkaGroup:
    """One application's group and topics on one cluster."""

    def __init__(
        self,
        cluster: KafkaCluster,
        application_id: str,
        topology: str,
        *,
        deadline_seconds: float,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._now = now
        self._cluster = cluster
        self._application_id = application_id
        self._topology: Topology | TopologyUnknown | None = parse_topology(topology) if topology.strip() else None
        self._deadline_seconds = deadline_seconds
        self._last: DecodedGroup | None = None
        self._streams: StreamsReading | None = None
        """The last reading of a group of the streams protocol; None for a classic group."""
        self._refusal, self._refused_until = "", 0.0
        self._support: core.StreamsSupport | None = None
        self._support_until = 0.0
        self._none_since: dict[TopicPartition, datetime | None] = {}
        """When a partition was first seen without a committed offset; None: it had one."""

    def close(self) -> None:
        """Drop every connection that no other application uses; waits for nothing."""
        self._cluster.close()

    async def describe(self) -> Poll:
        """Look at the group."""
        try:
            return await self._described()
        except GroupNotClassicError as error:
            is_streams = isinstance(error, StreamsProtocolError)
            return Poll(core.GroupUnreadable(Reason.GroupProtocolUnsupported, str(error), is_streams))
        except KafkaAccessError as error:
            return Poll(core.GroupUnreadable(Reason.BrokersUnreachable, str(error)))
        except UndecodableError as error:
            return Poll(core.GroupUnreadable(Reason.GroupUndecodable, str(error)))

    async def _described(self) -> Poll:
        """Ask in the group's own protocol; only the broker says which one that is, and it can change."""
        if self._streams is None:
            try:
                return await self._described_classic()
            except StreamsProtocolError:
                self._last = None
        self._streams = await read_streams_group(self._cluster.group, self._deadline_seconds)
        if self._streams is None or self._streams.group.streams is None:
            return await self._described_classic()
        streams = await self._with_config(self._streams.group.streams)
        return Poll(replace(self._streams.group, streams=streams))

    async def _with_config(self, streams: core.StreamsGroup) -> core.StreamsGroup:
        config = await self._config()
        if isinstance(config, core.StandbySettingUnread):
            return replace(streams, standbys=config)
        return replace(
            streams,
            standbys=config.standbys,
            assignment_interval=config.assignment_interval,
            session_timeout=config.session_timeout,
        )

    async def _config(self) -> GroupConfig | core.StandbySettingUnread:
        """Read the group's settings; for a while after a refused write they are unread, so that none is repeated."""
        if time.monotonic() < self._refused_until:
            return core.StandbySettingUnread(self._refusal)
        try:
            return await self._cluster.configs.read(self._deadline_seconds)
        except KafkaAccessError as error:
            return core.StandbySettingUnread(str(error))

    async def standbys(self) -> core.StandbySetting | core.StandbySettingUnread:
        """Read `streams.num.standby.replicas` of the group, whatever its protocol is."""
        config = await self._config()
        return config if isinstance(config, core.StandbySettingUnread) else config.standbys

    async def _described_classic(self) -> Poll:
        asked = self._cluster.group.address
        self._last = await read_group(self._cluster.group, self._deadline_seconds)
        answered = self._cluster.group.address
        # An eviction, say, can have looked it up anew meanwhile: then it is open which of the two showed the group.
        coordinator: Hashable | None = answered if asked in {None, answered} else (asked, answered)
        poll = await decode(len(self._last.members) * MEMBER_BYTES, _poll, self._last)
        return replace(poll, support=await self._streams_support(), coordinator=coordinator)

    async def _streams_support(self) -> core.StreamsSupport | None:
        """Ask rarely whether the brokers could serve the group with the streams protocol; no reading fails for it."""
        is_there = self._last is not None and self._last.state is not ClassicGroupState.DEAD
        if is_there and time.monotonic() >= self._support_until:
            try:
                self._support = await read_streams_support(self._cluster.group, self._deadline_seconds)
            except KafkaAccessError:
                self._support = None
            self._support_until = time.monotonic() + (
                REFUSED_FOR_SECONDS if self._support is None else SUPPORT_FOR_SECONDS
            )
        return self._support

    async def task_set(self) -> TaskSet | TopologyUnknown:
        """Find out which tasks there are: from the brokers, the text in the spec, or the last look."""
        try:
            if self._streams is not None:
                return await self._known_to_brokers(self._streams)
            if isinstance(self._topology, TopologyUnknown):
                return self._topology
            if self._topology is not None:
                return universe_of(self._topology, await self._topics_of(self._topology))
            evidence = _evidence(self._last)
            return infer_universe(evidence, await self._topics(evidence.subscribed))
        except KafkaAccessError as error:
            return TopologyUnknown(str(error))

    async def _known_to_brokers(self, reading: StreamsReading) -> TaskSet | TopologyUnknown:
        """The tasks by the topology that the brokers have; a text that is known must say the same."""
        if reading.subtopologies is None:
            return TopologyUnknown("the brokers miss topics of the topology; see the application's logs")
        names = frozenset[str]().union(*(each.sources | each.changelogs for each in reading.subtopologies))
        partitions = await self._cluster.topics.partition_counts(names, self._deadline_seconds)
        _refuse_too_many(self._application_id, sum(partitions.values()))
        by_text = None
        if isinstance(self._topology, Topology):
            found = universe_of(self._topology, await self._topics_of(self._topology))
            by_text = found if isinstance(found, TaskSet) else None
        return universe_of_broker(self._application_id, reading.subtopologies, partitions, by_text)

    async def ends(self, task_set: TaskSet) -> EndOffsets | EndsUnreadable:
        """Read the ends of all changelogs."""
        partitions, from_source = _changelogs(task_set)
        offsets, deadline = self._cluster.offsets, self._deadline_seconds
        try:
            # The start first: compaction can advance it, and a log cannot start after its end.
            starts = await offsets.log_starts(partitions, deadline)
            commits = await committed(self._cluster.group, from_source, deadline)
            ends = await offsets.ends(partitions, deadline)
        except KafkaAccessError as error:
            return EndsUnreadable(str(error))
        torn = next((each for each in sorted(partitions) if starts[each] > ends[each]), None)
        if torn is not None:
            name = f"{torn.topic}-{torn.partition}"
            return EndsUnreadable(
                f"{name} began at {starts[torn]} and ended at {ends[torn]}: it was made anew meanwhile"
            )
        return EndOffsets(
            read_at=self._now(),
            partitions={each: PartitionEnd(log_start=starts[each], end=ends[each]) for each in partitions},
            committed=self._believed(commits, starts, ends),
        )

    def _believed(
        self,
        commits: Mapping[TopicPartition, int | None],
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
    ) -> Mapping[TopicPartition, int]:
        """The committed offsets; what has none is left out where it may have one.

        KAFKA-20416: while its coordinator resigns, what a group committed is answered as "none". Where there is no
        record it does not matter. Else none counts as 0 when it was the answer for so long, and there never was another
        one: Kafka Streams commits nothing of a partition of which it consumed no record.
        """
        now, found = self._now(), dict[TopicPartition, int]()
        for each, offset in commits.items():
            if offset is not None:
                self._none_since[each] = None
                found[each] = offset
            elif starts[each] == ends[each]:
                found[each] = ends[each]
            elif (since := self._none_since.setdefault(each, now)) is not None and now - since >= NONE_LASTS:
                found[each] = 0
        return found

    async def tails(self, ends: Mapping[TopicPartition, PartitionEnd]) -> Mapping[TopicPartition, int | Unknown]:
        """Read the tails, all or none: a right that is missing, or a broker that is silent, makes all unknown."""
        try:
            return await self._cluster.tails.data_ends(ends, self._deadline_seconds)
        except KafkaAccessError as error:
            return dict.fromkeys(ends, Unknown(str(error)))

    async def configs(self, topics: Iterable[str]) -> Mapping[str, TopicConfig | ConfigUnread]:
        """Read the settings of each topic; a right that is missing on one of them hides only that one's."""
        names = frozenset(topics)
        try:
            return await self._cluster.topics.configs(names, self._deadline_seconds)
        except KafkaAccessError as error:
            return dict.fromkeys(names, ConfigUnread(str(error)))

    async def trigger_rebalance(self, like_member: str) -> None:
        """Trigger a rebalance with a probe member that copies this member; KafkaStepError if it failed."""
        what = f"group {self._application_id}: trigger rebalance"
        members = () if self._last is None else self._last.members
        model = next((each.subscription for each in members if each.member_id == like_member), None)
        if model is None:
            raise KafkaStepError(f"{what}: member {like_member} has left the group")
        try:
            outcome = await trigger_rebalance(self._cluster.group, model, self._deadline_seconds)
        except (KafkaAccessError, UndecodableError) as error:
            raise KafkaStepError(str(error)) from error
        if isinstance(outcome, RebalanceSkipped):
            raise KafkaStepError(f"{what}: the group is {outcome.reason.value} now")
        if isinstance(outcome, ProbeNotRemoved):
            raise KafkaStepError(f"{what}: the probe member could not leave: {outcome.why}")

    async def set_standbys(self, replicas: int | None, instead_of: core.StandbySetting | None = None) -> None:
        """Set `streams.num.standby.replicas` of the group, or remove it; KafkaStepError if the brokers refuse.

        They know no fence, so they are asked once more right before: what another hand has set meanwhile stays.
        """
        configs = self._cluster.configs
        try:
            config = None if instead_of is None else await configs.read(self._deadline_seconds, asks_cluster=True)
            now = None if config is None else config.standbys
            if now != instead_of or _cluster(now) != _cluster(instead_of):
                raise KafkaStepError(f"set standbys to {replicas}: {now} is set since, in place of {instead_of}")
            await configs.set_standbys(replicas, self._deadline_seconds)
        except KafkaAccessError as error:
            self._refusal, self._refused_until = str(error), time.monotonic() + REFUSED_FOR_SECONDS
            raise KafkaStepError(str(error)) from error

    async def evict(self, members: Sequence[MemberKey], reason: str) -> None:
        """Evict exactly these members from the group; KafkaStepError if it is unknown whether all are out."""
        targets = [MemberToEvict(member.id, member.instance_id) for member in members]
        try:
            if self._streams is not None:
                await evict_from_streams_group(self._cluster.group, targets, self._deadline_seconds)
            else:
                await evict(self._cluster.group, targets, f"streamapp-operator: {reason}", self._deadline_seconds)
        except KafkaAccessError as error:
            raise KafkaStepError(str(error)) from error

    async def _topics_of(self, topology: Topology) -> TopicEvidence:
        return await self._topics(topology.source_topics(self._application_id))

    async def _topics(self, sources: frozenset[str]) -> TopicEvidence:
        topics = self._cluster.topics
        partitions = await topics.partition_counts(sources, self._deadline_seconds)
        changelogs = await topics.changelogs(self._application_id, self._deadline_seconds)
        _refuse_too_many(self._application_id, sum(partitions.values()) + sum(changelogs.values()))
        return TopicEvidence(
            application_id=self._application_id,
            partitions=partitions,
            changelogs=changelogs,
            other_applications=await self._cluster.prefixes.longer_ids(self._application_id, self._deadline_seconds),
        )


def _refuse_too_many(application_id: str, count: int) -> None:
    if count > MOST_PARTITIONS:
        what, why = f"application {application_id}: topics", f"they have {count} partitions together"
        raise AnswerTooLargeError(what, why, f"at most {MOST_PARTITIONS} are watched for one application")


def _changelogs(task_set: TaskSet) -> tuple[frozenset[TopicPartition], frozenset[TopicPartition]]:
    """Give all changelog partitions, and those among them that are source topics."""
    sources = {partition for task in task_set.tasks for partition in task.source_changelogs}
    return task_set.changelogs, frozenset(sources)


def _evidence(reading: DecodedGroup | None) -> GroupEvidence:
    members = () if reading is None else reading.members
    active: dict[TaskId, frozenset[TopicPartition]] = {}
    stateful: set[TaskId] = set()
    subscribed: set[str] = set()
    for member in members:
        if member.assignment is not None:
            for task, partitions in member.assignment.active.items():
                active[task] = active.get(task, frozenset()) | partitions
            stateful |= member.assignment.standby.keys()
        if member.subscription is not None:
            stateful |= member.subscription.info.positions.keys()
            subscribed |= set(member.subscription.topics)
    return GroupEvidence(active=active, stateful=frozenset(stateful), subscribed=frozenset(subscribed))


def _poll(reading: DecodedGroup) -> Poll:
    members = reading.members
    description = core.GroupDescription(
        core.GroupState(reading.state.value), tuple(_member(member) for member in members)
    )
    joins = {each.member_id: _join_mark(each.subscription) for each in members if each.subscription is not None}
    return Poll(description, joins)


def _member(member: DecodedMember) -> core.Member:
    return core.Member(
        id=member.member_id,
        client_id=member.client_id,
        client_host=member.host,
        instance_id=member.instance_id,
        subscription=None if member.subscription is None else _subscription(member.subscription),
        assignment=None if member.assignment is None else _assignment(member.assignment),
    )


def _subscription(subscription: DecodedSubscription) -> core.Subscription:
    return core.Subscription(
        process_id=subscription.info.process_id,
        offsets=MappingProxyType({task: _position(position) for task, position in subscription.info.positions.items()}),
        owned_partitions=subscription.owned_partitions,
        newest_version=subscription.info.latest_supported_version,
        is_tagged=bool(subscription.info.client_tags or subscription.rack),
        generation=subscription.generation,
    )


def _position(position: TaskPosition) -> core.OffsetSum:
    if isinstance(position, PositionSum):
        return core.Applied(position.offsets)
    return core.NoOffsets.RUNNING if isinstance(position, RunningActivePosition) else core.NoOffsets.UNKNOWN


def _assignment(assignment: DecodedAssignment) -> core.Assignment:
    is_done = isinstance(assignment.next_rebalance, NoRebalanceScheduled)
    return core.Assignment(
        active=frozenset(assignment.active),
        standby=frozenset(assignment.standby),
        follow_up=core.FollowUp.NONE if is_done else core.FollowUp.SCHEDULED,
    )


def _join_mark(subscription: DecodedSubscription) -> tuple[object, ...]:
    """Give what a join changes: Streams counts its joins, the consumer names the generation it came from.

    The positions are there for clients too old for either.
    """
    positions: Mapping[TaskId, TaskPosition] = subscription.info.positions
    return (
        subscription.info.unique_field,
        subscription.generation,
        subscription.owned_partitions,
        frozenset(positions.items()),
    )


def _cluster(setting: core.StandbySetting | None) -> str | None:
    return None if setting is None else setting.cluster
