"""Every task with its owner and its copies, as the last look shows them: the whole of what a status only sums up.

Made by the operator when somebody asks for it, from the facts of its last pass. It decides nothing: what it does not
know it leaves out, with the reason.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from streamapp.core.evidence.agent_views import fresh
from streamapp.core.evidence.coverage import Copy, CopyMap, is_caught_up
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import is_on_demand, limited_evidence
from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.evidence.running_tasks import active_holders
from streamapp.core.facts.group import GroupDescription, Member
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.lag import EndOffsets, Measured, RunningActive, Unknown, restore_size, task_target
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import NOTHING_SEEN, Snapshot, Speeds
from streamapp.core.facts.tasks import TaskFacts, TaskSet
from streamapp.core.gates.candidates import RemovalCandidate, RemovalKind
from streamapp.core.gates.case import GateInput, input_now
from streamapp.core.reasons import Reason
from streamapp.core.status.processes import ProcessRow, process_rows
from streamapp.core.status.streams_rows import StreamsRow, streams_row
from streamapp.core.status.volumes import VolumeRow, volume_rows


class Activity(Enum):
    """What becomes of a task."""

    RUNNING = "running"
    RESTORING = "restoring"
    """Assigned, and not seen running yet."""
    UNASSIGNED = "unassigned"
    TWICE = "twice"
    """Two members hold it."""


class Role(Enum):
    """What a copy is."""

    ACTIVE = "active"
    STANDBY = "standby"
    LEARNER = "learner"
    """Made because a pod is to leave."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who has a task as active."""

    ordinal: Ordinal | None
    """None where it is not known in which pod."""
    member: str


@dataclass(frozen=True, slots=True)
class CopySeen:
    """One copy."""

    ordinal: Ordinal
    role: Role
    lag: int | None
    """Records that it is behind, at most; 0 for one that runs; None: not known."""
    is_caught_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """One task."""

    task: TaskId
    is_stateful: bool
    owner: Owner | None
    activity: Activity | None
    """None: it is assigned, and whether it runs is not known."""
    copies: tuple[CopySeen, ...]
    """Of a stateful task, the active one among them; by ordinal."""
    covered_on: tuple[Ordinal, ...] | None
    """Pods other than the highest that could take over at once; None: not known, or without state nothing to cover."""
    records: int | None = None
    """Offsets from the start to the end of its changelogs: what a pod without state reads, at most. None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTable:
    """All tasks, as of one time."""

    as_of: datetime
    """When the group was last read."""
    positions_as_of: datetime | None
    """How old the positions are at most; None where none are known."""
    highest: Ordinal | None
    """The pod that would go first."""
    limit: int
    """Records; a copy no further behind is caught up."""
    rows: tuple[TaskRow, ...]
    doubt: str
    """What is not known and why; empty where all is."""
    processes: tuple[ProcessRow, ...] = ()
    """Those of the group whose ordinal and process ID are known."""
    volumes: tuple[VolumeRow, ...] = ()
    """Those whose pods were removed, as far as it was recorded what lies there."""
    speeds: Speeds = NOTHING_SEEN
    """For predictions, as is the next."""
    streams: StreamsRow | None = None
    """None for a group of the classic protocol."""


def task_table(snapshot: Snapshot, policy: ScalingPolicy) -> TaskTable | Refusal:
    """Make the table; a Refusal if the group or its tasks are not known at all."""
    made = _made(limited_evidence(snapshot, policy))
    return made if isinstance(made, Refusal) else made.table()


def positions_on(evidence: Evidence, ordinals: Collection[Ordinal]) -> Mapping[Ordinal, Mapping[TaskId, int]]:
    """By ordinal and stateful task, the sum of the offsets applied there, as far as it is known.

    Args:
        evidence: What a decision rests on.
        ordinals: The pods that are asked for.
    """
    made = _made(evidence)
    return {} if isinstance(made, Refusal) else made.positions(ordinals)


def _made(evidence: Evidence) -> "_Table | Refusal":
    latest = evidence.snapshot.latest
    if latest is None:
        return Refusal(Reason.BrokersUnreachable, "the group has not been read yet")
    case = _measured_now(input_now(evidence, RemovalCandidate(RemovalKind.RESTART, ()), latest))
    known = case.known()
    return known if isinstance(known, Refusal) else _Table(case, *known, case.copies())


class _Table:
    """Everything that a row is made from."""

    def __init__(
        self,
        case: GateInput,
        group: GroupDescription,
        task_set: TaskSet,
        placement: MemberPlacement,
        copies: CopyMap | Refusal,
    ) -> None:
        self._case = case
        self._group = group
        self._universe = task_set
        self._copies = copies
        self._placement = placement
        self._holders = active_holders(group)
        self._place = {member.id: ordinal for ordinal, members in placement.by_ordinal.items() for member in members}
        self._standbys = _standbys(placement)
        running = case.running(group.member_ids)
        self._running = None if isinstance(running, Refusal) else running
        self._limit = case.policy.acceptable_recovery_lag
        self._learner = Role.LEARNER if is_on_demand(case.evidence) else Role.STANDBY
        self._highest = max((pod.ordinal for pod in case.snapshot.workload.pods), default=None)

    def table(self) -> TaskTable:
        """All of it."""
        copies = self._copies
        doubt = ""
        if isinstance(copies, Refusal):
            doubt = f"how far copies are is not known: {f'{copies.reason.note} {copies.detail}'.strip()}"
        return TaskTable(
            as_of=self._case.reading.ended_at,
            positions_as_of=copies.since.began_at if isinstance(copies, CopyMap) else None,
            highest=self._highest,
            limit=self._limit,
            rows=tuple(self._row(task) for task in self._universe.tasks),
            doubt=doubt,
            processes=self._processes(),
            volumes=self._volumes(),
            speeds=self._case.snapshot.speeds,
            streams=streams_row(self._case.evidence, self._group, self._placement),
        )

    def positions(self, ordinals: Collection[Ordinal]) -> Mapping[Ordinal, Mapping[TaskId, int]]:
        """As `positions_on` has it."""
        ends = self._ends
        if ends is None:
            return {}
        lags = {row.ordinal: dict(row.lags) for row in self._processes() if row.ordinal in ordinals}
        targets: dict[TaskId, int] = {}
        for task in self._universe.stateful:
            target = task_target(task, ends)
            if isinstance(target, Unknown):
                continue
            targets[task.id] = target.to_apply
            for copy in self._row(task).copies:
                if copy.lag is not None and copy.ordinal in lags:
                    lags[copy.ordinal][task.id] = copy.lag
        return {
            ordinal: {task: max(0, targets[task] - lag) for task, lag in sorted(found.items()) if task in targets}
            for ordinal, found in lags.items()
        }

    @property
    def _ends(self) -> EndOffsets | None:
        return self._copies.ends if isinstance(self._copies, CopyMap) else None

    def _processes(self) -> tuple[ProcessRow, ...]:
        snapshot, policy = self._case.snapshot, self._case.policy
        reports = fresh(snapshot, policy.timing) if policy.agent else {}
        return process_rows(self._placement, self._universe, self._ends, reports)

    def _volumes(self) -> tuple[VolumeRow, ...]:
        snapshot = self._case.snapshot
        return volume_rows(snapshot.workload, self._universe, self._ends, snapshot.app.max_idle_time, snapshot.now)

    def _row(self, task: TaskFacts) -> TaskRow:
        holders = self._holders.get(task.id, ())
        owner = Owner(self._place.get(holders[0].id), holders[0].id) if holders else None
        copies = self._copies_of(task, owner) if task.stateful else ()
        return TaskRow(
            task=task.id,
            is_stateful=task.stateful,
            owner=owner,
            activity=self._activity(task, holders),
            copies=copies,
            covered_on=self._covered_on(copies) if task.stateful else None,
            records=self._records(task) if task.stateful else None,
        )

    def _records(self, task: TaskFacts) -> int | None:
        size = restore_size(task, self._copies.ends) if isinstance(self._copies, CopyMap) else None
        return size.records if isinstance(size, Measured) else None

    def _activity(self, task: TaskFacts, holders: tuple[Member, ...]) -> Activity | None:
        if len(holders) != 1:
            return Activity.TWICE if holders else Activity.UNASSIGNED
        if self._running is None:
            return None
        return Activity.RUNNING if task.id in self._running else Activity.RESTORING

    def _copies_of(self, task: TaskFacts, owner: Owner | None) -> tuple[CopySeen, ...]:
        measured: dict[Ordinal, Copy] = {}
        if isinstance(self._copies, CopyMap):
            found = (*self._copies.copies(task), *self._copies.restores(task))
            measured = {copy.ordinal: copy for copy in found}
        owned = set[Ordinal]() if owner is None or owner.ordinal is None else {owner.ordinal}
        restoring = self._copies.restores(task) if isinstance(self._copies, CopyMap) else ()
        cold = {copy.ordinal for copy in restoring}
        places = sorted(owned | self._standbys.get(task.id, set()) | measured.keys())
        return tuple(
            self._copy(place, measured.get(place), is_active=place in owned, is_restoring=place in cold)
            for place in places
        )

    def _copy(self, ordinal: Ordinal, copy: Copy | None, *, is_active: bool, is_restoring: bool) -> CopySeen:
        role = Role.ACTIVE if is_active else self._learner
        if copy is None:
            return CopySeen(ordinal, role, None, is_caught_up=False)
        match copy.lag:
            case RunningActive():
                lag: int | None = 0
            case Measured(records):
                lag = records
            case _:
                lag = None
        # What restores is in nobody's stead, however near it is.
        return CopySeen(ordinal, role, lag, is_caught_up=not is_restoring and is_caught_up(copy.lag, self._limit))

    def _covered_on(self, copies: tuple[CopySeen, ...]) -> tuple[Ordinal, ...] | None:
        if isinstance(self._copies, Refusal):
            return None
        return tuple(copy.ordinal for copy in copies if copy.is_caught_up and copy.ordinal != self._highest)


def _standbys(placement: MemberPlacement) -> Mapping[TaskId, set[Ordinal]]:
    found: dict[TaskId, set[Ordinal]] = defaultdict(set)
    for ordinal, members in placement.by_ordinal.items():
        for member in members:
            for task in () if member.assignment is None else member.assignment.standby:
                found[task].add(ordinal)
    return found


def _measured_now(case: GateInput) -> GateInput:
    """The same, by the joins where no ends were read since the agents spoke."""
    view = case.view
    if view is None or isinstance(view.ends, EndOffsets):
        return case
    by_joins = replace(case, view=None)
    return by_joins if not isinstance(by_joins.copies(), Refusal) else case
