"""Large answers: the same values as kio decodes at once, and no more of them than there is room for."""

import asyncio
import io
from datetime import timedelta

import pytest
from kio.schema.describe_groups.v5.response import DescribeGroupsResponse
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.response import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from kio.schema.list_offsets.v7.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.primitive import Records, i32, i64
from kio.static.protocol import Payload

from streamapp.kafka.connection.large_answers import TooManyValuesError, decode_in_thread
from streamapp.kafka.connection.settings import Address
from streamapp.wire.members import RawMember
from tests.kafka.answers import cluster, described
from tests.kafka.scripted import NO_THROTTLE


def encoded(answer: Payload) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(answer))(buffer, answer)
    return buffer.getvalue()


def fetched() -> FetchResponse:
    partition = PartitionData(
        partition_index=i32(3),
        error_code=ErrorCode.none,
        high_watermark=i64(7),
        last_stable_offset=i64(7),
        log_start_offset=i64(0),
        diverging_epoch=EpochEndOffset(epoch=i32(3), end_offset=i64(9)),
        current_leader=LeaderIdAndEpoch(leader_id=BrokerId(4), leader_epoch=i32(5)),
        aborted_transactions=None,
        preferred_read_replica=BrokerId(-1),
        records=Records(b"some"),
    )
    return FetchResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        session_id=i32(0),
        responses=(FetchableTopicResponse(topic=TopicName("t"), partitions=(partition, partition)),),
    )


def offsets() -> ListOffsetsResponse:
    found = tuple(
        ListOffsetsPartitionResponse(
            partition_index=i32(number),
            error_code=ErrorCode.none,
            timestamp=i64(-1),
            offset=i64(number),
            leader_epoch=i32(0),
        )
        for number in range(300)
    )
    return ListOffsetsResponse(
        throttle_time=NO_THROTTLE, topics=(ListOffsetsTopicResponse(name=TopicName("t"), partitions=found),)
    )


def members(count: int) -> DescribeGroupsResponse:
    one = RawMember(
        member_id="m", instance_id=None, client_id="c", client_host="/10.0.0.1", metadata=b"x" * 20, assignment=b""
    )
    return described("Stable", [one] * count)


TOPICS = cluster([Address("a", 1), Address("b", 2)], {"t": [0, 1, -1], "empty": []})
ANSWERS = {"topics": TOPICS, "groups": members(500), "records with tagged fields": fetched(), "offsets": offsets()}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_large_answer_has_the_values_that_kio_reads_at_once(answer: Payload) -> None:
    body = encoded(answer)
    assert asyncio.run(decode_in_thread(type(answer), body, 0)) == entity_reader(type(answer))(body, 0)[0] == answer


def test_an_answer_with_more_values_than_there_is_room_for_is_refused_before_they_are_made() -> None:
    body = encoded(members(500))
    assert asyncio.run(decode_in_thread(DescribeGroupsResponse, body, 0, 501)) == members(500)
    with pytest.raises(TooManyValuesError):
        asyncio.run(decode_in_thread(DescribeGroupsResponse, body, 0, 500))


def test_every_way_to_cut_a_large_answer_is_refused() -> None:
    body = encoded(fetched())
    for length in range(len(body)):
        with pytest.raises((SerialError, LookupError, ValueError)):
            asyncio.run(decode_in_thread(FetchResponse, body[:length], 0))


def test_bytes_after_a_large_answer_are_refused() -> None:
    with pytest.raises(ValueError, match="2 bytes left over"):
        asyncio.run(decode_in_thread(FetchResponse, encoded(fetched()) + bytes(2), 0))


def test_the_event_loop_runs_while_a_large_answer_is_decoded_and_its_reader_can_leave() -> None:
    body = encoded(members(60_000))

    async def main() -> int:
        turns = 0
        decoding = asyncio.ensure_future(decode_in_thread(DescribeGroupsResponse, body, 0))
        while not decoding.done() and turns < 5:
            await asyncio.sleep(0)
            turns += 1
        decoding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await decoding
        return turns

    assert asyncio.run(asyncio.wait_for(main(), timedelta(seconds=20).total_seconds())) == 5
