"""The group in numbers while one assignment is made: `AssignmentDraft`.

A task or a process is its position: tasks in their own order, processes in the order of their IDs as text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import lcm

from streamapp.core.assignors.group import RUNNING, ClientState, Task
from streamapp.core.facts.ids import ProcessId

NONE = -1
UNKNOWN_LAG = -1
FARTHEST = 2**63 - 1
"""An unknown lag where lags are compared: it comes last."""
NO_LIMIT = 2**31 - 1
WARM_SECONDS = 10.0
"""The default of `streamapp.assignor.warm.ms`."""


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
    staying: list[int] = field(init=False)
    """The processes that keep tasks, in order."""
    scale: list[int] = field(init=False)
    """By process, what makes loads per thread comparable as whole numbers: `load * scale`."""
    _alike: list[dict[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        is_set = self.announcement.state is Leaving.SET
        stays = [not is_set or one.process not in self.announcement.leaving for one in self.processes]
        self.stays = stays if any(stays) else [True] * len(stays)
        self.staying = [at for at, is_there in enumerate(self.stays) if is_there]
        common = lcm(*(one.threads for one in self.processes))
        self.scale = [common // one.threads for one in self.processes]
        self.owner, self.active, self.target = ([NONE] * len(self.tasks) for _ in range(3))
        self.load = [0] * len(self.processes)
        self._alike = [{} for _ in self.processes]
        places = {task.id: at for at, task in enumerate(self.tasks)}
        self.copies = [[] for _ in self.tasks]
        claimants: list[list[int]] = [[] for _ in self.tasks]
        for at, one in enumerate(self.processes):
            for task in (one.copies | one.actives) & places.keys():
                self.copies[places[task]].append(at)
            for task in one.actives & places.keys():
                claimants[places[task]].append(at)
        for number, claiming in enumerate(claimants):
            self._claim(number, claiming)

    def _lag(self, task: int, process: int) -> int:
        known = self.tasks[task]
        if not known.is_stateful:
            return UNKNOWN_LAG
        lag = self.processes[process].lag(known.id)
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
        return self.processes[process].lag(self.tasks[task].id) == RUNNING

    def is_stateful(self, task: int) -> bool:
        """Whether the task has a logged store."""
        return self.tasks[task].is_stateful

    def is_ready(self, task: int, process: int) -> bool:
        """Whether the process could process the task at once."""
        known = self.tasks[task]
        if not known.is_stateful:
            return True
        lag = self.processes[process].lag(known.id)
        return lag == RUNNING or 0 <= lag <= self.settings.acceptable_lag

    def has_copy(self, task: int, process: int) -> bool:
        """Whether the process has any state of the task."""
        return process in self.copies[task]

    def restores(self, task: int, process: int) -> bool:
        """Whether the process is known to be behind by more than the limit."""
        return self._lag(task, process) > self.settings.acceptable_lag

    def lag(self, task: int, process: int) -> int:
        """The lag for comparing; unknown ones last."""
        lag = self._lag(task, process) if self.is_stateful(task) else 0
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

    def roomiest(self, task: int, loads: Sequence[int], among: Iterable[int]) -> int:
        """The process with the most room for the task, of these in order; else `NONE`."""
        weight, subtopology = self.weight(task), self.tasks[task].id.subtopology
        alike, scale = self._alike, self.scale
        best, least, fewest = NONE, 0, 0
        for process in among:
            load = (loads[process] + weight) * scale[process]
            if best != NONE and load > least:
                continue
            like = alike[process].get(subtopology, 0)
            if best == NONE or load < least or like < fewest:
                best, least, fewest = process, load, like
        return best

    def relieves(self, loads: Sequence[int], source: int, destination: int, weight: int) -> bool:
        """Whether one task of this weight is better off at the destination, by more than the tolerance."""
        here, there = self.threads(source), self.threads(destination)
        slack = self.settings.tolerance - 1
        return (loads[source] - weight) * there >= (loads[destination] + weight) * here + slack * here * there
