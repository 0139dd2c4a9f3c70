"""State that lay unused for longer than its topic keeps deletions: keys that were deleted meanwhile stay dead.

A table whose source topic is its changelog, with times of minutes instead of a day. Nothing is made up: the file times
are those of Kafka Streams, and the broker's own cleaner takes the tombstone out of the topic.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # their stub forgets them
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios import demo_application
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import process_id, volume_folder
from lab.scenarios.observed_app import ObservedApp, remove_all, unique_name

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(600)]

NAMESPACE = "t-idle-state"
SETTINGS = {"TOPOLOGY": "table", "STREAMS_NUM_STANDBY_REPLICAS": "0"}
MAX_IDLE_SECONDS = 60
"""The least that a StreamApp can have."""
SOON_FORGOTTEN = {
    "delete.retention.ms": "75000",
    "segment.ms": "500",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "0",
}
"""Of the table's topic: longer than the state may lie unused, as it must be."""
_TIMEOUT_SECONDS = 20


@dataclass(frozen=True)
class TableRow:
    """A row of the table that is deleted, and another one of its partition."""

    partition: int
    key: bytes
    other: bytes


@pytest.fixture(scope="module")
def one(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (it must run)
    """Deploy one pod with a table of 200 rows, without load."""
    application = DemoApplication(unique_name("idle"), SETTINGS, 200, 1, NAMESPACE, cpu_request="20m")
    remove_all(kubectl, bootstrap, [application])
    demo_application.preload(kubectl, application)
    observed = ObservedApp.of(kubectl, bootstrap, application)
    forget_soon(bootstrap, application.table_topic)
    apply(observed, 1)
    wait_until_ready(observed)
    yield observed
    remove_all(kubectl, bootstrap, [application])


def apply(one: ObservedApp, replicas: int) -> None:
    """Ask for so many pods; none is allowed."""
    state = one.app.resource(1)["spec"]["state"]
    one.app.apply(
        replicas,
        state={**state, "maxIdleTime": f"{MAX_IDLE_SECONDS}s"},
        scaleDown={"stabilizationWindow": "2s", "allowZero": True},
    )


def wait_until_ready(one: ObservedApp) -> None:
    """Wait for the pod; of a group of one member, whether it converged is unknown for minutes."""
    wait_until("the pod is ready", lambda: one.app.status().get("readyReplicas") == 1, 180, 1)


def forget_soon(bootstrap: str, topic: str) -> None:
    """Let the broker's cleaner forget deletions in a topic after a minute and a little."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in SOON_FORGOTTEN.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for changed in admin.incremental_alter_configs([resource]).values():
        changed.result(_TIMEOUT_SECONDS)


def test_a_key_that_was_deleted_while_its_volume_lay_unused_stays_dead(one: ObservedApp) -> None:
    application, row = one.app.application, a_row(one)
    assert count_of(one, row) == 2
    claim, volume = one.claim_uid(0), volume_folder(one.app.kubectl, NAMESPACE, "state-counter-0")
    before = process_id(volume, application.application_id)
    apply(one, 0)
    wait_until("no pod is left", lambda: not one.app.pods(), 120)
    unused_since = time.monotonic()
    assert any(volume.glob("*/*/rocksdb/table")), "the state is there"
    delete_row(one, row)
    time.sleep(max(0.0, unused_since + MAX_IDLE_SECONDS + 1 - time.monotonic()))
    apply(one, 1)
    wait_until_ready(one)
    assert count_of(one, row) == 2
    assert (one.claim_uid(0), process_id(volume, application.application_id)) == (claim, before)
    assert one.app.condition("ProcessIdentityStable")["status"] == "True"


def a_row(one: ObservedApp) -> TableRow:
    """Give the first row of a partition, and another one."""
    partition = 0
    keys = [message.key() or b"" for message in records(one, one.app.application.table_topic, partition)]
    return TableRow(partition, keys[0], next(key for key in keys if key != keys[0]))


def delete_row(one: ObservedApp, row: TableRow) -> None:
    """Delete it, and return when the broker has forgotten that it was ever there."""
    topic, producer = one.app.application.table_topic, Producer({"bootstrap.servers": one.bootstrap})
    producer.produce(topic, None, key=row.key, partition=row.partition)

    def is_forgotten() -> bool:
        # The cleaner leaves the newest segment alone; a record of another key rolls it.
        producer.produce(topic, b"row", key=row.other, partition=row.partition)
        assert producer.flush(_TIMEOUT_SECONDS) == 0
        return row.key not in [message.key() for message in records(one, topic, row.partition)]

    wait_until("the tombstone is gone", is_forgotten, 300, 2)


def count_of(one: ObservedApp, row: TableRow) -> int:
    """Send an input of the key, and give the count that answers it: only keys with a row are counted."""
    application, sent = one.app.application, list[int]()
    producer = Producer({"bootstrap.servers": one.bootstrap})
    producer.produce(
        application.input_topic,
        b"value",
        key=row.key,
        partition=row.partition,
        on_delivery=lambda _, message: sent.append(message.offset() or 0),
    )
    assert producer.flush(_TIMEOUT_SECONDS) == 0
    found: list[int] = []

    def is_answered() -> bool:
        for message in records(one, application.output_topic, *range(6)):
            answer = json.loads(message.value() or b"{}")
            if (answer["partition"], answer["offset"]) == (row.partition, sent[0]):
                found.append(answer["count"])
        return bool(found)

    wait_until("the input is answered", is_answered, 60, 1)
    return found[0]


def records(one: ObservedApp, topic: str, *partitions: int) -> list[Message]:
    """Read all that is in some partitions now."""
    consumer = Consumer(
        {
            "bootstrap.servers": one.bootstrap,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        found, ended = list[Message](), 0
        while ended < len(partitions):
            message = consumer.poll(_TIMEOUT_SECONDS)
            assert message is not None, f"no answer about {topic}"
            if message.error():
                ended += 1
            else:
                found.append(message)
        return found
    finally:
        consumer.close()
