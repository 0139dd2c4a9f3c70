"""Every process of the group with what lies on its volume, for a prediction of what another size would cause.

Made when the task table is made. It decides nothing, and leaves out what nobody reported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.group import Applied, Member
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from streamapp.core.facts.lag import EndOffsets, Unknown, copy_lag, task_target
from streamapp.core.facts.tasks import TaskSet


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """One process that is in the group."""

    ordinal: Ordinal
    process: ProcessId
    threads: int
    """Its members."""
    lags: Mapping[TaskId, int]
    """Records by which its state is behind, of every task that it has state of and does not run; unused directories
    are among them."""
    newest_version: int | None = None
    """The newest version of Kafka Streams' part of a subscription that it knows."""
    kafka_version: str | None = None
    """Of its Kafka Streams; None without an agent."""
    standby_replicas: int | None = None
    """`num.standby.replicas`; None without an agent."""
    state_bytes: int | None = None
    """What its state takes on its volume; None without an agent."""
    is_tagged: bool = False
    """Whether it has client tags or a rack."""


def process_rows(
    placement: MemberPlacement,
    task_set: TaskSet,
    ends: EndOffsets | None,
    reports: Mapping[Ordinal, AgentReport],
) -> tuple[ProcessRow, ...]:
    """One row for each ordinal whose members report one process ID, in order.

    Args:
        placement: Who runs where.
        task_set: The tasks there are.
        ends: The ends of the changelogs; None where they were not read.
        reports: The newest report of each agent.
    """
    rows = []
    for ordinal, members in sorted(placement.by_ordinal.items()):
        said = {member.process_id for member in members} - {None}
        if len(said) == 1:
            rows.append(_row(ordinal, members, task_set, ends, reports.get(ordinal)))
    return tuple(rows)


def _row(
    ordinal: Ordinal,
    members: Sequence[Member],
    task_set: TaskSet,
    ends: EndOffsets | None,
    report: AgentReport | None,
) -> ProcessRow:
    subscriptions = [member.subscription for member in members if member.subscription is not None]
    lags = {} if ends is None else _lags(members, task_set, ends)
    if report is not None and ends is not None:
        lags |= _live_lags(report, task_set, ends)
    versions = [one.newest_version for one in subscriptions if one.newest_version is not None]
    return ProcessRow(
        ordinal=ordinal,
        process=subscriptions[0].process_id,
        threads=len(members),
        lags=lags,
        newest_version=min(versions, default=None),
        kafka_version=None if report is None else report.settings.kafka_version,
        standby_replicas=None if report is None else report.standby_replicas,
        state_bytes=None if report is None else report.state_bytes,
        is_tagged=any(one.is_tagged for one in subscriptions),
    )


def _lags(members: Sequence[Member], task_set: TaskSet, ends: EndOffsets) -> dict[TaskId, int]:
    """By what the members said at their last join; several members of a process say the same."""
    found: dict[TaskId, int] = {}
    for member in members:
        for task_id, said in () if member.subscription is None else member.subscription.offsets.items():
            task = task_set.get(task_id)
            if task is None or not task.stateful or not isinstance(said, Applied):
                continue
            target = task_target(task, ends)
            left = None if isinstance(target, Unknown) else target.records_left(said.offset_sum)
            if left is not None:
                found[task_id] = left
    return found


def _live_lags(report: AgentReport, task_set: TaskSet, ends: EndOffsets) -> dict[TaskId, int]:
    """By what the agent reports of its standbys."""
    found: dict[TaskId, int] = {}
    for local in report.tasks or ():
        task = task_set.get(local.id)
        positions = None if task is None or local.is_active else task.by_changelog(local.positions)
        if task is None or positions is None or not task.stateful:
            continue
        lag = copy_lag(task, positions, ends)
        if not isinstance(lag, Unknown):
            found[local.id] = lag.records
    return found
