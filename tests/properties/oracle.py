"""What the laws are checked against: slow and simple, and sharing no rule with the core.

It uses the core's values, none of its functions.
"""

from streamapp.core.actions.decision import Decision, GrantReplicas, RestartPod
from streamapp.core.facts.group import Applied, GroupDescription, GroupReading, Member, NoOffsets
from streamapp.core.facts.ids import TaskId, TopicPartition
from streamapp.core.facts.lag import EndOffsets
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.facts.workload import Pod


def removes(decision: Decision) -> int | None:
    """How many replicas the plan leaves, if it takes some away."""
    for step in decision.plan:
        if isinstance(step, GrantReplicas) and step.to_replicas < step.from_replicas:
            return step.to_replicas
    return None


def restarts(decision: Decision) -> int | None:
    """The ordinal that the plan restarts, if any."""
    return next((step.ordinal for step in decision.plan if isinstance(step, RestartPod)), None)


def pod_of(member: Member, snapshot: Snapshot) -> Pod | None:
    """By address; else by process ID."""
    for pod in snapshot.workload.pods:
        if member.client_host in pod.ips:
            return pod
    for volume in snapshot.workload.volumes:
        for pod in snapshot.workload.pods:
            subscription = member.subscription
            if subscription and volume.process_id == subscription.process_id and volume.ordinal == pod.ordinal:
                return pod
    return None


def lag_of(position: int, changelogs: tuple[TopicPartition, ...], ends: EndOffsets) -> int | None:
    """Only for plain changelogs, as the strategies have them."""
    total_end = total_there = 0
    for changelog in changelogs:
        if changelog not in ends.partitions:
            return None
        one = ends.partitions[changelog]
        total_end += one.end
        total_there += one.end - one.log_start
    return None if position > total_end else min(total_end - position, total_there)


def tasks_without_a_good_copy(
    snapshot: Snapshot, reading: GroupReading, policy: ScalingPolicy, kept: set[int]
) -> set[TaskId]:
    """Stateful tasks that no pod in `kept` runs or is caught up with, by trying every member for every task."""
    assert isinstance(snapshot.task_set, TaskSet)
    assert isinstance(reading.group, GroupDescription)
    lost = set()
    for task in snapshot.task_set.tasks:
        good = False
        for member in reading.group.members:
            pod = pod_of(member, snapshot)
            rebalance = reading.rebalance
            if (
                pod is None
                or rebalance is None
                or not isinstance(rebalance.ends, EndOffsets)
                or pod.ordinal not in kept
            ):
                continue
            since = pod.container.running_since
            if pod.terminating or since is None or since > rebalance.began_at:
                continue
            if member.subscription is None or member.assignment is None:
                continue
            said = member.subscription.offsets.get(task.id)
            if task.id in member.assignment.active and said is NoOffsets.RUNNING:
                good = True
            if task.id in member.assignment.standby and isinstance(said, Applied):
                lag = lag_of(said.offset_sum, task.changelogs, rebalance.ends)
                good = good or (lag is not None and lag <= policy.acceptable_recovery_lag)
        if task.stateful and not good:
            lost.add(task.id)
    return lost


def tasks_held_by(ordinal: int, snapshot: Snapshot, reading: GroupReading) -> set[TaskId]:
    """Everything that an ordinal was given."""
    held: set[TaskId] = set()
    if isinstance(reading.group, GroupDescription):
        for member in reading.group.members:
            pod = pod_of(member, snapshot)
            if pod is not None and pod.ordinal == ordinal and member.assignment is not None:
                held |= member.assignment.active | member.assignment.standby
    return held
