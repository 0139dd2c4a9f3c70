"""One small application, as a snapshot: what the state table decides about, and what tests and documents start from.

`wordcount` has three pods of one stream thread each and six stateful tasks `0_0` to `0_5`; pod *n* runs two of them and
holds standbys of the two of its neighbour. Everything is well, stable, and was read twice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from streamapp.core.facts.agent_reports import (
    AgentReport,
    AgentsSeen,
    AnnouncementAck,
    AnnouncementState,
    AssignorRun,
    EndsAfter,
    LocalTask,
    Rebalance,
    TaskState,
)
from streamapp.core.facts.autoscalers import ReplicaWriters
from streamapp.core.facts.group import (
    Applied,
    Assignment,
    FollowUp,
    GroupDescription,
    GroupReading,
    GroupState,
    Member,
    NoOffsets,
    ObservedRebalance,
    OffsetSum,
    Subscription,
)
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId, TopicPartition
from streamapp.core.facts.lag import EndOffsets, PartitionEnd
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.core.facts.snapshot import App, DesiredReplicas, DesiredSample, Snapshot
from streamapp.core.facts.tasks import TaskFacts, TaskSet
from streamapp.core.facts.workload import Budget, Container, Pod, StatefulSet, Volume, Workload

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
UID = "5c1f0a52-wordcount"
PARTITIONS = 6
END = 1_000_000
"""End offset of every changelog partition."""
CREATED_AT = NOW - timedelta(hours=1, seconds=10)
"""Of pods and claims."""
REVISION = "wordcount-7d9f"

SECOND = timedelta(seconds=1)


def task(partition: int) -> TaskId:
    """One of the six."""
    return TaskId(0, partition)


def task_set(partitions: int = PARTITIONS) -> TaskSet:
    """One sub-topology: a source topic, a store with its changelog."""
    return TaskSet(
        tuple(
            TaskFacts(
                id=task(number),
                stateful=True,
                changelogs=(TopicPartition("wordcount-counts-changelog", number),),
                source_partitions=(TopicPartition("lines", number),),
                stores={"counts": TopicPartition("wordcount-counts-changelog", number)},
            )
            for number in range(partitions)
        )
    )


def process_id(ordinal: int) -> ProcessId:
    """The one that the ordinal's volume was seeded with."""
    return seeded_process_id(UID, Ordinal(ordinal))


def ip(ordinal: int) -> str:
    """The pod's address."""
    return f"10.1.0.{ordinal + 1}"


def member(
    ordinal: int,
    *,
    active: Iterable[int] = (),
    standby: Iterable[int] = (),
    lag: int | None = 0,
    running: bool = True,
    follow_up: FollowUp = FollowUp.NONE,
) -> Member:
    """The one stream thread of a pod.

    Args:
        ordinal: Of the pod.
        active: Partitions of the tasks it is assigned as active.
        standby: And as standby.
        lag: How far each standby is behind; None where it reports no offsets.
        running: Whether it said of its active tasks that they run.
        follow_up: What the assignor told it.
    """
    active, standby = tuple(active), tuple(standby)
    offsets: dict[TaskId, OffsetSum] = {task(number): NoOffsets.RUNNING if running else Applied(0) for number in active}
    offsets |= {task(number): NoOffsets.UNKNOWN if lag is None else Applied(END - lag) for number in standby}
    return Member(
        id=f"wordcount-{ordinal}-consumer",
        client_id=f"wordcount-{ordinal}",
        client_host=ip(ordinal),
        subscription=Subscription(
            process_id=process_id(ordinal),
            offsets=offsets,
            owned_partitions=frozenset(TopicPartition("lines", number) for number in active),
        ),
        assignment=Assignment(
            active=frozenset(map(task, active)), standby=frozenset(map(task, standby)), follow_up=follow_up
        ),
    )


def restoring(holder: Member, partition: int, at: int) -> Member:
    """The member, which restores one of its active tasks and is at this offset of its changelog."""
    assert holder.subscription is not None
    offsets = {**holder.subscription.offsets, task(partition): Applied(at)}
    return replace(holder, subscription=replace(holder.subscription, offsets=offsets))


def members(pods: int = 3, *, lag: int | None = 0, standbys: bool = True) -> tuple[Member, ...]:
    """A balanced group: tasks dealt in runs, each with its standby on the next pod."""
    share = PARTITIONS // pods
    owned = [tuple(range(pod * share, (pod + 1) * share)) for pod in range(pods)]
    return tuple(
        member(pod, active=owned[pod], standby=owned[pod - 1] if standbys and pods > 1 else (), lag=lag)
        for pod in range(pods)
    )


def stateless_task_set() -> TaskSet:
    """The same tasks without a store."""
    return TaskSet(tuple(replace(one, stateful=False, changelogs=(), stores={}) for one in task_set().tasks))


def stateless_members(pods: int = 3) -> tuple[Member, ...]:
    """A balanced group of them: Kafka Streams tells no offsets of a task without a changelog."""
    bare = members(pods, standbys=False)
    return tuple(replace(one, subscription=one.subscription and replace(one.subscription, offsets={})) for one in bare)


def ends(read_at: datetime, end: int = END) -> EndOffsets:
    """Every changelog partition ends at the same offset."""
    partitions = {partition: PartitionEnd(log_start=0, end=end) for partition in task_set().changelogs}
    return EndOffsets(read_at=read_at, partitions=partitions, committed={})


def rebalance(group: Iterable[Member], settled_at: datetime) -> ObservedRebalance:
    """A rebalance that everybody took part in, with ends read one second later."""
    return ObservedRebalance(
        began_at=settled_at - 3 * SECOND,
        settled_at=settled_at,
        rejoined_members=frozenset(one.id for one in group),
        ends=ends(settled_at + SECOND),
    )


def reading(group: tuple[Member, ...], ago: timedelta, state: GroupState = GroupState.STABLE) -> GroupReading:
    """A poll that ended so long before now, two seconds after the join that it shows."""
    ended_at = NOW - ago
    return GroupReading(
        ended_at=ended_at, group=GroupDescription(state, group), rebalance=rebalance(group, ended_at - 2 * SECOND)
    )


def two_readings(group: tuple[Member, ...]) -> tuple[GroupReading, ...]:
    """What guarantee 1 asks for: two in a row, of different joins, far enough apart."""
    return reading(group, SECOND), reading(group, 15 * SECOND)


def report(one: Member, ago: timedelta = SECOND, sizes: Mapping[int, int] | None = None, **changes: Any) -> AgentReport:
    """What the agent in a member's pod says: the same as the brokers, with our assignor at work and nobody leaving.

    Args:
        one: The member.
        ago: How old it is.
        sizes: Bytes of tasks, by partition; the agent does not tell those of the others.
        changes: Other fields.
    """
    said, given = one.subscription, one.assignment
    if said is None or given is None:
        raise ValueError(f"member {one.id}: its pod's agent would know more than it shows")
    tasks = [
        LocalTask(
            id=each,
            is_active=each in given.active,
            state=_state(said.offsets.get(each)) if each in given.active else None,
            positions=_positions(said, each),
            state_bytes=None if sizes is None else sizes.get(each.partition),
        )
        for each in (*sorted(given.active), *sorted(given.standby))
    ]
    ordinal = int(one.client_id.rpartition("-")[2])
    whole = AgentReport(
        ordinal=Ordinal(ordinal),
        pod_uid=f"pod-{ordinal}",
        incarnation="jvm-1",
        sequence=100 - int(ago / SECOND),
        as_of=NOW - ago,
        process_id=said.process_id,
        tasks=tuple(tasks),
        heard=AnnouncementAck(state=AnnouncementState.EMPTY, epoch=Epoch(lease=0, counter=1)),
        is_ours=True,
        recovery_lag=10_000,
        standby_replicas=0,
        client_state="RUNNING",
    )
    return replace(whole, **changes)


def agents(group: Iterable[Member], **changes: Any) -> AgentsSeen:
    """Every agent, heard two seconds ago and six seconds ago, with ends read half a second after each."""
    times = (2 * SECOND, 6 * SECOND)
    words = {report(one).ordinal: tuple(report(one, ago, **changes) for ago in times) for one in group}
    return AgentsSeen(words, tuple(EndsAfter(NOW - ago + SECOND / 2, ends(NOW - ago + SECOND)) for ago in times))


def leaving(*ordinals: int, counter: int = 2, left: timedelta = 40 * SECOND) -> AnnouncementAck:
    """These are to leave, as an agent has heard it."""
    return AnnouncementAck(
        state=AnnouncementState.SET,
        epoch=Epoch(lease=0, counter=counter),
        process_ids=frozenset(map(process_id, ordinals)),
        rebalance=Rebalance.CONSERVATIVE,
        expires_in=left,
    )


def assigned(counter: int = 2, **changes: Any) -> AssignorRun:
    """The leader's last assignment, on the announcement of that epoch, with nothing left to do but to watch."""
    made = AssignorRun(
        made_at=NOW - 10 * SECOND,
        state=AnnouncementState.SET,
        epoch=Epoch(lease=0, counter=counter),
        moved=0,
        learning=0,
        follow_up_is_watch=True,
    )
    return replace(made, **changes)


def _state(said: OffsetSum | None) -> TaskState:
    return TaskState.RUNNING if said is NoOffsets.RUNNING else TaskState.RESTORING


def _positions(said: Subscription, each: TaskId) -> dict[str, int]:
    offsets = said.offsets.get(each)
    return {"counts": offsets.offset_sum} if isinstance(offsets, Applied) else {}


def pod(ordinal: int) -> Pod:
    """A pod that has been well for an hour."""
    return Pod(
        ordinal=Ordinal(ordinal),
        uid=f"pod-{ordinal}",
        revision=REVISION,
        ips=(ip(ordinal),),
        ready=True,
        terminating=False,
        container=Container(id=f"containerd://{ordinal}", running_since=NOW - timedelta(hours=1), ever_ran=True),
        created_at=CREATED_AT,
    )


def volume(ordinal: int, **changes: Any) -> Volume:
    """The claim of an ordinal, as old as its pod."""
    found = Volume(ordinal=Ordinal(ordinal), process_id=process_id(ordinal), created_at=CREATED_AT)
    return replace(found, **changes)


def statefulset(replicas: int = 3) -> StatefulSet:
    """The StatefulSet, up to date and without a hold record."""
    return StatefulSet(
        uid="sts",
        resource_version="100",
        generation=1,
        observed_generation=1,
        replicas=replicas,
        update_revision=REVISION,
        template_is_written=True,
        is_ours=True,
        record=None,
    )


def workload(pods: int = 3) -> Workload:
    """As many pods as granted, each on its volume."""
    return Workload(
        read_at=NOW - SECOND,
        statefulset=statefulset(pods),
        pods=tuple(pod(number) for number in range(pods)),
        volumes=tuple(volume(number) for number in range(pods)),
        budget=Budget.OPEN,
    )


def app(desired: int = 3) -> App:
    """The StreamApp; its wish has been the same for ten minutes."""
    seen = DesiredSample(NOW - timedelta(minutes=10), desired)
    return App(
        uid=UID,
        generation=1,
        created_at=NOW - timedelta(days=1),
        desired=DesiredReplicas(replicas=desired, history=(seen,)),
    )


def snapshot(pods: int = 3, desired: int = 3) -> Snapshot:
    """All of it, in the state in which nothing is to be done, or everything may be."""
    return Snapshot(
        now=NOW,
        app=app(desired),
        workload=workload(pods),
        task_set=task_set(),
        readings=two_readings(members(pods)),
        replica_writers=ReplicaWriters(),
    )
