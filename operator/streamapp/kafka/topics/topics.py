"""Reads topics: how many partitions they have, which are changelogs, how long they keep records.

Called by the controller's gathering, and by `offsets` for the partitions' leaders. Never creates a topic.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse, DescribeConfigsResult
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse, MetadataResponseTopic
from kio.schema.types import TopicName
from kio.static.primitive import i8

from streamapp.core.facts.topic_configs import ConfigUnread, TopicConfig
from streamapp.kafka.brokers.common_requests import CommonRequests
from streamapp.kafka.brokers.pool import Pool
from streamapp.kafka.connection.deadline import within
from streamapp.kafka.connection.error_codes import failure
from streamapp.kafka.connection.errors import KafkaAccessError, unexpected

PROBE = "streamapp-operator-visibility-probe"
"""Part of the name of a topic that does not exist; see `changelogs`."""

_CONFIGS = ("cleanup.policy", "delete.retention.ms", "retention.ms")
_TOPIC = i8(2)


class TopicReader:
    """Reads the topics of one cluster."""

    def __init__(self, pool: Pool, common: CommonRequests) -> None:
        self._pool, self._common = pool, common

    async def partition_counts(self, topics: Iterable[str], deadline_seconds: float) -> Mapping[str, int]:
        """Give the number of partitions of each topic, leaving out those that are not on the cluster.

        NotAuthorisedError where a topic may not be described: the broker does not say then whether it exists.
        """
        requested = sorted(set(topics))
        async with within(deadline_seconds, f"{names(requested)}: describe"):
            answer = await metadata(self._pool, requested)
        return _counts([topic for topic in answer.topics if not _is_unknown(topic)])

    async def changelogs(self, application_id: str, deadline_seconds: float) -> Mapping[str, int]:
        """Give every topic `<application id>-…-changelog` with its number of partitions.

        A broker leaves topics that the user may not describe out of its list in silence, and a changelog that is
        missing makes a lag look small. So the user must have the right on the application's *prefix*, proved by asking
        for a topic of that prefix that does not exist: without the right the broker refuses even that, and
        NotAuthorisedError is raised. Topics of another application whose id continues this one's are among the answer.
        """
        prefix, suffix = f"{application_id}-", "-changelog"
        what = f"application {application_id}: list changelogs"
        async with within(deadline_seconds, what):
            (probe,) = (await metadata(self._pool, [f"{prefix}{PROBE}{suffix}"])).topics
            if not _is_unknown(probe):
                raise failure(probe.error_code, what, f"DESCRIBE on topics with the prefix {prefix}")
            everything = await metadata(self._common, None)

        def is_changelog(topic: MetadataResponseTopic) -> bool:
            name = topic.name or ""
            store = name.removeprefix(prefix)
            return store != name and store.endswith(suffix) and store != suffix

        return _counts([topic for topic in everything.topics if is_changelog(topic)])

    async def configs(self, topics: Iterable[str], deadline_seconds: float) -> Mapping[str, TopicConfig | ConfigUnread]:
        """Give the retention settings of each topic, or why those of this one cannot be read.

        KafkaAccessError where the brokers did not answer at all.
        """
        requested = sorted(set(topics))
        if not requested:
            return {}
        resources = (
            DescribeConfigsResource(resource_type=_TOPIC, resource_name=topic, configuration_keys=_CONFIGS)
            for topic in requested
        )
        async with within(deadline_seconds, f"{names(requested)}: describe configs"):
            request = DescribeConfigsRequest(resources=tuple(resources))
            answer = await self._pool.ask_any(request, DescribeConfigsResponse)
        configs_by_topic = {result.resource_name: _config_or_why(result) for result in answer.results}
        if sorted(configs_by_topic) != requested:
            raise unexpected(f"{names(requested)}: describe configs", "the answer is of other topics")
        return configs_by_topic


async def metadata(pool: Pool | CommonRequests, topics: Sequence[str] | None) -> MetadataResponse:
    """Describe these topics, or all visible topics; the answer has one entry for each, errors included."""
    requested_topics = None if topics is None else tuple(_named(topic) for topic in topics)
    request = MetadataRequest(
        topics=requested_topics, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    answer = await pool.ask_any(request, MetadataResponse)
    if topics is not None and sorted(topic.name or "" for topic in answer.topics) != sorted(topics):
        raise unexpected(f"{names(topics)}: describe", "the answer is of other topics")
    return answer


def names(topics: Sequence[str]) -> str:
    """Name topics in an error, at most three of them."""
    shown = ", ".join(topics[:3])
    return f"topic {shown}" if len(topics) < 4 else f"topics {shown} and {len(topics) - 3} more"


def _named(topic: str) -> MetadataRequestTopic:
    return MetadataRequestTopic(topic_id=None, name=TopicName(topic))


def _is_unknown(topic: MetadataResponseTopic) -> bool:
    return topic.error_code is ErrorCode.unknown_topic_or_partition


def _counts(topics: Iterable[MetadataResponseTopic]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for topic in topics:
        name = topic.name or ""
        if topic.error_code is not ErrorCode.none:
            raise failure(topic.error_code, f"topic {name}: describe", f"DESCRIBE on topic {name}")
        counts[name] = len(topic.partitions)
    return counts


def _config_or_why(result: DescribeConfigsResult) -> TopicConfig | ConfigUnread:
    try:
        return _config(result)
    except KafkaAccessError as error:
        return ConfigUnread(str(error))


def _config(result: DescribeConfigsResult) -> TopicConfig:
    topic = result.resource_name
    what = f"topic {topic}: describe configs"
    if result.error_code is not ErrorCode.none:
        raise failure(result.error_code, what, f"DESCRIBE_CONFIGS on topic {topic}")
    values = {entry.name: entry.value for entry in result.configs}
    try:
        retention = int(values["retention.ms"] or "")
        return TopicConfig(
            cleanup_policies=frozenset(filter(None, (values["cleanup.policy"] or "").split(","))),
            retention=timedelta(milliseconds=retention) if retention >= 0 else None,
            delete_retention=timedelta(milliseconds=int(values["delete.retention.ms"] or "")),
        )
    except (KeyError, ValueError, OverflowError) as error:
        raise unexpected(what, f"a setting is missing or no number: {error}") from error
