"""Plays a change of the replicas of a running application: the same way the operator makes it.

Replicas that are added join together. Replicas that are removed leave one by one under the stock assignor, the highest
first; under the learner assignor all of them are announced, emptied and removed together. What brokers assign is played
by `streams_change`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from streamapp.core.assignors.broker_moves import STICKY
from streamapp.core.assignors.sticky import BrokerRelease
from streamapp.core.facts.ids import ProcessId
from streamapp.simulator.forecast.running import Running
from streamapp.simulator.learner.draft import WARM_SECONDS, Announcement, LearnerSettings, Leaving
from streamapp.simulator.rounds import Assignor, Pace, Play, learner_assignor, play, stock_assignor
from streamapp.simulator.stock import Release, StockSettings
from streamapp.simulator.world import Instance, Rates

STOCK, LEARNER, BROKERS = "stock", "learner", STICKY
MOST_WORK = {STOCK: 60_000_000, LEARNER: 600_000_000}
"""By assignor, tasks times pods times rebalances of one play: about a minute."""
FEWEST_ROUNDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """How brokers assign the tasks of a group of the streams protocol, and what the operator changes there."""

    releases: tuple[BrokerRelease, ...]
    """Those that the coordinator can have, by what it shows."""
    at_rest: int
    """`streams.num.standby.replicas` when nothing goes on."""
    most: int
    """What the operator raises it to if it must."""
    heartbeat_seconds: float
    """While tasks move."""
    is_capped: bool
    """Whether agents shorten the heartbeats."""
    interval_seconds: float = 0.0
    """The least time between two assignments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the application assigns its tasks, and how fast it copies."""

    assignor: str
    """`stock`, `learner`, or with `brokers` their `sticky`."""
    brokers: Brokers | None = None
    """None for a group of the classic protocol."""
    release: Release = Release.FROM_3_3
    standbys: int = 0
    warmups: int = 2
    probing_seconds: int = 600
    threads: int = 1
    """Of pods that are added."""
    is_eager: bool = False
    """Whether a learner takes its task over without waiting for the others of its process."""
    is_triggered: bool = True
    """Whether the operator triggers a rebalance when all learners have caught up."""
    handover_seconds: float = 3.0


def removals(current: int, to: int, settings: Settings) -> int:
    """How many steps the change has that are made one after the other."""
    return 1 if settings.assignor == LEARNER else max(1, current - to)


def plays(app: Running, to: int, settings: Settings, restore: float) -> list[Play]:
    """The rounds of the change in a classic group, each play beginning when its members change.

    Args:
        app: The application before the change.
        to: Replicas after it.
        settings: How it assigns.
        restore: Records a second of one process.
    """
    pace = Pace(
        rates=Rates(restore=restore),
        acceptable_lag=float(app.limit),
        handover_seconds=settings.handover_seconds,
        is_triggered=settings.is_triggered,
        is_eager=settings.is_eager,
        most_rounds=max(FEWEST_ROUNDS, MOST_WORK[settings.assignor] // (len(app.world.tasks) * len(app.processes))),
    )
    if to >= app.current:
        warm_in = WARM_SECONDS if settings.assignor == LEARNER else 0.0
        added = [
            Instance(
                process=app.processes[ordinal],
                threads=settings.threads,
                positions=app.kept.get(ordinal, {}),
                warm_in=warm_in,
            )
            for ordinal in range(app.current, to)
        ]
        return [play(app.world.joined_by(*added), _assignor(app, settings, ()), pace)]
    leaving = [app.processes[ordinal] for ordinal in reversed(range(to, app.current))]
    if settings.assignor == LEARNER:
        emptied = play(app.world, _assignor(app, settings, leaving), pace)
        return [emptied, play(emptied.world.left_by(leaving), _assignor(app, settings, ()), pace)]
    world, made = app.world, list[Play]()
    for process in leaving:
        made.append(play(world.left_by([process]), _assignor(app, settings, ()), pace))
        world = made[-1].world
    return made


def _assignor(app: Running, settings: Settings, leaving: Iterable[ProcessId]) -> Assignor:
    gone = frozenset(leaving)
    if settings.assignor == LEARNER:
        announcement = Announcement(
            state=Leaving.SET if gone else Leaving.EMPTY, leaving=gone, is_eager=settings.is_eager
        )
        learning = LearnerSettings(
            acceptable_lag=app.limit, standbys=settings.standbys, balance_learners=settings.warmups
        )
        return learner_assignor(learning, announcement)
    stock = StockSettings(
        release=settings.release,
        acceptable_recovery_lag=app.limit,
        max_warmup_replicas=settings.warmups,
        num_standby_replicas=settings.standbys,
    )
    return stock_assignor(stock, settings.probing_seconds)
