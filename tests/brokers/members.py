"""Members of a Kafka Streams group on a real broker, without a JVM: the bytes of a captured group, sent again."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from datetime import timedelta

from kio.schema.errors import ErrorCode
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.sync_group.v5.response import SyncGroupResponse
from kio.schema.types import GroupId
from kio.static.primitive import i32Timedelta

from streamapp.kafka.brokers.coordinator import Coordinator
from streamapp.kafka.brokers.pool import Pool
from streamapp.kafka.brokers.shared_brokers import SharedBrokers
from streamapp.kafka.connection.connection import Connection
from streamapp.kafka.connection.connector import Connector, Threads
from streamapp.kafka.connection.errors import BrokerUnreachableError
from streamapp.kafka.connection.settings import read_settings
from streamapp.kafka.group.eviction import EvictionResult, MemberToEvict, evict
from streamapp.wire.members import RawMember
from tests.wire.captures import captured

APPLICATION = "counter"
SOURCE, CHANGELOG = "in", "counter-counts-changelog"
SESSION = timedelta(minutes=1)
"""They send no heartbeats."""


@asynccontextmanager
async def joined(bootstrap: str) -> AsyncIterator[None]:
    """Make the group `counter` of the captured members, stable for the time of the block."""
    settings = read_settings(bootstrap, {})
    with closing(Threads()) as threads, closing(SharedBrokers(settings, Connector(settings, threads))) as brokers:
        pool = Pool(brokers)
        coordinator = Coordinator(pool, APPLICATION)
        members = captured("4.2.1-standbys")
        connections = [await coordinator.connect(member.client_id) for member in members]
        try:
            ids = [
                await _member_id(connection, member) for connection, member in zip(connections, members, strict=True)
            ]
            await _assign(connections, members, ids)
            yield
            assert set((await _evict(coordinator, ids)).values()) == {EvictionResult.EVICTED}
        finally:
            for connection in connections:
                connection.close()
            brokers.close()
            await asyncio.sleep(0)


async def _evict(coordinator: Coordinator, ids: list[str]) -> Mapping[MemberToEvict, EvictionResult]:
    """Evict them all; from a coordinator that died at the second attempt, as the next pass of the controller does."""
    wanted = [MemberToEvict(name) for name in ids]
    try:
        return await evict(coordinator, wanted, "a test", 10)
    except BrokerUnreachableError:
        return await evict(coordinator, wanted, "a test", 10)


async def _assign(connections: list[Connection], members: list[RawMember], ids: list[str]) -> None:
    """Make a generation of all of them, with the captured assignments."""
    every = list(zip(connections, members, ids, strict=True))
    joins = (connection.ask(_join(member, name), JoinGroupResponse) for connection, member, name in every)
    answers = await asyncio.gather(*joins)
    assert {answer.error_code for answer in answers} == {ErrorCode.none}
    shares = {name: member.assignment for _, member, name in every}
    syncs = (
        one.ask(_sync(answer, shares), SyncGroupResponse) for one, answer in zip(connections, answers, strict=True)
    )
    assert {answer.error_code for answer in await asyncio.gather(*syncs)} == {ErrorCode.none}


async def _member_id(connection: Connection, member: RawMember) -> str:
    answer = await connection.ask(_join(member, ""), JoinGroupResponse)
    assert answer.error_code is ErrorCode.member_id_required
    return str(answer.member_id)


def _join(member: RawMember, name: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GroupId(APPLICATION),
        session_timeout=i32Timedelta.parse(SESSION),
        rebalance_timeout=i32Timedelta.parse(SESSION),
        member_id=name,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="stream", metadata=member.metadata),),
        reason="a test",
    )


def _sync(joined_as: JoinGroupResponse, shares: dict[str, bytes]) -> SyncGroupRequest:
    is_leader = joined_as.leader == joined_as.member_id
    assignments = (
        SyncGroupRequestAssignment(member_id=name, assignment=share) for name, share in shares.items() if is_leader
    )
    return SyncGroupRequest(
        group_id=GroupId(APPLICATION),
        generation_id=joined_as.generation_id,
        member_id=joined_as.member_id,
        protocol_type="consumer",
        protocol_name="stream",
        assignments=tuple(assignments),
    )
