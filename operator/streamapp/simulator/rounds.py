"""Plays rebalances until nothing is left to move: what `kubectl streamapp plan` and the pages in docs/model show.

A moved task takes two rebalances: its owner gives it up, and at the next one its new owner gets it (KIP-429, KIP-441).
Between two rebalances copies catch up at given rates. The next one comes after the probing interval, when our assignor
asks for it, or when the operator triggers it because every learner has caught up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from streamapp.core.assignors.group import Assignment, ClientState, Copy, Placement, Task
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.simulator import stock
from streamapp.simulator.learner import assignment as learner
from streamapp.simulator.learner.draft import Announcement, LearnerSettings
from streamapp.simulator.world import Rates, World

MOST_ROUNDS = 1_000


class Cause(Enum):
    """Why the group rebalances."""

    MEMBERSHIP = "members joined or left"
    REVOKED = "tasks were given up"
    PROBING = "the probing interval has passed"
    FOLLOW_UP = "the assignor asked for it"
    TRIGGERED = "the operator triggered it"
    STANDBYS = "the operator changed the standbys of the group"
    BEHIND = "standbys are behind"
    """Of the streams protocol, as is the next: nothing is assigned, and a removal waits."""
    CAUGHT_UP = "standbys have caught up"


@dataclass(frozen=True, slots=True)
class Answer:
    """An assignment, and after how many seconds its assignor asks for another one; None if it does not."""

    assignment: Assignment
    again_after: float | None
    cause: Cause
    is_target: bool = False
    """Whether a broker keeps the assignment as a target: a new owner waits without a copy, nothing is dealt anew."""


Assignor = Callable[[Sequence[Task], Sequence[ClientState]], Answer]


def stock_assignor(settings: stock.StockSettings, probing_seconds: float = 600.0) -> Assignor:
    """The stock assignor with its probing interval."""
    leader = stock.StockAssignor(settings)

    def answer(tasks: Sequence[Task], clients: Sequence[ClientState]) -> Answer:
        found = leader.assign(tasks, clients)
        return Answer(found, None if found.is_final else probing_seconds, Cause.PROBING)

    return answer


def learner_assignor(settings: LearnerSettings, announcement: Announcement) -> Assignor:
    """Our own assignor; the leader has received the announcement."""

    def answer(tasks: Sequence[Task], clients: Sequence[ClientState]) -> Answer:
        found = learner.assign(tasks, clients, settings, announcement)
        is_over = found.assignment.is_final or found.follow_up is None
        seconds = None if is_over or found.follow_up is None else found.follow_up.millis / 1000
        return Answer(found.assignment, seconds, Cause.FOLLOW_UP)

    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What passes between two rebalances."""

    rates: Rates
    acceptable_lag: float = 10_000.0
    """In records: from here on a copy counts as caught up."""
    handover_seconds: float = 3.0
    """From giving tasks up to the next rebalance: about one heartbeat interval."""
    is_triggered: bool = False
    """Whether the operator triggers a rebalance as soon as every learner has caught up."""
    is_eager: bool = False
    """As soon as one has."""
    most_rounds: int = MOST_ROUNDS
    """Then the play is cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One rebalance."""

    seconds: float
    """Since the first one."""
    cause: Cause
    wanted: Assignment
    """What the assignor answered."""
    given: Mapping[ProcessId, Placement]
    """What the members get now: without tasks that another process has to give up first."""
    revoked: frozenset[Copy] = frozenset()
    """Tasks that their owners give up in this round, so that nobody processes them until the next."""
    cold: frozenset[Copy] = frozenset()
    """Stateful tasks that start at a process that is not caught up: nobody processes them until it is."""

    def owners(self) -> dict[TaskId, ProcessId]:
        """The process of each active task that is given."""
        return {task: process for process, placed in self.given.items() for task in placed.actives}


@dataclass(frozen=True, slots=True)
class Play:
    """The rounds until nothing is left to move, and the group after them."""

    rounds: tuple[Round, ...]
    world: World
    is_over: bool
    """False if the rounds ended only because there were too many."""


def play(world: World, assignor: Assignor, pace: Pace, cause: Cause = Cause.MEMBERSHIP) -> Play:
    """Rebalance, and again as often as somebody asks for it.

    Args:
        world: The group before.
        assignor: Who assigns.
        pace: What passes between two rebalances.
        cause: Of the first one.
    """
    rounds: list[Round] = []
    now = 0.0
    answer = assignor(world.tasks, world.clients())
    while len(rounds) < pace.most_rounds:
        made = _rebalance(world, answer, pace, now, cause)
        rounds.append(made)
        world = world.given(made.given)
        following = _next(world, made, answer, pace)
        if following is None:
            return Play(tuple(rounds), world, is_over=True)
        wait, cause = following
        world, now = world.after(wait, pace.rates), now + wait
        if not (answer.is_target and made.revoked):
            answer = assignor(world.tasks, world.clients())
    return Play(tuple(rounds), world, is_over=False)


def _rebalance(world: World, answer: Answer, pace: Pace, now: float, cause: Cause) -> Round:
    wanted = answer.assignment
    stateful: frozenset[TaskId] = frozenset() if answer.is_target else frozenset(world.ends)
    before, after = world.owners(), wanted.owners()
    revoked = {task: process for task, process in before.items() if after[task] != process}
    given = {
        process: _withhold(placed, frozenset(revoked) & placed.actives, stateful)
        for process, placed in wanted.placements.items()
    }
    cold = {
        Copy(task, client.process)
        for client in world.clients()
        for task in given[client.process].actives & world.ends.keys()
        if client.lag(task) > pace.acceptable_lag
    }
    return Round(
        seconds=now,
        cause=cause,
        wanted=wanted,
        given=given,
        revoked=frozenset(Copy(*one) for one in revoked.items()),
        cold=frozenset(cold),
    )


def _withhold(placed: Placement, waiting: frozenset[TaskId], copied: frozenset[TaskId]) -> Placement:
    """A task that another process still has: a standby of it until the next rebalance, if it is copied."""
    return replace(placed, actives=placed.actives - waiting, standbys=placed.standbys | (waiting & copied))


def _next(world: World, made: Round, answer: Answer, pace: Pace) -> tuple[float, Cause] | None:
    if made.revoked:
        return pace.handover_seconds, Cause.REVOKED
    if answer.again_after is None:
        return None
    if pace.is_triggered and made.wanted.learners:
        ready = _seconds_until_ready(world, made.wanted.learners, pace)
        if 0 < ready < answer.again_after:
            return ready, Cause.TRIGGERED
        if ready == 0 and not world.awaits_warmth(made.wanted.learners):
            return min(pace.handover_seconds, answer.again_after), Cause.TRIGGERED
    return answer.again_after, answer.cause


def _seconds_until_ready(world: World, learners: frozenset[Copy], pace: Pace) -> float:
    """Until all learners are caught up; where the pace is eager, until the first of those that are behind is."""
    if not pace.is_eager:
        return world.seconds_until_caught_up(learners, pace.acceptable_lag, pace.rates)
    each = [world.seconds_until_caught_up([one], pace.acceptable_lag, pace.rates) for one in learners]
    return min((seconds for seconds in each if seconds > 0), default=0.0)


def moved(before: Mapping[TaskId, ProcessId], after: Mapping[TaskId, ProcessId]) -> frozenset[TaskId]:
    """Tasks that another process has afterwards."""
    return frozenset(task for task, process in before.items() if after.get(task) != process)


def worst_share(rounds: Sequence[Round], tasks: frozenset[TaskId]) -> int:
    """The most of these active tasks that one process had after any round."""
    return max((len(placed.actives & tasks) for one in rounds for placed in one.given.values()), default=0)
