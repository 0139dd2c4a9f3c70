"""A broker and the demo application as bare JVMs, whose group the model is compared with.

Rebalances are triggered as the operator triggers them, so that the probing interval need not pass.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer

from lab.build.cache import Cache
from lab.build.maven import broker_jars, package
from lab.build.plan import COUNTER
from lab.build.toolchains import java_home
from lab.errors import LabError
from lab.matrix import broker
from lab.matrix.broker import PARTITIONS, Broker
from lab.matrix.group import trigger_rebalance_once_stable
from lab.matrix.processes import Process, started
from lab.scenarios.layouts.task_layouts import read_stable
from lab.scenarios.predictions import Layout, ModelledGroup, PredictedChange, changelog_ends, layout_of, shown
from lab.settings import Settings
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.kafka.group.groups import DecodedGroup
from streamapp.simulator.rounds import Assignor, Pace, Play
from streamapp.simulator.world import Rates, World

RECORDS = 600
LONGEST_SECONDS = 240.0
TRIGGER_SECONDS = 3.0
AT_ONCE = Pace(rates=Rates(restore=1e9), acceptable_lag=0, is_triggered=True)
"""The state is so small that a learner has caught up before the next rebalance."""


@dataclass
class RealGroup:
    """The processes, and what the broker shows of their group."""

    server: Broker
    folder: Path
    stack: ExitStack
    application_id: str
    settings: Mapping[str, str]
    """Environment of the application."""
    assignor: Assignor
    """Its model."""
    command: tuple[str, ...]
    running: dict[ProcessId, Process] = field(default_factory=dict)
    logs: list[Path] = field(default_factory=list)
    """One for each process that was ever started, in that order."""

    def start(self, process: ProcessId, **environment: str) -> None:
        """Start a process on its own folder, with its own ID in there."""
        folder = self.folder / str(process)
        state = folder / "state" / self.application_id
        state.mkdir(parents=True, exist_ok=True)
        (state / "kafka-streams-process-metadata").write_text(json.dumps({"processId": str(process)}))
        whole = {
            **self.settings,
            **environment,
            **self.names,
            "BOOTSTRAP_SERVERS": self.server.bootstrap,
            "STATE_DIR": str(folder / "state"),
            "HOSTNAME": "localhost",
        }
        log = folder / f"{len(list(folder.iterdir()))}.log"
        self.logs.append(log)
        name = f"process {str(process)[:4]}"
        self.running[process] = self.stack.enter_context(started(name, self.command, whole, log, folder))

    @property
    def names(self) -> dict[str, str]:
        """The environment with the names of the application and its topics."""
        name = self.application_id
        return {"APPLICATION_ID": name, "INPUT_TOPIC": f"{name}-input", "OUTPUT_TOPIC": f"{name}-output"}

    def stop(self, process: ProcessId) -> None:
        """Stop it as Kubernetes does, and wait for its end; its folder stays."""
        stopping = self.running.pop(process)
        stopping.terminate()
        stopping.wait(60)

    def read(self) -> DecodedGroup:
        """The group at a moment at which it is stable."""
        return read_stable(self.server.bootstrap, self.application_id)

    def follow(self, until: Callable[[Layout], bool], *, is_triggered: bool = True) -> list[DecodedGroup]:
        """Every layout until one is as wanted; rebalances are triggered meanwhile. LabError after a while."""
        seen: list[DecodedGroup] = []
        ends, triggered = time.monotonic() + LONGEST_SECONDS, time.monotonic()
        while time.monotonic() < ends:
            for process in self.running.values():
                process.require_life()
            reading = self.read()
            layout = layout_of(reading)
            if not seen or layout_of(seen[-1]) != layout:
                seen.append(reading)
            if until(layout):
                return seen
            if is_triggered and time.monotonic() - triggered > TRIGGER_SECONDS:
                trigger_rebalance_once_stable(self.server.bootstrap, self.application_id, next(iter(self.running)))
                triggered = time.monotonic()
            time.sleep(0.05)
        raise LabError("group: not as predicted", f"last seen {shown(layout_of(seen[-1]))}", f"look at {self.folder}")

    def world(self) -> World:
        """The group as it is now, in the values of the model; every member must have joined with running tasks."""
        trigger_rebalance_once_stable(self.server.bootstrap, self.application_id, next(iter(self.running)))
        time.sleep(1)
        return self.modelled().world(self.read())

    def modelled(self) -> ModelledGroup:
        """The group with the changelogs as they are now."""
        return ModelledGroup(self.assignor, self.ends())

    def wait_for_records(self) -> None:
        """Wait until every record is in the changelogs."""
        waited_for("all records counted", lambda: sum(self.ends().values()) >= RECORDS)

    def ends(self) -> dict[TaskId, float]:
        """The end of each task's changelog."""
        return changelog_ends(self.server.bootstrap, f"{self.application_id}-counts-changelog", PARTITIONS)


@contextmanager
def on_a_broker(
    folder: Path, application_id: str, settings: Mapping[str, str], assignor: Assignor
) -> Iterator[RealGroup]:
    """A broker with six partitions of records for an application of which nothing runs yet."""
    lab, place = Settings.from_environment(), folder / "broker"
    cache, java = Cache(lab.cache), java_home(lab.versions)
    jars = package(COUNTER, lab.versions, cache)
    memory = ("-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    main = ("-cp", f"{jars}/counter.jar:{jars}/lib/*", "dev.streamapp.examples.counter.Counter")
    place.mkdir()
    with ExitStack() as stack:
        server = stack.enter_context(broker.running(broker_jars(lab.versions, cache), java, place))
        command = (str(java / "bin" / "java"), *memory, *main)
        found = RealGroup(server, folder, stack, application_id, settings, assignor, command)
        server.create(found.names["INPUT_TOPIC"], found.names["OUTPUT_TOPIC"])
        producer = Producer({"bootstrap.servers": server.bootstrap})
        for number in range(RECORDS):
            value, key = b"value", f"k{number}".encode()
            producer.produce(found.names["INPUT_TOPIC"], value, key, partition=number % PARTITIONS)
        producer.flush(60)
        yield found


def waited_for(what: str, holds: Callable[[], bool], seconds: float = LONGEST_SECONDS) -> None:
    """Wait until something holds; LabError after a while."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise LabError(what, f"not within {seconds:.0f} s", "read the logs of the processes")
        time.sleep(0.5)


def changed(
    group: RealGroup, before: World, predicted: Play, seen: list[DecodedGroup], processes: int
) -> PredictedChange:
    return PredictedChange.of(group.modelled(), before, predicted, seen, processes)
