"""Reading tails: backwards in windows, within limits, and unknown wherever the answer does not say it."""

import asyncio
from collections.abc import Mapping

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.request import FetchRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.lag import PartitionEnd, Unknown
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import (
    KafkaAccessError,
    NotAuthorisedError,
    TemporarilyUnavailableError,
    UnexpectedAnswerError,
)
from streamapp.kafka.topics.tails import ROUNDS, WINDOWS
from tests.kafka import answers
from tests.kafka.answers import Fetched, fetched
from tests.kafka.scripted import Handler, ScriptedBroker, always, in_turn
from tests.wire.encoding import batch, marker

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
NAME = "topic a partition 0: tail"

Tails = dict[TopicPartition, int | Unknown]


def committed(first: int, records: int, producer: int = 1) -> bytes:
    return batch(first, records, producer_id=producer, transactional=True)


def end_at(end: int, start: int = 0) -> PartitionEnd:
    return PartitionEnd(log_start=start, end=end)


def read(handler: Handler, ends: Mapping[TopicPartition, PartitionEnd]) -> tuple[Tails, list[FetchRequest]]:
    async def main() -> tuple[Tails, list[FetchRequest]]:
        broker = ScriptedBroker({"Fetch": handler})
        async with broker.running():
            broker.handlers["Metadata"] = always(
                answers.cluster([broker.address], {partition.topic: [0, 0] for partition in ends})
            )
            cluster = KafkaCluster(broker.settings(), "app")
            try:
                found = dict(await cluster.tails.data_ends(ends, deadline_seconds=5))
            finally:
                cluster.close()
            return found, [each.request for each in broker.seen if isinstance(each.request, FetchRequest)]

    return asyncio.run(main())


def tail(handler: Handler, end: PartitionEnd) -> int | Unknown:
    return read(handler, {A0: end})[0][A0]


def once(records: bytes = b"", **more: object) -> Handler:
    return always(fetched({A0: Fetched(records, **more)}))  # type: ignore[arg-type]


def places(requests: list[FetchRequest]) -> list[list[tuple[TopicPartition, int]]]:
    return [
        [
            (TopicPartition(topic.topic, each.partition), each.fetch_offset)
            for topic in one.topics
            for each in topic.partitions
        ]
        for one in requests
    ]


class Log:
    """A leader that hands out one partition's batches in order, so many bytes at a time."""

    def __init__(self, *batches: bytes, limit: int = 10_000, aborted: tuple[tuple[int, int], ...] = ()) -> None:
        self.batches = batches
        self.limit = limit
        self.aborted = aborted
        self.asked: list[int] = []

    async def __call__(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, FetchRequest)
        offset = int(request.topics[0].partitions[0].fetch_offset)
        self.asked.append(offset)
        data = b"".join(each for each in self.batches if _last(each) >= offset)
        return fetched({A0: Fetched(data[: self.limit], aborted=self.aborted)})


def _last(data: bytes) -> int:
    return int.from_bytes(data[:8]) + int.from_bytes(data[23:27])


def test_the_fetch_is_one_of_committed_records_and_waits_for_nothing() -> None:
    found, (request,) = read(once(batch(0, 5)), {A0: end_at(5)})
    assert found == {A0: 5}
    assert (request.isolation_level, request.min_bytes, request.replica_id) == (1, 0, -1)
    assert request.max_wait.total_seconds() == 0
    assert 0 < request.max_bytes <= 8 * 1024 * 1024
    assert request.topics[0].partitions[0].partition_max_bytes <= request.max_bytes


def test_markers_and_aborted_records_are_not_applied() -> None:
    log = batch(0, 5) + committed(5, 5) + marker(10, 1) + committed(11, 4) + marker(15, 1)
    assert tail(once(log, aborted=[(1, 11)]), end_at(16)) == 10


def test_without_a_record_nothing_is_left_to_apply() -> None:
    assert tail(once(committed(40, 4) + marker(44, 1), aborted=[(1, 40)]), end_at(45, start=40)) == 40


def test_an_empty_partition_is_not_asked_for() -> None:
    assert read(once(), {A0: end_at(7, start=7)}) == ({A0: 7}, [])


def test_nothing_to_read_asks_nobody() -> None:
    assert read(once(), {}) == ({}, [])


def test_an_open_transaction_before_the_end_is_unknown() -> None:
    found = tail(once(batch(0, 5), stable=5), end_at(9))
    assert found == Unknown(f"{NAME}: a transaction is open from offset 5 on")


def test_an_open_transaction_behind_the_end_is_of_no_concern() -> None:
    assert tail(once(batch(0, 9), stable=9), end_at(9)) == 9


def test_records_that_came_after_the_end_was_read_are_left_out() -> None:
    assert tail(once(batch(0, 5) + committed(5, 2) + marker(7, 1) + batch(8, 4), aborted=[(1, 5)]), end_at(8)) == 5
    assert tail(once(batch(0, 20)), end_at(8)) == 8


def test_it_looks_further_back_until_there_is_a_record() -> None:
    far = committed(6_000, 3_999) + marker(9_999, 1)
    log = Log(batch(0, 5_000), committed(5_000, 999), marker(5_999, 1), far, aborted=((1, 5_000), (1, 6_000)))
    assert tail(log, end_at(10_000)) == 5_000
    assert log.asked == [9_000, 0]


def test_it_reads_on_where_an_answer_was_cut() -> None:
    log = Log(batch(0, 5), batch(5, 5), committed(10, 5), marker(15, 1), limit=100, aborted=((1, 10),))
    assert tail(log, end_at(16)) == 10
    assert log.asked == [0, 5, 10, 15]


def test_a_tail_without_a_record_in_the_longest_window_is_unknown() -> None:
    end = WINDOWS[-1] * 3
    log = Log(batch(0, 5), committed(5, end - 6), marker(end - 1, 1), aborted=((1, 5),))
    assert tail(log, end_at(end)) == Unknown(
        f"{NAME}: none of the last {WINDOWS[-1]} offsets has a record that is applied"
    )
    assert log.asked == [end - window for window in WINDOWS]


def test_a_log_in_crumbs_is_given_up_after_so_many_requests() -> None:
    log = Log(*(batch(each, 1) for each in range(900)), limit=70)
    assert tail(log, end_at(900)) == Unknown(f"{NAME} is not read to its end within {ROUNDS} requests")
    assert len(log.asked) == ROUNDS


def test_a_hole_that_compaction_left_at_the_end_is_read_over() -> None:
    log = Log(batch(0, 5))
    assert tail(log, end_at(40)) == 5
    assert log.asked == [0, 5]


def test_an_empty_answer_of_a_leader_that_slows_us_down_says_nothing() -> None:
    slow = fetched({A0: Fetched()}, throttled=True)
    found, requests = read(in_turn(slow, slow, fetched({A0: Fetched(batch(0, 40))})), {A0: end_at(40)})
    assert (found, len(requests)) == ({A0: 40}, 3)


def test_an_answer_that_is_cut_within_its_first_batch_says_nothing() -> None:
    cut = fetched({A0: Fetched(batch(0, 40)[:30])})
    assert read(in_turn(cut, fetched({A0: Fetched(batch(0, 40))})), {A0: end_at(40)})[0] == {A0: 40}


def test_partitions_are_read_together_and_whoever_waits_is_first() -> None:
    first = fetched({A0: Fetched(batch(0, 40)), A1: Fetched(), B0: Fetched()})
    second = fetched({A1: Fetched(batch(0, 3)), B0: Fetched(batch(0, 2)[:50])})
    third = fetched({B0: Fetched(batch(0, 2))})
    ends = {A0: end_at(40), A1: end_at(3), B0: end_at(2)}
    found, requests = read(in_turn(first, second, third), ends)
    assert found == {A0: 40, A1: 3, B0: 2}
    assert places(requests) == [[(A0, 0), (A1, 0), (B0, 0)], [(A1, 0), (B0, 0)], [(B0, 0)]]


def test_a_start_that_moved_is_unknown() -> None:
    gone = Fetched(code=ErrorCode.offset_out_of_range)
    assert tail(always(fetched({A0: gone})), end_at(40)) == Unknown(f"{NAME} was taken away while it was read")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({A0: Fetched(code=answers.DENIED)}, NotAuthorisedError),
        ({A0: Fetched(code=ErrorCode.not_leader_or_follower)}, TemporarilyUnavailableError),
        ({A0: Fetched(batch(0, 5, magic=1))}, UnexpectedAnswerError),
        ({B0: Fetched(batch(0, 5))}, UnexpectedAnswerError),
    ],
    ids=["no right", "the leader moved", "bytes that are no batch", "another partition"],
)
def test_a_refusal_is_an_error(answer: Mapping[TopicPartition, Fetched], kind: type[KafkaAccessError]) -> None:
    with pytest.raises(kind, match=NAME):
        tail(always(fetched(answer)), end_at(40))


def test_the_missing_right_is_named() -> None:
    with pytest.raises(NotAuthorisedError) as caught:
        tail(once(code=answers.DENIED), end_at(40))
    assert caught.value.acl == "READ on topic a"
