"""Reading offsets: from each partition's leader, all or nothing, and never a number that means "unknown"."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v7.request import ListOffsetsRequest
from kio.schema.offset_fetch.v8.request import OffsetFetchRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from streamapp.core.facts.ids import TopicPartition
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import (
    KafkaAccessError,
    NotAuthorisedError,
    TemporarilyUnavailableError,
    TopicUnknownError,
    UnexpectedAnswerError,
)
from streamapp.kafka.topics.offsets import committed
from tests.kafka import answers
from tests.kafka.scripted import Handler, ScriptedBroker, always, in_turn

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)

Read = Callable[[KafkaCluster], Awaitable[Mapping[TopicPartition, int | None]]]


async def with_cluster(broker: ScriptedBroker, read: Read) -> dict[TopicPartition, int | None]:
    cluster = KafkaCluster(broker.settings(), "app")
    try:
        return dict(await read(cluster))
    finally:
        cluster.close()


def ends_of(*partitions: TopicPartition) -> Read:
    return lambda cluster: cluster.offsets.ends(partitions, deadline_seconds=5)


def commits_of(*partitions: TopicPartition) -> Read:
    return lambda cluster: committed(cluster.group, partitions, deadline_seconds=5)


async def one_broker(
    read: Read, topics: Mapping[str, list[int]], codes: Mapping[str, ErrorCode], **handlers: Handler
) -> tuple[dict[TopicPartition, int | None], ScriptedBroker]:
    broker = ScriptedBroker(handlers)
    async with broker.running():
        broker.coordinates("app")
        broker.handlers["Metadata"] = always(answers.cluster([broker.address], topics, codes))
        return await with_cluster(broker, read), broker


def found(read: Read, topics: Mapping[str, list[int]], **handlers: Handler) -> dict[TopicPartition, int | None]:
    return asyncio.run(one_broker(read, topics, {}, **handlers))[0]


def refused(
    kind: type[KafkaAccessError],
    read: Read,
    topics: Mapping[str, list[int]],
    codes: Mapping[str, ErrorCode] | None = None,
    **handlers: Handler,
) -> KafkaAccessError:
    with pytest.raises(kind) as caught:
        asyncio.run(one_broker(read, topics, codes or {}, **handlers))
    return caught.value


def test_each_partition_is_asked_of_its_own_leader_at_the_same_time() -> None:
    async def main() -> dict[TopicPartition, int | None]:
        both_asked = asyncio.Event()
        first, second = ScriptedBroker(), ScriptedBroker()

        def leading(other: ScriptedBroker, found: Mapping[TopicPartition, int | ErrorCode]) -> Handler:
            async def handler(_: RequestPayload) -> ResponsePayload:
                if "ListOffsets" in other.names():
                    both_asked.set()
                await both_asked.wait()
                return answers.offsets(found)

            return handler

        async with first.running(), second.running():
            first.handlers["Metadata"] = always(
                answers.cluster([first.address, second.address], {"a": [0, 1], "b": [1]})
            )
            first.handlers["ListOffsets"] = leading(second, {A0: 10})
            second.handlers["ListOffsets"] = leading(first, {A1: 20, B0: 30})
            return await with_cluster(first, ends_of(A0, A1, B0))

    assert asyncio.run(main()) == {A0: 10, A1: 20, B0: 30}


@pytest.mark.parametrize(
    ("method", "timestamp"),
    [("ends", -1), ("log_starts", -2)],
)
def test_which_offset_is_asked_for(method: str, timestamp: int) -> None:
    """Read uncommitted: a hanging transaction must not make a lag look like zero."""

    def read(cluster: KafkaCluster) -> Awaitable[Mapping[TopicPartition, int | None]]:
        asked: Awaitable[Mapping[TopicPartition, int | None]] = getattr(cluster.offsets, method)([A0], 5)
        return asked

    result, broker = asyncio.run(one_broker(read, {"a": [0]}, {}, ListOffsets=always(answers.offsets({A0: 7}))))
    request = broker.seen[-1].request
    assert isinstance(request, ListOffsetsRequest)
    asked = [partition.timestamp for topic in request.topics for partition in topic.partitions]
    assert (result, asked, request.isolation_level) == ({A0: 7}, [timestamp], 0)


def test_nothing_to_read_asks_nobody() -> None:
    result, broker = asyncio.run(one_broker(ends_of(), {}, {}))
    assert (result, broker.seen) == ({}, [])


def test_an_offset_below_zero_is_no_offset() -> None:
    """Brokers say −1 for "none"; added up, it would make a lag look small."""
    error = refused(UnexpectedAnswerError, ends_of(A0), {"a": [0]}, ListOffsets=always(answers.offsets({A0: -1})))
    assert error == UnexpectedAnswerError(
        "topic a partition 0: end offset", "the leader answers -1", "see the brokers' logs"
    )


def test_a_partition_that_the_leader_leaves_out_fails_the_whole_read() -> None:
    error = refused(UnexpectedAnswerError, ends_of(A0, A1), {"a": [0, 0]}, ListOffsets=always(answers.offsets({A0: 5})))
    assert error.what == "topic a partition 1: end offset"


def test_a_leader_that_moved_is_looked_up_again() -> None:
    moved = answers.offsets({A0: ErrorCode.not_leader_or_follower})
    assert found(ends_of(A0), {"a": [0]}, ListOffsets=in_turn(moved, answers.offsets({A0: 5}))) == {A0: 5}


def test_a_partition_without_a_leader_is_waited_for_and_then_named() -> None:
    error = refused(TemporarilyUnavailableError, ends_of(A0, A1), {"a": [0, -1]})
    assert (error.what, error.why) == ("topic a partition 1: end offset", "the partition has no leader")


def test_a_leader_that_does_not_have_the_partition_yet_is_an_error_that_passes() -> None:
    missing = answers.offsets({A0: answers.UNKNOWN_TOPIC})
    refused(TemporarilyUnavailableError, ends_of(A0), {"a": [0]}, ListOffsets=always(missing))


def test_a_topic_that_is_not_there_is_named() -> None:
    error = refused(TopicUnknownError, ends_of(A0), {}, {"a": answers.UNKNOWN_TOPIC})
    assert error.what == "topic a partition 0: end offset"


def test_a_partition_beyond_the_topic_is_named() -> None:
    assert refused(TopicUnknownError, ends_of(A1), {"a": [0]}).what == "topic a partition 1: end offset"


def test_the_missing_right_on_a_topic_is_named() -> None:
    error = refused(NotAuthorisedError, ends_of(A0), {}, {"a": answers.DENIED})
    assert isinstance(error, NotAuthorisedError)
    assert error.acl == "DESCRIBE on topic a"


# Commits


def test_commits_are_read_with_open_transactions_waited_for_and_none_is_no_number() -> None:
    answer = answers.commits({A0: 12, B0: -1})
    result, broker = asyncio.run(one_broker(commits_of(A0, B0), {}, {}, OffsetFetch=always(answer)))
    assert result == {A0: 12, B0: None}
    request = broker.seen[-1].request
    assert isinstance(request, OffsetFetchRequest)
    assert request.require_stable


def test_an_open_transaction_is_an_error_that_passes() -> None:
    unstable = answers.commits({A0: ErrorCode.unstable_offset_commit})
    error = refused(TemporarilyUnavailableError, commits_of(A0), {}, OffsetFetch=always(unstable))
    assert error.what == "group app: committed offsets of topic a"


def test_transactions_that_come_one_after_the_other_are_seen_between() -> None:
    open_ = ErrorCode.unstable_offset_commit
    answer = in_turn(
        answers.commits({A0: open_, A1: 5, B0: open_}), answers.commits({A0: 7, B0: open_}), answers.commits({B0: -1})
    )
    result, broker = asyncio.run(one_broker(commits_of(A0, A1, B0), {}, {}, OffsetFetch=answer))
    assert result == {A0: 7, A1: 5, B0: None}
    requests = [each.request for each in broker.seen if isinstance(each.request, OffsetFetchRequest)]
    asked = [[(topic.name, *topic.partition_indexes) for topic in one.groups[0].topics or ()] for one in requests]
    assert asked == [[("a", 0, 1), ("b", 0)], [("a", 0), ("b", 0)], [("b", 0)]]


def test_commits_of_other_partitions_are_not_believed() -> None:
    refused(UnexpectedAnswerError, commits_of(A0), {}, OffsetFetch=always(answers.commits({B0: 1})))


def test_the_missing_right_on_the_group_or_a_topic_is_named() -> None:
    group = answers.commits({}, ErrorCode.group_authorization_failed)
    error = refused(NotAuthorisedError, commits_of(A0), {}, OffsetFetch=always(group))
    assert isinstance(error, NotAuthorisedError)
    assert error.acl == "DESCRIBE on group app"
    topic = answers.commits({A0: answers.DENIED})
    error = refused(NotAuthorisedError, commits_of(A0), {}, OffsetFetch=always(topic))
    assert isinstance(error, NotAuthorisedError)
    assert error.acl == "DESCRIBE on topic a"
