"""The stories of the design documents and of the article, as groups and what happens to them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from streamapp.core.assignors.group import Task
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.simulator.kip429 import DraftGroup, DraftRound, Event, Kind
from streamapp.simulator.learner.draft import Announcement, LearnerSettings
from streamapp.simulator.rounds import Assignor, Pace, Play, learner_assignor, play, stock_assignor
from streamapp.simulator.stock import Release, StockSettings
from streamapp.simulator.world import Instance, Rates, World

CHANGELOG = 100_000.0
"""Records in the changelogs of each task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A play, and the names that the document uses."""

    before: World
    play: Play
    processes: Mapping[ProcessId, str]
    tasks: Mapping[TaskId, str] = field(default_factory=dict)

    def task(self, task: TaskId) -> str:
        """As the document names it."""
        return self.tasks.get(task, str(task))


def ordered_id(number: int) -> ProcessId:
    """IDs in the order of their numbers."""
    return ProcessId(UUID(f"00000000-0000-4000-8000-{number:012x}"))


def _instance(number: int, actives: Iterable[TaskId], copies: Iterable[TaskId], lag: float) -> Instance:
    own, others = frozenset(actives), frozenset(copies)
    positions = dict.fromkeys(own, CHANGELOG) | dict.fromkeys(others, CHANGELOG - lag)
    return Instance(process=ordered_id(number), actives=own, standbys=others, positions=positions)


KIP_441_PACE = Pace(rates=Rates(restore=1_000))
STOCK = stock_assignor(StockSettings(num_standby_replicas=1))
OURS = learner_assignor(LearnerSettings(standbys=1), Announcement())


def _kip_441(layout: Mapping[int, tuple[str, str]], tasks: int, lag: float) -> World:
    """Layouts as `{1: ("13", "2")}`: I1 has T1 and T3, and a standby of T2."""
    known = tuple(Task(TaskId(0, number)) for number in range(1, tasks + 1))
    ends = {task.id: CHANGELOG for task in known}
    instances = {
        ordered_id(number): _instance(number, _numbered(actives), _numbered(copies), lag)
        for number, (actives, copies) in layout.items()
    }
    return World(tasks=known, ends=ends, instances=instances)


def _numbered(digits: str) -> list[TaskId]:
    return [TaskId(0, int(digit)) for digit in digits]


def _in_words_of_kip_441(before: World, played: Play) -> Scene:
    processes = {ordered_id(number): f"I{number}" for number in range(1, 4)}
    return Scene(
        before=before,
        play=played,
        processes=processes,
        tasks={task.id: f"T{task.id.partition}" for task in before.tasks},
    )


def scaling_out(assignor: Assignor = STOCK) -> Scene:
    """KIP-441: I3 joins I1 and I2; three tasks with one standby each."""
    before = _kip_441({1: ("13", "2"), 2: ("2", "13")}, tasks=3, lag=0)
    return _in_words_of_kip_441(before, play(before.joined_by(Instance(process=ordered_id(3))), assignor, KIP_441_PACE))


def scaling_in(lag: float, assignor: Assignor = STOCK) -> Scene:
    """KIP-441, part 1 with standbys in sync and part 2 with a lag: I1 goes; four tasks with one standby each."""
    before = _kip_441({1: ("14", "3"), 2: ("2", "14"), 3: ("3", "2")}, tasks=4, lag=lag)
    return _in_words_of_kip_441(before, play(before.left_by([ordered_id(1)]), assignor, KIP_441_PACE))


ARTICLE_NEW = ProcessId.parse("bbb83e43-b1af-4b2d-a60a-94a7091684d0")
ARTICLE_OLD = (
    ProcessId.parse("4b61083e-57d0-457d-951f-d06556c148ca"),
    ProcessId.parse("7156cef1-307e-49c0-a5bb-0f11d26a4933"),
)
ARTICLE_ENDS = (2, 2, 8, 6, 4, 4)
"""Records in each partition of the article's changelog."""


def article() -> Scene:
    """WordCount on Kafka Streams 2.7.2: 6 partitions, 2 threads, `acceptable.recovery.lag` 0; a third instance joins.

    Copies take longer than a heartbeat and shorter than the probing interval of 60 s, as in the article's log.
    """
    stateless, stateful = ([TaskId(number, partition) for partition in range(6)] for number in range(2))
    ends = dict(zip(stateful, map(float, ARTICLE_ENDS), strict=True))
    old = [
        Instance(
            process=process,
            threads=2,
            actives=frozenset(stateless[at::2] + stateful[at::2]),
            positions={task: ends[task] for task in stateful[at::2]},
        )
        for at, process in enumerate(ARTICLE_OLD)
    ]
    tasks = tuple(Task(task, is_stateful=False) for task in stateless) + tuple(map(Task, stateful))
    before = World(tasks=tasks, ends=ends, instances={one.process: one for one in old})
    settings = StockSettings(release=Release.of("2.7.2"), acceptable_recovery_lag=0)
    pace = Pace(rates=Rates(restore=0.5), acceptable_lag=0)
    played = play(
        before.joined_by(Instance(process=ARTICLE_NEW, threads=2)), stock_assignor(settings, probing_seconds=60), pace
    )
    names = {process: str(process)[:4] for process in (ARTICLE_NEW, *ARTICLE_OLD)}
    return Scene(before=before, play=played, processes=names)


def replaced(gone: int, new: int) -> Scene:
    """Six tasks on processes 1, 2 and 3; one comes back with its ID, or is replaced by another one."""
    tasks = tuple(Task(TaskId(1, partition)) for partition in range(6))
    instances = [_instance(number, [task.id for task in tasks[number - 1 :: 3]], (), 0) for number in range(1, 4)]
    before = World(
        tasks=tasks,
        ends={task.id: CHANGELOG for task in tasks},
        instances={one.process: one for one in instances},
    )
    back = instances[gone - 1] if gone == new else Instance(process=ordered_id(new))
    returning = Instance(process=back.process, positions=back.positions)
    played = play(
        before.left_by([ordered_id(gone)]).joined_by(returning), stock_assignor(StockSettings()), KIP_441_PACE
    )
    return Scene(
        before=before, play=played, processes={ordered_id(n): name for n, name in zip(range(1, 5), "ABCD", strict=True)}
    )


def draft(*events: tuple[Kind, str]) -> list[DraftRound]:
    """The draft of KIP-429: S1[T1, T2], S2[T3, T4], S3[T5], and what happens to them."""
    group = DraftGroup({"S1": {"T1", "T2"}, "S2": {"T3", "T4"}, "S3": {"T5"}})
    return [group.rebalance(Event(*event)) for event in events]


def draft_scale_up() -> list[DraftRound]:
    """S4 and S5 join one after the other."""
    return draft((Kind.JOINS, "S4"), (Kind.JOINS, "S5"), (Kind.IS_READY, "S4"), (Kind.IS_READY, "S5"))


def draft_scale_down() -> list[DraftRound]:
    """S2 will be leaving."""
    return draft((Kind.LEAVES, "S2"), (Kind.IS_READY, "S3"), (Kind.IS_READY, "S1"))


def draft_leader_crash() -> list[DraftRound]:
    """S1, the leader, crashes before S4 is ready."""
    return draft((Kind.JOINS, "S4"), (Kind.CRASHES, "S1"))
