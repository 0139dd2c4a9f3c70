"""Who owns which input partition, and what time it is, as the broker knows it.

Owners are members of the consumer group, told apart by the addresses of their pods.

Kafka's own description of a classic group is enough here: the partitions that each member reads.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # their stub forgets it

from lab.clusters.kubectl import Kubectl
from lab.errors import LabError, NotYetError
from lab.scenarios import demo_application
from lab.scenarios.demo_application import DemoApplication

_TIMEOUT_SECONDS = 10
_PASSING = {
    # Raised by the client itself.
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001  # its public name has the underscore
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._WAIT_COORD,  # noqa: SLF001
    # Answered by a broker.
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    # After the broker was started anew, until the client has heard of it.
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.GROUP_ID_NOT_FOUND,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


@dataclass(frozen=True)
class Ownership:
    """One reading of the group."""

    stable: bool
    owners: Mapping[int, str]
    """Pod name by input partition; a member whose pod is gone is named by its address."""
    members: int

    def is_even(self, pods: int) -> bool:
        """Whether so many pods share the partitions of a stable group, none more than one beyond another."""
        counts = Counter(self.owners.values()).values()
        return self.stable and len(counts) == pods and max(counts) - min(counts) <= 1


class GroupReader:
    """Reads one application's group and the broker's clock; holds one connection for all its readings."""

    def __init__(self, bootstrap: str, kubectl: Kubectl, application: DemoApplication) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._kubectl = kubectl
        self._application = application
        self._group = application.application_id
        self._input_topic = application.input_topic

    def ownership(self) -> Ownership:
        """Read the group and the pods once."""
        pod_of = {
            pod["status"]["podIP"]: str(pod["metadata"]["name"])
            for pod in demo_application.pods(self._kubectl, self._application)
            if pod["status"].get("podIP")
        }
        answer = self._admin.describe_consumer_groups([self._group], request_timeout=_TIMEOUT_SECONDS)
        with self._asking():
            description = answer[self._group].result()
        owners = {}
        for member in description.members:
            address = member.host.lstrip("/")
            for owned in member.assignment.topic_partitions if member.assignment else ():
                if owned.topic == self._input_topic:
                    owners[int(owned.partition)] = pod_of.get(address, address)
        stable = description.state == ConsumerGroupState.STABLE
        return Ownership(stable, dict(sorted(owners.items())), len(description.members))

    def clock_ms(self, partitions: int) -> int:
        """Give the broker's time of the newest input, in milliseconds since the epoch.

        Under a steady load this is the broker's clock to within a record's spacing, whatever this machine's clock says.
        """
        newest = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]  # typed everywhere but here
        wanted = {TopicPartition(self._input_topic, number): newest for number in range(partitions)}
        answers = self._admin.list_offsets(wanted, request_timeout=_TIMEOUT_SECONDS)
        with self._asking():
            return max(int(answer.result().timestamp) for answer in answers.values())

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            kind = NotYetError if passes(error.args[0]) else LabError
            raise kind(
                f"group {self._group}: the broker gives no answer",
                str(error.args[0]),
                "look at `kubectl logs -n kafka kafka-0`",
            ) from error


def passes(error: KafkaError) -> bool:
    """Say whether the broker may answer in a moment: it starts, elects a leader, or was not reached in time."""
    return error.code() in _PASSING
