"""The model beside a real group: each change is predicted and stored before it is made, then compared task by task.

Where every task ends, and the worst share on the way, must be as predicted. When a copy catches up depends on the
machine; so each assignment on the way is compared with the model's answer to what the members reported for it.

A broker and the demo application as bare JVMs, with the process IDs of the article (docs/model/two-to-three.md): stock
assignor, no standby, `acceptable.recovery.lag` 0. Nothing writes while processes change, so that every lag is exact.
Rebalances are triggered as the operator triggers them, so that the probing interval of a minute need not pass.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lab.build.cache import Cache
from lab.build.maven import broker_jars, package
from lab.build.plan import COUNTER
from lab.build.toolchains import java_home
from lab.errors import LabError
from lab.matrix import broker
from lab.matrix.broker import PARTITIONS, Broker
from lab.matrix.group import trigger_rebalance_once_stable
from lab.matrix.processes import Process, started
from lab.scenarios.task_layouts import read_stable
from lab.settings import Settings
from streamapp.core.assignors.group import RUNNING, ClientState, Placement, Task
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.kafka.group.groups import DecodedGroup
from streamapp.simulator.rounds import Pace, Play, moved, play, stock_assignor
from streamapp.simulator.stock import StockSettings, assign
from streamapp.simulator.world import Instance, Rates, World
from streamapp.wire.subscription import PositionSum
from tests.model.replays.scenes import ARTICLE_NEW, ARTICLE_OLD

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]
APPLICATION = "article"
CHANGELOG = f"{APPLICATION}-counts-changelog"
RECORDS = 600
LONGEST_SECONDS = 240.0
TRIGGER_SECONDS = 3.0
STOCK = stock_assignor(StockSettings(acceptable_recovery_lag=0))
AT_ONCE = Pace(rates=Rates(restore=1e9), acceptable_lag=0, is_triggered=True)
"""The state is so small that a learner has caught up before the next rebalance."""
SETTINGS = {
    "APPLICATION_ID": APPLICATION,
    "INPUT_TOPIC": "article-input",
    "OUTPUT_TOPIC": "article-output",
    "STREAMS_ACCEPTABLE_RECOVERY_LAG": "0",
    "STREAMS_NUM_STANDBY_REPLICAS": "0",
    "STREAMS_PROBING_REBALANCE_INTERVAL_MS": "600000",
    "STREAMS_COMMIT_INTERVAL_MS": "200",
    "LEAVE_ON_CLOSE": "true",
}
Layout = Mapping[ProcessId, Placement]


@dataclass
class RealGroup:
    """The processes, and what the broker shows of their group."""

    server: Broker
    folder: Path
    stack: ExitStack
    command: tuple[str, ...]
    running: dict[ProcessId, Process] = field(default_factory=dict)

    def start(self, process: ProcessId) -> None:
        """Start a process on its own folder, with its own ID in there."""
        folder = self.folder / str(process)
        state = folder / "state" / APPLICATION
        state.mkdir(parents=True, exist_ok=True)
        (state / "kafka-streams-process-metadata").write_text(json.dumps({"processId": str(process)}))
        environment = {
            **SETTINGS,
            "BOOTSTRAP_SERVERS": self.server.bootstrap,
            "STATE_DIR": str(folder / "state"),
            "HOSTNAME": "localhost",
        }
        log = folder / f"{len(list(folder.iterdir()))}.log"
        name = f"process {str(process)[:4]}"
        self.running[process] = self.stack.enter_context(started(name, self.command, environment, log, folder))

    def stop(self, process: ProcessId) -> None:
        """Stop it as Kubernetes does, and wait for its end; its folder stays."""
        stopping = self.running.pop(process)
        stopping.terminate()
        stopping.wait(60)

    def read(self) -> DecodedGroup:
        """The group at a moment at which it is stable."""
        return read_stable(self.server.bootstrap, APPLICATION)

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
                trigger_rebalance_once_stable(self.server.bootstrap, APPLICATION, next(iter(self.running)))
                triggered = time.monotonic()
            time.sleep(0.05)
        raise LabError("group: not as predicted", f"last seen {shown(layout_of(seen[-1]))}", f"look at {self.folder}")

    def world(self) -> World:
        """The group as it is now, in the values of the model; every member must have joined with running tasks."""
        trigger_rebalance_once_stable(self.server.bootstrap, APPLICATION, next(iter(self.running)))
        time.sleep(1)
        reading, ends = self.read(), self.ends()
        instances = {}
        for member in reading.members:
            assert member.subscription is not None
            assert member.assignment is not None
            info = member.subscription.info
            actives = frozenset(member.assignment.active)
            positions = {
                task: float(said.offsets) if isinstance(said, PositionSum) else ends[task]
                for task, said in info.positions.items()
            }
            positions |= {task: ends[task] for task in actives}
            standbys = frozenset(member.assignment.standby) - actives
            instances[info.process_id] = Instance(
                process=info.process_id, actives=actives, standbys=standbys, positions=positions
            )
        return World(tasks=tuple(map(Task, sorted(ends))), ends=ends, instances=instances)

    def ends(self) -> dict[TaskId, float]:
        """The end of each task's changelog."""
        consumer = Consumer({"bootstrap.servers": self.server.bootstrap, "group.id": "ends"})
        try:
            return {
                TaskId(0, number): float(consumer.get_watermark_offsets(TopicPartition(CHANGELOG, number), 20)[1])
                for number in range(PARTITIONS)
            }
        finally:
            consumer.close()


@dataclass(frozen=True)
class Change:
    """A change of the group, predicted before."""

    before: World
    predicted: Play
    seen: Sequence[Layout]
    answers: Sequence[Layout]
    """What the model answers to the members as they joined for each layout that was seen."""

    @property
    def moved(self) -> frozenset[TaskId]:
        """Tasks that ended on another process than before."""
        return moved(self.before.owners(), owners(self.seen[-1]))


def layout_of(reading: DecodedGroup) -> Layout:
    """What each process has."""
    found: dict[ProcessId, Placement] = {}
    for member in reading.members:
        if member.subscription is None or member.assignment is None:
            continue
        actives = frozenset(member.assignment.active)
        found[member.subscription.info.process_id] = Placement(actives, frozenset(member.assignment.standby))
    return found


def owners(layout: Layout) -> dict[TaskId, ProcessId]:
    return {task: process for process, placed in layout.items() for task in placed.actives}


def store(predicted: Play, file: Path) -> None:
    """Write a prediction down before anything of the change can be seen."""
    rounds = [
        {str(process): [sorted(map(str, placed.actives)), sorted(map(str, placed.standbys))]}
        for one in predicted.rounds
        for process, placed in one.given.items()
    ]
    file.write_text(json.dumps(rounds, indent=1))


def shown(layout: Layout) -> str:
    """A layout as a line: `4b61 0_0 0_2 +0_1`, copies with a plus."""
    parts = []
    for process, placed in sorted(layout.items(), key=lambda item: str(item[0])):
        names = [str(task) for task in sorted(placed.actives)] + [f"+{task}" for task in sorted(placed.standbys)]
        parts.append(" ".join([str(process)[:4], *names]))
    return " | ".join(parts)


def answer_to(reading: DecodedGroup, ends: Mapping[TaskId, float]) -> Layout:
    """What the model answers to the members as they joined, less what another process must give up first."""
    clients, before = [], dict[TaskId, ProcessId]()
    for member in reading.members:
        assert member.subscription is not None
        info = member.subscription.info
        lags = {task: round(end) for task, end in ends.items()}
        for task, said in info.positions.items():
            lags[task] = round(ends[task]) - said.offsets if isinstance(said, PositionSum) else RUNNING
        clients.append(ClientState(process=info.process_id, lags=lags))
        before |= {TaskId(0, owned.partition): info.process_id for owned in member.subscription.owned_partitions}
    wanted = assign(map(Task, ends), clients, StockSettings(acceptable_recovery_lag=0))
    owner = wanted.owners()
    waiting = {task for task, process in before.items() if owner[task] != process}
    return {
        process: Placement(placed.actives - waiting, placed.standbys | (placed.actives & waiting))
        for process, placed in wanted.placements.items()
    }


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGroup]:
    """A broker with six partitions of records, and the article's two processes."""
    settings, folder = Settings.from_environment(), tmp_path_factory.mktemp("article")
    cache, java = Cache(settings.cache), java_home(settings.versions)
    jars = package(COUNTER, settings.versions, cache)
    memory = ("-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    main = ("-cp", f"{jars}/counter.jar:{jars}/lib/*", "dev.streamapp.examples.counter.Counter")
    place = folder / "broker"
    place.mkdir()
    with ExitStack() as stack:
        server = stack.enter_context(broker.running(broker_jars(settings.versions, cache), java, place))
        server.create(SETTINGS["INPUT_TOPIC"], SETTINGS["OUTPUT_TOPIC"])
        producer = Producer({"bootstrap.servers": server.bootstrap})
        for number in range(RECORDS):
            producer.produce(SETTINGS["INPUT_TOPIC"], b"value", f"k{number}".encode(), partition=number % PARTITIONS)
        producer.flush(60)
        found = RealGroup(server, folder, stack, (str(java / "bin" / "java"), *memory, *main))
        for process in ARTICLE_OLD:
            found.start(process)
        found.follow(lambda layout: sorted(len(placed.actives) for placed in layout.values()) == [3, 3])
        deadline = time.monotonic() + LONGEST_SECONDS
        while sum(found.ends().values()) < RECORDS and time.monotonic() < deadline:
            time.sleep(0.5)
        yield found


def changed(group: RealGroup, before: World, predicted: Play, seen: Sequence[DecodedGroup], processes: int) -> Change:
    """The change, by the readings in which so many processes are members."""
    own, ends = [one for one in seen if len(layout_of(one)) == processes], group.ends()
    return Change(before, predicted, [layout_of(one) for one in own], [answer_to(one, ends) for one in own])


@pytest.fixture(scope="module")
def up(group: RealGroup, tmp_path_factory: pytest.TempPathFactory) -> Change:
    """A third process joins, which has no state."""
    before = group.world()
    predicted = play(before.joined_by(Instance(process=ARTICLE_NEW)), STOCK, AT_ONCE)
    store(predicted, tmp_path_factory.mktemp("predicted") / "up.json")
    group.start(ARTICLE_NEW)
    expected = predicted.rounds[-1].given
    return changed(group, before, predicted, group.follow(lambda layout: layout == expected), 3)


@pytest.fixture(scope="module")
def down(group: RealGroup, up: Change, tmp_path_factory: pytest.TempPathFactory) -> Change:
    """It leaves; the other two still have the state of what they gave away."""
    assert up.seen
    before = group.world()
    predicted = play(before.left_by([ARTICLE_NEW]), STOCK, AT_ONCE)
    store(predicted, tmp_path_factory.mktemp("predicted") / "down.json")
    group.stop(ARTICLE_NEW)
    expected = predicted.rounds[-1].given
    return changed(group, before, predicted, group.follow(lambda layout: layout == expected), 2)


def test_every_assignment_of_a_scale_up_is_as_predicted(up: Change) -> None:
    assert [shown(one) for one in up.seen] == [shown(one) for one in up.answers]
    assert up.seen[-1] == up.predicted.rounds[-1].given
    assert len(up.moved) == 4


def test_on_the_way_the_shares_are_as_uneven_as_predicted(up: Change) -> None:
    worst_seen = max(len(placed.actives) for layout in up.seen for placed in layout.values())
    assert worst_seen == max(len(one.actives) for it in up.predicted.rounds for one in it.given.values())


def test_every_assignment_of_a_scale_down_is_as_predicted(down: Change) -> None:
    assert [shown(one) for one in down.seen] == [shown(one) for one in down.answers]
    assert down.seen[-1] == down.predicted.rounds[-1].given


def test_a_process_that_comes_back_with_its_volume_gets_its_tasks_back(group: RealGroup, down: Change) -> None:
    """0 of 6 tasks end elsewhere, though the other process has all of them meanwhile."""
    before = group.world()
    gone = before.instances[ARTICLE_OLD[1]]
    without = play(before.left_by([gone.process]), STOCK, AT_ONCE)
    back = Instance(process=gone.process, positions=gone.positions)
    predicted = play(without.world.joined_by(back), STOCK, AT_ONCE)
    assert moved(before.owners(), predicted.world.owners()) == frozenset()
    group.stop(gone.process)
    alone = group.follow(lambda layout: layout == without.rounds[-1].given, is_triggered=False)
    assert len(owners(layout_of(alone[-1]))) == PARTITIONS
    group.start(gone.process)
    expected = predicted.rounds[-1].given
    change = changed(group, before, predicted, group.follow(lambda layout: layout == expected), 2)
    assert [shown(one) for one in change.seen] == [shown(one) for one in change.answers]
    assert change.moved == frozenset()
    assert down.seen
