"""Reads the tails of partitions as a reader of committed records sees them: where the last record lies that is applied.

Called by the controller's gathering, and only for changelogs whose lag does not get smaller: markers and aborted
records at the end of a log are never applied, so that under exactly-once a copy that has everything may still be far
from the end. One look costs a bounded number of requests and bytes; a tail that it does not get to the bottom of is
unknown, and never shorter than it is. Needs READ on the topics, which nothing else of the operator does.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v12.response import FetchResponse, PartitionData
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64

from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.lag import PartitionEnd, Unknown
from streamapp.kafka.brokers.pool import Pool
from streamapp.kafka.connection.deadline import within
from streamapp.kafka.connection.error_codes import failure
from streamapp.kafka.connection.errors import unexpected
from streamapp.kafka.connection.off_loop import decode
from streamapp.kafka.connection.settings import Address
from streamapp.kafka.topics.leaders import leaders_of, topics_of
from streamapp.kafka.topics.topics import metadata, names
from streamapp.wire.batches import Aborted, data_end, decode_batches
from streamapp.wire.errors import UndecodableError

WINDOWS = (1_000, 10_000, 100_000)
"""How many offsets before the end are looked at: first the shortest, and as long as no record is found the next."""
ROUNDS = 24
"""Requests to one leader at most."""
_PARTITION_BYTES, _ANSWER_BYTES = 1024 * 1024, 4 * 1024 * 1024
_READ_COMMITTED = i8(1)
_AT_ONCE = i32Timedelta.parse(timedelta(0))

Tail = int | Unknown
"""The offset after the last applied record, or why it is unknown."""


class TailReader:
    """Reads the tails of one cluster's partitions."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def data_ends(
        self, ends: Mapping[TopicPartition, PartitionEnd], deadline_seconds: float
    ) -> Mapping[TopicPartition, Tail]:
        """Give for each partition the offset after the last record before its end that is applied; its start for none.

        Unknown where a transaction that began before the end is still open, or the tail is longer than one look
        reaches. KafkaAccessError where a leader refuses or does not answer.
        """
        if not ends:
            return {}
        what = names(topics_of(ends))
        async with within(deadline_seconds, f"{what}: tail"):
            leaders = leaders_of(await metadata(self._pool, topics_of(ends)), ends, "tail")
            looks = {partition: _TailScan(partition, end) for partition, end in ends.items()}
            # Not cancelled by the first failure: a connection with half an answer is lost.
            results = await asyncio.gather(
                *(self._follow(leader, [looks[each] for each in led]) for leader, led in leaders.items()),
                return_exceptions=True,
            )
        for failed in results:
            if failed is not None:
                raise failed
        return {partition: look.result() for partition, look in looks.items()}

    async def _follow(self, leader: Address, looks: Sequence["_TailScan"]) -> None:
        for _ in range(ROUNDS):
            waiting = sorted((look for look in looks if not look.is_done), key=lambda look: -look.idle_rounds)
            if not waiting:
                return
            answer = await self._pool.ask(leader, _fetch(waiting), FetchResponse)
            await decode(_record_bytes(answer), _absorb, answer, waiting)


@dataclass
class _TailScan:
    """How far one partition is read: windows from the end backwards, each of them forwards."""

    partition: TopicPartition
    end: PartitionEnd
    idle_rounds: int = 0
    """Rounds without a record. The partition with the most comes first in a request, and so gets at least one batch."""
    _window: int = 0
    _upper: int = field(init=False)
    _at: int = field(init=False)
    _data_end: int | None = None
    _answer: Tail | None = None

    def __post_init__(self) -> None:
        self._upper, self._at = self.end.end, self._lower()
        self._move_on()

    @property
    def what(self) -> str:
        """Name it in errors."""
        return f"topic {self.partition.topic} partition {self.partition.partition}: tail"

    @property
    def is_done(self) -> bool:
        """Whether the scan is complete."""
        return self._answer is not None

    @property
    def next_offset(self) -> int:
        """Where to read on."""
        return self._at

    def result(self) -> Tail:
        """Give what was found out."""
        if self._answer is not None:
            return self._answer
        return Unknown(f"{self.what} is not read to its end within {ROUNDS} requests")

    def absorb(self, answer: PartitionData, *, is_first: bool) -> None:
        """Take one answer in; `is_first`: an answer without a byte means that the log has nothing more."""
        if answer.error_code is ErrorCode.offset_out_of_range:
            self._answer = Unknown(f"{self.what} was taken away while it was read")
            return
        if answer.error_code is not ErrorCode.none:
            raise failure(answer.error_code, self.what, f"READ on topic {self.partition.topic}")
        if answer.last_stable_offset < self.end.end:
            self._answer = Unknown(f"{self.what}: a transaction is open from offset {answer.last_stable_offset} on")
            return
        try:
            batches = decode_batches(answer.records or b"")
        except UndecodableError as error:
            raise unexpected(self.what, str(error)) from error
        # What came after the end was read is of no concern.
        below = [batch for batch in batches.whole if batch.base_offset < self.end.end]
        aborted = (Aborted(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ())
        data_end_offset = data_end(below, aborted)
        self._data_end = self._data_end if data_end_offset is None else min(data_end_offset, self.end.end)
        before = self._at
        if batches.whole:
            self._at = max(self._at, batches.whole[-1].last_offset + 1)
        elif is_first and not batches.cut:
            self._at = self._upper
        self.idle_rounds = 0 if self._at > before else self.idle_rounds + 1
        self._move_on()

    def _lower(self) -> int:
        return max(self.end.log_start, self.end.end - WINDOWS[self._window])

    def _move_on(self) -> None:
        """See whether the window is read, and whether that says it all."""
        if self._at < self._upper:
            return
        lower = self._lower()
        if self._data_end is not None:
            self._answer = self._data_end
        elif lower == self.end.log_start:
            self._answer = lower
        elif self._window + 1 == len(WINDOWS):
            self._answer = Unknown(f"{self.what}: none of the last {WINDOWS[-1]} offsets has a record that is applied")
        else:
            self._window += 1
            self._upper, self._at = lower, self._lower()


def _fetch(looks: Iterable[_TailScan]) -> FetchRequest:
    # One topic entry each: a leader fills its answer in the order of the request, which grouping by topic would change.
    topics = (
        FetchTopic(
            topic=TopicName(look.partition.topic),
            partitions=(
                FetchPartition(
                    partition=i32(look.partition.partition),
                    fetch_offset=i64(look.next_offset),
                    partition_max_bytes=i32(_PARTITION_BYTES),
                ),
            ),
        )
        for look in looks
    )
    return FetchRequest(
        max_wait=_AT_ONCE,
        min_bytes=i32(0),
        max_bytes=i32(_ANSWER_BYTES),
        isolation_level=_READ_COMMITTED,
        topics=tuple(topics),
        forgotten_topics_data=(),
    )


def _record_bytes(answer: FetchResponse) -> int:
    return sum(len(each.records or b"") for topic in answer.responses for each in topic.partitions)


def _absorb(answer: FetchResponse, looks: Sequence[_TailScan]) -> None:
    if answer.error_code is not ErrorCode.none:
        raise failure(answer.error_code, looks[0].what, f"READ on topic {looks[0].partition.topic}")
    answers_by_partition = {
        TopicPartition(topic.topic, each.partition_index): each
        for topic in answer.responses
        for each in topic.partitions
    }
    # A leader that slows us down answers with nothing, which then says nothing.
    is_throttled = answer.throttle_time > timedelta(0)
    for place, look in enumerate(looks):
        one = answers_by_partition.get(look.partition)
        if one is None:
            raise unexpected(look.what, "the leader's answer leaves it out")
        look.absorb(one, is_first=place == 0 and not is_throttled)
