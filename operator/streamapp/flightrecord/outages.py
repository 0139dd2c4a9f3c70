"""Times in which a task did not run, each with its cause, by the definitions of `g_downtime_daily` in docs/gold.md.

The controller hands each pass in. An outage is told half a minute after it ended, when its cause is known. Only what
one process saw counts: an outage over a change of the leader begins at the first look of the new one.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

from streamapp.core.evidence.agent_views import fresh
from streamapp.core.evidence.membership import place_members
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.tasks import TaskSet
from streamapp.flightrecord import layout
from streamapp.flightrecord.changes import TELL_AGAIN, Look
from streamapp.flightrecord.schema import GapLine
from streamapp.flightrecord.task_gaps import TaskGapLog

NEAR = timedelta(seconds=30)
"""By which a change of a pod or of the group can be seen before the task was seen to stop, or after it ran again."""
MOST_CHANGES = 1_000
"""Changes that are remembered; an outage that is longer than they reach back has the cause `unknown`."""
_NOBODY = {"cluster": "", "namespace": "", "app": "", "uid": "", "recorder": ""}
"""The head of lines that are not written."""


class Cause(Enum):
    """Why a task stopped. Where several changes met an outage, the first in this order counts."""

    CRASH = "crash"
    ROLLOUT = "rollout"
    SCALE = "scale"
    EVICTION = "eviction"
    REBALANCE = "rebalance"
    UNKNOWN = "unknown"


_ORDER = {cause: number for number, cause in enumerate(Cause)}


@dataclass(frozen=True, slots=True)
class Outage:
    """One time in which one task did not run."""

    task: str
    began: datetime
    """The last time before that it was seen running, or when its process stopped it."""
    ended: datetime
    at_least: timedelta
    at_most: timedelta
    cause: Cause = Cause.UNKNOWN


@dataclass(frozen=True, slots=True)
class Looked:
    """What one pass adds."""

    task_seconds: float
    """Tasks times the seconds since the last pass; 0 where nobody looked meanwhile, or the tasks are unknown."""
    outages: tuple[Outage, ...]
    """Those whose causes are known by now."""


@dataclass(slots=True)
class _Change:
    """What can stop tasks."""

    cause: Cause
    began: datetime
    ended: datetime | None
    """None while it goes on."""

    def meets(self, outage: Outage) -> bool:
        """Whether it was near."""
        return self.began <= outage.ended + NEAR and (self.ended is None or self.ended >= outage.began - NEAR)


@dataclass(frozen=True, slots=True)
class _PodSeen:
    """What tells one run of a pod from the next."""

    uid: str
    revision: str
    container_id: str

    def cause(self, before: "_PodSeen") -> Cause | None:
        """Why this one stands where the other one was; None where nothing changed, or a value is missing."""
        if before.uid == self.uid:
            is_other = before.container_id and self.container_id and before.container_id != self.container_id
            return Cause.CRASH if is_other else None
        is_other_revision = before.revision and self.revision and before.revision != self.revision
        return Cause.ROLLOUT if is_other_revision else Cause.EVICTION


@dataclass(slots=True)
class OutageLog:
    """The outages of one application, as one process sees them."""

    follows: bool = False
    """Whether an earlier process served it: else what does not run at the first look has never run, and is no outage.
    """
    _gaps: TaskGapLog = field(default_factory=TaskGapLog)
    _read_at: datetime | None = None
    """End of the newest reading that was used."""
    _looked_at: datetime | None = None
    _pods: dict[Ordinal, _PodSeen] = field(default_factory=dict)
    """The last pod of each ordinal, also while there is none."""
    _desired: int | None = None
    _scaling: _Change | None = None
    """The change of the replicas that has not converged."""
    _layout: object = None
    """Which member has which tasks."""
    _changes: deque[_Change] = field(default_factory=lambda: deque(maxlen=MOST_CHANGES))
    _ended: list[Outage] = field(default_factory=list)
    """Outages whose causes may still come."""

    def look(self, look: Look) -> Looked:
        """Give what this pass adds, and remember it."""
        now, task_set = look.snapshot.now, look.snapshot.task_set
        before, self._looked_at = self._looked_at, now
        watched = timedelta(0) if before is None else now - before
        tasks = len(task_set.tasks) if isinstance(task_set, TaskSet) else 0
        self._note_pods(look)
        self._note_scaling(look)
        gaps = [_outage(gap) for gap in self._new_gaps(look) if self.follows or not gap.began_before]
        # A gap that was over before this process looked is of the one before, which counted it.
        self._ended += (outage for outage in gaps if outage.at_most)
        known = [outage for outage in self._ended if outage.ended + NEAR <= now]
        self._ended = [outage for outage in self._ended if outage.ended + NEAR > now]
        return Looked(
            task_seconds=tasks * watched.total_seconds() if timedelta(0) < watched <= TELL_AGAIN else 0.0,
            outages=tuple(replace(outage, cause=self._cause(outage)) for outage in known),
        )

    def _cause(self, outage: Outage) -> Cause:
        met = (change.cause for change in self._changes if change.meets(outage))
        return min(met, key=_ORDER.__getitem__, default=Cause.UNKNOWN)

    def _new_gaps(self, look: Look) -> Iterator[GapLine]:
        """By agents where there are any, else by every reading since the last pass."""
        reports = fresh(look.snapshot, look.policy.timing) if look.policy.agent else {}
        if reports:
            yield from self._gaps.by_agents(_NOBODY, reports)
        workload, task_set, latest = look.snapshot.workload, look.snapshot.task_set, look.snapshot.latest
        if latest is not None and self._read_at is not None and latest.ended_at < self._read_at:
            self._read_at = None  # the clock was set back
        for reading in reversed(look.snapshot.readings):
            if self._read_at is not None and reading.ended_at <= self._read_at:
                continue
            self._read_at = reading.ended_at
            if not layout.shows_layout(reading) or not isinstance(reading.group, GroupDescription):
                continue
            placement = place_members(reading.group, workload)
            self._note_layout(layout.epoch_key(reading.group, placement), reading.ended_at)
            if not look.policy.agent and isinstance(task_set, TaskSet):
                yield from self._gaps.by_group(_NOBODY, reading, placement, workload, task_set)

    def _note_layout(self, key: object, at: datetime) -> None:
        if self._layout is not None and key != self._layout:
            self._changes.append(_Change(Cause.REBALANCE, at, at))
        self._layout = key

    def _note_pods(self, look: Look) -> None:
        now = look.snapshot.now
        for pod in look.snapshot.workload.pods:
            seen = _PodSeen(pod.uid, pod.revision, pod.container.id or "")
            before = self._pods.get(pod.ordinal)
            cause = None if before is None else seen.cause(before)
            if cause is not None:
                self._changes.append(_Change(cause, now, now))
            # A container that waits to start has no ID yet: the one before it stays known.
            is_starting = before is not None and before.uid == seen.uid and not seen.container_id
            self._pods[pod.ordinal] = (
                replace(seen, container_id=before.container_id) if is_starting and before else seen
            )

    def _note_scaling(self, look: Look) -> None:
        now, wanted, workload = look.snapshot.now, look.snapshot.app.desired, look.snapshot.workload
        is_new = self._desired is None
        granted = wanted.replicas if workload.statefulset is None else workload.statefulset.replicas
        is_under_way = is_new and granted != wanted.replicas
        if is_under_way or (not is_new and wanted.replicas != self._desired):
            self._end_scaling(now)
            began = now if is_under_way or not wanted.history else wanted.history[-1].at
            self._scaling = _Change(Cause.SCALE, min(began, now), None)
            self._changes.append(self._scaling)
        elif look.decision.convergence.is_settled:
            self._end_scaling(now)
        self._desired = wanted.replicas

    def _end_scaling(self, now: datetime) -> None:
        if self._scaling is not None:
            self._scaling.ended = now
            self._scaling = None


def _outage(gap: GapLine) -> Outage:
    if gap.stopped_at is not None and gap.started_at is not None:
        took = max(gap.started_at - gap.stopped_at, timedelta(0))
        return Outage(gap.task, gap.stopped_at, gap.started_at, took, took)
    ended = (gap.started_at or gap.ts) if gap.began_before else gap.ts
    at_most = max(ended - gap.last_ran_at, timedelta(0))
    at_least = at_most if gap.began_before else min(timedelta(seconds=gap.stood_seconds), at_most)
    return Outage(gap.task, gap.last_ran_at, ended, at_least, at_most)
