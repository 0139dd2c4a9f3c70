"""Reports the result of a reconcile: in the status, as Events, in the log, and in the metrics.

Called by `reconciler` at the end of every reconcile. Events and log lines report changes only.
"""

from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from streamapp.api.insight import AppInsight
from streamapp.api.status.conditions import said
from streamapp.api.status.throttle import is_worth_writing
from streamapp.api.status.translate import status_after_raise, status_of
from streamapp.api.v1alpha1.status import DowntimeStatus
from streamapp.controller.apps.memory import Memory
from streamapp.controller.metrics import CANCELLED, REMOVED, Metrics
from streamapp.controller.reconcile.downtime import DowntimeLedger
from streamapp.controller.reconcile.forecasts import Forecasts
from streamapp.controller.reconcile.gather import Gathered, ReplicaFacts
from streamapp.core.actions.decision import Answer, Condition, Decision, Event, Verdict
from streamapp.core.evidence.agent_views import fresh
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.hold_record import Hold, HoldRecord
from streamapp.core.facts.policy import Timing
from streamapp.core.facts.snapshot import Raise, Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.gates.candidates import RemovalKind
from streamapp.core.reasons import Reason
from streamapp.core.status.events import event_of
from streamapp.core.status.gaps import Gap, GapUnknown, seen_by_agents, worst_gap
from streamapp.flightrecord.changes import Look
from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.kinds import Key
from streamapp.kube.objects import events, status

log = structlog.get_logger()

REMOVAL_REASONS = (
    *(kind.reason for kind in RemovalKind),
    *(Reason.OverriddenByUser, Reason.OverriddenByPolicy, Reason.OverriddenByTimeout),
)
"""For which pods are removed."""


class Reporter:
    """Reports for all applications; remembers what it logged last of each."""

    def __init__(
        self,
        client: KubeClient,
        metrics: Metrics,
        instance: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        insight_of: Callable[[Key, str], AppInsight | None] = lambda _key, _uid: None,
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._instance = instance
        self._now = now
        self._insight_of = insight_of
        self._logged: dict[Key, tuple[Verdict, str]] = {}
        self._holds: dict[Key, Hold] = {}
        """The hold of each application, as last reported."""
        self._unreadable: dict[Key, datetime] = {}
        """Since when the hold record of each application cannot be read."""
        self._shown: dict[Key, Memory] = {}
        """Whose age of the group is shown."""
        self._answers: dict[Key, dict[str, Answer]] = {}
        """The answer of each condition, by its type, as last measured: three series each, which seldom change."""
        self._succeeded_at: dict[Key, datetime] = {}
        """When each application was last reconciled without an error; before that, when it was first tried."""
        self.forecasts = Forecasts(metrics, now)
        """Predictions of changes, and what became of them."""
        self.downtime = DowntimeLedger(metrics)

    async def report(
        self,
        gathered: Gathered,
        decision: Decision,
        look: Look,
        news: Collection[Event] | None,
        *,
        done: bool,
    ) -> None:
        """Report a decision, and the pass that made it as the record keeps it.

        Args:
            gathered: What the decision rests on.
            decision: The decision.
            look: The pass.
            news: The Events to send; None: none is sent now, nor a warning.
            done: Whether every step of the plan succeeded.
        """
        self._measure(gathered, decision)
        self._measure_ends(gathered, decision, look.gap)
        changed = self._log(gathered, decision)
        await self._write_status(gathered, decision, look.gap, self.downtime.note(gathered.key, look))
        if news is not None:
            await self._publish(gathered, decision, news, changed=changed)
        if done:
            self.expect_success(gathered.key)
            self._succeeded_at[gathered.key] = succeeded_at = self._now()
            self._metrics.last_success.labels(gathered.key.namespace, gathered.key.name).set(succeeded_at.timestamp())

    def expect_success(self, key: Key) -> None:
        """Show from now on how old the last success is when Prometheus asks, also while there was none yet.

        Removals are counted from now on, too: Prometheus sees no rise where a series begins.
        """
        if key in self._succeeded_at:
            return
        self._succeeded_at[key] = self._now()
        for reason in REMOVAL_REASONS:
            self._metrics.removed.labels(key.namespace, key.name, reason.name)

        def age() -> float:
            return (self._now() - self._succeeded_at[key]).total_seconds()

        self._metrics.last_success_age.labels(key.namespace, key.name).set_function(age)

    async def report_raise(self, facts: ReplicaFacts, raised: Raise, unread: str) -> None:
        """Report a raise that was made in a pass which could read nothing else; `unread` says what and why."""
        key, memory, now = facts.key, facts.application.memory, facts.read_at
        metrics, labels = self._metrics, (key.namespace, key.name)
        metrics.replicas.labels(*labels, "desired").set(facts.app.desired.replicas)
        metrics.replicas.labels(*labels, "current").set(raised.to_replicas)
        published = events_of(raised)
        if raised.cancelled_hold is not None:
            self._count_end(key, CANCELLED, now)
        self._logged[key] = (Verdict.GROW, Reason.Growing.name)
        log.info("raised", app=str(key), replicas=published[0].detail, unread=unread)
        new = status_after_raise(facts.streamapp.status, raised, unread, now)
        if new is not None:
            await status.write(self._client, facts.resource, new)
            memory.status_written_at = now
        await self._send_events(published, facts.resource, memory, now)

    def forget(self, key: Key) -> None:
        """Drop the state of a deleted application."""
        for remembered in (self._logged, self._holds, self._unreadable, self._shown, self._succeeded_at, self._answers):
            remembered.pop(key, None)
        self.forecasts.forget(key)
        self.downtime.forget(key)
        self._metrics.forget(key.namespace, key.name)

    def _log(self, gathered: Gathered, decision: Decision) -> bool:
        latest = (decision.verdict, decision.reason.name)
        changed = self._logged.get(gathered.key) != latest
        if changed:
            self._logged[gathered.key] = latest
            log.info(
                "decision",
                app=str(gathered.key),
                verdict=decision.verdict.value,
                reason=decision.reason.name,
                message=decision.message,
                desired=gathered.snapshot.app.desired.replicas,
                current=_granted(gathered),
                plan=[type(step).__name__ for step in decision.plan],
                withheld=[type(step).__name__ for step in decision.withheld],
            )
        return changed

    async def _write_status(
        self, gathered: Gathered, decision: Decision, gap: Gap | GapUnknown | None, downtime: DowntimeStatus | None
    ) -> None:
        memory, now = gathered.application.memory, gathered.snapshot.now
        insight = self._insight_of(gathered.key, gathered.snapshot.app.uid)
        previous = gathered.streamapp.status
        new = status_of(gathered.streamapp, decision, gathered.snapshot, previous, gap, downtime, insight)
        old: dict[str, Any] = gathered.live.app.get("status", {})
        if decision.closed_step is not None:
            log.info("step completed", app=str(gathered.key), step=str(decision.closed_step), gap=str(gap))
        if is_worth_writing(old, new, memory.status_written_at, now):
            await status.write(self._client, gathered.live.app, new)
            memory.status_written_at = now

    async def _publish(self, gathered: Gathered, decision: Decision, news: Collection[Event], *, changed: bool) -> None:
        memory, now = gathered.application.memory, gathered.snapshot.now
        to_publish = list(news)
        if changed and decision.verdict in {Verdict.STALLED, Verdict.PAUSED}:
            to_publish.append(Event(decision.reason, decision.detail))
        to_publish += (warning for warning in decision.warnings if warning not in memory.active_warnings)
        memory.active_warnings = frozenset(decision.warnings)
        await self._send_events(to_publish, gathered.live.app, memory, now)

    async def _send_events(self, to_publish: Iterable[Event], resource: Json, memory: Memory, now: datetime) -> None:
        for count, event in enumerate(event for event in to_publish if memory.not_yet_reported(event, now)):
            is_warning = event.reason.row.is_warning
            await events.publish(
                self._client,
                resource,
                reason=event_of(event.reason),
                note=said(event.reason, event.detail, with_next_step=is_warning),
                warning=is_warning,
                at=now + count * timedelta(microseconds=1),
                instance=self._instance,
            )

    def _measure(self, gathered: Gathered, decision: Decision) -> None:
        metrics, labels = self._metrics, (gathered.key.namespace, gathered.key.name)
        workload, now = gathered.snapshot.workload, gathered.snapshot.now
        counts = {
            "desired": gathered.snapshot.app.desired.replicas,
            "current": _granted(gathered),
            "actual": len(workload.pods),
            "ready": workload.ready,
        }
        for kind, count in counts.items():
            metrics.replicas.labels(*labels, kind).set(count)
        since = self._held_since(gathered.key, decision, now)
        metrics.hold_seconds.labels(*labels).set(0 if since is None else (now - since).total_seconds())
        metrics.waiting_tasks.labels(*labels).set(len(decision.waiting_for))
        metrics.converged.labels(*labels).set(decision.convergence.is_converged)
        if decision.convergence.remaining_lag is None:
            metrics.remaining_lag.remove_by_labels(dict(zip(("namespace", "name"), labels, strict=True)))
        else:
            metrics.remaining_lag.labels(*labels).set(decision.convergence.remaining_lag)
        self._measure_conditions(gathered.key, decision.conditions)
        self._measure_group(gathered)

    def _measure_conditions(self, key: Key, conditions: Iterable[Condition]) -> None:
        """Show each condition whose answer is another one than at the last pass."""
        shown = self._answers.setdefault(key, {})
        for condition in conditions:
            if shown.get(condition.type) is condition.status:
                continue
            shown[condition.type] = condition.status
            for answer in Answer:
                is_so = condition.status is answer
                self._metrics.condition.labels(key.namespace, key.name, condition.type, answer.value).set(is_so)

    def _held_since(self, key: Key, decision: Decision, now: datetime) -> datetime | None:
        """Since when the operator holds a scale-down; what a user holds waits for that user, and alarms nobody."""
        if decision.reason is Reason.HeldByUser:
            return None
        hold = decision.record.hold if isinstance(decision.record, HoldRecord) else None
        return self._unreadable_since(key, decision, now) if hold is None else hold.since

    def _unreadable_since(self, key: Key, decision: Decision, now: datetime) -> datetime | None:
        """When this process first found the hold record unreadable; None where it is not."""
        if decision.reason is not Reason.HoldRecordUnreadable:
            self._unreadable.pop(key, None)
            return None
        return self._unreadable.setdefault(key, now)

    def _measure_group(self, gathered: Gathered) -> None:
        """Show the age of the last successful reading as it is when Prometheus asks: no pass may come for long."""
        key, memory = gathered.key, gathered.application.memory
        labels = (key.namespace, key.name)
        began_at = gathered.snapshot.now

        def age() -> float:
            return (self._now() - (memory.group_read_at or began_at)).total_seconds()

        if self._shown.get(key) is not memory:
            self._shown[key] = memory
            self._metrics.group_read_age.labels(*labels).set_function(age)

    def _measure_ends(self, gathered: Gathered, decision: Decision, gap: Gap | GapUnknown | None) -> None:
        """Count holds and steps that have ended."""
        key, now = gathered.key, gathered.snapshot.now
        hold = decision.record.hold if isinstance(decision.record, HoldRecord) else None
        before = self._holds.get(key)
        if before is not None and (hold is None or hold.id != before.id):
            is_cancelled = any(event.reason is Reason.HoldCancelled for event in decision.events)
            self._count_end(key, CANCELLED if is_cancelled else REMOVED, now)
        if hold is not None:
            self._holds[key] = hold
        if isinstance(gap, Gap):
            self._metrics.gaps.observe(gap.at_most.total_seconds())

    def _count_end(self, key: Key, outcome: str, now: datetime) -> None:
        """Count the hold that was last reported as ended."""
        before = self._holds.pop(key, None)
        if before is not None:
            self._metrics.hold_durations.labels(outcome).observe((now - before.since).total_seconds())


def _granted(gathered: Gathered) -> int:
    statefulset = gathered.snapshot.workload.statefulset
    return 0 if statefulset is None else statefulset.replicas


def events_of(raised: Raise) -> tuple[Event, ...]:
    """Give the Events of a raise: the raise, and the end of the hold that it cancelled."""
    growing = Event(Reason.Growing, f"{raised.from_replicas} to {raised.to_replicas}")
    ended = raised.cancelled_hold
    return (growing,) if ended is None else (growing, Event(Reason.HoldCancelled, f"hold {ended}"))


def note_running(memory: Memory, snapshot: Snapshot, timing: Timing) -> None:
    """Remember which pods run which tasks of a group of the streams protocol, by the agents that this pass heard."""
    group = None if snapshot.latest is None else snapshot.latest.group
    is_streams = isinstance(group, GroupDescription) and group.streams is not None
    reports = fresh(snapshot, timing) if is_streams else {}
    if reports and isinstance(snapshot.task_set, TaskSet):
        is_complete = all(pod.ordinal in reports for pod in snapshot.workload.pods if pod.is_running)
        memory.record_running(seen_by_agents(reports, snapshot.task_set.ids, is_complete=is_complete))


def gap_seen(gathered: Gathered, decision: Decision) -> Gap | GapUnknown | None:
    """Return the downtime of the step that this decision completes, from the last reading before the step."""
    step, task_set = decision.closed_step, gathered.snapshot.task_set
    if step is None or not isinstance(task_set, TaskSet):
        return None
    looks = gathered.application.memory.running_samples
    before = [look for look in looks if look.at <= step.granted_at]
    since = [*before[-1:], *(look for look in looks if look.at > step.granted_at)]
    return worst_gap(since, task_set.ids) if before else None
