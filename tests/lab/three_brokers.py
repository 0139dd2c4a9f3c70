"""Three brokers with a copy of everything on each, and what befalls them: killed, away for long, back again.

`lab/manifests/three-brokers.yaml` has them. They run as long as the block of `running`, beside the lab's own broker.
"""

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.static.primitive import i8

from lab.clusters.kubectl import Kubectl, wait_until
from lab.clusters.ownership import exists, require_own
from lab.errors import NotYetError
from lab.scenarios import demo_application
from lab.scenarios.faults import kill_container
from lab.settings import LAB
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import KafkaAccessError
from streamapp.kafka.connection.settings import read_settings
from streamapp.kafka.group.groups import read_group
from streamapp.wire.errors import UndecodableError

NAMESPACE = "t-three-brokers"
BOOTSTRAP = f"kafka.{NAMESPACE}.svc.cluster.local:9092"
MANIFEST = LAB / "manifests" / "three-brokers.yaml"
ALL = frozenset({0, 1, 2})
CLIENTS_PORT = 9092
"""Where brokers also copy from each other; their controllers speak on another port."""
PREFERRED = i8(0)
"""The kind of election, as the protocol numbers it."""
_AWAY = "/var/lib/kafka/away"
"""A broker whose volume has this file does not start."""
_STATEFULSET = "statefulset/kafka"
_ANSWER_SECONDS = 10
_START_SECONDS = 240
"""A container that was killed several times waits longer and longer before it starts again."""


@dataclass(frozen=True)
class ThreeBrokers:
    """The brokers, by the numbers of their pods."""

    kubectl: Kubectl
    admin: AdminClient = field(default_factory=lambda: AdminClient({"bootstrap.servers": BOOTSTRAP, "log_level": 0}))

    def pod(self, number: int) -> dict[str, Any]:
        """The pod of a broker."""
        found: dict[str, Any] = self.kubectl.json("get", "pod", "--namespace", NAMESPACE, f"kafka-{number}")
        return found

    def alive(self) -> frozenset[int]:
        """The brokers that the controllers know to be alive; one that was killed counts for nine seconds more."""
        return frozenset(int(number) for number in self.admin.list_topics(timeout=_ANSWER_SECONDS).brokers)

    def coordinator(self, group_id: str) -> int:
        """The broker that coordinates a group; it waits while none answers."""
        found: list[int] = []

        def is_known() -> bool:
            found.append(self._coordinator(group_id))
            return True

        wait_until(f"the coordinator of {group_id} answers", is_known, 60, 0.2)
        return found[-1]

    def _coordinator(self, group_id: str) -> int:
        """Raises NotYetError while none answers."""
        try:
            return asyncio.run(_coordinator_of(group_id))
        except (KafkaAccessError, UndecodableError) as error:
            what = f"group {group_id}: no coordinator answers"
            raise NotYetError(what, str(error), "look at the brokers' logs") from error

    def kill(self, number: int) -> None:
        """Send SIGKILL to a broker; the kubelet starts it again."""
        kill_container(self.pod(number))

    @contextmanager
    def without(self, number: int) -> Iterator[None]:
        """Kill a broker, and keep it away for the time of the block; then wait until it has all copies again."""
        self._in_container(number, "touch", _AWAY)
        self.kill(number)
        wait_until("two brokers are alive", lambda: self._answers(ALL - {number}), 60)
        try:
            yield
            assert self.alive() == ALL - {number}
        finally:
            self._in_container(number, "rm", "-f", _AWAY)
            self.wait_until_in_sync()

    def _in_container(self, number: int, *command: str) -> None:
        """Run a command in a broker's container; one that was killed often is only started again after a while."""
        target = ("--namespace", NAMESPACE, f"kafka-{number}", "--container=broker")

        def is_done() -> bool:
            self.kubectl.run("exec", *target, "--", *command)
            return True

        wait_until(f"{command[0]} in the container of kafka-{number}", is_done, _START_SECONDS, 1)

    def wait_until_in_sync(self) -> None:
        """Wait until all brokers are alive, and each has a copy in sync of every partition."""
        wait_until("three brokers with all copies", lambda: self._answers(ALL, in_sync=True), _START_SECONDS, 1)

    def elect_preferred(self, group_id: str) -> None:
        """Let the first replica of each partition lead it, as the controllers do every five minutes.

        Asked of the coordinator of a group, which hands it on to the controllers.
        """
        asyncio.run(_elect_preferred(group_id))
        wait_until("the preferred brokers lead", self._is_as_preferred, 60, 0.1)

    @contextmanager
    def no_copying_without(self, number: int) -> Iterator[None]:
        """Keep the two other brokers from copying each other's records; all clients and controllers reach both."""
        one, other = (self.pod(each)["status"]["podIP"] for each in sorted(ALL - {number}))
        with lost_on_the_way(one, other), lost_on_the_way(other, one):
            yield

    def _answers(self, numbers: frozenset[int], *, in_sync: bool = False) -> bool:
        try:
            topics = self.admin.list_topics(timeout=_ANSWER_SECONDS)
        except KafkaException:
            return False
        copies = {frozenset(one.isrs) for topic in topics.topics.values() for one in topic.partitions.values()}
        return frozenset(topics.brokers) == numbers and (not in_sync or copies <= {numbers})

    def _is_as_preferred(self) -> bool:
        topics = self.admin.list_topics(timeout=_ANSWER_SECONDS).topics.values()
        return all(one.leader == one.replicas[0] for topic in topics for one in topic.partitions.values())


async def _coordinator_of(group_id: str) -> int:
    # librdkafka can abort this process (a failed assertion) if a broker dies while an administrator's request waits.
    cluster = KafkaCluster(read_settings(BOOTSTRAP, {}), group_id)
    try:
        await read_group(cluster.group, _ANSWER_SECONDS)
        address = cluster.group.address
    finally:
        cluster.close()
    if address is None:
        raise NotYetError(f"group {group_id}: its coordinator moves", "it is looked up anew", "ask again")
    return int(address.host.partition(".")[0].rpartition("-")[2])


async def _elect_preferred(group_id: str) -> None:
    cluster = KafkaCluster(read_settings(BOOTSTRAP, {}), group_id)
    try:
        connection = await cluster.group.connect("lab")
        try:
            await connection.ask(
                ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None), ElectLeadersResponse
            )
        finally:
            connection.close()
    finally:
        cluster.close()


@contextmanager
def lost_on_the_way(source: str, target: str) -> Iterator[None]:
    """Lose every packet from one pod to the port for clients of another."""
    way = ("FORWARD", "--source", source, "--destination", target)
    rule = (*way, "--protocol", "tcp", "--dport", str(CLIENTS_PORT), "--jump", "DROP")
    subprocess.run(("iptables", "--wait", "--insert", *rule), check=True)
    try:
        yield
    finally:
        subprocess.run(("iptables", "--wait", "--delete", *rule), check=True)


@contextmanager
def running(kubectl: Kubectl) -> Iterator[ThreeBrokers]:
    """Run them for the time of the block, with empty volumes."""
    with ExitStack() as stack:
        _remove(kubectl)
        wait_until("former brokers are gone", lambda: not exists(kubectl, NAMESPACE), 180)
        stack.callback(_remove, kubectl)
        kubectl.apply(MANIFEST)
        kubectl.wait_for_rollout(NAMESPACE, _STATEFULSET)
        brokers = ThreeBrokers(kubectl)
        brokers.wait_until_in_sync()
        yield brokers


def _remove(kubectl: Kubectl) -> None:
    require_own(kubectl, NAMESPACE)
    demo_application.delete_namespaces(kubectl, NAMESPACE)
