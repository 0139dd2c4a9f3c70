"""The flight record of one application in one process: makes lines of what is new in each pass.

The controller calls `FlightLog.lines` once per pass, before it reports the pass, so that steps are on record however
the pass ends. Only `FlightLog` remembers what was recorded: a new process begins with everything.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from streamapp.api.status.progress import began
from streamapp.api.validation.parse import InvalidStreamApp, StreamApp
from streamapp.core.actions.decision import Decision
from streamapp.core.evidence.agent_views import fresh
from streamapp.core.evidence.membership import MemberPlacement, place_members
from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.group import GroupDescription, GroupReading
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import DesiredSample, Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.status.gaps import Gap, GapUnknown
from streamapp.flightrecord import forecasts, layout, lines
from streamapp.flightrecord.autoscalers import AutoscalerLog
from streamapp.flightrecord.changelogs import ChangelogLog
from streamapp.flightrecord.copies import copies, end_of, position
from streamapp.flightrecord.lines import ExecutedStep, Head
from streamapp.flightrecord.pods import ObservedPods, PodLog
from streamapp.flightrecord.sampling import Sampler
from streamapp.flightrecord.schema import GroupLine, Record
from streamapp.flightrecord.settings import ConfigLog
from streamapp.flightrecord.task_gaps import TaskGapLog
from streamapp.simulator.forecast.comparison import Finished, Forecast

SAMPLE_AGAIN = timedelta(seconds=30)
"""The longest time between two passes that sample copies, if nothing changes."""

TELL_AGAIN = timedelta(minutes=5)
"""The longest time between two decision lines; after as long without a look, all states are written again."""

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The facts and results of one pass that the record needs."""

    streamapp: StreamApp | InvalidStreamApp
    resource: Mapping[str, Any]
    """The StreamApp as the API server returned it."""
    pods: tuple[Mapping[str, Any], ...]
    """The pods as the API server returned them."""
    snapshot: Snapshot
    policy: ScalingPolicy
    decision: Decision
    executed: tuple[ExecutedStep, ...] = ()
    gap: Gap | GapUnknown | None = None
    """Of the removal that the decision completes."""
    forecasts: tuple[Forecast | Finished, ...] = ()
    """Predictions that were made, and those that were compared, since the last pass."""


@dataclass(slots=True)
class FlightLog:
    """The lines of one application, and what they recorded last."""

    head: Head
    """Fields that all its lines share."""
    _desired: DesiredSample | None = None
    _decided: tuple[object, ...] | None = None
    _decided_at: datetime = _NEVER
    _looked_at: datetime = _NEVER
    _config: ConfigLog = field(default_factory=ConfigLog)
    _pods: PodLog = field(default_factory=PodLog)
    _closed: set[tuple[object, ...]] = field(default_factory=set)
    _read_at: datetime | None = None
    """End of the newest recorded reading."""
    _autoscalers: AutoscalerLog = field(default_factory=AutoscalerLog)
    _changelogs: ChangelogLog = field(default_factory=ChangelogLog)
    _task_gaps: TaskGapLog = field(default_factory=TaskGapLog)
    _group: GroupLine | None = None
    _epoch_key: object = None
    _epoch: int = 0
    _makes_learners: bool = False
    _sampler: Sampler = field(default_factory=Sampler)
    _sampled: tuple[object, ...] = (None, None, None)
    """Epoch, rebalance and end offsets at the last samples."""
    _sampled_at: datetime = _NEVER

    def lines(self, look: Look) -> list[Record]:
        """Give the lines that this pass adds, and remember them as written."""
        if abs(look.snapshot.now - self._looked_at) > TELL_AGAIN:
            # Nobody knows what was in force meanwhile.
            self._decided = self._group = None
            self._config.tell_again()
            self._pods.tell_again()
        self._looked_at = look.snapshot.now
        reports = fresh(look.snapshot, look.policy.timing) if look.policy.agent else {}
        records: list[Record] = [*self._scale_lines(look), *self._group_lines(look)]
        records += self._autoscalers.lines(self.head, look.snapshot.now, look.snapshot.replica_writers)
        records += self._changelogs.lines(self.head, look.snapshot)
        records += self._task_gaps.by_agents(self.head, reports) if reports else ()
        placement = _placement(look)
        records += self._config_lines(look, reports)
        records += self._pod_lines(look, placement, reports)
        records += self._decision_lines(look)
        records += (lines.step_line(self.head, executed, look.decision) for executed in look.executed)
        records += self._closed_lines(look)
        records += (forecasts.line(self.head, news, look.snapshot.now) for news in look.forecasts)
        records += self._sample_lines(look, placement, reports)
        return records

    def _scale_lines(self, look: Look) -> Iterator[Record]:
        current, before = look.snapshot.app.desired, self._desired
        news = [desired for desired in current.history if before is None or desired.at > before.at]
        if not news and before is not None and current.replicas != before.replicas:
            news = [DesiredSample(look.snapshot.now, current.replicas)]  # the clock was set back
        for desired in news:
            before, self._desired = self._desired, desired
            if before is not None and before.replicas == desired.replicas:
                continue
            resource = look.resource if desired is news[-1] else None
            yield lines.scale_line(self.head, desired, None if before is None else before.replicas, resource)

    def _decision_lines(self, look: Look) -> Iterator[Record]:
        line = lines.decision_line(self.head, look.decision, look.snapshot)
        decided = (
            *(line.verdict, line.reason, line.desired, line.granted, line.actual, line.ready, line.hold_id),
            *(line.target, line.converged, line.converging_reason, tuple(blocker.task for blocker in line.blocking)),
        )
        is_due = abs(line.ts - self._decided_at) >= TELL_AGAIN
        if line.hold_id or decided != self._decided or is_due:
            self._decided, self._decided_at = decided, line.ts
            yield line

    def _closed_lines(self, look: Look) -> Iterator[Record]:
        closed = look.decision.closed_step
        if closed is None:
            return
        # The decision repeats it until the hold record is written. The status shows what a former process recorded.
        key = (closed.hold_id, closed.from_replicas, closed.to_replicas, closed.granted_at)
        at = closed.granted_at.replace(microsecond=0)
        reported = {(step.at, step.from_, step.to) for step in look.streamapp.status.last_steps}
        if key not in self._closed and (at, closed.from_replicas, closed.to_replicas) not in reported:
            since = began(look.decision, look.streamapp.status.scale_down, closed.hold_id)
            yield lines.closed_line(self.head, closed, look.snapshot.now, since, look.gap)
        self._closed.add(key)

    def _pod_lines(
        self, look: Look, placement: MemberPlacement | None, reports: Mapping[Ordinal, AgentReport]
    ) -> Iterator[Record]:
        processes = {} if placement is None else layout.processes(placement)
        snapshot = look.snapshot
        observed = ObservedPods(
            snapshot.now, snapshot.workload, look.pods, processes, reports, ends=snapshot.container_ends
        )
        return self._pods.lines(self.head, observed)

    def _group_lines(self, look: Look) -> Iterator[Record]:
        """Lines of every reading since the last pass: a rebalance can have come and gone."""
        latest = look.snapshot.latest
        if latest is not None and self._read_at is not None and latest.ended_at < self._read_at:
            self._read_at = None  # the clock was set back
        for reading in reversed(look.snapshot.readings):
            if self._read_at is None or reading.ended_at > self._read_at:
                self._read_at = reading.ended_at
                yield from self._reading_lines(reading, look)

    def _reading_lines(self, reading: GroupReading, look: Look) -> Iterator[Record]:
        placement, workload, task_set = None, look.snapshot.workload, look.snapshot.task_set
        if layout.shows_layout(reading) and isinstance(reading.group, GroupDescription):
            placement = place_members(reading.group, workload)
            if isinstance(task_set, TaskSet) and not look.policy.agent:
                yield from self._task_gaps.by_group(self.head, reading, placement, workload, task_set)
            key = layout.epoch_key(reading.group, placement)
            if key != self._epoch_key:
                self._epoch_key = key
                self._epoch = max(self._epoch + 1, _milliseconds(reading.ended_at))
        before = self._group
        if before is not None and (before.epoch, before.state, before.follow_up) == (
            self._epoch,
            *layout.group_state(reading.group),
        ):
            return
        self._group = layout.group_line(self.head, reading, placement, self._epoch)
        yield self._group

    def _config_lines(self, look: Look, reports: Mapping[Ordinal, AgentReport]) -> Iterator[Record]:
        if isinstance(look.streamapp, StreamApp):
            source, told = look.decision.source.told, tuple(reports.values())
            yield from self._config.lines(self.head, look.streamapp, look.snapshot, look.policy, source, told)

    def _sample_lines(
        self, look: Look, placement: MemberPlacement | None, reports: Mapping[Ordinal, AgentReport]
    ) -> Iterator[Record]:
        task_set = look.snapshot.task_set
        if placement is None or not isinstance(task_set, TaskSet):
            return
        if not self._is_news(look.snapshot, has_agents=bool(reports)):
            return
        if reports:
            self._makes_learners = all(report.is_ours and report.standby_replicas == 0 for report in reports.values())
        observed = copies(look.snapshot, placement, look.policy.timing, makes_learners=self._makes_learners)
        if observed is None:
            return
        own = self._config.application_recovery_lag
        limit = look.policy.acceptable_recovery_lag if own is None else min(own, look.policy.acceptable_recovery_lag)
        chosen = self._sampler.choose(observed, limit, partial(position, task_set=task_set))
        if chosen:
            samples = [(sample, end_of(sample.copy, sample.position, task_set)) for sample in chosen]
            yield lines.samples_line(self.head, samples, self._epoch)

    def _is_news(self, snapshot: Snapshot, *, has_agents: bool) -> bool:
        """Whether to sample copies in this pass: without agents, positions change only with a rebalance."""
        rebalance = None if snapshot.latest is None else snapshot.latest.rebalance
        current = (self._epoch, rebalance, None if rebalance is None else rebalance.ends)
        before = self._sampled
        is_same = current[0] == before[0] and all(a is b for a, b in zip(current[1:], before[1:], strict=True))
        is_early = abs(snapshot.now - self._sampled_at) < SAMPLE_AGAIN and not self._sampler.has_more
        if is_same and is_early and not has_agents:
            return False
        self._sampled, self._sampled_at = current, snapshot.now
        return True


def _placement(look: Look) -> MemberPlacement | None:
    latest = look.snapshot.latest
    return look.decision.placement if latest is not None and layout.shows_layout(latest) else None


def _milliseconds(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // datetime.resolution // 1000
