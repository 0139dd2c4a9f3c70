"""Reads and sets one configuration of a group: its standbys in the streams group protocol.

Called by the controller. Any broker answers; a write is passed on to the controller of the cluster, and other brokers
know of it some milliseconds later. Repeating a write is harmless.
"""

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
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

STANDBYS = "streams.num.standby.replicas"

_GROUP = i8(32)
_SET, _DELETE = i8(0), i8(1)
_OF_THIS_GROUP = 8
"""`DYNAMIC_GROUP_CONFIG`: the value is set for the group itself."""


class GroupConfigs:
    """The configuration of one group."""

    def __init__(self, pool: Pool, group_id: str) -> None:
        self._pool = pool
        self._group_id = group_id

    async def standbys(self, deadline_seconds: float) -> StandbySetting:
        """Read how many standbys brokers place for each task; KafkaAccessError."""
        what = f"group {self._group_id}: describe configs"
        resource = DescribeConfigsResource(
            resource_type=_GROUP, resource_name=self._group_id, configuration_keys=(STANDBYS,)
        )
        async with within(deadline_seconds, what):
            answer = await self._pool.ask_any(DescribeConfigsRequest(resources=(resource,)), DescribeConfigsResponse)
        if [result.resource_name for result in answer.results] != [self._group_id]:
            raise unexpected(what, "the answer is of other groups")
        (result,) = answer.results
        if result.error_code is not ErrorCode.none:
            raise failure(result.error_code, what, f"DESCRIBE_CONFIGS on group {self._group_id}")
        entry = next((each for each in result.configs if each.name == STANDBYS), None)
        if entry is None or not (entry.value or "").isdigit():
            raise unexpected(what, f"{STANDBYS} is missing or no number")
        return StandbySetting(int(entry.value or ""), is_set=entry.config_source == _OF_THIS_GROUP)

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
