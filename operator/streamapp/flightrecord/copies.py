"""Every copy of every task, as one look shows it: who has it, in which role, and what was told of its position.

Made for the flight record; no gate asks here. A look takes the word of the agent in a pod where there is a fresh one,
else that of the pod's members. How far a copy is costs more than all the rest, so it is worked out by whoever wants it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
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


class CopyRole(Enum):
    """What a copy is there for."""

    ACTIVE = "active"
    STANDBY = "standby"
    LEARNER = "learner"


class Source(Enum):
    """Whose word it is."""

    GROUP = "group"
    AGENT = "agent"


class SeenCopy(NamedTuple):
    """One copy at one look."""

    task: TaskId
    ordinal: Ordinal
    process: ProcessId
    role: CopyRole
    state: TaskState | None
    """Of an active, where it is known."""
    at: datetime
    """When it was so."""
    source: Source
    told: int | Mapping[str, int] | None = None
    """The sum of its positions, or its position by store; None where nothing was told, or nothing is to be applied."""
    told_at: datetime | None = None
    """When `ends` were in, or the positions alone where those are missing."""
    ends: EndOffsets | None = None
    """Read after the positions were told."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far one copy is, in slots of all changelogs of its task together."""

    offset: int | None
    lag: int | None
    """As it is judged by; None where that is not known."""


NOWHERE = Position(None, None)


def position(copy: SeenCopy, task_set: TaskSet) -> Position:
    """Work out how far a copy is."""
    facts = task_set.get(copy.task)
    if copy.told is None or facts is None or not facts.stateful:
        return NOWHERE
    lag: Measured | Unknown | None = None
    if isinstance(copy.told, int):
        offset = copy.told
        if copy.ends is not None:
            lag = task_lag(facts, offset, copy.ends)
    else:
        positions = facts.by_changelog(copy.told)
        if positions is None:
            return NOWHERE
        offset = sum(positions.values())
        if copy.ends is not None:
            lag = copy_lag(facts, positions, copy.ends)
    return Position(offset, lag.records if isinstance(lag, Measured) else None)


def end_of(copy: SeenCopy, position: Position, task_set: TaskSet) -> int | None:
    """Where a copy has to get to, never before where it is; None where its distance is not known."""
    facts = task_set.get(copy.task)
    if facts is None or copy.ends is None or position.lag is None or position.offset is None:
        return None
    end = written_to(facts, copy.ends)
    # A reader of committed records may stand behind the last of them, among the markers.
    return None if end is None else max(position.offset, end)


def copies(
    snapshot: Snapshot, placement: MemberPlacement, timing: Timing, *, makes_learners: bool
) -> tuple[SeenCopy, ...] | None:
    """Give every copy that the latest look shows; None where it does not show who holds what.

    Args:
        snapshot: What is known.
        placement: Of the latest reading of the group.
        timing: How old a word may be.
        makes_learners: The application keeps no standbys, so that a copy beside the active one is a learner.
    """
    latest = snapshot.latest
    if latest is None or not isinstance(latest.group, GroupDescription) or latest.group.state is not GroupState.STABLE:
        return None
    beside = CopyRole.LEARNER if makes_learners else CopyRole.STANDBY
    told = {
        ordinal: one
        for ordinal, one in fresh(snapshot, timing).items()
        if one.tasks is not None and one.process_id is not None
    }
    found: list[SeenCopy] = []
    for ordinal, report in told.items():
        found.extend(_by_agent(report, ordinal, _ends_since(snapshot, report), beside))
    for ordinal, members in placement.by_ordinal.items():
        if ordinal not in told:
            for member in members:
                found.extend(_by_member(member, ordinal, latest, snapshot, beside))
    return tuple(found)


def _by_agent(report: AgentReport, ordinal: Ordinal, ends: EndOffsets | None, beside: CopyRole) -> Iterator[SeenCopy]:
    process, at = report.process_id, report.as_of
    if process is None:
        return
    for task in report.tasks or ():
        is_running = task.is_active and task.state is TaskState.RUNNING
        yield SeenCopy(
            task.id,
            ordinal,
            process,
            CopyRole.ACTIVE if task.is_active else beside,
            task.state if task.is_active else None,
            at,
            Source.AGENT,
            None if is_running or not task.positions else task.positions,
            at,
            ends,
        )


def _by_member(
    member: Member, ordinal: Ordinal, reading: GroupReading, snapshot: Snapshot, beside: CopyRole
) -> Iterator[SeenCopy]:
    if member.subscription is None or member.assignment is None:
        return
    process, offsets, at = member.subscription.process_id, member.subscription.offsets, reading.ended_at
    ends = _ends_of(reading.rebalance, member)
    told_at = None if ends is None else ends.read_at
    active = CopyRole.ACTIVE
    for task in member.assignment.active:
        state = TaskState.RUNNING if _runs(member, task, reading.rebalance, snapshot) else None
        said = offsets.get(task) if state is None and ends is not None else None
        told = said.offset_sum if isinstance(said, Applied) else None
        yield SeenCopy(task, ordinal, process, active, state, at, Source.GROUP, told, told_at, ends)
    for task in member.assignment.standby:
        said = offsets.get(task) if ends is not None else None
        told = said.offset_sum if isinstance(said, Applied) else None
        yield SeenCopy(task, ordinal, process, beside, None, at, Source.GROUP, told, told_at, ends)


def _runs(member: Member, task: TaskId, rebalance: ObservedRebalance | None, snapshot: Snapshot) -> bool:
    facts = snapshot.task_set.get(task) if isinstance(snapshot.task_set, TaskSet) else None
    if facts is None or rebalance is None or member.id not in rebalance.rejoined_members:
        return False
    return runs(member, facts)


def _ends_of(rebalance: ObservedRebalance | None, member: Member) -> EndOffsets | None:
    """The ends that what this member said can be compared with: it must have joined with the others."""
    if rebalance is None or member.id not in rebalance.rejoined_members or not isinstance(rebalance.ends, EndOffsets):
        return None
    return rebalance.ends


def _ends_since(snapshot: Snapshot, report: AgentReport) -> EndOffsets | None:
    """The first ends that were asked for after this agent had spoken."""
    known = () if snapshot.agents is None else snapshot.agents.ends
    later = [one.ends for one in known if one.began_at >= report.as_of and isinstance(one.ends, EndOffsets)]
    return later[-1] if later and isinstance(later[-1], EndOffsets) else None
