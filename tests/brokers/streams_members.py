"""Members of a streams group on a real broker, without a JVM: they only heartbeat, and do at once what they are told.

Each stands for one stream thread. A heartbeat is sent when a test says so, so that a rebalance takes as long as its
answers, and never a heartbeat interval.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.streams_group_heartbeat.v0 import request as v0
from kio.schema.streams_group_heartbeat.v0.response import StreamsGroupHeartbeatResponse
from kio.schema.streams_group_heartbeat.v0.response import TaskIds as ToldTasks
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta

from streamapp.core.facts.ids import TaskId
from streamapp.kafka.brokers.coordinator import Coordinator
from streamapp.kafka.brokers.pool import Pool
from streamapp.kafka.brokers.shared_brokers import SharedBrokers
from streamapp.kafka.connection.connector import Connector, Threads
from streamapp.kafka.connection.errors import TemporarilyUnavailableError
from streamapp.kafka.connection.settings import read_settings

_REVOCATION = timedelta(minutes=5)
_PATIENCE_SECONDS = 60.0
_JOINS, _LEAVES = 0, -1
_GROUP, _SET = i8(32), i8(0)
Tasks = frozenset[TaskId]
NONE = frozenset[TaskId]()


@dataclass(frozen=True)
class Shape:
    """The topology of the application: one sub-topology with a store, and one without state."""

    group_id: str
    stateful_source: str
    stateless_source: str

    def request(self) -> v0.Topology:
        """As a member sends it when it joins."""
        store = v0.TopicInfo(
            name=TopicName(f"{self.group_id}-counts-changelog"),
            partitions=i32(0),
            replication_factor=i16(0),
            topic_configs=(),
        )
        return v0.Topology(
            epoch=i32(0),
            subtopologies=(_subtopology("0", self.stateful_source, store), _subtopology("1", self.stateless_source)),
        )


def _subtopology(name: str, source: str, *stores: v0.TopicInfo) -> v0.Subtopology:
    return v0.Subtopology(
        subtopology_id=name,
        source_topics=(TopicName(source),),
        state_changelog_topics=stores,
        repartition_source_topics=(),
        copartition_groups=(),
    )


@dataclass
class WireMember:
    """One member; its tasks are what the coordinator told it last."""

    coordinator: Coordinator
    shape: Shape
    id: str
    process: str
    epoch: int = _JOINS
    tasks: dict[str, Tasks] = field(default_factory=lambda: {"active": NONE, "standby": NONE})
    heard_of_change: bool = True

    async def heartbeat(self) -> bool:
        """Send one, and take over what the answer says; tell whether that changed anything."""
        answer = await self._send(self._request())
        told = {"active": answer.active_tasks, "standby": answer.standby_tasks}
        new = {kind: self.tasks[kind] if tasks is None else _tasks_of(tasks) for kind, tasks in told.items()}
        before = (self.tasks, self.epoch)
        self.tasks, self.epoch = new, int(answer.member_epoch)
        self.heard_of_change = before != (self.tasks, self.epoch)
        return self.heard_of_change

    async def leave(self) -> None:
        """Say farewell, as a client that is closed does."""
        request = _heartbeat(self.shape.group_id, self.id, _LEAVES)
        await self._send(request)

    def _request(self) -> v0.StreamsGroupHeartbeatRequest:
        if self.epoch == _JOINS:
            return _heartbeat(
                *(self.shape.group_id, self.id, _JOINS),
                topology=self.shape.request(),
                rebalance_timeout=i32Timedelta.parse(_REVOCATION),
                process_id=self.process,
                client_tags=(),
                active_tasks=(),
                standby_tasks=(),
                warmup_tasks=(),
            )
        if not self.heard_of_change:
            return _heartbeat(self.shape.group_id, self.id, self.epoch)
        return _heartbeat(
            *(self.shape.group_id, self.id, self.epoch),
            active_tasks=_task_ids(self.tasks["active"]),
            standby_tasks=_task_ids(self.tasks["standby"]),
            warmup_tasks=(),
        )

    async def _send(self, request: v0.StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
        answer = await self.coordinator.ask(request, StreamsGroupHeartbeatResponse, lambda one: [one.error_code])
        assert answer.error_code is ErrorCode.none, (self.id, answer.error_code, answer.error_message)
        return answer


def _heartbeat(group_id: str, member_id: str, epoch: int, **said: object) -> v0.StreamsGroupHeartbeatRequest:
    unchanged = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks", "client_tags"))
    return v0.StreamsGroupHeartbeatRequest(
        group_id=GroupId(group_id),
        member_id=member_id,
        member_epoch=i32(epoch),
        endpoint_information_epoch=i32(-1),
        task_offsets=None,
        task_end_offsets=None,
        **{**unchanged, **said},  # type: ignore[arg-type]  # fields of the request by their names
    )


def _task_ids(tasks: Tasks) -> tuple[v0.TaskIds, ...]:
    names = sorted({task.subtopology for task in tasks})
    return tuple(
        v0.TaskIds(
            subtopology_id=str(name),
            partitions=tuple(i32(task.partition) for task in sorted(tasks) if task.subtopology == name),
        )
        for name in names
    )


def _tasks_of(told: Sequence[ToldTasks]) -> Tasks:
    return frozenset(TaskId(int(each.subtopology_id), int(part)) for each in told for part in each.partitions)


class WireGroup:
    """All members of one group, and the processes that they belong to."""

    def __init__(self, pool: Pool, shape: Shape, random: Random) -> None:
        self._pool, self._shape, self._random = pool, shape, random
        self._coordinator = Coordinator(pool, shape.group_id)
        self.members: dict[str, WireMember] = {}

    @property
    def processes(self) -> Mapping[str, list[WireMember]]:
        """The members by process."""
        found: dict[str, list[WireMember]] = {}
        for member in self.members.values():
            found.setdefault(member.process, []).append(member)
        return found

    async def reach_coordinator(self) -> None:
        """Wait until a new broker has made the topic of its coordinators."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                (await self._coordinator.connect("streams-members")).close()
            except TemporarilyUnavailableError:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(0.2)
            else:
                return

    async def assign_at_once(self) -> bool:
        """Have no time between two assignments; False where the broker has no such setting (before 4.3)."""
        config = AlterableConfig(name="streams.assignment.interval.ms", config_operation=_SET, value="0")
        resource = AlterConfigsResource(resource_type=_GROUP, resource_name=self._shape.group_id, configs=(config,))
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        answer = await self._pool.ask_any(request, IncrementalAlterConfigsResponse)
        return answer.responses[0].error_code is ErrorCode.none

    def start(self, process: str, threads: int) -> None:
        """Add members of a process; they join with their next heartbeats."""
        for _ in range(threads):
            name = "".join(self._random.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789_-", k=22))
            self.members[name] = WireMember(self._coordinator, self._shape, name, process)

    async def stop(self, process: str) -> None:
        """Let each thread leave, in any order; members of other processes can heartbeat in between."""
        leaving = self.processes[process]
        self._random.shuffle(leaving)
        for member in leaving:
            if member.epoch != _JOINS:
                await member.leave()
            del self.members[member.id]
            if self.members and self._random.random() < 1 / 2:
                await self._random.choice(list(self.members.values())).heartbeat()

    async def round(self) -> bool:
        """Let each member heartbeat once, in any order; tell whether any heard something new."""
        members = list(self.members.values())
        self._random.shuffle(members)
        return any([await member.heartbeat() for member in members])


@asynccontextmanager
async def wire_group(bootstrap: str, shape: Shape, random: Random) -> AsyncIterator[WireGroup]:
    """A group without members, on a connection of its own; whoever is left leaves at the end."""
    settings = read_settings(bootstrap, {})
    with closing(Threads()) as threads, closing(SharedBrokers(settings, Connector(settings, threads))) as brokers:
        group = WireGroup(Pool(brokers), shape, random)
        try:
            yield group
        finally:
            for process in list(group.processes):
                await group.stop(process)
