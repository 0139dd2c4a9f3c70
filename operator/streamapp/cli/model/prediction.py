"""What new desired replicas would cause, by the model of the assignors: moves, learners, rebalances, time. Pure.

The layout is the operator's task table. What neither it nor the resource says is assumed, and assumptions are named.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from streamapp.api.http.messages import Task as TaskTold
from streamapp.api.http.messages import Tasks
from streamapp.api.validation.parse import StreamApp
from streamapp.cli.errors import CliError
from streamapp.cli.model.app_view import AppView
from streamapp.core.assignors.group import Copy, Task
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from streamapp.core.facts.policy import LearnerSource
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.simulator.learner.draft import Announcement, LearnerSettings, Leaving
from streamapp.simulator.rounds import Assignor, Pace, Play, learner_assignor, moved, play, stock_assignor, worst_share
from streamapp.simulator.sizes import even_sizes, nearest_even
from streamapp.simulator.stock import Release, StockSettings
from streamapp.simulator.world import Instance, Rates, World

STOCK, LEARNER = "stock", "learner"
SLOW_RESTORE, FAST_RESTORE = 80_000, 200_000
"""Records a second of one process: what the lab measured."""
MOST_WORK = 20_000_000
"""Tasks times pods times rebalances of one play: about a minute."""
FEWEST_ROUNDS = 20
UNKNOWN_RECORDS = 1_000_000
"""Stands for an unknown size, so that moves and rebalances can be counted; no time is given then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What the user can set, since neither the operator nor the resource knows it."""

    assignor: str | None = None
    """None: by the learner source of the status."""
    kafka_version: str = "4.2.1"
    standbys: int | None = None
    """None: as many as most tasks have now."""
    warmups: int = 2
    probing_seconds: int = 600
    threads: int = 1
    restore: tuple[int, int] = (SLOW_RESTORE, FAST_RESTORE)
    """Records a second of one process, slowest and fastest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one assignor makes of the change."""

    assignor: str
    is_chosen: bool
    """Whether the application uses it, as far as known."""
    moves: int
    """Stateful tasks that end on another pod."""
    needless: int
    """Those of them whose pod stays, beyond what an even distribution needs."""
    learners: int
    """Copies that are made on the way."""
    rebalances: int
    seconds: tuple[float, float] | None
    """Fastest and slowest; None if the sizes of the changelogs are not known."""
    worst: int
    """The most stateful tasks that one pod runs on the way."""
    cold: int
    """Tasks that start without a caught-up copy, so that their users wait."""
    is_over: bool
    """False if the play was cut off: there were too many rebalances, or copies never catch up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The outcomes for one change of the desired replicas."""

    name: str
    current: int
    to: int
    stateful: int
    outcomes: tuple[Outcome, ...]
    even: tuple[int | None, int | None]
    """The nearest even sizes below and above."""
    assumed: tuple[str, ...]


def predict(view: AppView, table: Tasks, to: int, given: Assumptions, *, compares: bool) -> Prediction:
    """Play the change; CliError if the layout is not known well enough, or nothing would remain."""
    current = _require_known(view, table, to)
    chosen = given.assignor or (LEARNER if view.status.learner_source is LearnerSource.ON_DEMAND else STOCK)
    standbys = _usual_copies(table.tasks) if given.standbys is None and chosen == STOCK else given.standbys or 0
    layout = _Layout(view, table, current, to, replace(given, standbys=standbys))
    names = (chosen, *(name for name in (STOCK, LEARNER) if name != chosen)) if compares else (chosen,)
    tasks = layout.world.tasks
    return Prediction(
        name=view.name,
        current=current,
        to=to,
        stateful=len(layout.world.ends),
        outcomes=tuple(layout.outcome(name, is_chosen=name == chosen) for name in names),
        even=nearest_even(even_sizes(tasks, standbys), to),
        assumed=tuple(_assumed(layout, view)),
    )


def _require_known(view: AppView, table: Tasks, to: int) -> int:
    what, current = f"StreamApp {view.name}", view.status.stateful_set_replicas
    if to < 1:
        raise CliError(what, "with no replica nothing remains that could run a task", "plan for at least 1")
    if current is None or not table.tasks:
        why = table.doubt or "the status does not show the current replicas yet"
        raise CliError(what, f"its layout is not known: {why}", "try again when the group is stable")
    unplaced = [task.task for task in table.tasks if task.owner is not None and task.owner.ordinal is None]
    if unplaced:
        step = f"`kubectl streamapp doctor {view.streamapp.metadata.name}` finds the cause"
        raise CliError(what, f"the pod of task {unplaced[0]} is not known", step)
    return current


def _usual_copies(tasks: Sequence[TaskTold]) -> int:
    """As many standbys as most stateful tasks have."""
    counts = sorted(sum(copy.role != "active" for copy in task.copies) for task in tasks if task.stateful)
    return counts[len(counts) // 2] if counts else 0


class _Layout:
    """The application as it runs, in the values of the model."""

    def __init__(self, view: AppView, table: Tasks, current: int, to: int, given: Assumptions) -> None:
        self.given, self._current, self._to = given, current, to
        self._limit = table.limit if table.limit is not None else 10_000
        self.is_triggered = not isinstance(view.streamapp, StreamApp) or (
            view.streamapp.spec.learners.trigger_rebalance
        )
        uid = view.streamapp.metadata.uid
        known = {one.ordinal: one.process_id for one in view.status.members if one.process_id is not None}
        self.processes = {
            ordinal: ProcessId.parse(known[ordinal]) if ordinal in known else seeded_process_id(uid, Ordinal(ordinal))
            for ordinal in range(max(current, to))
        }
        self.unknown_sizes = sum(task.stateful and task.records is None for task in table.tasks)
        self.unknown_lags = sum(
            copy.lag is None for task in table.tasks for copy in task.copies if copy.role != "active"
        )
        self.world = self._world(table.tasks, current)

    def _world(self, told: Sequence[TaskTold], current: int) -> World:
        tasks = {TaskId.parse(one.task): one for one in told}
        ends = {
            task: float(UNKNOWN_RECORDS if one.records is None else one.records)
            for task, one in tasks.items()
            if one.stateful
        }
        instances = [self._instance(ordinal, tasks, ends) for ordinal in range(current)]
        return World(
            tasks=tuple(Task(task, one.stateful) for task, one in tasks.items()),
            ends=ends,
            instances={one.process: one for one in instances},
        )

    def _instance(self, ordinal: int, tasks: Mapping[TaskId, TaskTold], ends: Mapping[TaskId, float]) -> Instance:
        actives = {task for task, one in tasks.items() if one.owner is not None and one.owner.ordinal == ordinal}
        positions: dict[TaskId, float] = {}
        for task, one in tasks.items():
            for copy in one.copies:
                if copy.ordinal == ordinal:
                    lag = copy.lag if copy.lag is not None else (0 if copy.role == "active" else ends[task])
                    positions[task] = max(0.0, ends[task] - lag)
        return Instance(
            process=self.processes[ordinal],
            threads=self.given.threads,
            actives=frozenset(actives),
            standbys=frozenset(positions) - actives,
            positions=positions,
        )

    def outcome(self, assignor: str, *, is_chosen: bool) -> Outcome:
        """Play it with the slowest and with the fastest restore."""
        slow, fast = (self._plays(assignor, restore) for restore in self.given.restore)
        rounds = [one for played in slow for one in played.rounds]
        before, after = self.world.owners(), slow[-1].world.owners()
        stateful = frozenset(self.world.ends)
        moves = moved({task: owner for task, owner in before.items() if task in stateful}, after)
        return Outcome(
            assignor=assignor,
            is_chosen=is_chosen,
            moves=len(moves),
            needless=max(0, len(moves) - self._least()),
            learners=len({copy for one in rounds for copy in one.wanted.learners}),
            rebalances=len(rounds),
            seconds=None if self.unknown_sizes else (self._seconds(fast, -1), self._seconds(slow, 0)),
            worst=worst_share(rounds, stateful),
            cold=len({copy.task for one in rounds for copy in one.cold}),
            is_over=all(played.is_over for played in slow),
        )

    def _seconds(self, plays: Sequence[Play], speed: int) -> float:
        """From the first rebalance until every task runs, without the operator's own waits."""
        rates = Rates(restore=float(self.given.restore[speed]))
        last = plays[-1].world
        running = [Copy(task, process) for task, process in last.owners().items() if task in last.ends]
        return sum(played.rounds[-1].seconds for played in plays) + last.seconds_until_caught_up(running, 0, rates)

    def _least(self) -> int:
        """Moves that no assignor can avoid: tasks of pods that leave, or an even share for pods that are added."""
        stateful = self.world.ends.keys()
        if self._to <= self._current:
            leaving = {self.processes[ordinal] for ordinal in range(self._to, self._current)}
            return sum(len(self.world.instances[one].actives & stateful) for one in leaving)
        return (len(stateful) // self._to) * (self._to - self._current)

    def _plays(self, assignor: str, restore: int) -> list[Play]:
        pace = Pace(
            rates=Rates(restore=float(restore)),
            acceptable_lag=float(self._limit),
            is_triggered=self.is_triggered,
            most_rounds=max(FEWEST_ROUNDS, MOST_WORK // (len(self.world.tasks) * len(self.processes))),
        )
        if self._to >= self._current:
            added = [
                Instance(process=self.processes[ordinal], threads=self.given.threads)
                for ordinal in range(self._current, self._to)
            ]
            return [play(self.world.joined_by(*added), self._assignor(assignor, ()), pace)]
        if assignor == LEARNER:
            return self._empty_and_remove(pace)
        return self._one_by_one(pace)

    def _empty_and_remove(self, pace: Pace) -> list[Play]:
        """All leaving pods are announced, emptied, and removed together."""
        leaving = [self.processes[ordinal] for ordinal in range(self._to, self._current)]
        emptied = play(self.world, self._assignor(LEARNER, leaving), pace)
        return [emptied, play(emptied.world.left_by(leaving), self._assignor(LEARNER, ()), pace)]

    def _one_by_one(self, pace: Pace) -> list[Play]:
        """The highest pod first, and the next when nothing is left to move."""
        world, plays = self.world, list[Play]()
        for ordinal in reversed(range(self._to, self._current)):
            plays.append(play(world.left_by([self.processes[ordinal]]), self._assignor(STOCK, ()), pace))
            world = plays[-1].world
        return plays

    def _assignor(self, name: str, leaving: Iterable[ProcessId]) -> Assignor:
        given, gone = self.given, frozenset(leaving)
        if name == LEARNER:
            announcement = Announcement(state=Leaving.SET if gone else Leaving.EMPTY, leaving=gone)
            settings = LearnerSettings(
                acceptable_lag=self._limit, standbys=given.standbys or 0, balance_learners=given.warmups
            )
            return learner_assignor(settings, announcement)
        stock = StockSettings(
            release=Release.of(given.kafka_version),
            acceptable_recovery_lag=self._limit,
            max_warmup_replicas=given.warmups,
            num_standby_replicas=given.standbys or 0,
        )
        return stock_assignor(stock, given.probing_seconds)


def _assumed(layout: _Layout, view: AppView) -> Iterable[str]:
    given = layout.given
    slow, fast = given.restore
    yield f"{given.threads} stream thread a pod" if given.threads == 1 else f"{given.threads} stream threads a pod"
    yield f"Kafka Streams {given.kafka_version}, no racks, no client tags"
    yield f"max.warmup.replicas {given.warmups}, probing interval {given.probing_seconds} s"
    yield f"num.standby.replicas {given.standbys or 0}"
    yield f"{slow:,} to {fast:,} records a second for each pod that restores, and no new records meanwhile"
    if layout.is_triggered:
        yield "the operator triggers a rebalance when all learners have caught up"
    if layout.unknown_sizes:
        yield f"the sizes of {layout.unknown_sizes:,} changelogs are not known, so no time is given"
    if layout.unknown_lags:
        yield f"the lags of {layout.unknown_lags:,} copies are not known; they count as empty"
    if view.status.learner_source is None:
        yield "the status does not say where copies come from"


def document_of(prediction: Prediction) -> dict[str, Any]:
    """The prediction for programs."""
    below, above = prediction.even
    return {
        "name": prediction.name,
        "from": prediction.current,
        "to": prediction.to,
        "statefulTasks": prediction.stateful,
        "outcomes": [_outcome_document(one) for one in prediction.outcomes],
        "evenReplicas": {name: size for name, size in (("below", below), ("above", above)) if size is not None},
        "assumed": list(prediction.assumed),
    }


def _outcome_document(one: Outcome) -> dict[str, Any]:
    document: dict[str, Any] = {
        "assignor": one.assignor,
        "chosen": one.is_chosen,
        "moves": one.moves,
        "needlessMoves": one.needless,
        "learners": one.learners,
        "rebalances": one.rebalances,
        "worstShare": one.worst,
        "cold": one.cold,
        "converges": one.is_over,
    }
    if one.seconds is not None:
        fastest, slowest = one.seconds
        document["secondsLeast"], document["secondsMost"] = round(fastest, 1), round(slowest, 1)
    return document


def time_left(one: Outcome) -> tuple[timedelta, timedelta] | None:
    """Fastest and slowest, as durations."""
    return None if one.seconds is None else (timedelta(seconds=one.seconds[0]), timedelta(seconds=one.seconds[1]))
