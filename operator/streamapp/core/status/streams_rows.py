"""A group of the streams protocol as its brokers have it, for a prediction of what another size would cause.

There the brokers assign, by member and not by process, and by settings of the group. Made when the task table is made.
It decides nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from streamapp.core.actions.standbys import Standbys, standbys_for_predictions
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.facts.group import Applied, GroupDescription, Member, StreamsGroup
from streamapp.core.facts.ids import Ordinal, TaskId

UNCAPPED = timedelta(seconds=5)
"""The shortest heartbeat interval that brokers allow, and their default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMemberRow:
    """One member, which is one stream thread, with its target assignment."""

    id: str
    ordinal: Ordinal | None
    """None where its pod is not known."""
    actives: frozenset[TaskId]
    standbys: frozenset[TaskId]
    offsets: Mapping[TaskId, int] = field(default_factory=dict)
    """Sums of offsets that it reported; brokers from 4.4 on rank copies by them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsRow:
    """What only a group of the streams protocol shows, and what the operator does with it."""

    group: StreamsGroup
    members: tuple[StreamsMemberRow, ...]
    standbys: Standbys | None
    """None where the brokers did not tell the setting."""
    heartbeat: timedelta
    """The interval while tasks move: the cap, where every agent can shorten it."""

    @property
    def is_capped(self) -> bool:
        """Whether agents shorten the interval."""
        return self.heartbeat < UNCAPPED


def streams_row(evidence: Evidence, group: GroupDescription, placement: MemberPlacement) -> StreamsRow | None:
    """Make the row; None for a group of the classic protocol.

    Args:
        evidence: What a decision rests on.
        group: The group of the newest reading.
        placement: Who runs where.
    """
    if group.streams is None:
        return None
    places = {member.id: ordinal for ordinal, members in placement.by_ordinal.items() for member in members}
    return StreamsRow(
        group=group.streams,
        members=tuple(_member(member, places.get(member.id)) for member in group.members),
        standbys=standbys_for_predictions(evidence),
        heartbeat=_heartbeat(evidence, placement),
    )


def _member(member: Member, ordinal: Ordinal | None) -> StreamsMemberRow:
    assigned = member.assignment if member.streams is None else member.streams.target
    said = {} if member.subscription is None else member.subscription.offsets
    row = StreamsMemberRow(
        id=member.id,
        ordinal=ordinal,
        actives=frozenset(),
        standbys=frozenset(),
        offsets={task: one.offset_sum for task, one in said.items() if isinstance(one, Applied)},
    )
    return row if assigned is None else replace(row, actives=assigned.active, standbys=assigned.standby)


def _heartbeat(evidence: Evidence, placement: MemberPlacement) -> timedelta:
    if not evidence.policy.agent:
        return UNCAPPED
    reports = evidence.fresh_reports
    can_all = all(ordinal in reports and reports[ordinal].heartbeat_cap is not None for ordinal in placement.by_ordinal)
    return min(UNCAPPED, evidence.policy.timing.heartbeat_cap) if can_all else UNCAPPED
