"""One application in three bare JVMs with agents, whose tasks move to a fresh process and back.

Two processes stay. The third starts anew in every turn, gets its share, gives it up, gets it again as a process that
has run it before, gives it up once more and stops. Nothing is measured here; the windows say when each move was.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import LabError, NotYetError
from lab.matrix import word_load
from lab.matrix.agents import Agents, Word
from lab.matrix.broker import PARTITIONS, Broker
from lab.matrix.group import trigger_rebalance_once_stable
from lab.matrix.learner_progress import actives, all_at_work, behind, changelogs, is_empty
from lab.matrix.processes import Process, free_ports, started
from lab.meter.gaps import Window
from lab.meter.topics import Broker as Topics
from lab.meter.topics import Isolation
from streamapp.core.facts.ids import ProcessId, TaskId, TopicPartition

STAYING = 2
FRESH = STAYING
"""The ordinal of the process that comes and goes."""
LIMIT_SECONDS = 120.0
QUIET_SECONDS = 3.0
SETTLE_SECONDS = 1.5
TRIGGER_SECONDS = 1.5
"""Between two triggered rebalances."""
CAUGHT_UP = 500
_POLL_SECONDS = 0.1
_TASKS = tuple(TaskId(0, partition) for partition in range(PARTITIONS))
_LOGGED = (
    "org.apache.kafka.streams.processor.internals",
    "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator",
    "org.apache.kafka.clients.consumer.internals.AbstractCoordinator",
    "org.apache.kafka.clients.consumer.internals.ConsumerUtils",
    "dev.streamapp.assignor",
)


@dataclass(frozen=True)
class Way:
    """How an application is run, with the agent's jar that is tried."""

    name: str
    agent: Path
    command: tuple[str, ...]
    """What starts the application: `java`, its options, and what it runs."""
    settings: Mapping[str, str]
    """Environment of the application."""


@dataclass(frozen=True)
class Move:
    """One move of tasks: to a fresh process with or without state, to the processes that stay, or to a warm one."""

    way: str
    turn: int
    kind: str
    window: Window
    partitions: tuple[int, ...]
    owners: tuple[Mapping[int, int], Mapping[int, int]]
    """By partition the ordinal of its process, before and after."""
    logs: Mapping[int, Path]
    """By ordinal."""
    began_to_moved: float
    """Seconds from the cause until all tasks ran at their new places."""


@dataclass
class MovingGroup:
    """The processes of one way."""

    way: Way
    broker: Broker
    folder: Path
    rate: int
    words: list[list[str]] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    _agents: Agents = field(init=False)
    _ports: list[int] = field(init=False)
    _running: dict[int, Process] = field(default_factory=dict)
    _logs: dict[int, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Choose ports; nothing is started yet."""
        self._ports = free_ports(STAYING + 1)
        self._agents = Agents(self.way.name, self._ports[:STAYING])

    @property
    def topics(self) -> tuple[str, str]:
        """Input and output."""
        return f"{self.way.name}-input", f"{self.way.name}-output"

    def start(self, stack: ExitStack, records: int) -> None:
        """Start the processes that stay, and wait until every record is counted."""
        self.folder.mkdir()
        self.broker.create(*self.topics)
        self.words = word_load.preload(self.broker.bootstrap, self.topics[0], records)
        for ordinal in range(STAYING):
            stack.enter_context(self._started(ordinal, 0))
        self._wait("the first two processes at work", self._is_at_work)
        self._agents.tell(())
        topics = Topics(self.broker.bootstrap)
        self._wait(
            "all records counted", lambda: sum(topics.ends(self.topics[1], Isolation.UNCOMMITTED).values()) >= records
        )

    def play(self, turn: int) -> None:
        """Play one turn: four moves."""
        is_empty_volume = turn % 2 == 0
        if is_empty_volume:
            shutil.rmtree(self.folder / f"state-{FRESH}", ignore_errors=True)
        with word_load.steady(self.broker.bootstrap, self.topics[0], self.words, self.rate):
            time.sleep(QUIET_SECONDS)
            with ExitStack() as stack:

                def start() -> None:
                    self._agents.ports = self._ports
                    stack.enter_context(self._started(FRESH, turn))
                    self._wait("the new agent answers", lambda: bool(self._agents.words()))
                    self._agents.tell(())

                self._move(
                    turn, "fresh, empty volume" if is_empty_volume else "fresh, volume kept", start, self._has_share
                )
                self._move(turn, "to processes that stay", self._announce, self._is_drained)
                self._move(turn, "back to a warm process", lambda: self._agents.tell(()), self._has_share)
                self._announce()
                self._follow(self._is_drained)
                self._running.pop(FRESH).terminate()
            self._agents.ports = self._ports[:STAYING]
            self._agents.tell(())
            self._wait("the last two at work", self._is_at_work)

    def _announce(self) -> None:
        self._agents.tell([self._process_id(FRESH)])

    def _move(self, turn: int, kind: str, cause: Callable[[], None], holds: Callable[[], bool]) -> None:
        before, began, start = self._owners(), _now_ms(), time.monotonic()
        cause()
        self._follow(holds)
        took = time.monotonic() - start
        time.sleep(SETTLE_SECONDS)
        after, window = self._owners(), Window(began, _now_ms())
        moved = tuple(number for number in before if after.get(number, before[number]) != before[number])
        self.moves.append(Move(self.way.name, turn, kind, window, moved, (before, after), dict(self._logs), took))
        time.sleep(SETTLE_SECONDS)

    def _follow(self, holds: Callable[[], bool]) -> None:
        """Wait for the layout; trigger rebalances as the operator does, whenever learners have caught up."""
        triggered = 0.0

        def is_there() -> bool:
            nonlocal triggered
            self._agents.renew()
            if holds():
                return True
            if time.monotonic() - triggered > TRIGGER_SECONDS:
                if self._learned():
                    self._trigger()
                triggered = time.monotonic()
            return False

        self._wait("the layout", is_there)

    def _learned(self) -> bool:
        """Whether every copy has caught up; true while there is none, so that learners begin."""
        reports = [word.report for word in self._agents.words()]
        topics = Topics(self.broker.bootstrap)
        ends = {
            TopicPartition(topic, partition): end
            for topic in changelogs(reports, self.way.name)
            for partition, end in topics.ends(topic, Isolation.UNCOMMITTED).items()
        }
        copies = [(task.id, report) for report in reports for task in report.tasks or () if not task.is_active]
        lags = [behind(task, [report], ends, self.way.name) for task, report in copies]
        return all(lag is not None and lag <= CAUGHT_UP for lag in lags)

    def _trigger(self) -> None:
        trigger_rebalance_once_stable(self.broker.bootstrap, self.way.name, self._process_id(0))

    def _has_share(self) -> bool:
        words = self._agents.words()
        shares = [len(actives(word.report)) for word in words]
        return shares == [PARTITIONS // (STAYING + 1)] * (STAYING + 1) and self._is_at_work()

    def _is_drained(self) -> bool:
        return is_empty(self._agents.reply(FRESH).report) and self._is_at_work()

    def _is_at_work(self) -> bool:
        return all_at_work([word.report for word in self._agents.words()], _TASKS)

    def _owners(self) -> dict[int, int]:
        words = enumerate(self._agents.words())
        return {task.id.partition: ordinal for ordinal, word in words for task in actives(word.report)}

    def _process_id(self, ordinal: int) -> ProcessId:
        word: Word = self._agents.reply(ordinal)
        if word.report.process_id is None:
            raise LabError("agent: does not know its process ID", "its report has none", "see the log")
        return word.report.process_id

    @contextmanager
    def _started(self, ordinal: int, turn: int) -> Iterator[None]:
        state, log = self.folder / f"state-{ordinal}", self.folder / f"process-{ordinal}-{turn}.log"
        state.mkdir(exist_ok=True)
        self._agents.ports, known = self._ports, self._agents.ports
        told = self._agents.environment(ordinal)
        self._agents.ports = known
        environment = {
            **self.way.settings,
            **told,
            "APPLICATION_ID": self.way.name,
            "INPUT_TOPIC": self.topics[0],
            "OUTPUT_TOPIC": self.topics[1],
            "BOOTSTRAP_SERVERS": self.broker.bootstrap,
            "STATE_DIR": str(state),
            "HOSTNAME": "localhost",
        }
        levels = [f"-Dorg.slf4j.simpleLogger.log.{name}=info" for name in _LOGGED]
        java, *rest = self.way.command
        command = [java, *levels, f"-javaagent:{self.way.agent}", *rest]
        with started(f"process {ordinal}", command, environment, log, self.folder) as process:
            self._running[ordinal], self._logs[ordinal] = process, log
            yield

    def _wait(self, what: str, holds: Callable[[], bool]) -> None:
        until, why = time.monotonic() + LIMIT_SECONDS, "it did not become true"
        while time.monotonic() < until:
            for process in self._running.values():
                process.require_life()
            try:
                if holds():
                    return
            except NotYetError as error:
                why = error.why
            time.sleep(_POLL_SECONDS)
        raise LabError(f"{self.way.name}: {what}: not in time", why, f"read the logs in {self.folder}")


def _now_ms() -> int:
    return round(time.time() * 1000)
