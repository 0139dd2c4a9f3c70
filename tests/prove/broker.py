"""What the brokers show of the truth: answers to DescribeGroups and to the reading of ends, as the core's values."""

from dataclasses import replace
from datetime import datetime

from streamapp.controller.ports import Poll
from streamapp.core.evidence.membership import PROBE_CLIENT_ID
from streamapp.core.facts.group import (
    Applied,
    Assignment,
    FollowUp,
    GroupDescription,
    GroupState,
    NoOffsets,
    OffsetSum,
    Subscription,
)
from streamapp.core.facts.group import Member as Shown
from streamapp.core.facts.ids import TaskId, TopicPartition
from streamapp.core.facts.lag import EndOffsets, PartitionEnd
from streamapp.core.facts.tasks import TaskSet
from tests.prove.group import Group, GroupTruth, Member
from tests.support.example import task_set


def described(truth: GroupTruth) -> Poll:
    """DescribeGroups: subscriptions only while the group is stable, assignments as of the last generation."""
    is_shown = truth.state is GroupState.STABLE
    members = tuple(_shown(member, truth, is_shown=is_shown) for member in truth.members.values())
    joins = {member.id: member.joins for member in truth.members.values()} if is_shown else {}
    return Poll(GroupDescription(truth.state, members), joins)


def ends_of(truth: GroupTruth, known: TaskSet, now: datetime) -> EndOffsets:
    """The ends of all changelogs, as they are now."""
    end = PartitionEnd(log_start=0, end=int(truth.end))
    return EndOffsets(read_at=now, partitions=dict.fromkeys(known.changelogs, end), committed={})


def tasks_of(group: Group, *, with_hidden: bool = False) -> TaskSet:
    """Which tasks there are, by the topics; without a changelog none has state."""
    shown = task_set(len(group.tasks))
    if with_hidden or not group.hides_changelogs:
        return shown
    return TaskSet(tuple(replace(one, stateful=False, changelogs=(), stores={}) for one in shown.tasks))


def _shown(member: Member, truth: GroupTruth, *, is_shown: bool) -> Shown:
    offsets: dict[TaskId, OffsetSum] = {task: Applied(at) for task, at in member.said.positions.items()}
    offsets |= dict.fromkeys(member.said.running, NoOffsets.RUNNING)
    subscription = Subscription(
        process_id=member.process_id,
        offsets=offsets,
        owned_partitions=frozenset(TopicPartition("lines", task.partition) for task in member.said.owned),
        generation=member.said.generation,
    )
    assignment = Assignment(
        active=frozenset(member.active),
        standby=frozenset(member.standby),
        follow_up=FollowUp.SCHEDULED if truth.follow_up else FollowUp.NONE,
    )
    return Shown(
        id=member.id,
        client_id=PROBE_CLIENT_ID if member.run is None else f"{truth.application_id}-{member.run.ordinal}",
        client_host=member.host,
        instance_id=member.instance,
        subscription=subscription if is_shown else None,
        assignment=assignment if member.has_assignment else None,
    )
