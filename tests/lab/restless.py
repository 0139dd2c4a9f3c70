"""A member of a consumer group that joins and leaves again and again, as a crash-looping instance does."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.types import GroupId
from kio.static.primitive import i32Timedelta

from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.settings import read_settings
from streamapp.kafka.group.eviction import MemberToEvict, evict
from streamapp.kafka.group.groups import ClassicGroupState, read_group
from streamapp.wire.probe_subscription import encode_probe_subscription
from streamapp.wire.subscription import DecodedSubscription

CLIENT_ID = "restless"
_DEADLINE = 10.0
_SESSION = timedelta(seconds=6)


@contextmanager
def restless_member(bootstrap: str, group_id: str) -> Iterator[None]:
    """Keep the group rebalancing, and never stable, until the block is left."""
    stop, begun = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_join_and_leave(bootstrap, group_id, begun, stop)))
    thread.start()
    try:
        assert begun.wait(_DEADLINE)
        yield
    finally:
        stop.set()
        thread.join()


async def _join_and_leave(bootstrap: str, group_id: str, begun: threading.Event, stop: threading.Event) -> None:
    """Join and leave every second. Between that, have a member announced that has not joined yet.

    A rebalance is not over before every member that the broker expects has joined, so that there is no moment in which
    the group is stable. The members go on with their work meanwhile.
    """
    cluster = KafkaCluster(read_settings(bootstrap, {}), group_id)
    try:
        model = await _model(cluster)
        announced = await _announce(cluster, model)
        while not stop.is_set():
            await _visit(cluster, model)
            begun.set()
            next_one = await _announce(cluster, model)
            await evict(cluster.group, [MemberToEvict(announced)], CLIENT_ID, _DEADLINE)
            announced = next_one
        await evict(cluster.group, [MemberToEvict(announced)], CLIENT_ID, _DEADLINE)
    finally:
        cluster.close()


async def _model(cluster: KafkaCluster) -> DecodedSubscription:
    """What any member of the group says of itself."""
    while True:
        reading = await read_group(cluster.group, _DEADLINE)
        if reading.state is ClassicGroupState.STABLE:
            found = [each.subscription for each in reading.members if each.subscription is not None]
            if found:
                return found[0]
        await asyncio.sleep(0.1)


async def _announce(cluster: KafkaCluster, model: DecodedSubscription) -> str:
    """Let the broker expect one more member, and give its id."""
    connection = await cluster.group.connect(CLIENT_ID)
    try:
        return (await connection.ask(_join(cluster, "", model), JoinGroupResponse)).member_id
    finally:
        connection.close()


async def _visit(cluster: KafkaCluster, model: DecodedSubscription) -> None:
    """Be a member for a second."""
    member_id = await _announce(cluster, model)
    connection = await cluster.group.connect(CLIENT_ID)
    waiting = asyncio.create_task(connection.ask(_join(cluster, member_id, model), JoinGroupResponse))
    try:
        await asyncio.sleep(1)
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        connection.close()
    await evict(cluster.group, [MemberToEvict(member_id)], CLIENT_ID, _DEADLINE)


def _join(cluster: KafkaCluster, member_id: str, model: DecodedSubscription) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GroupId(cluster.group.group_id),
        session_timeout=i32Timedelta.parse(_SESSION),
        rebalance_timeout=i32Timedelta.parse(_SESSION),
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="stream", metadata=encode_probe_subscription(model)),),
    )
