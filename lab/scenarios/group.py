"""Who owns which input partition, as the broker knows it: members of the consumer group, told apart by their pods.

Kafka's own description of a classic group is enough here: the partitions that each member reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import ConsumerGroupState, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # their stub forgets it

from lab.clusters.kubectl import Kubectl
from lab.scenarios import demo_application

_TIMEOUT_SECONDS = 10


@dataclass(frozen=True)
class Ownership:
    """One reading of the group."""

    stable: bool
    owners: Mapping[int, str]
    """Pod name by input partition; a member whose pod is gone is named by its address."""
    members: int


def read_ownership(bootstrap: str, kubectl: Kubectl, group: str, input_topic: str) -> Ownership:
    """Read the group and the pods once."""
    pod_of = {
        pod["status"]["podIP"]: str(pod["metadata"]["name"])
        for pod in demo_application.pods(kubectl)
        if pod["status"].get("podIP")
    }
    admin = AdminClient({"bootstrap.servers": bootstrap})
    description = admin.describe_consumer_groups([group], request_timeout=_TIMEOUT_SECONDS)[group].result()
    owners = {}
    for member in description.members:
        address = member.host.lstrip("/")
        for owned in member.assignment.topic_partitions if member.assignment else ():
            if owned.topic == input_topic:
                owners[int(owned.partition)] = pod_of.get(address, address)
    stable = description.state == ConsumerGroupState.STABLE
    return Ownership(stable, dict(sorted(owners.items())), len(description.members))


def broker_clock_ms(bootstrap: str, topic: str, partitions: int) -> int:
    """Give the broker's time of the newest record of a topic, in milliseconds since the epoch.

    Under a steady load this is the broker's clock to within a record's spacing, whatever this machine's clock says.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    newest = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]  # typed everywhere but here
    wanted = {TopicPartition(topic, number): newest for number in range(partitions)}
    answers = admin.list_offsets(wanted, request_timeout=_TIMEOUT_SECONDS)
    return max(int(answer.result().timestamp) for answer in answers.values())
