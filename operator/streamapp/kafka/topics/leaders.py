"""Who leads which partition, from a metadata answer; used by what asks leaders: `offsets` and `tails`."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32

from streamapp.core.facts.ids import TopicPartition
from streamapp.kafka.connection.error_codes import failure
from streamapp.kafka.connection.errors import TemporarilyUnavailableError, TopicUnknownError
from streamapp.kafka.connection.settings import Address


def topics_of(partitions: Iterable[TopicPartition]) -> list[str]:
    """Name the topics, once each, in order."""
    return sorted({partition.topic for partition in partitions})


def by_topic(partitions: Iterable[TopicPartition]) -> Mapping[str, list[int]]:
    """Group partition numbers by topic."""
    partitions_by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        partitions_by_topic[topic].append(partition)
    return partitions_by_topic


def leaders_of(
    answer: MetadataResponse, partitions: Iterable[TopicPartition], name: str
) -> Mapping[Address, list[TopicPartition]]:
    """Group partitions by the broker that leads them; raises KafkaAccessError where one has no leader now.

    `answer` describes the topics of `wanted`; `name` says what is read, for the error.
    """
    brokers = {broker.node_id: Address(broker.host, broker.port) for broker in answer.brokers}
    topics = {topic.name: topic for topic in answer.topics}
    led: defaultdict[Address, list[TopicPartition]] = defaultdict(list)
    for partition in partitions:
        topic = topics[TopicName(partition.topic)]
        what = f"topic {partition.topic} partition {partition.partition}: {name}"
        if topic.error_code is not ErrorCode.none:
            raise failure(topic.error_code, what, f"DESCRIBE on topic {partition.topic}")
        leader = {each.partition_index: each.leader_id for each in topic.partitions}.get(i32(partition.partition))
        if leader is None:
            raise TopicUnknownError(what, "it is not on the cluster", "check the topology, or wait until it is created")
        if leader not in brokers:
            raise TemporarilyUnavailableError(what, "the partition has no leader", "wait, or see the brokers' logs")
        led[brokers[leader]].append(partition)
    return led
