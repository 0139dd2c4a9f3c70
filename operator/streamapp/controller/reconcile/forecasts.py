"""Predicts each change of the desired replicas when it begins, and compares the prediction with what was seen.

Called by `reconciler` in each pass, before the record is written. Nothing depends on it: a prediction is made in a
thread, a failing one is logged and left out, and a large application gets none. Nor does a streams group whose brokers
assign in a way that is not modelled.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog

from streamapp.api.validation.parse import StreamApp
from streamapp.controller.metrics import Metrics
from streamapp.controller.reconcile.gather import Gathered
from streamapp.core.actions.decision import Decision
from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.agent_reports import Rebalance
from streamapp.core.facts.group import FollowUp, GroupDescription, GroupState
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import Direction, Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.status.task_table import task_table
from streamapp.kube.client.kinds import Key
from streamapp.simulator.forecast.basis import Given, Known, basis
from streamapp.simulator.forecast.comparison import Finished, Forecast, Result, compared, superseded
from streamapp.simulator.forecast.outcome import outcome
from streamapp.simulator.forecast.running import BrokerAssignorUnknownError, running

log = structlog.get_logger()

MOST_SIZE = 20_000
"""Tasks times pods: a larger application is not predicted here, since the thread would slow the passes of all."""
ForecastNews = Forecast | Finished


@dataclass(frozen=True, slots=True)
class _Settled:
    """The last look at an application in which nothing moved."""

    snapshot: Snapshot
    policy: ScalingPolicy
    known: Known


@dataclass(frozen=True, slots=True)
class _Sight:
    """What one pass shows of the group."""

    at: datetime
    replicas: int
    members: frozenset[str]
    owners: dict[TaskId, int]
    """The ordinal of each stateful task."""

    def differs(self, other: "_Sight") -> bool:
        """Whether anything but the time differs."""
        return (self.replicas, self.members, self.owners) != (other.replicas, other.members, other.owners)


@dataclass(slots=True)
class _Change:
    """A change that goes on."""

    opened_at: datetime
    to: int
    forecasting: "asyncio.Task[Forecast | None]"
    is_told: bool = False
    last: _Sight | None = None
    last_change: datetime | None = None


@dataclass(slots=True)
class _App:
    """What is remembered of one application."""

    uid: str
    settled: _Settled | None = None
    change: _Change | None = None


@dataclass(slots=True)
class Forecasts:
    """The predictions of all applications."""

    metrics: Metrics
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _apps: dict[Key, _App] = field(default_factory=dict)
    _executor: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "forecast"))
    """One thread for all applications, and none of those that passes wait for."""

    def note(self, gathered: Gathered, decision: Decision) -> tuple[ForecastNews, ...]:
        """Give the predictions that were made, and those that were compared, since the last pass; never fails."""
        try:
            return self._note(gathered, decision)
        except Exception:
            # The pass matters and a prediction does not: what was remembered is dropped with its fault.
            log.exception("no forecast", app=str(gathered.key))
            self.forget(gathered.key)
            return ()

    def _note(self, gathered: Gathered, decision: Decision) -> tuple[ForecastNews, ...]:
        uid = gathered.snapshot.app.uid
        app = self._apps.get(gathered.key)
        if app is None or app.uid != uid:
            app = self._apps[gathered.key] = _App(uid)
        desired = gathered.snapshot.app.desired.replicas
        news: list[ForecastNews] = []
        if app.change is not None:
            news += self._follow(app, app.change, gathered, decision)
        if app.change is None:
            self._rest(app, gathered, decision, desired)
        return tuple(news)

    def forget(self, key: Key) -> None:
        """Drop what is known of an application that is gone."""
        self._apps.pop(key, None)

    def _rest(self, app: _App, gathered: Gathered, decision: Decision, desired: int) -> None:
        """Begin a change from the last settled look, or take this one as settled."""
        settled = app.settled
        before = None if settled is None else settled.snapshot.app.desired.replicas
        if settled is not None and before is not None and before != desired:
            app.settled = None
            if desired > 0 and not gathered.snapshot.app.dry_run:
                opened_at = gathered.snapshot.app.desired.history[-1].at
                task = asyncio.ensure_future(self._forecast(gathered.key, settled, opened_at, desired))
                app.change = _Change(opened_at, desired, task)
        elif is_settled(gathered.snapshot, decision):
            app.settled = _Settled(gathered.snapshot, gathered.policy, _known(gathered, decision))

    def _follow(self, app: _App, change: _Change, gathered: Gathered, decision: Decision) -> list[ForecastNews]:
        news: list[ForecastNews] = []
        if not change.forecasting.done():
            return news
        forecast = change.forecasting.result()
        if forecast is None:
            app.change = None
            return news
        if not change.is_told:
            change.is_told = True
            news.append(forecast)
        sight = _sight(gathered.snapshot, decision.placement)
        if sight is not None:
            if change.last is None or sight.differs(change.last):
                change.last_change = sight.at
            change.last = sight
        finished = None
        if gathered.snapshot.app.desired.replicas != change.to:
            finished = superseded(forecast, gathered.snapshot.now)
        elif sight is not None and change.last_change is not None and is_settled(gathered.snapshot, decision):
            finished = compared(forecast, gathered.snapshot.now, change.last_change, sight.owners)
        if finished is not None:
            app.change = None
            self._learn(gathered, finished)
            news.append(finished)
        return news

    def _learn(self, gathered: Gathered, finished: Finished) -> None:
        """Set the metrics, and remember what the change took beside its rebalances."""
        labels = (gathered.key.namespace, gathered.key.name)
        self.metrics.forecasts.labels(*labels, finished.result.value).inc()
        if finished.result is Result.SUPERSEDED:
            return
        self.metrics.forecast_wrong_moves.labels(*labels).set(len(finished.wrong))
        if finished.error is not None:
            self.metrics.forecast_error.labels(*labels).set(finished.error)
        if finished.pause is not None:
            memory, forecast = gathered.application.memory, finished.forecast
            direction = Direction.of(forecast.from_replicas, forecast.to_replicas)
            memory.speeds = memory.speeds.with_pause(direction, finished.pause)

    async def _forecast(self, key: Key, settled: _Settled, opened_at: datetime, to: int) -> Forecast | None:
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._executor, _made, settled, opened_at, to, self.now)
        except Exception:
            # A prediction must never end a pass; without one the change has none.
            log.exception("no forecast", app=str(key))
            return None


def _made(settled: _Settled, opened_at: datetime, to: int, now: Callable[[], datetime]) -> Forecast | None:
    """Predict from the settled look; runs in a thread, on immutable values."""
    snapshot = settled.snapshot
    table = task_table(snapshot, settled.policy)
    statefulset = snapshot.workload.statefulset
    if isinstance(table, Refusal) or statefulset is None:
        return None
    if len(table.rows) * max(to, statefulset.replicas) > MOST_SIZE:
        return None
    try:
        app = running(table, statefulset.replicas, to, snapshot.app.uid)
    except BrokerAssignorUnknownError:
        return None  # no number is better than one of another assignor
    rests_on = basis(app, table.speeds, settled.known, Given())
    found = outcome(app, to, rests_on.settings, rests_on.restore, rests_on.pauses, rests_on.gap)
    ordinals = app.ordinals()
    owners = {task: ordinals[owner] for task, owner in app.world.owners().items() if task in app.world.ends}
    return Forecast(
        made_at=now(),
        opened_at=opened_at,
        from_replicas=statefulset.replicas,
        to_replicas=to,
        outcome=found,
        owners=owners,
    )


def _known(gathered: Gathered, decision: Decision) -> Known:
    app = gathered.streamapp
    is_eager = isinstance(app, StreamApp) and app.spec.learners.rebalance is Rebalance.EAGER
    return Known(
        is_on_demand=decision.source.source is LearnerSource.ON_DEMAND,
        is_eager=is_eager,
        is_triggered=gathered.policy.trigger_rebalance,
        stabilization_seconds=gathered.policy.stabilization_window.total_seconds(),
    )


def is_settled(snapshot: Snapshot, decision: Decision) -> bool:
    """Whether every pod is in the group, every task runs, and nothing is scheduled to move."""
    workload, record = snapshot.workload, decision.record
    replicas = 0 if workload.statefulset is None else workload.statefulset.replicas
    is_busy = isinstance(record, HoldRecord) and (record.hold is not None or record.step is not None)
    if is_busy or not decision.convergence.is_settled or replicas != snapshot.app.desired.replicas:
        return False
    group = _group(snapshot)
    if group is None or decision.placement is None or len(workload.pods) != replicas:
        return False
    present = decision.placement.by_ordinal.keys()
    done = all(one.assignment is not None and one.assignment.follow_up is FollowUp.NONE for one in group.members)
    return done and present == set(range(replicas))


def _group(snapshot: Snapshot) -> GroupDescription | None:
    """The group of the newest reading, if it is stable and decoded."""
    group = None if snapshot.latest is None else snapshot.latest.group
    if not isinstance(group, GroupDescription) or group.state is not GroupState.STABLE or not group.is_decoded:
        return None
    return group


def _sight(snapshot: Snapshot, placement: MemberPlacement | None) -> _Sight | None:
    group, task_set = _group(snapshot), snapshot.task_set
    if group is None or placement is None or snapshot.latest is None or not isinstance(task_set, TaskSet):
        return None
    owners = {
        task: int(ordinal)
        for ordinal, members in placement.by_ordinal.items()
        for member in members
        if member.assignment is not None
        for task in member.assignment.active & task_set.stateful_ids
    }
    replicas = 0 if snapshot.workload.statefulset is None else snapshot.workload.statefulset.replicas
    return _Sight(snapshot.latest.ended_at, replicas, group.member_ids, owners)
