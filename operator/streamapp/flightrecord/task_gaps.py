"""Makes lines of the flight record about gaps: a task runs again, on another process or after it had stopped.

The operator does not watch a task all the time, so a gap is a range. It is at most the time from the last report of the
task running to the first report of it running again. It is at least the time between reports of it restoring.
Where agents report when a task stopped and began to run, the gap is the time between the two.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from streamapp.core.evidence.membership import MemberPlacement, members_of_running_pods
from streamapp.core.evidence.running_tasks import active_holders, running_tasks
from streamapp.core.facts.agent_reports import AgentReport, TaskState
from streamapp.core.facts.group import GroupDescription, GroupReading
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.facts.workload import Workload
from streamapp.flightrecord.lines import Head
from streamapp.flightrecord.schema import GapLine, SampleSource

SET_BACK = timedelta(minutes=1)
"""A report that is older than the last one by more than this is not late: the clock was set back."""
RECENT = timedelta(minutes=10)
"""A task that began so shortly before the first look may have stood while no recorder looked."""
LATE = timedelta(seconds=2)
"""Requests to two agents take so much more or less time to arrive, at most: longer ones have no answer."""


@dataclass(frozen=True, slots=True)
class Runner:
    """The process that runs a task. If the runner changes, the task had to stop in between."""

    ordinal: Ordinal
    process: str
    incarnation: Hashable
    """Differs after a restart of the process."""


@dataclass(slots=True)
class _Run:
    """The last time that a task was reported running."""

    runner: Runner
    at: datetime
    restoring: tuple[datetime, datetime] | None = None
    """First and last time since then that it was reported restoring."""


@dataclass(slots=True)
class TaskGapLog:
    """The last known runner of each task of one application, by agent reports or by group readings."""

    _runs: dict[TaskId, _Run] = field(default_factory=dict)
    _source: SampleSource | None = None
    _stops: dict[TaskId, datetime] = field(default_factory=dict)
    """When a process last stopped each task, by its agent."""
    _group_state: tuple[object, ...] = ()
    """The part of the last reading that decides which member runs which task."""
    _read_at: datetime | None = None
    """End of the last reading."""
    _looked_at: datetime | None = None
    """The first look: what happened before it, only an earlier recorder knows."""
    _restored: dict[TaskId, tuple[datetime, datetime]] = field(default_factory=dict)
    """First and last time that a task was reported restoring, of tasks that were never reported running."""

    def by_agents(self, head: Head, reports: Mapping[Ordinal, AgentReport]) -> Iterator[GapLine]:
        """Give the gaps that fresh agent reports show; the same report a second time shows none."""
        self._use(SampleSource.AGENT)
        for times in (times for report in reports.values() for times in report.task_times):
            if times.stopped_at is not None:
                self._stops[times.id] = max(times.stopped_at, self._stops.get(times.id, times.stopped_at))
        if self._looked_at is None and reports:
            self._looked_at = min(report.as_of for report in reports.values())
        # By time: the report of the new runner must not come before that of the old one.
        for report in sorted(reports.values(), key=lambda report: report.as_of):
            if report.tasks is None or report.process_id is None:
                continue
            runner = Runner(report.ordinal, str(report.process_id), report.incarnation)
            starts = {times.id: times.started_at for times in report.task_times}
            for task in report.tasks:
                if not task.is_active:
                    continue
                if task.state is TaskState.RUNNING:
                    yield from self._running_at(head, task.id, runner, report.as_of, starts.get(task.id))
                elif task.state is TaskState.RESTORING:
                    self._restoring_at(task.id, report.as_of)

    def by_group(
        self, head: Head, reading: GroupReading, placement: MemberPlacement, workload: Workload, task_set: TaskSet
    ) -> Iterator[GapLine]:
        """Give the gaps that a reading of a stable group shows; for applications without agents."""
        if not isinstance(reading.group, GroupDescription) or reading.rebalance is None:
            return
        self._use(SampleSource.GROUP)
        self._looked_at = self._looked_at or reading.ended_at
        alive = {pod.ordinal for pod in workload.pods if pod.is_running}
        state = (reading.rebalance.settled_at, reading.group, frozenset(alive))
        if state == self._group_state:
            for run in self._runs.values():
                run.at = max(run.at, reading.ended_at) if run.at == self._read_at else run.at
        else:
            yield from self._gaps_in(head, reading, members_of_running_pods(placement, workload), task_set)
        self._group_state, self._read_at = state, reading.ended_at

    def _gaps_in(
        self, head: Head, reading: GroupReading, pods: Mapping[str, Ordinal], task_set: TaskSet
    ) -> Iterator[GapLine]:
        group, rebalance = reading.group, reading.rebalance
        if not isinstance(group, GroupDescription) or rebalance is None:
            return
        holders = active_holders(group)
        for task in sorted(running_tasks(group, holders, task_set, rebalance.rejoined_members)):
            member = holders[task][0]
            if member.id in pods:
                runner = Runner(pods[member.id], str(member.process_id or ""), member.id)
                yield from self._running_at(head, task, runner, reading.ended_at)

    def _use(self, source: SampleSource) -> None:
        """Begin anew if the source changes: agents and members identify a restart by different values."""
        if source is not self._source:
            self._runs, self._source, self._group_state, self._read_at = {}, source, (), None
            self._stops, self._looked_at, self._restored = {}, None, {}

    def _restoring_at(self, task: TaskId, at: datetime) -> None:
        run = self._runs.get(task)
        if run is None:
            first, last = self._restored.get(task, (at, at))
            self._restored[task] = min(first, at), max(last, at)
        elif at > run.at:
            run.restoring = (at, at) if run.restoring is None else (run.restoring[0], max(run.restoring[1], at))

    def _running_at(
        self, head: Head, task: TaskId, runner: Runner, at: datetime, started_at: datetime | None = None
    ) -> Iterator[GapLine]:
        before = self._runs.get(task)
        if before is not None and before.at - SET_BACK < at <= before.at:
            return
        if before is not None and at > before.at and before.restoring is None and before.runner == runner:
            before.at = at
            return
        self._runs[task] = _Run(runner, at)
        if before is None:
            yield from self._began_before(head, task, runner, at, started_at)
            return
        if at < before.at or self._source is None:
            return
        restoring = before.restoring
        stopped_at = self._stops.get(task)
        is_of_this_gap = stopped_at is not None and before.at - LATE <= stopped_at <= (started_at or at)
        yield GapLine(
            **head,
            seq=0,
            ts=at,
            task=str(task),
            ordinal=runner.ordinal,
            process_id=runner.process,
            last_ran_at=before.at,
            stood_seconds=0.0 if restoring is None else (restoring[1] - restoring[0]).total_seconds(),
            stopped_at=stopped_at if is_of_this_gap else None,
            started_at=started_at if started_at is not None and started_at >= before.at - LATE else None,
            source=self._source,
        )

    def _began_before(
        self, head: Head, task: TaskId, runner: Runner, at: datetime, started_at: datetime | None
    ) -> Iterator[GapLine]:
        """The gap of a task that did not run when this recorder looked first, or had not run for long."""
        looked_at, restored = self._looked_at, self._restored.pop(task, None)
        if looked_at is None or self._source is None:
            return
        if started_at is not None:
            stood = started_at > looked_at - RECENT
        else:
            # All members show at the first reading; agents answer one by one.
            stood = at > looked_at if self._source is SampleSource.GROUP else restored is not None
        if not stood:
            return
        yield GapLine(
            **head,
            seq=0,
            ts=at,
            task=str(task),
            ordinal=runner.ordinal,
            process_id=runner.process,
            last_ran_at=min(looked_at, at if started_at is None else started_at),
            stood_seconds=0.0 if restored is None else (restored[1] - restored[0]).total_seconds(),
            started_at=started_at,
            began_before=True,
            source=self._source,
        )
