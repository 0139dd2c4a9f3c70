"""Reads a group of the streams protocol (KIP-1071): one StreamsGroupDescribe answer, and the coordinator's release.

Called by `controller.apps.kafka_group`. The broker assigns here, so the answer also has the target assignment and the
topology. Version 1 of the request is asked first; brokers before 4.4 know version 0 alone.
"""

from dataclasses import dataclass

from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.streams_group_describe.v0 import request as v0_request
from kio.schema.streams_group_describe.v0 import response as v0
from kio.schema.types import GroupId

from streamapp.core.facts.group import GroupDescription, StreamsSupport
from streamapp.core.facts.topology import BrokerSubtopology
from streamapp.kafka.brokers.coordinator import Coordinator
from streamapp.kafka.connection.deadline import within
from streamapp.kafka.connection.error_codes import failure
from streamapp.kafka.connection.errors import BrokerUnsupportedError, StreamsProtocolError, unexpected
from streamapp.kafka.connection.off_loop import MEMBER_BYTES, decode
from streamapp.kafka.group import streams_describe_v1 as v1
from streamapp.kafka.group import streams_values
from streamapp.kafka.group.groups import MOST_ENTRIES, refuse_too_many_members, too_large
from streamapp.kafka.group.streams_values import DescribedGroup

_NONE_THERE = {ErrorCode.group_id_not_found, ErrorCode.unsupported_version}
"""Unsupported: the cluster's features have the streams protocol switched off."""
_CLIENT = ("streamapp-operator", "1")
_METADATA_VERSION = "metadata.version"
_RELEASES = {28: "4.2", 29: "4.2", 30: "4.3", 31: "4.4", 32: "4.4", 33: "4.4"}
"""Kafka's releases by the highest `metadata.version` that their brokers support: `LATEST_PRODUCTION` of each branch."""


@dataclass(frozen=True, slots=True)
class StreamsReading:
    """One StreamsGroupDescribe answer."""

    group: GroupDescription
    subtopologies: tuple[BrokerSubtopology, ...] | None
    """None: the broker could not complete the topology, since topics are missing."""


async def read_streams_group(coordinator: Coordinator, deadline_seconds: float) -> StreamsReading | None:
    """Read the group; None if the cluster has no group of the streams protocol with this id.

    Raises StreamsProtocolError while members of the classic protocol are in the group, UndecodableError for what Kafka
    Streams does not write, and KafkaAccessError.
    """
    async with within(deadline_seconds, f"group {coordinator.group_id}: describe"):
        try:
            group = await _describe(coordinator)
        except BrokerUnsupportedError:
            return None
        if group is None:
            return None
        _refuse_too_much(coordinator.group_id, group)
        _refuse_classic_members(coordinator.group_id, group)
        release = await _broker_release(coordinator)
    return await decode(len(group.members) * MEMBER_BYTES, _reading, group, release)


def _reading(group: DescribedGroup, release: str | None) -> StreamsReading:
    return StreamsReading(streams_values.description(group, release), streams_values.subtopologies(group))


async def read_streams_support(coordinator: Coordinator, deadline_seconds: float) -> StreamsSupport:
    """Find out whether the coordinator of a classic group could serve it with the streams protocol.

    Where the features of the cluster or `group.coordinator.rebalance.protocols` switch it off, the coordinator refuses
    to describe any such group. Raises KafkaAccessError.
    """
    async with within(deadline_seconds, f"group {coordinator.group_id}: ask for the streams protocol"):
        release = await _broker_release(coordinator)
        ids = (GroupId(coordinator.group_id),)
        request = v0_request.StreamsGroupDescribeRequest(group_ids=ids, include_authorized_operations=False)
        try:
            answer = await coordinator.ask(
                request, v0.StreamsGroupDescribeResponse, lambda a: [g.error_code for g in a.groups]
            )
        except BrokerUnsupportedError:
            return StreamsSupport(is_on=False, release=release)
    errors = {group.error_code for group in answer.groups}
    return StreamsSupport(is_on=errors <= {ErrorCode.none, ErrorCode.group_id_not_found}, release=release)


async def _describe(coordinator: Coordinator) -> DescribedGroup | None:
    ids = (GroupId(coordinator.group_id),)
    groups: tuple[DescribedGroup, ...]
    try:
        newer = v1.StreamsGroupDescribeRequest(group_ids=ids, include_authorized_operations=False)
        answer = await coordinator.ask(
            newer, v1.StreamsGroupDescribeResponse, lambda a: [g.error_code for g in a.groups]
        )
        groups = answer.groups
    except BrokerUnsupportedError:
        older = v0_request.StreamsGroupDescribeRequest(group_ids=ids, include_authorized_operations=False)
        old = await coordinator.ask(older, v0.StreamsGroupDescribeResponse, lambda a: [g.error_code for g in a.groups])
        groups = old.groups
    what = f"group {coordinator.group_id}: describe"
    if [group.group_id for group in groups] != [coordinator.group_id]:
        raise unexpected(what, "the answer is of other groups")
    (group,) = groups
    if group.error_code in _NONE_THERE:
        return None
    if group.error_code is not ErrorCode.none:
        right = f"DESCRIBE on group {coordinator.group_id}"
        if group.error_code is ErrorCode.topic_authorization_failed:
            right = f"DESCRIBE on the source topics and on topics with the prefix {coordinator.group_id}-"
        raise failure(group.error_code, what, right)
    return group


async def _broker_release(coordinator: Coordinator) -> str | None:
    """Find Kafka's release of the coordinator: the protocol tells no version, but the features that it supports."""
    name, version = _CLIENT
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    answer = await coordinator.ask(request, ApiVersionsResponse, lambda a: [a.error_code])
    if answer.error_code is not ErrorCode.none:
        raise failure(answer.error_code, f"group {coordinator.group_id}: read the broker's features", "none")
    levels = {feature.name: int(feature.max_version) for feature in answer.supported_features}
    release = _RELEASES.get(levels.get(_METADATA_VERSION, 0))
    highest = {int(key.api_key): int(key.max_version) for key in answer.api_keys}
    if release == "4.3" and highest.get(int(v1.StreamsGroupDescribeRequest.__api_key__)) == 1:
        return None  # between the releases
    return release


def _refuse_too_much(group_id: str, group: DescribedGroup) -> None:
    """Bound what is kept of an answer, as for a classic group."""
    refuse_too_many_members(group_id, map(_names, group.members), len(group.members))
    entries = sum(map(_entries, group.members))
    if entries > MOST_ENTRIES:
        raise too_large(group_id, f"its members hold {entries} tasks and positions, at most {MOST_ENTRIES} are kept")


def _names(member: v0.Member) -> tuple[str | None, ...]:
    return (member.member_id, member.instance_id, member.client_id, member.client_host, member.process_id)


def _entries(member: v0.Member) -> int:
    both = (member.assignment, member.target_assignment)
    tasks = (task for each in both for task in (*each.active_tasks, *each.standby_tasks, *each.warmup_tasks))
    # The target is kept as the assignment itself where both are equal, as they nearly always are.
    return sum(len(task.partitions) for task in tasks) // 2 + len(member.task_offsets)


def _refuse_classic_members(group_id: str, group: DescribedGroup) -> None:
    classic = [member.member_id for member in group.members if member.is_classic]
    if classic:
        why = f"member {classic[0]} still uses the classic protocol"
        raise StreamsProtocolError(f"group {group_id}: describe", why, "wait until the migration is complete")
