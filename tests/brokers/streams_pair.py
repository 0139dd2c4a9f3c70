"""A group of the streams protocol on a broker and clients of two releases: real JVMs, and the controller's own look."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lab.build import bases, launchers, maven
from lab.build.cache import Cache
from lab.matrix import broker, word_load
from lab.matrix.broker import PARTITIONS
from lab.matrix.processes import Process, started
from lab.settings import Settings
from streamapp.controller.ports import ApplicationGroup
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import GroupDescription, GroupState, Member
from streamapp.core.facts.ids import TaskId
from tests.support.group_asked import DEADLINE, asked

T = TypeVar("T")
PROCESSES = 3
KEYS = 2_000
TASKS = frozenset(TaskId(0, partition) for partition in range(PARTITIONS))
WAIT_SECONDS = 60.0
_MEMORY = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
_COUNTER = "dev.streamapp.examples.counter.Counter"


@contextmanager
def running_broker(version: str, folder: Path) -> Iterator[broker.Broker]:
    """A broker of that version."""
    settings = Settings.from_environment()
    cache = Cache(settings.cache)
    title = f"Fetch the jars of the Kafka broker {version}"
    jars = maven.libraries("broker-jars", title, maven.BROKER, settings.versions, cache, {"kafka.version": version})
    with broker.running(jars, bases.java_runtime(settings.versions, cache), folder) as one:
        yield one


@dataclass(frozen=True)
class Pair:
    """Three processes of the application `counter`, with Kafka Streams of one version."""

    bootstrap: str
    application_id: str
    processes: list[Process]

    def asked(self, ask: Callable[[ApplicationGroup], Awaitable[T]]) -> T:
        """Ask the group."""
        return asked(self.bootstrap, self.application_id, ask)

    def looked_until(self, holds: Callable[[GroupDescription], bool]) -> tuple[GroupDescription, float]:
        """Look until the group is so; give it, and how many seconds that took."""
        began = time.monotonic()

        async def look(one: ApplicationGroup) -> GroupDescription:
            while True:
                for process in self.processes:
                    process.require_life()
                found = (await one.describe()).group
                if isinstance(found, GroupDescription) and holds(found):
                    return found
                assert time.monotonic() - began < WAIT_SECONDS, found
                await asyncio.sleep(0.1)

        return self.asked(look), time.monotonic() - began

    def kill(self) -> str:
        """Kill the last process, as a node that ends does; give the beginning of its client IDs."""
        victim = self.processes.pop()
        victim.running.kill()
        victim.wait(DEADLINE)
        return f"process-{len(self.processes)}-"


@contextmanager
def running_clients(version: str, one: broker.Broker, folder: Path) -> Iterator[Pair]:
    """Three processes of that version with the streams protocol, and records for them."""
    settings = Settings.from_environment()
    cache = Cache(settings.cache)
    places = launchers.plain(version, settings.versions, cache)
    java = bases.java_runtime(settings.versions, cache) / "bin" / "java"
    command = [str(java), *_MEMORY, "-cp", ":".join(map(str, places)), _COUNTER]
    name = f"counter-{version}"
    topics = {"INPUT_TOPIC": f"{name}-input", "OUTPUT_TOPIC": f"{name}-output"}
    one.create(*topics.values())
    word_load.preload(one.bootstrap, topics["INPUT_TOPIC"], KEYS)
    with ExitStack() as stack:
        found = []
        for ordinal in range(PROCESSES):
            environment = {
                "BOOTSTRAP_SERVERS": one.bootstrap,
                "APPLICATION_ID": name,
                "STATE_DIR": str(folder / f"state-{ordinal}"),
                "STREAMS_GROUP_PROTOCOL": "streams",
                "STREAMS_CLIENT_ID": f"process-{ordinal}",
                **topics,
            }
            log = folder / f"process-{ordinal}.log"
            found.append(stack.enter_context(started(f"process {ordinal}", command, environment, log)))
        yield Pair(one.bootstrap, name, found)


def is_settled(group: GroupDescription, processes: int) -> bool:
    """So many members, every task active once, and nothing on its way."""
    held = [task for member in group.members for task in actives(member)]
    return (
        (group.state, group.unsettled, len(group.members)) == (GroupState.STABLE, "", processes)
        and len(held) == len(TASKS)
        and set(held) == TASKS
    )


def actives(member: Member) -> frozenset[TaskId]:
    """The tasks that a member processes."""
    return frozenset() if member.assignment is None else frozenset(member.assignment.active)


def standbys(group: GroupDescription) -> list[TaskId]:
    """Every copy, sorted."""
    return sorted(
        task for member in group.members if member.assignment is not None for task in member.assignment.standby
    )


def members_of(group: GroupDescription, prefix: str) -> list[MemberKey]:
    """Those of one process, for an eviction."""
    return [MemberKey(one.id, one.instance_id) for one in group.members if one.client_id.startswith(prefix)]
