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

from streamapp.kafka.cluster import Cluster
from streamapp.kafka.errors import KafkaAccessError
from streamapp.kafka.eviction import MemberToEvict, evict
from streamapp.kafka.groups import GroupState, read_group
from streamapp.kafka.settings import read_settings
from streamapp.wire.phantom import encode_phantom
from streamapp.wire.subscription import Subscription

CLIENT_ID = "restless"
_DEADLINE = 10.0
_SESSION = timedelta(seconds=6)


@contextmanager
def restless_member(bootstrap: str, group_id: str) -> Iterator[None]:
    """Keep the group from ever being stable for longer than a moment, until the block is left."""
    stop = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_join_and_leave(bootstrap, group_id, stop)))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


async def _join_and_leave(bootstrap: str, group_id: str, stop: threading.Event) -> None:
    cluster = Cluster(read_settings(bootstrap, {}), group_id)
    try:
        while not stop.is_set():
            try:
                await _visit(cluster)
            except KafkaAccessError:
                await asyncio.sleep(0.1)
    finally:
        cluster.close()


async def _visit(cluster: Cluster) -> None:
    """Join as soon as the group is stable, and leave when the members have begun to rejoin."""
    reading = await read_group(cluster.group, _DEADLINE)
    model = next((each.subscription for each in reading.members if each.subscription is not None), None)
    if reading.state is not GroupState.STABLE or model is None:
        await asyncio.sleep(0.02)
        return
    joining = await cluster.group.connect(CLIENT_ID)
    try:
        member_id = (await joining.ask(_join(cluster, "", model), JoinGroupResponse)).member_id
        waiting = asyncio.create_task(joining.ask(_join(cluster, member_id, model), JoinGroupResponse))
        await asyncio.sleep(0.5)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await evict(cluster.group, [MemberToEvict(member_id)], "restless", _DEADLINE)
    finally:
        joining.close()


def _join(cluster: Cluster, member_id: str, model: Subscription) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GroupId(cluster.group.group_id),
        session_timeout=i32Timedelta.parse(_SESSION),
        rebalance_timeout=i32Timedelta.parse(_SESSION),
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="stream", metadata=encode_phantom(model)),),
    )
