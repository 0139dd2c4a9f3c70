"""A group of the streams protocol in the core's values: members, assignments, epochs and the topology.

Called by `streams_groups`. Pure. What cannot be read as Kafka Streams writes it raises UndecodableError.
"""

from collections.abc import Iterable
from types import MappingProxyType

from kio.schema.streams_group_describe.v0 import response as v0

from streamapp.core.facts import group as core
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.core.facts.topology import BrokerSubtopology
from streamapp.kafka.group import streams_describe_v1 as v1
from streamapp.wire.errors import UndecodableError
from streamapp.wire.members import host_of

UNKNOWN_OFFSET = 2**63 - 1
"""What a member reports for a task whose offset it does not know."""

_STATES = {
    state.value: state
    for state in (
        core.GroupState.EMPTY,
        core.GroupState.NOT_READY,
        core.GroupState.ASSIGNING,
        core.GroupState.RECONCILING,
        core.GroupState.STABLE,
        core.GroupState.DEAD,
    )
}


DescribedGroup = v0.DescribedGroup | v1.DescribedGroup


def description(group: DescribedGroup, broker_release: str | None) -> core.GroupDescription:
    """The group with its members; UndecodableError for a state or an ID that Kafka does not write."""
    try:
        state = _STATES[group.group_state]
    except KeyError as error:
        raise UndecodableError("StreamsGroupDescribe", "group state", None, repr(group.group_state)) from error
    streams = core.StreamsGroup(
        epoch=int(group.group_epoch),
        assignment_epoch=int(group.assignment_epoch),
        broker_release=broker_release,
        assignor=group.assignor_name if isinstance(group, v1.DescribedGroup) else None,
    )
    return core.GroupDescription(state, tuple(map(_member, group.members)), streams)


def subtopologies(group: DescribedGroup) -> tuple[BrokerSubtopology, ...] | None:
    """The topology; None while the broker has not completed it. UndecodableError for a name that is no number."""
    if group.topology is None or group.topology.subtopologies is None:
        return None
    return tuple(
        BrokerSubtopology(
            number=_number(each.subtopology_id, "topology"),
            sources=frozenset((*each.source_topics, *(topic.name for topic in each.repartition_source_topics))),
            changelogs=frozenset(topic.name for topic in each.state_changelog_topics),
        )
        for each in group.topology.subtopologies
    )


def _member(member: v0.Member) -> core.Member:
    where = f"member {member.member_id}"
    try:
        process_id = ProcessId.parse(member.process_id)
    except ValueError as error:
        raise UndecodableError("StreamsGroupDescribe", where, None, f"process ID {member.process_id!r}") from error
    offsets = {
        TaskId(_number(each.subtopology_id, where), int(each.partition)): core.Applied(int(each.offset))
        for each in member.task_offsets
        if 0 <= each.offset < UNKNOWN_OFFSET
    }
    return core.Member(
        id=member.member_id,
        client_id=member.client_id,
        client_host=host_of(member.client_host),
        instance_id=member.instance_id,
        subscription=core.Subscription(
            process_id=process_id, offsets=MappingProxyType(dict(offsets)), owned_partitions=frozenset()
        ),
        assignment=_assignment(member.assignment, where),
        streams=core.StreamsMembership(
            epoch=int(member.member_epoch), target=_assignment(member.target_assignment, where)
        ),
    )


def _assignment(assignment: v0.Assignment, where: str) -> core.Assignment:
    return core.Assignment(
        active=_tasks(assignment.active_tasks, where),
        standby=_tasks(assignment.standby_tasks, where) | _tasks(assignment.warmup_tasks, where),
        follow_up=core.FollowUp.NONE,
    )


def _tasks(given: Iterable[v0.TaskIds], where: str) -> frozenset[TaskId]:
    return frozenset(
        TaskId(_number(each.subtopology_id, where), int(partition)) for each in given for partition in each.partitions
    )


def _number(subtopology: str, where: str) -> int:
    if not (subtopology.isascii() and subtopology.isdigit()):
        raise UndecodableError("StreamsGroupDescribe", where, None, f"sub-topology {subtopology!r} is no number")
    return int(subtopology)
