"""The group as the broker sees it, through the product's own client: its members, and the rebalance trigger."""

import asyncio

from lab.errors import LabError
from streamapp.core.facts.ids import ProcessId
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import KafkaAccessError
from streamapp.kafka.connection.settings import read_settings
from streamapp.kafka.group.groups import ClassicGroupState, DecodedGroup, read_group
from streamapp.kafka.group.rebalance import RebalanceTriggered, trigger_rebalance

_DEADLINE_SECONDS = 10.0
_BETWEEN_SECONDS = 0.1


def processes(bootstrap: str, group_id: str) -> set[ProcessId]:
    """Name the processes that have members; none where the group is not stable, so that it does not say."""
    reading = asyncio.run(_with_cluster(bootstrap, group_id, None))
    return {member.subscription.info.process_id for member in reading.members if member.subscription is not None}


def trigger_rebalance_once_stable(bootstrap: str, group_id: str, staying: ProcessId) -> None:
    """Make the group rebalance, in the name of a process that stays; wait for a moment in which it may be done."""
    asyncio.run(_with_cluster(bootstrap, group_id, staying))


async def _with_cluster(bootstrap: str, group_id: str, staying: ProcessId | None) -> DecodedGroup:
    cluster = KafkaCluster(read_settings(bootstrap, {}), group_id)
    try:
        async with asyncio.timeout(2 * _DEADLINE_SECONDS):
            if staying is None:
                return await read_group(cluster.group, _DEADLINE_SECONDS)
            while True:
                reading = await read_group(cluster.group, _DEADLINE_SECONDS)
                if reading.state is ClassicGroupState.STABLE and await _triggered(cluster, reading, staying):
                    return reading
                await asyncio.sleep(_BETWEEN_SECONDS)
    except (KafkaAccessError, TimeoutError) as error:
        why = str(error) or "it did not become stable"
        raise LabError(
            f"group {group_id}: no rebalance can be triggered", why, "look at the processes' logs"
        ) from error
    finally:
        cluster.close()


async def _triggered(cluster: KafkaCluster, reading: DecodedGroup, staying: ProcessId) -> bool:
    told = (member.subscription for member in reading.members if member.subscription is not None)
    models = [each for each in told if each.info.process_id == staying]
    return bool(models) and isinstance(
        await trigger_rebalance(cluster.group, models[0], _DEADLINE_SECONDS), RebalanceTriggered
    )
