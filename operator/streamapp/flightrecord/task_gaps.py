"""Lines of the flight record about gaps: a task runs again, elsewhere or after it had stopped.

Called by `flight_log` with each look. Nobody watches a task all the time, so a gap is a range: at most from the last
look that showed it running to the first one that shows it running again, at least as long as it was seen restoring.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.evidence.running_tasks import active_holders, running_tasks
from streamapp.core.facts.agent_reports import AgentReport, TaskState
from streamapp.core.facts.group import GroupDescription, GroupReading
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.facts.workload import Workload
from streamapp.flightrecord.lines import Head
from streamapp.flightrecord.schema import SampleSource, TaskGap

SET_BACK = timedelta(minutes=1)
"""A look that is older than what is known by more than this is no late one: the clock was set back."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Who runs a task: another one of them, and the task had to stop in between."""

    ordinal: Ordinal
    process: str
    life: Hashable
    """What a restart of the process changes."""


@dataclass(slots=True)
class _Run:
    """The last that was seen of a task."""

    runner: Runner
    at: datetime
    stood: tuple[datetime, datetime] | None = None
    """First and last time since then that it was seen restoring."""


@dataclass(slots=True)
class RunsLog:
    """What was last seen running where, of one application; by the word of its agents, or of its members."""

    _runs: dict[TaskId, _Run] = field(default_factory=dict)
    _source: SampleSource | None = None
    _group_look: tuple[object, ...] = ()
    """What the last look at the group showed, as far as it bears on who runs what."""
    _looked_at: datetime | None = None
    """End of the last reading that was taken in."""

    def by_agents(self, head: Head, reports: Mapping[Ordinal, AgentReport]) -> Iterator[TaskGap]:
        """What fresh words of agents add; several looks at one word add nothing."""
        self._go_by(SampleSource.AGENT)
        # In the order of time: who took over must not be heard before whoever had it.
        for report in sorted(reports.values(), key=lambda one: one.as_of):
            if report.tasks is None or report.process_id is None:
                continue
            runner = Runner(report.ordinal, str(report.process_id), report.incarnation)
            for task in report.tasks:
                if not task.is_active:
                    continue
                if task.state is TaskState.RUNNING:
                    yield from self._runs_at(head, task.id, runner, report.as_of)
                elif task.state is TaskState.RESTORING:
                    self._stands_at(task.id, report.as_of)

    def by_group(
        self, head: Head, reading: GroupReading, placement: MemberPlacement, workload: Workload, task_set: TaskSet
    ) -> Iterator[TaskGap]:
        """What a reading of a stable group adds, where no agents tell: members say at a join what they run."""
        if not isinstance(reading.group, GroupDescription) or reading.rebalance is None:
            return
        self._go_by(SampleSource.GROUP)
        alive = {pod.ordinal for pod in workload.pods if pod.is_running}
        look = (reading.rebalance.settled_at, reading.group, frozenset(alive))
        if look == self._group_look:
            for run in self._runs.values():
                run.at = max(run.at, reading.ended_at) if run.at == self._looked_at else run.at
        else:
            yield from self._taken_from(head, reading, placement, alive, task_set)
        self._group_look, self._looked_at = look, reading.ended_at

    def _taken_from(
        self, head: Head, reading: GroupReading, placement: MemberPlacement, alive: set[Ordinal], task_set: TaskSet
    ) -> Iterator[TaskGap]:
        group, rebalance = reading.group, reading.rebalance
        if not isinstance(group, GroupDescription) or rebalance is None:
            return
        places = {
            member.id: ordinal
            for ordinal, members in placement.by_ordinal.items()
            for member in members
            if ordinal in alive
        }
        holders = active_holders(group)
        for task in sorted(running_tasks(group, holders, task_set, rebalance.rejoined_members)):
            member = holders[task][0]
            if member.id in places:
                runner = Runner(places[member.id], str(member.process_id or ""), member.id)
                yield from self._runs_at(head, task, runner, reading.ended_at)

    def _go_by(self, source: SampleSource) -> None:
        """Members and agents name a restart otherwise: from one to the other nothing can be told."""
        if source is not self._source:
            self._runs, self._source, self._group_look, self._looked_at = {}, source, (), None

    def _stands_at(self, task: TaskId, at: datetime) -> None:
        run = self._runs.get(task)
        if run is not None and at > run.at:
            run.stood = (at, at) if run.stood is None else (run.stood[0], max(run.stood[1], at))

    def _runs_at(self, head: Head, task: TaskId, runner: Runner, at: datetime) -> Iterator[TaskGap]:
        before = self._runs.get(task)
        if before is not None and before.at - SET_BACK < at <= before.at:
            return
        if before is not None and at > before.at and before.stood is None and before.runner == runner:
            before.at = at
            return
        self._runs[task] = _Run(runner, at)
        if before is None or at < before.at or self._source is None:
            return
        stood = before.stood
        yield TaskGap(
            **head,
            seq=0,
            ts=at,
            task=f"{task.subtopology}_{task.partition}",
            ordinal=runner.ordinal,
            process_id=runner.process,
            last_ran_at=before.at,
            stood_seconds=0.0 if stood is None else (stood[1] - stood[0]).total_seconds(),
            source=self._source,
        )
