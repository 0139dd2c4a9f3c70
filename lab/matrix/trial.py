"""One trial: three processes under load, one of them is announced as leaving, emptied and stopped.

Told in the order in which it happens. Everything it starts ends with it, whatever goes wrong; every wait has a limit,
and all of them together too.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.errors import LabError, NotYetError
from lab.matrix import group, word_load
from lab.matrix.agents import Agents, Word
from lab.matrix.applications import Application
from lab.matrix.broker import PARTITIONS, Broker
from lab.matrix.cells import Launcher
from lab.matrix.learner_progress import CAUGHT_UP, actives, all_at_work, behind, changelogs, is_empty
from lab.matrix.measurement import Moments, gauge
from lab.matrix.processes import Process, free_ports, loader_of, started
from lab.matrix.trial_result import Drain, RuntimeInfo, TrialResult, Verdict
from lab.meter.topics import Broker as Topics
from lab.meter.topics import Isolation
from streamapp.core.facts.ids import ProcessId, TaskId, TopicPartition

PROCESSES = 3
LIMIT_SECONDS = 240.0
"""For one trial; what is built for it not counted."""
QUIET_SECONDS = 6.0
AFTER_STOP_SECONDS = 6.0
SETTLE_SECONDS = 2.0
"""How long the last outputs of a window may take."""
PATIENCE_SECONDS = 8.0
"""After this time without an end the lab triggers a rebalance again, as the operator does."""
_POLL_SECONDS = 0.2
_KAFKA_STREAMS = "org.apache.kafka.streams.KafkaStreams"


@dataclass(frozen=True)
class Size:
    """How much is read."""

    records: int
    """Different words, each written once before the start: more per task than `acceptable.recovery.lag`."""
    rate: int
    """Records a second of the steady load."""


@dataclass
class Trial:
    """One application in three processes."""

    application: Application
    broker: Broker
    agent: Path
    folder: Path
    """Logs and state; empty before."""
    size: Size
    _until: float = field(init=False)
    _processes: list[Process] = field(default_factory=list)
    _agents: Agents = field(init=False)

    def __post_init__(self) -> None:
        """Choose ports; nothing is started yet."""
        self._agents = Agents(self.application.names.application_id, free_ports(PROCESSES))
        self._until = time.monotonic() + LIMIT_SECONDS

    def run(self) -> TrialResult:
        """Try it to its end; LabError says what went wrong."""
        names = self.application.names
        self.broker.create(names.input_topic, names.output_topic)
        words = word_load.preload(self.broker.bootstrap, names.input_topic, self.size.records)
        with ExitStack() as stack:
            for ordinal in range(PROCESSES):
                self._processes.append(stack.enter_context(self._start(ordinal)))
            found = self._runtimes()
            if self.application.cell.aside is not None:
                return self._must_be_aside(found)
            self._settle()
            with word_load.steady(self.broker.bootstrap, names.input_topic, words, self.size.rate):
                drained = self._drain()
            return TrialResult(self.application.cell, Verdict.DRAINED, found[0], drained())

    @contextmanager
    def _start(self, ordinal: int) -> Iterator[Process]:
        application, cell = self.application, self.application.cell
        folder = self.folder / f"process-{ordinal}"
        folder.mkdir()
        for name, text in application.files(self.broker.bootstrap, folder).items():
            (folder / name).write_text(text)
        environment = application.environment(self.broker.bootstrap, folder) | self._agents.environment(ordinal)
        environment[cell.variable] = f"-javaagent:{self.agent}"
        log = self.folder / f"process-{ordinal}.log"
        with started(f"process {ordinal}", application.command(folder), environment, log, folder) as process:
            yield process

    def _runtimes(self) -> list[RuntimeInfo]:
        """Wait until all agents report a running instance, and tell them that nobody leaves."""

        def running() -> bool:
            return all(word.report.client_state == "RUNNING" for word in self._agents.words())

        self._wait("all agents report a running instance", running)
        self._agents.tell(())
        java = self.application.java
        pairs = zip(self._agents.words(), self._processes, strict=True)
        return [_runtime_info(word, loader_of(_KAFKA_STREAMS, process, java)) for word, process in pairs]

    def _must_be_aside(self, runtimes: Sequence[RuntimeInfo]) -> TrialResult:
        cell = self.application.cell
        expected = cell.aside.value if cell.aside else ""
        if all(each.aside.startswith(expected) for each in runtimes):
            return TrialResult(cell, Verdict.STEPPED_ASIDE, runtimes[0], note=runtimes[0].aside)
        reasons = "; ".join(each.aside or "the assignor is at work" for each in runtimes)
        return TrialResult(cell, Verdict.FAILED, runtimes[0], note=f"expected {expected}, reported: {reasons}")

    def _settle(self) -> None:
        """Wait until our assignor is in force everywhere, all tasks are at work, and all was read that was written."""

        def ours() -> bool:
            words = self._agents.words()
            others = [why for word in words if not word.report.is_ours for why in [_aside(word) or "another assignor"]]
            if others:
                raise NotYetError("assignor: not ours in all processes", "; ".join(others), "see the agents' reports")
            return all_at_work([word.report for word in words], self._tasks())

        self._wait("our assignor in all processes, and all tasks at work", ours)
        topics, names = Topics(self.broker.bootstrap), self.application.names

        def read() -> bool:
            written = sum(topics.ends(names.output_topic, Isolation.UNCOMMITTED).values())
            if written < self.size.records:
                raise NotYetError("outputs", f"{written} of {self.size.records} outputs are written", "see the logs")
            return True

        self._wait("all preloaded records counted", read)

    def _drain(self) -> Callable[[], Drain]:
        """Empty one process and stop it; what is given back measures that, once the load has ended."""
        time.sleep(SETTLE_SECONDS)
        began = _now_ms()
        time.sleep(QUIET_SECONDS)
        words = self._agents.words()
        leaver = max(range(PROCESSES), key=lambda ordinal: (len(self._stateful(words[ordinal])), ordinal))
        moving = self._stateful(words[leaver])
        leaving, staying = _process_id(words[leaver]), _process_id(words[leaver - 1])
        announced = _now_ms()
        learned_after, drained_after, triggered_rebalances = self._empty(leaver, leaving, staying, moving)
        time.sleep(SETTLE_SECONDS)
        before = self._owners(leaver)
        stop = _now_ms()
        stopped_after = self._stop(leaver)
        time.sleep(AFTER_STOP_SECONDS)
        after, rounds, left = self._owners(leaver), self._rounds(leaver), self._has_left(leaving)
        moments = Moments(began, announced, stop, _now_ms())
        exit_code = int(self._processes[leaver].running.returncode)

        def measure() -> Drain:
            gaps, (lost, doubled) = gauge(
                self.broker.bootstrap, self.application, moments, [task.partition for task in moving]
            )
            return Drain(
                moved=len(moving),
                learned_after=learned_after,
                drained_after=drained_after,
                triggered_rebalances=triggered_rebalances,
                stopped_after=stopped_after,
                exit_code=exit_code,
                left=left,
                moved_at_stop=sum(after.get(task) != owner for task, owner in before.items()),
                rounds=rounds,
                gaps=gaps,
                lost=lost,
                doubled=doubled,
            )

        return measure

    def _empty(
        self, leaver: int, leaving: ProcessId, staying: ProcessId, moving: Sequence[TaskId]
    ) -> tuple[float, float, int]:
        """Give the seconds until the survivors learned the tasks and until the leaver is empty; count rebalances."""
        started_at = time.monotonic()
        self._agents.tell([leaving])
        self._trigger_rebalance(staying)
        self._wait("learners caught up", lambda: self._learned(leaver, moving))
        learned_after = time.monotonic() - started_at
        triggered_rebalances = 1 + self._trigger_until_empty(leaver, staying)
        return learned_after, time.monotonic() - started_at, triggered_rebalances

    def _trigger_rebalance(self, staying: ProcessId) -> None:
        group.trigger_rebalance_once_stable(self.broker.bootstrap, self.application.names.application_id, staying)

    def _learned(self, leaver: int, moving: Sequence[TaskId]) -> bool:
        """Whether the survivors have a copy of each of these tasks that has caught up, by the agents' positions."""
        self._agents.renew()
        reports = [word.report for word in self._survivors(leaver)]
        application_id, topics = self.application.names.application_id, Topics(self.broker.bootstrap)
        ends = {
            TopicPartition(topic, partition): end
            for topic in changelogs(reports, application_id)
            for partition, end in topics.ends(topic, Isolation.UNCOMMITTED).items()
        }
        lags = {task: behind(task, reports, ends, application_id) for task in moving}
        late = {task: lag for task, lag in lags.items() if lag is None or lag > CAUGHT_UP}
        if late:
            lags_text = ", ".join(
                f"{task} {'has no copy' if lag is None else f'lacks {lag}'}" for task, lag in late.items()
            )
            raise NotYetError("learners", lags_text, "see the agents' reports")
        return True

    def _trigger_until_empty(self, leaver: int, staying: ProcessId) -> int:
        """Trigger rebalances until the process has no tasks and all tasks run elsewhere; count them."""
        triggered_rebalances = 0
        while True:
            self._trigger_rebalance(staying)
            triggered_rebalances += 1
            patience = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < patience:
                if self._emptied(leaver):
                    return triggered_rebalances
                time.sleep(_POLL_SECONDS)
            if time.monotonic() > self._until:
                tasks = self._agents.reply(leaver).report.tasks
                task_ids = "unknown" if tasks is None else ", ".join(str(task.id) for task in tasks)
                raise LabError(
                    f"process {leaver}: not emptied",
                    f"after {triggered_rebalances} rebalances it holds {task_ids}",
                    "see the logs",
                )

    def _emptied(self, leaver: int) -> bool:
        try:
            self._agents.renew()
            survivors = [word.report for word in self._survivors(leaver)]
            return is_empty(self._agents.reply(leaver).report) and all_at_work(survivors, self._tasks())
        except NotYetError:
            return False

    def _stop(self, leaver: int) -> float:
        began = time.monotonic()
        self._processes[leaver].terminate()
        self._processes[leaver].wait(max(self._until - began, 1.0))
        return time.monotonic() - began

    def _survivors(self, leaver: int) -> list[Word]:
        return [self._agents.reply(ordinal) for ordinal in range(PROCESSES) if ordinal != leaver]

    def _owners(self, leaver: int) -> dict[TaskId, int]:
        """Give the process of every task with state, those of the leaver left out."""
        return {task: word.report.ordinal for word in self._survivors(leaver) for task in self._stateful(word)}

    def _has_left(self, process_id: ProcessId) -> bool | None:
        members = group.processes(self.broker.bootstrap, self.application.names.application_id)
        return process_id not in members if members else None

    def _rounds(self, leaver: int) -> tuple[Mapping[str, Any], ...]:
        lags_text = (word.instance.get("assignor", {}).get("lastRound") for word in self._survivors(leaver))
        return tuple(each for each in lags_text if each is not None)

    def _tasks(self) -> list[TaskId]:
        subtopologies = range(2 if self.application.cell.launcher is Launcher.WORD_COUNT else 1)
        return [TaskId(number, partition) for number in subtopologies for partition in range(PARTITIONS)]

    def _stateful(self, word: Word) -> list[TaskId]:
        return sorted(task.id for task in actives(word.report) if task.id.subtopology == self.application.stateful)

    def _wait(self, what: str, holds: Callable[[], bool]) -> None:
        cause = "it did not become true"
        while time.monotonic() < self._until:
            for process in self._processes:
                process.require_life()
            try:
                if holds():
                    return
            except NotYetError as error:
                cause = error.why
            time.sleep(_POLL_SECONDS)
        raise LabError(f"{what}: not in time", cause, f"read the logs in {self.folder}")


def _runtime_info(word: Word, loader: str) -> RuntimeInfo:
    instance, report = word.instance, word.said
    asides = [*instance["asides"], *report["asides"]]
    return RuntimeInfo(
        java=report["agent"]["java"],
        streams=instance.get("kafkaVersion", ""),
        loader=loader,
        assignor=instance.get("assignor", {}).get("class", ""),
        aside=_aside(word),
        defaults={each["name"]: each["value"] for each in instance.get("defaultsGiven", ())},
        asides=tuple(f"{each['what']}: {each['why']}" for each in asides),
    )


def _aside(word: Word) -> str:
    aside = word.report.aside
    return "" if aside is None else f"{aside.kind.value}: {aside.why}"


def _process_id(word: Word) -> ProcessId:
    if word.report.process_id is None:
        raise LabError("agent: does not know its process ID", "its report has none", "see the agent's report")
    return word.report.process_id


def _now_ms() -> int:
    return round(time.time() * 1000)
