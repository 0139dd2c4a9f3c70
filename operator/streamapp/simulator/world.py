"""A group between two rebalances: who runs, restores and copies which task, and how far each copy is.

Positions and ends are records, summed over a task's changelogs; rates are records a second.
An unused directory stays as it is: `state.cleanup.delay.ms` is not modelled.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil

from streamapp.core.assignors.group import NO_TASKS, RUNNING, ClientState, Copy, Placement, Task
from streamapp.core.facts.ids import ProcessId, TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One process with its volume."""

    process: ProcessId
    threads: int = 1
    actives: frozenset[TaskId] = NO_TASKS
    """Running and restoring ones."""
    standbys: frozenset[TaskId] = NO_TASKS
    """Copies that are fed: standbys, warm-ups and learners."""
    positions: Mapping[TaskId, float] = field(default_factory=dict)
    """Of every stateful task with state on the volume, the records applied."""
    warm_in: float = 0.0
    """Seconds until it counts as warm: our own assignor moves no task to it before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How fast state is copied, in records a second."""

    restore: float
    """Of one process, shared by all copies that are behind."""
    arrival: float = 0.0
    """Into the changelogs of each task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The tasks, the ends of their changelogs, and the processes."""

    tasks: tuple[Task, ...]
    ends: Mapping[TaskId, float]
    instances: Mapping[ProcessId, Instance]
    _reports: "_Reports | None" = field(default=None, compare=False, repr=False)
    """What was reported by instances as they still are."""

    def clients(self) -> list[ClientState]:
        """What the members report when they join now."""
        reports = self._reports
        if reports is None or reports.ends is not self.ends:
            whole = {task.id: ceil(self.ends[task.id] - _ROUNDING) for task in self.tasks if task.is_stateful}
            reports = _Reports(self.ends, whole)
            object.__setattr__(self, "_reports", reports)
        known = reports.by_process
        for name, one in self.instances.items():
            if name not in known or known[name][0] is not one:
                known[name] = one, self._client(one, reports.whole)
        return [known[name][1] for name in self.instances]

    def _client(self, one: Instance, whole: Mapping[TaskId, int]) -> ClientState:
        """What one process reports; `whole` are the lags without any state."""
        lags = {
            task: RUNNING if self.is_running(one, task) else self._whole_lag(one, task)
            for task in one.positions
            if task in whole
        }
        copies = frozenset(one.positions) - one.actives
        return ClientState(
            process=one.process,
            threads=one.threads,
            actives=one.actives,
            copies=copies,
            standbys=one.standbys,
            lags=lags,
            changelogs=whole,
            cold_millis=ceil(one.warm_in * 1000),
        )

    def _whole_lag(self, one: Instance, task: TaskId) -> int:
        """Rounded up, but for what floats are off by: a copy that is just caught up reports so."""
        return ceil(self.lag(one, task) - _ROUNDING)

    def lag(self, one: Instance, task: TaskId) -> float:
        """Records by which the state on the volume is behind; the whole changelog without state."""
        return self.ends[task] - one.positions.get(task, 0.0)

    def is_running(self, one: Instance, task: TaskId) -> bool:
        """Whether the process processes the task: active, and nothing left to restore."""
        return task in one.actives and (task not in self.ends or self.lag(one, task) <= 0)

    def owners(self) -> dict[TaskId, ProcessId]:
        """The process of each active task."""
        return {task: one.process for one in self.instances.values() for task in one.actives}

    def joined_by(self, *joining: Instance) -> "World":
        """The group with these processes, which bring what lies on their volumes."""
        return replace(self, instances={**self.instances, **{one.process: one for one in joining}})

    def left_by(self, leaving: Iterable[ProcessId]) -> "World":
        """The group without these processes."""
        gone = set(leaving)
        return replace(self, instances={name: one for name, one in self.instances.items() if name not in gone})

    def given(self, placements: Mapping[ProcessId, Placement]) -> "World":
        """The group after its members took this assignment; a task given away leaves its state on the volume."""
        return replace(
            self, instances={name: self._take(one, placements[name]) for name, one in self.instances.items()}
        )

    def _take(self, one: Instance, placed: Placement) -> Instance:
        is_known = (one.actives, one.standbys) == (placed.actives, placed.standbys)
        if is_known and (one.actives | one.standbys) & self.ends.keys() <= one.positions.keys():
            return one
        positions = dict(one.positions)
        for task in placed.actives | placed.standbys:
            if task in self.ends:
                positions.setdefault(task, 0.0)
        return replace(one, actives=placed.actives, standbys=placed.standbys, positions=positions)

    def after(self, seconds: float, rates: Rates) -> "World":
        """The group later: ends grow, running tasks and caught-up copies follow, copies that are behind catch up."""
        grown = rates.arrival * seconds
        ends = {task: end + grown for task, end in self.ends.items()} if grown else self.ends
        instances = {name: self._later(one, seconds, rates) for name, one in self.instances.items()}
        return replace(self, ends=ends, instances=instances)

    def _later(self, one: Instance, seconds: float, rates: Rates) -> Instance:
        fed = [task for task in sorted(one.actives | one.standbys) if task in self.ends]
        grown = rates.arrival * seconds
        if one.warm_in:
            one = replace(one, warm_in=max(0.0, one.warm_in - seconds))
        if not grown and all(self.lag(one, task) == 0 for task in fed):
            return one
        ready = _catch_up({task: self.lag(one, task) for task in fed}, rates)
        found = dict(one.positions)
        found.update((task, self.ends[task] + grown - ready.left(task, seconds)) for task in fed)
        return replace(one, positions=found)

    def seconds_until_caught_up(self, copies: Iterable[Copy], acceptable_lag: float, rates: Rates) -> float:
        """When the last of these copies is caught up; infinite if one never is."""
        wanted: dict[ProcessId, set[TaskId]] = {}
        for task, process in copies:
            wanted.setdefault(process, set()).add(task)
        return max(
            (self._seconds(self.instances[name], tasks, acceptable_lag, rates) for name, tasks in wanted.items()),
            default=0.0,
        )

    def awaits_warmth(self, copies: Iterable[Copy]) -> bool:
        """Whether a process of these copies does not count as warm yet."""
        return any(self.instances[process].warm_in > 0 for _, process in copies)

    def _seconds(self, one: Instance, tasks: set[TaskId], acceptable_lag: float, rates: Rates) -> float:
        fed = {task: self.lag(one, task) for task in one.actives | one.standbys if task in self.ends}
        catching_up = _catch_up(fed, rates)
        return max(catching_up.seconds(task, acceptable_lag) for task in tasks)


@dataclass(frozen=True, slots=True)
class _Reports:
    """What processes reported while the changelogs did not grow; filled by the groups that share it."""

    ends: Mapping[TaskId, float]
    whole: Mapping[TaskId, int]
    """Lags without any state."""
    by_process: dict[ProcessId, tuple[Instance, ClientState]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _CatchingUp:
    """Lags of the copies of one process over time: straight lines between the moments at which one is caught up."""

    lines: Mapping[TaskId, tuple[tuple[float, float], ...]]
    """By task, points of seconds and lag; after the last one it stays."""

    def left(self, task: TaskId, seconds: float) -> float:
        points = self.lines[task]
        for (start, before), (end, after) in pairwise(points):
            if seconds <= end:
                return before + (after - before) * (seconds - start) / (end - start)
        return points[-1][1]

    def seconds(self, task: TaskId, lag: float) -> float:
        points = self.lines[task]
        if points[0][1] <= lag:
            return 0.0
        for (start, before), (end, after) in pairwise(points):
            if after <= lag:
                return start + (before - lag) / (before - after) * (end - start)
        return float("inf")


_ROUNDING = 1e-6
"""Records."""
HORIZON_SECONDS = 30 * 86_400.0
"""A copy that has not caught up by then never does."""


def _catch_up(lags: Mapping[TaskId, float], rates: Rates) -> _CatchingUp:
    """All copies that are behind share the rate of their process equally."""
    lines = {task: [(0.0, max(0.0, lag))] for task, lag in lags.items()}
    now = 0.0
    while behind := {task: points[-1][1] for task, points in lines.items() if points[-1][1] > 0}:
        speed = rates.restore / len(behind) - rates.arrival
        step = min(behind.values()) / speed if speed > 0 else HORIZON_SECONDS
        step = min(step, HORIZON_SECONDS)
        now += step
        for task, lag in behind.items():
            left = lag - speed * step
            lines[task].append((now, left if left > 1e-6 else 0.0))
        if speed <= 0 or now >= HORIZON_SECONDS:
            break
    return _CatchingUp({task: tuple(points) for task, points in lines.items()})
