"""Answers of a coordinator and of partition leaders, in the fewest words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kio.schema.describe_groups.v5.response import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.response import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData
from kio.schema.init_producer_id.v4.response import InitProducerIdResponse
from kio.schema.leave_group.v5.response import LeaveGroupResponse, MemberResponse
from kio.schema.list_groups.v4.response import ListedGroup, ListGroupsResponse
from kio.schema.list_offsets.v7.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.schema.metadata.v12.response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kio.schema.offset_fetch.v8.response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kio.schema.produce.v9.request import ProduceRequest
from kio.schema.produce.v9.response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from kio.schema.streams_group_describe.v0 import response as streams
from kio.schema.types import BrokerId, GroupId, ProducerId, TopicName
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

from streamapp.core.facts.ids import TopicPartition
from streamapp.kafka.connection.settings import Address
from streamapp.wire.members import RawMember
from tests.kafka.scripted import NO_THROTTLE

OK = ErrorCode.none
UNKNOWN_TOPIC = ErrorCode.unknown_topic_or_partition
DENIED = ErrorCode.topic_authorization_failed


def described(
    state: str, members: Sequence[RawMember] = (), code: ErrorCode = OK, protocol: str = "stream", group: str = "app"
) -> DescribeGroupsResponse:
    found = (
        DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata,
            member_assignment=member.assignment,
        )
        for member in members
    )
    return DescribeGroupsResponse(
        throttle_time=NO_THROTTLE,
        groups=(
            DescribedGroup(
                error_code=code,
                group_id=GroupId(group),
                group_state=state,
                protocol_type="consumer" if members else "",
                protocol_data=protocol if members and state == "Stable" else "",
                members=tuple(found),
            ),
        ),
    )


def streams_described(code: ErrorCode) -> streams.StreamsGroupDescribeResponse:
    group = streams.DescribedGroup(
        error_code=code,
        group_id=GroupId("app"),
        group_state="Stable",
        group_epoch=i32(3),
        assignment_epoch=i32(3),
        members=(),
    )
    return streams.StreamsGroupDescribeResponse(throttle_time=NO_THROTTLE, groups=(group,))


def left(codes: Mapping[tuple[str, str | None], ErrorCode], code: ErrorCode = OK) -> LeaveGroupResponse:
    members = (
        MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=each)
        for (member_id, instance_id), each in codes.items()
    )
    return LeaveGroupResponse(throttle_time=NO_THROTTLE, error_code=code, members=tuple(members))


def cluster(
    brokers: Sequence[Address], topics: Mapping[str, Sequence[int]], codes: Mapping[str, ErrorCode] | None = None
) -> MetadataResponse:
    """Metadata: the leaders of each topic's partitions as indexes of `brokers`, −1 for none; topics with an error."""
    found = [_topic(name, leaders, OK) for name, leaders in topics.items()]
    found += [_topic(name, (), code) for name, code in (codes or {}).items()]
    return MetadataResponse(
        throttle_time=NO_THROTTLE,
        brokers=tuple(
            MetadataResponseBroker(node_id=BrokerId(index), host=address.host, port=i32(address.port))
            for index, address in enumerate(brokers)
        ),
        topics=tuple(found),
    )


def _topic(name: str, leaders: Sequence[int], code: ErrorCode) -> MetadataResponseTopic:
    partitions = (
        MetadataResponsePartition(
            error_code=OK if leader >= 0 else ErrorCode.leader_not_available,
            partition_index=i32(index),
            leader_id=BrokerId(leader),
        )
        for index, leader in enumerate(leaders)
    )
    return MetadataResponseTopic(error_code=code, name=TopicName(name), topic_id=None, partitions=tuple(partitions))


def groups(*ids: str, code: ErrorCode = OK) -> ListGroupsResponse:
    listed = (ListedGroup(group_id=GroupId(each), protocol_type="consumer", group_state="Stable") for each in ids)
    return ListGroupsResponse(throttle_time=NO_THROTTLE, error_code=code, groups=tuple(listed))


def offsets(found: Mapping[TopicPartition, int | ErrorCode]) -> ListOffsetsResponse:
    topics: dict[str, list[ListOffsetsPartitionResponse]] = {}
    for (topic, partition), offset in found.items():
        failed = isinstance(offset, ErrorCode)
        topics.setdefault(topic, []).append(
            ListOffsetsPartitionResponse(
                partition_index=i32(partition),
                error_code=offset if isinstance(offset, ErrorCode) else OK,
                offset=i64(-1 if failed else offset),
            )
        )
    return ListOffsetsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            ListOffsetsTopicResponse(name=TopicName(topic), partitions=tuple(each)) for topic, each in topics.items()
        ),
    )


def commits(found: Mapping[TopicPartition, int | ErrorCode], code: ErrorCode = OK) -> OffsetFetchResponse:
    topics: dict[str, list[OffsetFetchResponsePartitions]] = {}
    for (topic, partition), offset in found.items():
        failed = isinstance(offset, ErrorCode)
        topics.setdefault(topic, []).append(
            OffsetFetchResponsePartitions(
                partition_index=i32(partition),
                committed_offset=i64(-1 if failed else offset),
                metadata="",
                error_code=offset if isinstance(offset, ErrorCode) else OK,
            )
        )
    group = OffsetFetchResponseGroup(
        group_id=GroupId("app"),
        topics=tuple(
            OffsetFetchResponseTopics(name=TopicName(topic), partitions=tuple(each)) for topic, each in topics.items()
        ),
        error_code=code,
    )
    return OffsetFetchResponse(throttle_time=NO_THROTTLE, groups=(group,))


def configs(topic: str, values: Mapping[str, str | None], code: ErrorCode = OK) -> DescribeConfigsResponse:
    entries = (
        DescribeConfigsResourceResult(
            name=name, value=value, read_only=False, is_sensitive=False, synonyms=(), documentation=None
        )
        for name, value in values.items()
    )
    result = DescribeConfigsResult(
        error_code=code, error_message=None, resource_type=i8(2), resource_name=topic, configs=tuple(entries)
    )
    return DescribeConfigsResponse(throttle_time=NO_THROTTLE, results=(result,))


@dataclass(frozen=True)
class Fetched:
    """What a leader hands out of one partition."""

    records: bytes = b""
    stable: int = 1_000_000
    """The last stable offset."""
    aborted: Sequence[tuple[int, int]] = ()
    """Producer and first offset of aborted transactions."""
    code: ErrorCode = OK


def fetched(found: Mapping[TopicPartition, Fetched], *, throttled: bool = False) -> FetchResponse:
    responses = (
        FetchableTopicResponse(
            topic=TopicName(partition.topic),
            partitions=(
                PartitionData(
                    partition_index=i32(partition.partition),
                    error_code=one.code,
                    high_watermark=i64(one.stable),
                    last_stable_offset=i64(one.stable),
                    log_start_offset=i64(0),
                    aborted_transactions=tuple(
                        AbortedTransaction(producer_id=ProducerId(producer), first_offset=i64(first))
                        for producer, first in one.aborted
                    ),
                    records=Records(one.records),
                ),
            ),
        )
        for partition, one in found.items()
    )
    return FetchResponse(
        throttle_time=i32Timedelta.parse(timedelta(seconds=1)) if throttled else NO_THROTTLE,
        error_code=OK,
        responses=tuple(responses),
    )


def produced(request: ProduceRequest, code: ErrorCode = OK) -> ProduceResponse:
    """Answer for all partitions alike."""
    found = (
        TopicProduceResponse(
            name=topic.name,
            partition_responses=tuple(
                PartitionProduceResponse(index=one.index, error_code=code, base_offset=i64(0), record_errors=())
                for one in topic.partition_data
            ),
        )
        for topic in request.topic_data
    )
    return ProduceResponse(responses=tuple(found), throttle_time=NO_THROTTLE)


def producer_id() -> InitProducerIdResponse:
    """What an idempotent producer begins with."""
    return InitProducerIdResponse(
        throttle_time=NO_THROTTLE, error_code=OK, producer_id=ProducerId(7), producer_epoch=i16(0)
    )
