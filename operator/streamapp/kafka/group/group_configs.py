"""Reads the configuration of a group of the streams protocol, and sets one part of it: its standbys.

Called by the controller. Any broker answers; a write is passed on to the controller of the cluster, and other brokers
know of it some milliseconds later. Repeating a write is harmless.
"""

from dataclasses import dataclass
from datetime import timedelta

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult, DescribeConfigsResponse
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.static.primitive import i8

from streamapp.core.facts.group import StandbySetting
from streamapp.kafka.brokers.pool import Pool
from streamapp.kafka.connection.deadline import within
from streamapp.kafka.connection.error_codes import failure
from streamapp.kafka.connection.errors import unexpected
from streamapp.kafka.topics.topics import metadata

STANDBYS = "streams.num.standby.replicas"
ASSIGNMENT_INTERVAL = "streams.assignment.interval.ms"
"""Brokers from 4.3 on have it."""
SESSION_TIMEOUT = "streams.session.timeout.ms"

_GROUP = i8(32)
_SET, _DELETE = i8(0), i8(1)
_OF_THIS_GROUP = 8
"""`DYNAMIC_GROUP_CONFIG`: the value is set for the group itself."""


_LONGEST_MILLIS = 2**31 - 1
"""What an integer of Kafka can hold."""


_LONGEST_ID = 255
"""Of a cluster. Kafka's have 22 characters, and the hold record keeps this one."""


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """What brokers apply to one group."""

    standbys: StandbySetting
    assignment_interval: timedelta | None
    """The least time between two assignments; None: the brokers do not tell it."""
    session_timeout: timedelta | None = None
    """How long a member that died stays listed; None: the brokers do not tell it."""


class GroupConfigs:
    """The configuration of one group."""

    def __init__(self, pool: Pool, group_id: str) -> None:
        self._pool = pool
        self._group_id = group_id
        self._cluster: str | None = None
        """ID of the cluster, once it is known."""

    async def read(self, deadline_seconds: float, *, asks_cluster: bool = False) -> GroupConfig:
        """Read how many standbys brokers place for each task, and what times they leave.

        Args:
            deadline_seconds: For all requests.
            asks_cluster: Whether the brokers also say anew which cluster they are of: a name can lead to other brokers.

        Raises:
            KafkaAccessError: The brokers do not tell the first. Brokers below 4.3 do not have the second.
        """
        what = f"group {self._group_id}: describe configs"
        resource = DescribeConfigsResource(
            resource_type=_GROUP,
            resource_name=self._group_id,
            configuration_keys=(STANDBYS, ASSIGNMENT_INTERVAL, SESSION_TIMEOUT),
        )
        async with within(deadline_seconds, what):
            if asks_cluster or self._cluster is None:
                self._cluster = _id_of((await metadata(self._pool, ())).cluster_id)
            answer = await self._pool.ask_any(DescribeConfigsRequest(resources=(resource,)), DescribeConfigsResponse)
        if [result.resource_name for result in answer.results] != [self._group_id]:
            raise unexpected(what, "the answer is of other groups")
        (result,) = answer.results
        if result.error_code is not ErrorCode.none:
            raise failure(result.error_code, what, f"DESCRIBE_CONFIGS on group {self._group_id}")
        found = {each.name: each for each in result.configs if (each.value or "").isdigit()}
        entry = found.get(STANDBYS)
        if entry is None:
            raise unexpected(what, f"{STANDBYS} is missing or no number")
        return GroupConfig(
            StandbySetting(int(entry.value or ""), entry.config_source == _OF_THIS_GROUP, self._cluster),
            _time(found.get(ASSIGNMENT_INTERVAL)),
            _time(found.get(SESSION_TIMEOUT)),
        )

    async def set_standbys(self, replicas: int | None, deadline_seconds: float) -> None:
        """Set how many standbys brokers place for each task, or remove the group's own value; KafkaAccessError."""
        what = f"group {self._group_id}: set {STANDBYS} to {'the default' if replicas is None else replicas}"
        config = AlterableConfig(
            name=STANDBYS,
            config_operation=_DELETE if replicas is None else _SET,
            value=None if replicas is None else str(replicas),
        )
        resource = AlterConfigsResource(resource_type=_GROUP, resource_name=self._group_id, configs=(config,))
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        async with within(deadline_seconds, what):
            answer = await self._pool.ask_any(request, IncrementalAlterConfigsResponse)
        if [each.resource_name for each in answer.responses] != [self._group_id]:
            raise unexpected(what, "the answer is of other groups")
        (done,) = answer.responses
        if done.error_code is ErrorCode.invalid_config:
            raise unexpected(what, done.error_message or "the brokers allow no such value")
        if done.error_code is not ErrorCode.none:
            raise failure(done.error_code, what, f"ALTER_CONFIGS on group {self._group_id}")


def _time(entry: DescribeConfigsResourceResult | None) -> timedelta | None:
    return None if entry is None else timedelta(milliseconds=min(int(entry.value or ""), _LONGEST_MILLIS))


def _id_of(cluster: str | None) -> str | None:
    """The ID; None where the brokers have none that can be kept."""
    return cluster if cluster and len(cluster) <= _LONGEST_ID else None
