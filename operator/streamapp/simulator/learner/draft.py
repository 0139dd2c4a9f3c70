"""The group in numbers while one assignment is made: `AssignmentDraft`.

A task or a process is its position: tasks in their own order, processes in the order of their IDs as text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from streamapp.core.assignors.group import RUNNING, ClientState, Task
from streamapp.core.facts.ids import ProcessId

NONE = -1
UNKNOWN_LAG = -1
FARTHEST = 2**63 - 1
"""An unknown lag where lags are compared: it comes last."""
NO_LIMIT = 2**31 - 1


class Leaving(Enum):
    """What the leader knows of the processes that leave."""

    UNKNOWN = "unknown"
    EMPTY = "empty"
    SET = "set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """The processes that leave, as far as the leader's JVM knows."""

    state: Leaving = Leaving.EMPTY
    leaving: frozenset[ProcessId] = frozenset()
    is_eager: bool = False
    """Each task moves as soon as its learner is ready; else a process waits for all of its learners."""
    expires_in_millis: int = -1
    """Negative if it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerSettings:
    """The user's settings, with the assignor's defaults."""

    acceptable_lag: int = 10_000
    """In records."""
    standbys: int = 0
    balance_learners: int = 2
    leaving_learners: int = NO_LIMIT
    tolerance: int = 1
    """Accepted difference of the load per thread of two processes."""
    levels_standbys: bool = True
    """Whether standbys move for balance; not where racks or tags place them."""
    follow_up_millis: int = 10_000


@dataclass(slots=True)
class Draft:
    """Owners, actives, targets and loads; mutable, for one assignment."""

    tasks: Sequence[Task]
    processes: Sequence[ClientState]
    settings: LearnerSettings
    announcement: Announcement
    stays: list[bool] = field(init=False)
    """By process, whether it keeps tasks; all do if all were to leave."""
    owner: list[int] = field(init=False)
    """By task, the process that had the active."""
    active: list[int] = field(init=False)
    """By task, the process that gets the active."""
    target: list[int] = field(init=False)
    """By task, the process that will have it once all learners are ready."""
    load: list[int] = field(init=False)
    """By process, the weight of the stateful tasks with this target."""
    copies: list[list[int]] = field(init=False)
    """By task, the processes with any state of it, in order."""
    _lags: list[list[int]] = field(init=False)
    _alike: list[dict[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        is_set = self.announcement.state is Leaving.SET
        stays = [not is_set or one.process not in self.announcement.leaving for one in self.processes]
        self.stays = stays if any(stays) else [True] * len(stays)
        self.owner, self.active, self.target = ([NONE] * len(self.tasks) for _ in range(3))
        self.load = [0] * len(self.processes)
        self._alike = [{} for _ in self.processes]
        self._lags = [[self._read_lag(task, one) for one in self.processes] for task in self.tasks]
        self.copies = [
            [at for at, one in enumerate(self.processes) if task.id in one.copies or task.id in one.actives]
            for task in self.tasks
        ]
        for at, task in enumerate(self.tasks):
            self._claim(at, [number for number in self.copies[at] if task.id in self.processes[number].actives])

    @staticmethod
    def _read_lag(task: Task, process: ClientState) -> int:
        lag = process.lags.get(task.id, UNKNOWN_LAG) if task.is_stateful else UNKNOWN_LAG
        return 0 if lag == RUNNING else max(UNKNOWN_LAG, lag)

    def _claim(self, task: int, claimants: Sequence[int]) -> None:
        """Of several that claim the active, the running one wins; else the first that stays; else the first."""
        for process in claimants:
            known = self.owner[task]
            is_better = known == NONE or (
                not self._runs(task, known)
                and (self._runs(task, process) or (self.stays[process] and not self.stays[known]))
            )
            if is_better:
                self.owner[task] = process

    def _runs(self, task: int, process: int) -> bool:
        return self.processes[process].lags.get(self.tasks[task].id) == RUNNING

    def is_stateful(self, task: int) -> bool:
        """Whether the task has a logged store."""
        return self.tasks[task].is_stateful

    def is_ready(self, task: int, process: int) -> bool:
        """Whether the process could process the task at once."""
        if not self.is_stateful(task):
            return True
        lag = self._lags[task][process]
        return lag != UNKNOWN_LAG and lag <= self.settings.acceptable_lag

    def has_copy(self, task: int, process: int) -> bool:
        """Whether the process has any state of the task."""
        return process in self.copies[task]

    def is_lag_known(self, task: int, process: int) -> bool:
        """Whether the lag of the copy was readable."""
        return self.is_stateful(task) and self._lags[task][process] != UNKNOWN_LAG

    def lag(self, task: int, process: int) -> int:
        """The lag for comparing; unknown ones last."""
        lag = self._lags[task][process] if self.is_stateful(task) else 0
        return FARTHEST if lag == UNKNOWN_LAG else lag

    def threads(self, process: int) -> int:
        """Members of the process."""
        return self.processes[process].threads

    def weight(self, task: int) -> int:
        """The task's share of a load."""
        return self.tasks[task].weight

    def set_target(self, task: int, process: int) -> None:
        """Aim the task at a process, and count it there."""
        self._count(task, self.target[task], -1)
        self.target[task] = process
        self._count(task, process, 1)

    def _count(self, task: int, process: int, by: int) -> None:
        if process != NONE:
            subtopology = self.tasks[task].id.subtopology
            self._alike[process][subtopology] = self._alike[process].get(subtopology, 0) + by
            self.load[process] += by * self.weight(task) if self.is_stateful(task) else 0

    def alike(self, task: int, process: int) -> int:
        """How many tasks of the same sub-topology aim at the process."""
        return self._alike[process].get(self.tasks[task].id.subtopology, 0)

    def roomiest(self, task: int, loads: Sequence[int], may: Callable[[int], bool]) -> int:
        """The process with the most room for the task, of those that may have it; else `NONE`."""
        best = NONE
        for process in range(len(self.processes)):
            if may(process) and (best == NONE or self._has_more_room(task, loads, process, best)):
                best = process
        return best

    def _has_more_room(self, task: int, loads: Sequence[int], process: int, than: int) -> bool:
        weight = self.weight(task)
        one = (loads[process] + weight) * self.threads(than)
        other = (loads[than] + weight) * self.threads(process)
        return one < other or (one == other and self.alike(task, process) < self.alike(task, than))

    def relieves(self, loads: Sequence[int], source: int, destination: int, weight: int) -> bool:
        """Whether one task of this weight is better off at the destination, by more than the tolerance."""
        here, there = self.threads(source), self.threads(destination)
        slack = self.settings.tolerance - 1
        return (loads[source] - weight) * there >= (loads[destination] + weight) * here + slack * here * there
