"""One scale-down in every way in which tasks can move: what each costs by the model."""

from collections.abc import Mapping
from dataclasses import dataclass

from streamapp.core.assignors.group import Copy, Task
from streamapp.core.facts.ids import TaskId
from streamapp.simulator.kip429 import DraftGroup, Event, Kind
from streamapp.simulator.learner.draft import Announcement, LearnerSettings, Leaving
from streamapp.simulator.rounds import Pace, Play, learner_assignor, play, stock_assignor
from streamapp.simulator.stock import StockSettings
from streamapp.simulator.world import Instance, Rates, World
from tests.model.replays.scenes import ordered_id

RATE = 100_000.0
"""Records a second of one process."""
TASKS = tuple(TaskId(0, partition) for partition in range(9))
ENDS: Mapping[TaskId, float] = {task: (task.partition // 3 + 1) * 1_000_000.0 for task in TASKS}
"""The third process has tasks of one, two and three million records; so have the others."""
STAYING, GONE = [ordered_id(1), ordered_id(2)], ordered_id(3)
PACE = Pace(rates=Rates(restore=RATE), is_triggered=True)


@dataclass(frozen=True)
class Way:
    """What one way costs."""

    name: str
    rebalances: int
    seconds: float
    """From the first rebalance until each task runs where it ends."""
    stops: int
    """How often a task is given up for a rebalance; a process that goes is no stop here."""
    longest: float
    """Seconds for which no process has the state of a task that it must run."""
    double_work: float
    """Task-seconds in which a copy that is made for a move repeats the work of the running task."""


def ways() -> list[Way]:
    """All of them."""
    return [
        _stock(standbys=0),
        _stock(standbys=1),
        _ours("learner assignor, conservative", is_eager=False),
        _ours("learner assignor, eager", is_eager=True),
        _draft(),
    ]


def _world(standbys: int) -> World:
    """Three processes with three tasks each, and caught-up standbys on the next processes."""
    instances = []
    for number in range(3):
        actives = frozenset(TASKS[number::3])
        copies = frozenset(task for step in range(1, standbys + 1) for task in TASKS[(number - step) % 3 :: 3])
        instances.append(
            Instance(
                process=ordered_id(number + 1),
                actives=actives,
                standbys=copies,
                positions={task: ENDS[task] for task in actives | copies},
            )
        )
    return World(tasks=tuple(map(Task, TASKS)), ends=ENDS, instances={one.process: one for one in instances})


def _stock(standbys: int) -> Way:
    """The process goes at once, or after its tasks have copies, which they have here."""
    settings = StockSettings(num_standby_replicas=standbys)
    played = play(_world(standbys).left_by([GONE]), stock_assignor(settings), PACE)
    name = f"stock assignor, {'one standby' if standbys else 'no standby'}"
    return _way(name, [played])


def _ours(name: str, *, is_eager: bool) -> Way:
    announced = Announcement(state=Leaving.SET, leaving=frozenset({GONE}), is_eager=is_eager)
    pace = Pace(rates=PACE.rates, is_triggered=True, is_eager=is_eager)
    emptied = play(_world(0), learner_assignor(LearnerSettings(), announced), pace)
    after = play(emptied.world.left_by([GONE]), learner_assignor(LearnerSettings(), Announcement()), pace)
    return _way(name, [emptied, after])


def _way(name: str, plays: list[Play]) -> Way:
    rounds = [one for played in plays for one in played.rounds]
    seconds = sum(played.rounds[-1].seconds for played in plays)
    last = plays[-1].world
    running = [Copy(task, process) for task, process in last.owners().items()]
    restoring = last.seconds_until_caught_up(running, 0, PACE.rates)
    return Way(
        name=name,
        rebalances=len(rounds),
        seconds=seconds + restoring,
        stops=sum(len(one.revoked) for one in rounds),
        longest=_longest_restore(plays),
        double_work=sum(
            len(now.wanted.learners) * (then.seconds - now.seconds)
            for played in plays
            for now, then in zip(played.rounds, played.rounds[1:], strict=False)
        ),
    )


def _longest_restore(plays: list[Play]) -> float:
    """Of the first round, in which a process has gone: how long the largest share of tasks without a copy takes."""
    shares: dict[object, float] = {}
    for task, process in plays[0].rounds[0].cold:
        shares[process] = shares.get(process, 0.0) + ENDS[task]
    return max(shares.values(), default=0.0) / RATE


def _draft() -> Way:
    """The draft's group: each worker reports once, when all that it learns has caught up."""
    names = {process: f"S{number}" for number, process in enumerate([*STAYING, GONE], start=1)}
    group = DraftGroup(
        {name: {str(task) for task in _world(0).instances[process].actives} for process, name in names.items()}
    )
    rounds = [group.rebalance(Event(Kind.LEAVES, names[GONE]))]
    sizes = {str(task): end for task, end in ENDS.items()}
    ready = {
        name: sum(sizes[task] for task in share.learning) / RATE
        for name, share in rounds[0].assigned.items()
        if share.learning
    }
    learning = sum(seconds * len(rounds[0].assigned[name].learning) for name, seconds in ready.items())
    rounds += [group.rebalance(Event(Kind.IS_READY, name)) for name in sorted(ready, key=ready.__getitem__)]
    return Way(
        name="KIP-429's draft, revoke-being-learned",
        rebalances=len(rounds),
        seconds=max(ready.values()),
        stops=sum(len(one.interrupted()) for one in rounds),
        longest=0.0,
        double_work=learning,
    )
