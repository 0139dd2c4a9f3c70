"""What happens to one made-up application, line by line: steps, pods, layouts, decisions, and the samples of copies.

Called by `generate`. Samples stay columns of numbers; the few other lines are dictionaries.
"""

from dataclasses import dataclass, field
from datetime import UTC, timedelta
from typing import Any, Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from streamapp.analytics.synthetic.fleet import ACCEPTABLE_LAG, DAY, VOLUME_BYTES, Fleet, SyntheticApp, volume

ACTIVE, STANDBY, LEARNER = 0, 1, 2
UNKNOWN: Final = -1
"""Of an offset: it is left out."""
STILL: Final = 1.0
"""Seconds by which a standby follows the end."""
Ints = NDArray[np.int64]
Samples = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Learner:
    """A copy that catches up."""

    task: int
    ordinal: int
    began: float
    lag: float
    gross: float
    append: float
    """Slots a second that are written to the task meanwhile."""
    caught_up: float


@dataclass
class Story:
    """The lines of one application; times are seconds since the fleet's start."""

    fleet: Fleet
    app: SyntheticApp
    rng: Generator
    lines: list[tuple[float, str, dict[str, Any]]] = field(default_factory=list)
    samples: list[Samples] = field(default_factory=list)
    pods: int = 0
    owners: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    since: float = 0.0
    """When the present layout began."""
    generation: int = 1
    until: float = 0.0
    """Nothing of the step that goes on happens from then on."""
    replicas: dict[str, int] = field(default_factory=dict)

    def tell(self) -> None:
        """Play all events."""
        end = self.fleet.days * DAY
        self.pods, self.owners = self.fleet.pods, self.app.owners(self.fleet.pods)
        self._restart(0.0)
        self._tell_changelogs(0.5)
        starts = [day * DAY for day in range(1, self.fleet.days)]
        events = [event for event in self.app.events if event[0] < end]
        for n, (at, old, new) in enumerate(events):
            while starts and starts[0] < at:
                self._restart(starts.pop(0))
            self.until = min(events[n + 1][0] if n + 1 < len(events) else end, end)
            self.generation += 1
            self.replicas = {"desired": new, "granted": max(old, self.pods), "actual": self.pods, "ready": self.pods}
            self._line(at, "autoscaler", self._autoscaler(new))
            scale = {"oldReplicas": old, "newReplicas": new, "actor": "HPA", "generation": self.generation}
            self._line(at, "scale", scale)
            if n % 3 == 1:
                self._restart(at + 1)  # Another replica leads from then on, and begins with all it sees.
            (self._grow if new > self.pods else self._shrink)(at, new)
        for start in starts:
            self._restart(start)
        self._steady(end)

    def _line(self, at: float, kind: str, tail: dict[str, Any]) -> None:
        if at < (self.until or self.fleet.days * DAY):
            self.lines.append((at, kind, tail))

    def _restart(self, at: float) -> None:
        """A new recorder tells how things stand."""
        late = at + 0.5
        config = {
            "generation": self.generation,
            "applicationId": self.app.name,
            "tasks": len(self.app.tasks),
            "statefulTasks": list(self.app.tasks),
            "acceptableRecoveryLag": ACCEPTABLE_LAG,
            "learnerSource": "OnDemand",
            "stabilizationSeconds": 0.0,
            "timeoutSeconds": 0.0,
            "scaleDownPolicy": "Hold",
            "availability": 99.9,
        }
        self.lines.append((late, "config", config))
        scale = {
            "newReplicas": self.replicas.get("desired", self.pods),
            "actor": "UNKNOWN",
            "generation": self.generation,
        }
        self.lines.append((late, "scale", scale))
        for ordinal in range(self.pods):
            self.lines.append((late, "pod", self._pod(ordinal)))
        self.lines.append((late, "group", self._layout(self.pods, self.owners, late)))
        if not self.replicas:
            self.replicas = dict.fromkeys(("desired", "granted", "actual", "ready"), self.pods)
            self._decide(late, "Steady", "Steady", converged=True)

    def _decide(self, at: float, verdict: str, reason: str, **more: object) -> None:
        self._line(at, "decision", {"verdict": verdict, "reason": reason, **self.replicas, **more})

    def _autoscaler(self, desired: int) -> dict[str, Any]:
        """One that wants fewer pods than its minimum says so while it is there."""
        least = self.fleet.pods if self.app.wants_fewer else 1
        limited = "TooFewReplicas" if self.app.wants_fewer and desired == least else ""
        bounds = {"minReplicas": least, "maxReplicas": len(self.app.processes), "desiredReplicas": desired}
        told = {"isActive": True, "cannotAct": "", "limitedBy": limited}
        return {"name": self.app.name, "aimsAt": "StreamApp", **bounds, **told}

    def _pod(self, ordinal: int, **changes: bool) -> dict[str, Any]:
        sound = {"isScheduled": True, "isRunning": True, "isReady": True}
        return {
            "ordinal": ordinal,
            "podUid": f"{self.app.uid[:8]}-{ordinal}-{self.generation}",
            "processId": self.app.processes[ordinal],
            "volume": volume(self.app, ordinal),
            "stateBytes": self.app.state_bytes(ordinal),
            "freeBytes": VOLUME_BYTES - self.app.state_bytes(ordinal),
            "requestedBytes": VOLUME_BYTES,
            **sound,
            **changes,
        }

    def _layout(self, pods: int, owners: Ints, at: float) -> dict[str, Any]:
        """The group line of a layout; each task has its standby one pod further on."""
        epoch = int((self.fleet.start + timedelta(seconds=at)).timestamp() * 1000)
        holders = []
        for ordinal in range(pods):
            active = [self.app.tasks[n] for n in np.flatnonzero(owners == ordinal)]
            standby = [self.app.tasks[n] for n in np.flatnonzero((owners + 1) % pods == ordinal)]
            who = {"processId": self.app.processes[ordinal], "ordinal": ordinal, "threads": 1}
            holders.append({**who, "active": active, "standby": standby})
        return {"epoch": epoch, "state": "Stable", "holders": holders}

    def _grow(self, at: float, new: int) -> None:
        rng = self.rng
        self.replicas["granted"] = new
        self._decide(at + 0.5, "Grow", "Growing", converged=False, convergingReason="PodsNotReady")
        joined = at
        for ordinal in range(self.pods, new):
            scheduled = at + rng.uniform(2, 12)
            ready = scheduled + rng.uniform(10, 30)
            down = {"isRunning": False, "isReady": False}
            self._line(at + 1, "pod", self._pod(ordinal, isScheduled=False, **down))
            self._line(scheduled, "pod", self._pod(ordinal, **down))
            self._line(ready, "pod", self._pod(ordinal))
            joined = max(joined, ready + 5)
        if joined >= self.until:
            return
        self.replicas |= {"actual": new, "ready": new}
        self._decide(joined, "Steady", "Steady", converged=False, convergingReason="TasksRestoring")
        target = self.app.owners(new)
        self._change(joined, new, self.owners)
        learners = self._learners(joined, target, 2_000_000.0)
        moved = max((one.caught_up for one in learners), default=joined) + rng.uniform(5, 20)
        if moved >= self.until:
            return
        self._change(moved, new, target)
        self._decide(moved + 10, "Steady", "Steady", converged=True)

    def _shrink(self, at: float, new: int) -> None:
        rng, old = self.rng, self.pods
        hold = {"holdId": f"{self.app.name}-{self.generation}", "holdSince": self._time(at + 1), "target": new}
        learners = self._learners(at + 1, self.app.owners(new), 600_000.0)
        look, released = at + 1, max((one.caught_up for one in learners), default=at + 1) + 1
        while look < released:
            waits = [one for one in learners if one.caught_up > look]
            waits.sort(key=lambda one: one.caught_up, reverse=True)
            blocking = [
                {"task": self.app.tasks[one.task], "ordinal": one.ordinal, "lag": int(_lag(one, look))} for one in waits
            ]
            kind = "KNOWN" if waits else "NOT_MEASURED"
            told = {"blocking": blocking, "blockingCount": len(blocking), "converged": False, "etaKind": kind}
            self._decide(look, "Hold", "LearnersCatchingUp" if waits else "ReadingsPending", **hold, **told)
            look += self.fleet.look_seconds
        if look >= self.until:
            return
        self.replicas["granted"] = new
        step = {"step": "GrantReplicas", "outcome": "DONE", "reason": "Covered", "holdId": hold["holdId"]}
        self._line(look, "step", {**step, "fromReplicas": old, "toReplicas": new})
        self._decide(look, "Step", "Covered", converged=False, convergingReason="TasksRestoring")
        gone = look + rng.uniform(10, 30)
        for ordinal in range(new, old):
            self._line(look + 1, "pod", self._pod(ordinal, isTerminating=True))
            self._line(gone, "pod", self._pod(ordinal, isGone=True, isRunning=False, isReady=False))
        self.replicas |= {"actual": new, "ready": new}
        self._change(gone + 5, new, self.app.owners(new))
        closed = {"holdId": hold["holdId"], "fromReplicas": old, "toReplicas": new, "grantedAt": self._time(look)}
        times = {"tookSeconds": gone + 8 - look, "heldSeconds": look - at, "worstGapSeconds": rng.uniform(0.2, 3)}
        self._line(gone + 8, "stepClosed", {**closed, **times, "gapErrorSeconds": 0.5})
        self._decide(gone + 10, "Steady", "Steady", converged=True)

    def _time(self, at: float) -> str:
        return (self.fleet.start + timedelta(seconds=at)).astimezone(UTC).isoformat().replace("+00:00", "Z")

    def _change(self, at: float, pods: int, owners: Ints) -> None:
        """Another layout, if its time still comes."""
        if at >= (self.until or np.inf):
            return
        self._steady(at)
        for task in np.flatnonzero(owners != self.owners):
            ordinal, away = int(owners[task]), self.rng.uniform(0.2, 2)
            who = {"task": self.app.tasks[task], "ordinal": ordinal, "processId": self.app.processes[ordinal]}
            told = {"lastRanAt": self._time(at - 0.5), "stoodSeconds": 0.5 * away, "source": "AGENT"}
            self._line(at + away, "gap", {**who, **told})
        self.pods, self.owners, self.since = pods, owners, at
        self._line(at, "group", self._layout(pods, owners, at))
        self._tell_changelogs(at)

    def _tell_changelogs(self, at: float) -> None:
        """The ends of all changelogs, which the operator reads at each rebalance."""
        ends = self._ends(np.arange(len(self.app.tasks)), np.full(len(self.app.tasks), at))
        self._line(at, "changelogs", {"slots": int(ends.astype(np.int64).sum()), "tasks": len(self.app.tasks)})

    def _steady(self, until: float) -> None:
        """Heartbeats of the present layout: every task's active copy and its standby."""
        looks = np.arange(self.since + 1, until, self.fleet.heartbeat_seconds)
        tasks = np.arange(len(self.app.tasks))
        at, task = (grid.ravel() for grid in np.meshgrid(looks, tasks, indexing="ij"))
        ends = self._ends(task, at)
        kept = ends - self.app.append[task] * self.rng.uniform(0, STILL, len(at))
        for role, ordinals, offset in (
            (ACTIVE, self.owners, np.full(len(at), UNKNOWN)),
            (STANDBY, (self.owners + 1) % self.pods, kept),
        ):
            if role == ACTIVE or self.pods > 1:
                self._add(at, task, role, ordinals[task], offset, ends, self.fleet.heartbeat_seconds)

    def _learners(self, at: float, target: Ints, lag: float) -> list[Learner]:
        """The copies that tasks need where they go, and the samples of them while they catch up."""
        found = []
        for task in np.flatnonzero(target != self.owners):
            ordinal, began = int(target[task]), at + self.rng.uniform(0, 5)
            gross = self.app.speed(int(task), ordinal) * self.rng.lognormal(0, 0.05)
            owed = lag * self.rng.uniform(0.5, 1.5)
            append = float(self.app.append[task]) * self.app.load(at)
            one = Learner(int(task), ordinal, began, owed, gross, append, began + owed / (gross - append))
            found.append(one)
            looks = np.arange(began, one.caught_up + 2 * self.fleet.look_seconds, self.fleet.look_seconds)
            looks = looks[looks < self.until]
            ends = self._ends(np.full(len(looks), task), looks)
            offset = np.where(looks < one.caught_up, ends - _lag(one, looks), ends)
            where = np.full(len(looks), ordinal)
            self._add(looks, np.full(len(looks), task), LEARNER, where, offset, ends, self.fleet.look_seconds)
        return found

    def _ends(self, task: Ints, at: NDArray[np.float64]) -> NDArray[np.float64]:
        return 5_000_000.0 + self.app.append[task] * self.app.written(at)

    def _add(
        self,
        at: NDArray[np.float64],
        task: Ints,
        role: int,
        ordinal: Ints,
        offset: NDArray[Any],
        end: NDArray[np.float64],
        interval: float,
    ) -> None:
        self.samples.append(
            {
                "ts": (at * 1e6).astype(np.int64),
                "task": task.astype(np.int32),
                "role": np.full(len(at), role, dtype=np.int8),
                "ordinal": ordinal.astype(np.int32),
                "offset": offset.astype(np.int64),
                "end": end.astype(np.int64),
                "interval": np.full(len(at), interval, dtype=np.float32),
                "since": np.full(len(at), int(self.since * 1000), dtype=np.int64),
            }
        )


def _lag(one: Learner, at: Any) -> Any:
    """What a learner still owes; it falls by what it restores beyond what is appended."""
    return np.maximum(one.lag - (one.gross - one.append) * (at - one.began), 0.0)
