"""The broker serves clients by the name that its pod has, and keeps append times."""

import os
import uuid

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.clusters.kubectl import Kubectl
from lab.settings import Versions

pytestmark = [pytest.mark.lab]


def test_a_record_comes_back_with_the_brokers_append_time() -> None:
    bootstrap = os.environ["KAFKA_BOOTSTRAP"]
    topic = f"t-{uuid.uuid4()}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])[topic].result(timeout=20)
    try:
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(topic, b"value", key=b"key", timestamp=1)
        assert producer.flush(20) == 0
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(20)
        consumer.close()
        assert message is not None
        assert (message.key(), message.value()) == (b"key", b"value")
        kind, milliseconds = message.timestamp()
        assert kind == TIMESTAMP_LOG_APPEND_TIME
        assert milliseconds > 1
    finally:
        admin.delete_topics([topic])[topic].result(timeout=20)


def test_the_broker_is_of_the_pinned_version(kubectl: Kubectl) -> None:
    listing = kubectl.run("exec", "--namespace", "kafka", "kafka-0", "--", "ls", "/opt/kafka/lib")
    assert f"kafka_2.13-{Versions.read().broker}.jar" in listing.split()
