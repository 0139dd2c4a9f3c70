"""What a change of the replicas causes: which tasks move where, in how many rounds, and how uneven it is on the way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from streamapp.core.assignors.group import Copy
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.core.facts.snapshot import Direction
from streamapp.simulator.forecast.change import Brokers, Settings, plays, removals
from streamapp.simulator.forecast.places import Places, possible_places
from streamapp.simulator.forecast.running import Running
from streamapp.simulator.forecast.streams_change import handover_gap, streams_plays
from streamapp.simulator.forecast.times import GAP_SECONDS, HandoverGap, Pauses, Spread, TimedPlays
from streamapp.simulator.rounds import Cause, Play, Round, moved, worst_share


@dataclass(frozen=True, slots=True)
class TaskMove:
    """A stateful task that ends on another pod."""

    task: TaskId
    source: int
    """Ordinal."""
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One rebalance of the change."""

    seconds: float
    """Since the members of the group changed for the first time, at the median restore rate."""
    cause: Cause
    active: Mapping[int, frozenset[TaskId]]
    """By ordinal, what each pod gets."""
    copies: Mapping[int, frozenset[TaskId]]
    """By ordinal; standbys, warm-ups and learners."""
    waiting: int
    """Tasks that have no owner until the next rebalance, or start without a caught-up copy."""


@dataclass(frozen=True, slots=True)
class Range:
    """A number in all ways that were played."""

    fewest: int
    most: int

    @classmethod
    def of(cls, numbers: Sequence[int]) -> "Range":
        """Of at least one way."""
        return cls(min(numbers), max(numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """What nobody can know of a change that brokers assign, since IDs and the order of members decide it."""

    played: int
    moves: Range
    cold: Range
    worst: Range
    uncertain: Places
    """Of each stateful task that can end on one of several pods, these pods."""
    standbys: int
    """The most standbys of a task meanwhile."""
    at_rest: int
    """Those afterwards."""
    raises: int
    """How often the operator raises the standbys of the group for the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one assignor makes of the change; where brokers assign, in the first way that was played."""

    assignor: str
    to: int
    moves: tuple[TaskMove, ...]
    needless: int
    """Moves of tasks whose pod stays, beyond what an even distribution needs."""
    learners: int
    """Copies that are made on the way."""
    copied: float
    """Records that they and cold tasks read."""
    copied_bytes: float | None
    steps: tuple[Step, ...]
    worst: int
    """The most stateful tasks that one pod runs on the way."""
    cold: int
    """Tasks that start without a caught-up copy, so that their users wait."""
    double_work: float
    """Task-seconds in which a learner repeats the work of a running task, at the median restore rate."""
    removals: int
    """Steps that are made one after the other."""
    pause: float
    """Of the median of the seconds, those that are not rebalances and restoring."""
    seconds: Spread | None
    """From the change of the desired replicas until every task runs where it ends; None: sizes are not known."""
    gap: Spread | None
    """The longest time that the users of a moved task wait; None: sizes are not known."""
    is_over: bool
    """False if the play was cut off: there were too many rebalances, or copies never catch up."""
    standbys: int = 0
    """Of each task, by the settings."""
    ways: Ways | None = None
    """None where the members of the group assign: then there is one way. Else times are of all ways."""

    @property
    def rebalances(self) -> int:
        """How often tasks are assigned; brokers assign once and hand over what is given up later."""
        if self.ways is None:
            return len(self.steps)
        return sum(step.cause in {Cause.MEMBERSHIP, Cause.STANDBYS} for step in self.steps)

    @property
    def most_cold(self) -> int:
        """Tasks that start without a caught-up copy in the worst way."""
        return self.cold if self.ways is None else self.ways.cold.most

    @property
    def places(self) -> dict[TaskId, frozenset[int]]:
        """Where each task can end, in any way."""
        known = {task: frozenset({ordinal}) for task, ordinal in self.owners.items()}
        return known if self.ways is None else {**known, **self.ways.uncertain}

    @property
    def owners(self) -> dict[TaskId, int]:
        """Where each task ends."""
        return {task: ordinal for ordinal, tasks in self.steps[-1].active.items() for task in tasks}


def outcome(app: Running, to: int, settings: Settings, restore: Spread, pauses: Pauses, gap: HandoverGap) -> Outcome:
    """Play the change at the median restore rate, and count what it causes.

    Args:
        app: The application before the change.
        to: Replicas after it.
        settings: How it assigns.
        restore: Records a second of one process.
        pauses: What the operator and Kubernetes take beside the rounds.
        gap: How long the users of a task wait while it is handed over; brokers have their own.
    """
    if settings.brokers is not None:
        return _by_brokers(app, to, settings, settings.brokers, restore, pauses)
    return _counted(app, to, settings, plays(app, to, settings, restore.p50), restore, pauses, GAP_SECONDS[gap])


def _by_brokers(
    app: Running, to: int, settings: Settings, brokers: Brokers, restore: Spread, pauses: Pauses
) -> Outcome:
    """Every way, summed up: numbers of the first one, and ranges over all of them."""
    played = streams_plays(app, to, settings, brokers, restore.p50)
    gap = handover_gap(to > app.current, settings.threads, brokers)
    found = [_counted(app, to, settings, one, restore, pauses, gap) for one in played.by_way]
    ordinals = app.ordinals()
    before = {task: ordinals[name] for task, name in app.world.owners().items() if task in app.world.ends}
    blank = [ordinal for ordinal in range(app.current, to) if not app.kept.get(ordinal)]
    places = possible_places([one.owners for one in found], before, blank)
    ways = Ways(
        played=len(found),
        moves=Range.of([len(one.moves) for one in found]),
        cold=Range.of([one.cold for one in found]),
        worst=Range.of([one.worst for one in found]),
        uncertain={task: pods for task, pods in places.items() if len(pods) > 1},
        standbys=played.standbys,
        at_rest=played.at_rest,
        raises=played.raises,
    )
    return replace(
        found[0],
        seconds=_over([one.seconds for one in found]),
        gap=_over([one.gap for one in found]),
        is_over=all(one.is_over for one in found),
        ways=ways,
    )


def _over(spreads: Sequence[Spread | None]) -> Spread | None:
    """A range that covers those of all ways; None if one is not known."""
    known = [one for one in spreads if one is not None]
    if len(known) < len(spreads):
        return None
    return Spread(min(one.p10 for one in known), median(one.p50 for one in known), max(one.p90 for one in known))


def _counted(
    app: Running, to: int, settings: Settings, played: Sequence[Play], restore: Spread, pauses: Pauses, gap: Spread
) -> Outcome:
    """Count what these plays cause."""
    stateful = frozenset(app.world.ends)
    before = {task: owner for task, owner in app.world.owners().items() if task in stateful}
    after = played[-1].rounds[-1].wanted.owners()
    moves = _moves(app, before, after)
    rounds = [one for one_play in played for one in one_play.rounds]
    cold = {copy for one in rounds for copy in one.cold}
    learners = {copy for one in rounds for copy in one.wanted.learners}
    direction, steps = Direction.of(app.current, to), removals(app.current, to, settings)
    pause, timed = pauses.of(direction), TimedPlays.of(played, restore.p50)
    copied = _copied(app, learners | cold)
    return Outcome(
        assignor=settings.assignor,
        to=to,
        moves=moves,
        needless=max(0, len(moves) - _least(app, to)),
        learners=len(learners),
        copied=copied,
        copied_bytes=None if app.bytes_per_record is None else copied * app.bytes_per_record,
        steps=_steps(app, played),
        worst=worst_share(rounds, stateful),
        cold=len({copy.task for copy in cold}),
        double_work=_double_work(played),
        removals=steps,
        pause=pause.p50 * steps,
        seconds=None if app.unknown_sizes else timed.seconds(restore, pause, steps, pauses.before(direction)),
        gap=None if app.unknown_sizes else _gap(app, bool(moves), cold, restore, gap),
        is_over=all(one.is_over for one in played),
        standbys=settings.standbys,
    )


def _moves(app: Running, before: Mapping[TaskId, ProcessId], after: Mapping[TaskId, ProcessId]) -> tuple[TaskMove, ...]:
    ordinals = app.ordinals()
    return tuple(
        TaskMove(task, ordinals[before[task]], ordinals[after[task]])
        for task in sorted(moved(before, after))
        if task in after
    )


def _least(app: Running, to: int) -> int:
    """Moves that no assignor can avoid: tasks of pods that leave, or an even share for pods that are added."""
    stateful = app.world.ends.keys()
    if to <= app.current:
        leaving = {app.processes[ordinal] for ordinal in range(to, app.current)}
        return sum(len(app.world.instances[one].actives & stateful) for one in leaving)
    return (len(stateful) // to) * (to - app.current)


def _copied(app: Running, copies: set[Copy]) -> float:
    """What these copies read, from where their volume is before the change."""
    return sum(app.world.ends[task] - app.position(process, task) for task, process in copies)


def _steps(app: Running, played: Sequence[Play]) -> tuple[Step, ...]:
    ordinals, began, steps = app.ordinals(), 0.0, list[Step]()
    for one in played:
        steps += [_step(ordinals, began, round_) for round_ in one.rounds if round_.cause is not Cause.BEHIND]
        began += one.rounds[-1].seconds
    return tuple(steps)


def _step(ordinals: Mapping[ProcessId, int], began: float, one: Round) -> Step:
    active = {ordinals[process]: placed.actives for process, placed in one.given.items()}
    copies = {ordinals[process]: placed.standbys for process, placed in one.given.items()}
    waiting = len(one.revoked) + len({copy.task for copy in one.cold})
    return Step(seconds=began + one.seconds, cause=one.cause, active=active, copies=copies, waiting=waiting)


def _double_work(played: Sequence[Play]) -> float:
    """Learners of each round, for as long as it lasts."""
    total = 0.0
    for one in played:
        for now, then in pairwise(one.rounds):
            total += len(now.wanted.learners) * (then.seconds - now.seconds)
    return total


def _gap(app: Running, has_moves: bool, cold: set[Copy], restore: Spread, base: Spread) -> Spread:
    """A handover, or the restore of the largest cold share of one process."""
    if not has_moves and not cold:
        return Spread(0.0, 0.0, 0.0)
    by_process: dict[ProcessId, float] = {}
    for copy in cold:
        by_process[copy.process] = by_process.get(copy.process, 0.0) + _copied(app, {copy})
    most = max(by_process.values(), default=0.0)
    return Spread(base.p10 + most / restore.p90, base.p50 + most / restore.p50, base.p90 + most / restore.p10)
