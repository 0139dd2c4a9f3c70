"""The flight record of one application in one process: what of each pass is news.

Called by the controller once per pass, before the pass is reported, so that steps are on record however it ends. What
was told already is remembered here and nowhere else: a new process begins with everything.
"""

from collections.abc import Iterable, Iterator, Mapping
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
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import DesiredSample, Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.status.gaps import Gap, GapUnknown
from streamapp.flightrecord import layout as places
from streamapp.flightrecord import lines
from streamapp.flightrecord.autoscalers import DriversLog
from streamapp.flightrecord.copies import copies, end_of, position
from streamapp.flightrecord.lines import Head, StepMade
from streamapp.flightrecord.sampling import Sampler
from streamapp.flightrecord.schema import Config, Group, Pod, Record
from streamapp.flightrecord.task_gaps import RunsLog

LOOK_AGAIN = timedelta(seconds=30)
"""So late comes the word at most that nothing has changed."""

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One pass, as far as the record needs it."""

    found: StreamApp | InvalidStreamApp
    resource: Mapping[str, Any]
    """The same as it was read."""
    pods: tuple[Mapping[str, Any], ...]
    """As they were read."""
    snapshot: Snapshot
    policy: ScalingPolicy
    decision: Decision
    made: tuple[StepMade, ...] = ()
    """The steps of the plan that were made or failed."""
    gap: Gap | GapUnknown | None = None
    """Of the step that the decision finds finished."""


@dataclass(slots=True)
class FlightLog:
    """What was told of one application."""

    head: Head
    """What all its lines share."""
    _wish: DesiredSample | None = None
    _decided: tuple[object, ...] | None = None
    _config: Config | None = None
    _universe: TaskSet | None = None
    """That the tasks in it are of."""
    _pods: Mapping[str, tuple[tuple[object, ...], Pod]] = field(default_factory=dict)
    _closed: set[tuple[object, ...]] = field(default_factory=set)
    _read_at: datetime | None = None
    """End of the newest reading that was told."""
    _drivers: DriversLog = field(default_factory=DriversLog)
    _runs: RunsLog = field(default_factory=RunsLog)
    _group: Group | None = None
    _layout: object = None
    _epoch: int = 0
    _makes_learners: bool = False
    _sampler: Sampler = field(default_factory=Sampler)
    _looked_at_copies: tuple[object, ...] = (None, None, None)
    """Layout, join and ends of the last look at the copies."""
    _sampled_at: datetime = _NEVER

    def lines(self, look: Look) -> list[Record]:
        """Give the lines that this pass adds, and take them for written."""
        reports = fresh(look.snapshot, look.policy.timing) if look.policy.agent else {}
        found: list[Record] = [*self._scaled(look), *self._grouped(look)]
        found += self._drivers.lines(self.head, look.snapshot.now, look.snapshot.replica_writers)
        found += self._runs.by_agents(self.head, reports) if reports else ()
        placement = _attribution(look.snapshot)
        found += self._configured(look, reports)
        found += self._placed(look, placement, reports)
        found += self._decision(look)
        found += (lines.step_line(self.head, made, look.decision) for made in look.made)
        found += self._finished(look)
        found += self._sampled(look, placement, reports)
        return found

    def _scaled(self, look: Look) -> Iterator[Record]:
        seen, before = look.snapshot.app.desired, self._wish
        news = [desired for desired in seen.history if before is None or desired.at > before.at]
        if not news and before is not None and seen.replicas != before.replicas:
            news = [DesiredSample(look.snapshot.now, seen.replicas)]  # the clock was set back
        for desired in news:
            before, self._wish = self._wish, desired
            if before is not None and before.replicas == desired.replicas:
                continue
            resource = look.resource if desired is news[-1] else None
            yield lines.scale_line(self.head, desired, None if before is None else before.replicas, resource)

    def _decision(self, look: Look) -> Iterator[Record]:
        line = lines.decision_line(self.head, look.decision, look.snapshot)
        decided = (
            *(line.verdict, line.reason, line.desired, line.granted, line.actual, line.ready, line.hold_id),
            *(line.target, line.converged, line.converging_reason, tuple(one.task for one in line.blocking)),
        )
        if line.hold_id or decided != self._decided:
            self._decided = decided
            yield line

    def _finished(self, look: Look) -> Iterator[Record]:
        closed = look.decision.closed_step
        if closed is None:
            return
        # It is found finished until the record says so; the status of a process before this one counts too.
        key = (closed.hold_id, closed.from_replicas, closed.to_replicas, closed.granted_at)
        at = closed.granted_at.replace(microsecond=0)
        told = {(one.at, one.from_, one.to) for one in look.found.status.last_steps}
        if key not in self._closed and (at, closed.from_replicas, closed.to_replicas) not in told:
            since = began(look.decision, look.found.status.scale_down, closed.hold_id)
            yield lines.closed_line(self.head, closed, look.snapshot.now, since, look.gap)
        self._closed.add(key)

    def _placed(
        self, look: Look, placement: MemberPlacement | None, reports: Mapping[Ordinal, AgentReport]
    ) -> Iterator[Record]:
        now, workload = look.snapshot.now, look.snapshot.workload
        shown = {} if placement is None else places.processes(placement)
        live = places.pod_lines(self.head, now, workload, look.pods, shown, reports)
        keyed = {uid: (places.what_a_pod_is(line), line) for uid, line in live.items()}
        # Who is gone comes first: a pod that has taken the place of another by now is what the place is from now on.
        for uid, (_, line) in self._pods.items():
            if uid not in keyed:
                changes = {"ts": now, "is_gone": True, "is_running": False, "is_ready": False}
                yield line.model_copy(update=changes)
        for uid, (what, line) in keyed.items():
            before = self._pods.get(uid)
            if before is None or before[0] != what:
                yield line
        self._pods = keyed

    def _grouped(self, look: Look) -> Iterator[Record]:
        """Every look at the group since the last pass: a rebalance may have come and gone."""
        latest = look.snapshot.latest
        if latest is not None and self._read_at is not None and latest.ended_at < self._read_at:
            self._read_at = None  # the clock was set back, and everything was read anew
        for reading in reversed(look.snapshot.readings):
            if self._read_at is None or reading.ended_at > self._read_at:
                self._read_at = reading.ended_at
                yield from self._read(reading, look)

    def _read(self, reading: GroupReading, look: Look) -> Iterator[Record]:
        placement, workload, task_set = None, look.snapshot.workload, look.snapshot.task_set
        if places.shows_layout(reading) and isinstance(reading.group, GroupDescription):
            placement = place_members(reading.group, workload)
            if isinstance(task_set, TaskSet) and not look.policy.agent:
                yield from self._runs.by_group(self.head, reading, placement, workload, task_set)
            layout = places.layout(reading.group, placement)
            if layout != self._layout:
                self._layout = layout
                self._epoch = max(self._epoch + 1, _milliseconds(reading.ended_at))
        before = self._group
        if before is not None and (before.epoch, before.state, before.follow_up) == (
            self._epoch,
            *places.what_a_group_says(reading.group),
        ):
            return
        self._group = places.group_line(self.head, reading, placement, self._epoch)
        yield self._group

    def _configured(self, look: Look, reports: Mapping[Ordinal, AgentReport]) -> Iterator[Record]:
        if not isinstance(look.found, StreamApp):
            return
        config = self._config_of(look, look.found, reports.values())
        before = self._config
        if before is None or config.model_copy(update={"ts": before.ts}) != before:
            self._config = config
            yield config

    def _config_of(self, look: Look, found: StreamApp, reports: Iterable[AgentReport]) -> Config:
        """What is not known at present stays as it was last known: a rebalance changes no configuration."""
        before, task_set, policy = self._config, look.snapshot.task_set, look.policy
        tasks, stateful = (None, ()) if before is None else (before.tasks, before.stateful_tasks)
        if isinstance(task_set, TaskSet) and task_set is not self._universe:
            tasks, stateful = len(task_set.tasks), tuple(str(one.id) for one in task_set.stateful)
            self._universe = task_set
        source = look.decision.source.source
        standbys = {one.standby_replicas for one in reports if one.standby_replicas is not None}
        return Config(
            **self.head,
            seq=0,
            ts=look.snapshot.now,
            generation=look.snapshot.app.generation,
            application_id=found.spec.application_id,
            image=str(found.spec.application_container.get("image", "")),
            tasks=tasks,
            stateful_tasks=stateful,
            threads=_threads(look.snapshot) or (None if before is None else before.threads),
            acceptable_recovery_lag=policy.acceptable_recovery_lag,
            learner_source=source.value
            if isinstance(source, LearnerSource)
            else ("" if before is None else before.learner_source),
            standby_replicas=max(standbys, default=None if before is None else before.standby_replicas),
            stabilization_seconds=policy.stabilization_window.total_seconds(),
            timeout_seconds=policy.timeout.total_seconds(),
            scale_down_policy=policy.scale_down.value,
            paused=look.snapshot.app.paused,
            dry_run=look.snapshot.app.dry_run,
        )

    def _sampled(
        self, look: Look, placement: MemberPlacement | None, reports: Mapping[Ordinal, AgentReport]
    ) -> Iterator[Record]:
        task_set = look.snapshot.task_set
        if placement is None or not isinstance(task_set, TaskSet):
            return
        if not self._is_news(look.snapshot, has_agents=bool(reports)):
            return
        if reports:
            self._makes_learners = all(one.is_ours and one.standby_replicas == 0 for one in reports.values())
        seen = copies(look.snapshot, placement, look.policy.timing, makes_learners=self._makes_learners)
        if seen is None:
            return
        limit = look.policy.acceptable_recovery_lag
        for taken in self._sampler.choose(seen, limit, partial(position, task_set=task_set)):
            yield lines.sample_line(self.head, taken, end_of(taken.copy, taken.position, task_set), self._epoch)

    def _is_news(self, snapshot: Snapshot, *, has_agents: bool) -> bool:
        """Whether copies are to be looked at: between two joins a group tells nothing new of them but that they are."""
        rebalance = None if snapshot.latest is None else snapshot.latest.rebalance
        told = (self._epoch, rebalance, None if rebalance is None else rebalance.ends)
        before = self._looked_at_copies
        is_same = told[0] == before[0] and all(a is b for a, b in zip(told[1:], before[1:], strict=True))
        rests = abs(snapshot.now - self._sampled_at) < LOOK_AGAIN and not self._sampler.has_more
        if is_same and rests and not has_agents:
            return False
        self._looked_at_copies, self._sampled_at = told, snapshot.now
        return True


def _attribution(snapshot: Snapshot) -> MemberPlacement | None:
    latest = snapshot.latest
    if latest is None or not places.shows_layout(latest) or not isinstance(latest.group, GroupDescription):
        return None
    return place_members(latest.group, snapshot.workload)


def _threads(snapshot: Snapshot) -> int | None:
    latest = snapshot.latest
    if latest is None or not places.shows_layout(latest) or not isinstance(latest.group, GroupDescription):
        return None
    return len(latest.group.members)


def _milliseconds(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // datetime.resolution // 1000
