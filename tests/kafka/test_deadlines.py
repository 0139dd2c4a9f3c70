"""Brokers that are silent: every call ends at its deadline, the event loop goes on, other clusters notice nothing."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest

from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.lag import PartitionEnd
from streamapp.kafka.brokers.coordinator import Coordinator
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import BrokerUnreachableError, KafkaTimeoutError
from streamapp.kafka.connection.settings import Address, KafkaSettings, Tls
from streamapp.kafka.group.eviction import MemberToEvict, evict
from streamapp.kafka.group.groups import read_group
from streamapp.kafka.group.rebalance import trigger_rebalance
from streamapp.kafka.topics.offsets import committed
from streamapp.wire.members import decode_member
from streamapp.wire.subscription import DecodedSubscription
from tests.kafka.scripted import ScriptedBroker
from tests.wire.captures import captured

pytestmark = pytest.mark.slow  # they wait for deadlines in real time
DEADLINE = 1.0
LATE = 0.9
"""Seconds that a busy machine may add; less than the deadline, so that a blocked event loop is found."""

PARTITIONS = [TopicPartition("in", 0)]
END = PartitionEnd(log_start=0, end=1)


def model() -> DecodedSubscription:
    subscription = decode_member(captured("4.2.1-standbys")[0]).subscription
    assert subscription is not None
    return subscription


CALLS: dict[str, Callable[[KafkaCluster], Awaitable[object]]] = {
    "read the group": lambda cluster: read_group(cluster.group, DEADLINE),
    "evict": lambda cluster: evict(cluster.group, [MemberToEvict("m-1")], "a test", DEADLINE),
    "triggered rebalance": lambda cluster: trigger_rebalance(cluster.group, model(), DEADLINE),
    "committed offsets": lambda cluster: committed(cluster.group, PARTITIONS, DEADLINE),
    "end offsets": lambda cluster: cluster.offsets.ends(PARTITIONS, DEADLINE),
    "log starts": lambda cluster: cluster.offsets.log_starts(PARTITIONS, DEADLINE),
    "tails": lambda cluster: cluster.tails.data_ends(dict.fromkeys(PARTITIONS, END), DEADLINE),
    "partition counts": lambda cluster: cluster.topics.partition_counts(["in"], DEADLINE),
    "changelogs": lambda cluster: cluster.topics.changelogs("app", DEADLINE),
    "configs": lambda cluster: cluster.topics.configs(["in"], DEADLINE),
}


async def longest_pause(during: Awaitable[object]) -> float:
    """Wait for it, and give the longest time in which the event loop did nothing else."""
    pauses = [0.0]

    async def tick() -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.005)
            pauses.append(time.monotonic() - last)
            last = time.monotonic()

    ticking = asyncio.create_task(tick())
    try:
        await during
    finally:
        ticking.cancel()
    return max(pauses)


async def times_out(call: Callable[[KafkaCluster], Awaitable[object]], cluster: KafkaCluster) -> bool:
    """Tell whether the call ended at its deadline, as it must."""
    started = time.monotonic()
    with pytest.raises(KafkaTimeoutError):
        await call(cluster)
    return DEADLINE <= time.monotonic() - started < DEADLINE + LATE


async def all_time_out(cluster_of: Callable[[], KafkaCluster]) -> None:
    """Make every call at the same time, each to a cluster of its own, and see each end at its deadline."""
    clusters = [cluster_of() for _ in CALLS]
    in_time: list[bool] = []

    async def calls() -> None:
        pairs = zip(CALLS.values(), clusters, strict=True)
        in_time.extend(await asyncio.gather(*(times_out(call, cluster) for call, cluster in pairs)))

    assert await longest_pause(calls()) < LATE
    assert dict(zip(CALLS, in_time, strict=True)) == dict.fromkeys(CALLS, True)
    started = time.monotonic()
    for cluster in clusters:
        cluster.close()
    assert time.monotonic() - started < LATE


@pytest.fixture
def black_hole() -> Iterator[KafkaSettings]:
    """A socket that takes connections and never says a word."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield KafkaSettings((Address("127.0.0.1", listening.getsockname()[1]),))


def test_a_socket_that_never_answers(black_hole: KafkaSettings) -> None:
    asyncio.run(all_time_out(lambda: KafkaCluster(black_hole, "app")))


def test_a_tls_handshake_that_never_ends(black_hole: KafkaSettings) -> None:
    settings = KafkaSettings(black_hole.bootstrap, Tls())
    asyncio.run(all_time_out(lambda: KafkaCluster(settings, "app")))


def test_a_broker_that_answers_nothing_but_the_greeting() -> None:
    async def main() -> None:
        async with ScriptedBroker().running() as broker:
            await all_time_out(lambda: KafkaCluster(broker.settings(), "app"))

    asyncio.run(main())


def test_one_cluster_in_silence_delays_no_other(black_hole: KafkaSettings) -> None:
    async def main() -> float:
        broker = ScriptedBroker()
        async with broker.running():
            broker.coordinates("app")
            good = KafkaCluster(broker.settings(), "app")
            silent = [KafkaCluster(black_hole, f"app-{number}") for number in range(20)]
            waiting = [asyncio.create_task(read_group(each.group, DEADLINE)) for each in silent]
            await asyncio.sleep(0.05)
            started = time.monotonic()
            (await good.group.connect("a-test")).close()
            took = time.monotonic() - started
            results = await asyncio.gather(*waiting, return_exceptions=True)
            assert {type(result) for result in results} == {KafkaTimeoutError}
            for cluster in [good, *silent]:
                cluster.close()
            return took

    assert asyncio.run(main()) < LATE


@pytest.fixture
def stoppable() -> Iterator[tuple[int, KafkaSettings]]:
    """A broker in a process of its own: its process id and how to reach it."""
    command = [sys.executable, "-m", "tests.kafka.scripted"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield process.pid, KafkaSettings((Address("127.0.0.1", int(process.stdout.readline())),))
        finally:
            process.kill()


async def finds_coordinator(coordinator: Coordinator) -> float:
    """Look the coordinator up and connect to it; give the time it took."""
    coordinator.forget()
    started = time.monotonic()
    (await coordinator.connect("a-test")).close()
    return time.monotonic() - started


def test_a_broker_stopped_by_a_signal_and_continued(stoppable: tuple[int, KafkaSettings]) -> None:
    pid, settings = stoppable

    async def main() -> None:
        before = KafkaCluster(settings, "app")
        await finds_coordinator(before.group)
        os.kill(pid, signal.SIGSTOP)
        try:
            assert await times_out(CALLS["read the group"], before)
            await all_time_out(lambda: KafkaCluster(settings, "app"))
        finally:
            os.kill(pid, signal.SIGCONT)
        assert await finds_coordinator(before.group) < LATE
        before.close()

    asyncio.run(main())


def test_a_broker_that_ends_while_it_is_asked_is_an_error_at_once(stoppable: tuple[int, KafkaSettings]) -> None:
    pid, settings = stoppable

    async def main() -> float:
        cluster = KafkaCluster(settings, "app")
        reading = asyncio.create_task(read_group(cluster.group, 10))
        await asyncio.sleep(0.3)
        started = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(BrokerUnreachableError, match=r"closed the connection|Connection reset|Connect call failed"):
            await reading
        cluster.close()
        return time.monotonic() - started

    assert asyncio.run(main()) < 1
