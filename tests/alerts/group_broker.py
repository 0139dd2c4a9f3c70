"""A broker whose one group follows the pods: the group of `fake_group` behind Kafka's own protocol, on a real socket.

The operator reads it, wakes it with a probe member and evicts from it as from any broker. Members, offsets and ends are
those of the fake group. Its port can be closed and opened again.
"""

from collections.abc import Iterable
from contextlib import AsyncExitStack

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.request import FetchRequest
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.leave_group.v5.request import LeaveGroupRequest
from kio.schema.list_offsets.v7.request import ListOffsetsRequest
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.produce.v9.request import ProduceRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import Applied, GroupDescription, Member, NoOffsets, OffsetSum
from streamapp.core.facts.ids import TaskId, TopicPartition
from streamapp.wire.assignment import DecodedAssignment, NoRebalanceScheduled
from streamapp.wire.members import RawMember
from streamapp.wire.subscription import (
    DecodedSubscription,
    PositionSum,
    RunningActivePosition,
    SubscriptionInfo,
    TaskPosition,
    UnknownPosition,
)
from tests.controller.doubles.fake_group import FakeGroup
from tests.kafka import answers
from tests.kafka.coordinating import Group
from tests.kafka.scripted import NO_THROTTLE, ScriptedBroker, coordinator_answer
from tests.support.example import END, PARTITIONS
from tests.wire import encoding

SOURCE = "lines"
CHANGELOG = "wordcount-counts-changelog"
RECORD_TOPIC = "streamapp-flight-records"
NEWEST = 11
"""Of Kafka Streams' versions of what members say."""
_LATEST = -1
_CONFIGS = {"cleanup.policy": "compact", "retention.ms": "-1", "delete.retention.ms": "86400000"}


class GroupBroker(Group):
    """One broker with one application."""

    def __init__(self, group: FakeGroup) -> None:
        super().__init__(members=[])
        self.group = group
        self.takes_records = True
        """Whether it takes what is sent to the record's topic; else every batch is too large for it."""
        self.broker = ScriptedBroker()
        self.attach(self.broker)
        self.broker.handlers |= {
            "DescribeConfigs": self._configs,
            "Fetch": self._fetch,
            "FindCoordinator": self._find,
            "InitProducerId": self._producer_id,
            "ListGroups": self._groups,
            "ListOffsets": self._offsets,
            "Metadata": self._topics,
            "Produce": self._produce,
        }
        self._listening = AsyncExitStack()

    @property
    def address(self) -> str:
        """As in `bootstrap.servers`."""
        return f"127.0.0.1:{self.broker.port}"

    async def open(self) -> None:
        """Listen, on the same port as before."""
        await self._listening.enter_async_context(self.broker.running())

    async def close(self) -> None:
        """Refuse connections, and end those that are open."""
        await self._listening.aclose()

    async def describe(self, request: RequestPayload) -> ResponsePayload:
        """Describe the group as it is after the pods' last changes."""
        assert isinstance(request, DescribeGroupsRequest)
        found = (await self.group.describe()).group
        assert isinstance(found, GroupDescription)
        joins = {one.id: one.joins for one in self.group.members.values()}
        members = [_raw(one, joins[one.id]) for one in found.members]
        return answers.described(found.state.value, members, group=str(request.groups[0]))

    async def leave(self, request: RequestPayload) -> ResponsePayload:
        """Let the probe member go, which everybody else joins after; or evict."""
        assert isinstance(request, LeaveGroupRequest)
        real = [one.member_id for one in request.members if one.member_id in self.group.members]
        if real:
            await self.group.evict([MemberKey(one) for one in real], "eviction")
            return answers.left({(one.member_id, one.group_instance_id): ErrorCode.none for one in request.members})
        said = await super().leave(request)
        if self.group.members:
            await self.group.trigger_rebalance(next(iter(self.group.members)))
        return said

    async def _find(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, FindCoordinatorRequest)
        return coordinator_answer(self.broker.address, *request.coordinator_keys)

    async def _groups(self, _: RequestPayload) -> ResponsePayload:
        return answers.groups("wordcount")

    async def _topics(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, MetadataRequest)
        there = {SOURCE: [0] * PARTITIONS, CHANGELOG: [0] * PARTITIONS, RECORD_TOPIC: [0]}
        asked = [str(one.name) for one in request.topics] if request.topics is not None else [*there]
        missing = {name: answers.UNKNOWN_TOPIC for name in asked if name not in there}
        found = {name: there[name] for name in asked if name in there}
        return answers.cluster([self.broker.address], found, missing)

    async def _offsets(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, ListOffsetsRequest)
        return answers.offsets(
            {
                TopicPartition(str(topic.name), one.partition_index): END if one.timestamp == _LATEST else 0
                for topic in request.topics
                for one in topic.partitions
            }
        )

    async def _configs(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, DescribeConfigsRequest)
        each = [answers.configs(one.resource_name, _CONFIGS).results[0] for one in request.resources]
        return DescribeConfigsResponse(throttle_time=NO_THROTTLE, results=tuple(each))

    async def _fetch(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, FetchRequest)
        last = answers.Fetched(records=encoding.batch(END - 1, 1), stable=END)
        asked = [
            TopicPartition(str(topic.topic), one.partition) for topic in request.topics for one in topic.partitions
        ]
        return answers.fetched(dict.fromkeys(asked, last))

    async def _produce(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, ProduceRequest)
        return answers.produced(request, ErrorCode.none if self.takes_records else ErrorCode.message_too_large)

    async def _producer_id(self, _: RequestPayload) -> ResponsePayload:
        return answers.producer_id()


def _raw(member: Member, joins: int) -> RawMember:
    return RawMember(
        member_id=member.id,
        instance_id=None,
        client_id=member.client_id,
        client_host=f"/{member.client_host}",
        metadata=b"" if member.subscription is None else encoding.subscription(_said(member, joins)),
        assignment=b"" if member.assignment is None else encoding.assignment(_given(member), 3),
    )


def _said(member: Member, joins: int) -> DecodedSubscription:
    said = member.subscription
    assert said is not None
    assert said.process_id is not None
    info = SubscriptionInfo(
        version=NEWEST,
        latest_supported_version=NEWEST,
        process_id=said.process_id,
        user_endpoint="",
        positions={task: _position(offsets) for task, offsets in said.offsets.items()},
        unique_field=joins % 128,
        error_code=0,
        client_tags=(),
    )
    return DecodedSubscription(
        version=3, topics=(SOURCE,), info=info, owned_partitions=said.owned_partitions, generation=joins, rack=None
    )


def _position(offsets: OffsetSum) -> TaskPosition:
    if isinstance(offsets, Applied):
        return PositionSum(offsets.offset_sum)
    return RunningActivePosition() if offsets is NoOffsets.RUNNING else UnknownPosition()


def _given(member: Member) -> DecodedAssignment:
    given = member.assignment
    assert given is not None
    return DecodedAssignment(
        version=NEWEST,
        commonly_supported_version=NEWEST,
        active=_of(SOURCE, given.active),
        standby=_of(CHANGELOG, given.standby),
        active_by_host={},
        standby_by_host={},
        error_code=0,
        next_rebalance=NoRebalanceScheduled(),
    )


def _of(topic: str, tasks: Iterable[TaskId]) -> dict[TaskId, frozenset[TopicPartition]]:
    return {task: frozenset({TopicPartition(topic, task.partition)}) for task in tasks}
