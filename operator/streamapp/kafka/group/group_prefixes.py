"""Finds other applications whose ids start with this application's id: their changelogs match its prefix.

Called by `controller.apps.kafka_group` before it selects changelogs by name. Every broker is asked, since each knows
only the groups that it coordinates. What brokers list is the same for all applications that share them.
"""

import asyncio

from kio.schema.errors import ErrorCode
from kio.schema.list_groups.v4.request import ListGroupsRequest
from kio.schema.list_groups.v4.response import ListGroupsResponse

from streamapp.kafka.brokers.common_requests import CommonRequests
from streamapp.kafka.connection.deadline import within
from streamapp.kafka.connection.error_codes import failure
from streamapp.kafka.connection.settings import Address
from streamapp.kafka.topics.topics import metadata


class PrefixReader:
    """Reads the groups of one cluster."""

    def __init__(self, common: CommonRequests) -> None:
        self._common = common

    async def longer_ids(self, application_id: str, deadline_seconds: float) -> frozenset[str]:
        """Give the groups that are called `<application id>-…`; KafkaAccessError if one broker does not answer.

        The brokers silently omit a group that the user cannot describe. Its changelogs then count as the
        application's own, which makes lags look larger, never smaller.
        """
        what = f"application {application_id}: list groups"
        async with within(deadline_seconds, what):
            brokers = [Address(one.host, one.port) for one in (await metadata(self._common, [])).brokers]
            # Not cancelled by the first failure: a connection with half an answer is lost.
            answers = await asyncio.gather(
                *(self._common.ask(each, ListGroupsRequest(), ListGroupsResponse) for each in brokers),
                return_exceptions=True,
            )
        group_ids: set[str] = set()
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            if answer.error_code is not ErrorCode.none:
                raise failure(answer.error_code, what, "DESCRIBE on the groups of this prefix")
            group_ids |= {str(group.group_id) for group in answer.groups}
        return frozenset(each for each in group_ids if each.startswith(f"{application_id}-"))
