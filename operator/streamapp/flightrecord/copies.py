"""Every copy of every task at one pass: its process, its role, and the reported positions.

For the flight record only; no gate uses it. A pod with a fresh agent report is described by that report, any other pod
by its members. The position of a copy is expensive, so `position` computes it only for the copies that need it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from streamapp.core.evidence.agent_views import fresh
from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.evidence.running_tasks import runs
from streamapp.core.facts.agent_reports import AgentReport, TaskState
from streamapp.core.facts.group import Applied, GroupDescription, GroupReading, GroupState, Member, ObservedRebalance
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from streamapp.core.facts.lag import EndOffsets, Measured, Unknown, copy_lag, task_lag, written_to
from streamapp.core.facts.policy import Timing
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.flightrecord.schema import Role, SampleSource


class ObservedCopy(NamedTuple):
    """One copy at one pass."""

    task: TaskId
    ordinal: Ordinal
    process: ProcessId
    role: Role
    state: TaskState | None
    """Of an active; None if unknown."""
    at: datetime
    """Time of the reading or report."""
    source: SampleSource
    positions: int | Mapping[str, int] | None = None
    """The sum of its positions, or its position by store; None if none was reported or the copy has none to apply."""
    positions_at: datetime | None = None
    """When `ends` were read, or the positions were reported if `ends` is None."""
    ends: EndOffsets | None = None
    """End offsets, read after the positions were reported."""


@dataclass(frozen=True, slots=True)
class Position:
    """Offset and lag of one copy, summed over all changelogs of its task."""

    offset: int | None
    lag: int | None
    """The lag that gates use; None if unknown."""


UNKNOWN_POSITION = Position(None, None)


def position(copy: ObservedCopy, task_set: TaskSet) -> Position:
    """Compute the offset and lag of a copy from its reported positions."""
    facts = task_set.get(copy.task)
    if copy.positions is None or facts is None or not facts.stateful:
        return UNKNOWN_POSITION
    lag: Measured | Unknown | None = None
    if isinstance(copy.positions, int):
        offset = copy.positions
        if copy.ends is not None:
            lag = task_lag(facts, offset, copy.ends)
    else:
        by_changelog = facts.by_changelog(copy.positions)
        if by_changelog is None:
            return UNKNOWN_POSITION
        offset = sum(by_changelog.values())
        if copy.ends is not None:
            lag = copy_lag(facts, by_changelog, copy.ends)
    return Position(offset, lag.records if isinstance(lag, Measured) else None)


def end_of(copy: ObservedCopy, position: Position, task_set: TaskSet) -> int | None:
    """The end offset that a copy must reach, at least its own offset; None if its lag is unknown."""
    facts = task_set.get(copy.task)
    if facts is None or copy.ends is None or position.lag is None or position.offset is None:
        return None
    end = written_to(facts, copy.ends)
    # A reader of committed records can be past the last of them, among the transaction markers.
    return None if end is None else max(position.offset, end)


def copies(
    snapshot: Snapshot, placement: MemberPlacement, timing: Timing, *, makes_learners: bool
) -> tuple[ObservedCopy, ...] | None:
    """Give every copy that the latest reading shows; None if that reading shows no assignment.

    Args:
        snapshot: The facts of this pass.
        placement: The members of the latest reading, by pod.
        timing: Limits the age of agent reports.
        makes_learners: The application keeps no standbys, so that any copy that is not active is a learner.
    """
    latest = snapshot.latest
    if latest is None or not isinstance(latest.group, GroupDescription) or latest.group.state is not GroupState.STABLE:
        return None
    inactive = Role.LEARNER if makes_learners else Role.STANDBY
    reports = {
        ordinal: report
        for ordinal, report in fresh(snapshot, timing).items()
        if report.tasks is not None and report.process_id is not None
    }
    observed: list[ObservedCopy] = []
    for ordinal, report in reports.items():
        observed.extend(_by_agent(report, ordinal, _ends_since(snapshot, report), inactive))
    for ordinal, members in placement.by_ordinal.items():
        if ordinal not in reports:
            for member in members:
                observed.extend(_by_member(member, ordinal, latest, snapshot, inactive))
    return tuple(observed)


def _by_agent(report: AgentReport, ordinal: Ordinal, ends: EndOffsets | None, inactive: Role) -> Iterator[ObservedCopy]:
    process, at = report.process_id, report.as_of
    if process is None:
        return
    for task in report.tasks or ():
        is_running = task.is_active and task.state is TaskState.RUNNING
        yield ObservedCopy(
            task.id,
            ordinal,
            process,
            Role.ACTIVE if task.is_active else inactive,
            task.state if task.is_active else None,
            at,
            SampleSource.AGENT,
            None if is_running or not task.positions else task.positions,
            at,
            ends,
        )


def _by_member(
    member: Member, ordinal: Ordinal, reading: GroupReading, snapshot: Snapshot, inactive: Role
) -> Iterator[ObservedCopy]:
    if member.subscription is None or member.assignment is None:
        return
    process, offsets, at = member.subscription.process_id, member.subscription.offsets, reading.ended_at
    ends = _ends_of(reading.rebalance, member)
    read_at = None if ends is None else ends.read_at
    for task in member.assignment.active:
        state = TaskState.RUNNING if _runs(member, task, reading.rebalance, snapshot) else None
        applied = offsets.get(task) if state is None and ends is not None else None
        positions = applied.offset_sum if isinstance(applied, Applied) else None
        yield ObservedCopy(task, ordinal, process, Role.ACTIVE, state, at, SampleSource.GROUP, positions, read_at, ends)
    for task in member.assignment.standby:
        applied = offsets.get(task) if ends is not None else None
        positions = applied.offset_sum if isinstance(applied, Applied) else None
        yield ObservedCopy(task, ordinal, process, inactive, None, at, SampleSource.GROUP, positions, read_at, ends)


def _runs(member: Member, task: TaskId, rebalance: ObservedRebalance | None, snapshot: Snapshot) -> bool:
    facts = snapshot.task_set.get(task) if isinstance(snapshot.task_set, TaskSet) else None
    if facts is None or rebalance is None or member.id not in rebalance.rejoined_members:
        return False
    return runs(member, facts)


def _ends_of(rebalance: ObservedRebalance | None, member: Member) -> EndOffsets | None:
    """The end offsets to compare this member's positions with; None unless the member joined in that rebalance."""
    if rebalance is None or member.id not in rebalance.rejoined_members or not isinstance(rebalance.ends, EndOffsets):
        return None
    return rebalance.ends


def _ends_since(snapshot: Snapshot, report: AgentReport) -> EndOffsets | None:
    """The first end offsets that were requested after this agent report."""
    readings = () if snapshot.agents is None else snapshot.agents.ends
    later = [one.ends for one in readings if one.began_at >= report.as_of and isinstance(one.ends, EndOffsets)]
    return later[-1] if later and isinstance(later[-1], EndOffsets) else None
