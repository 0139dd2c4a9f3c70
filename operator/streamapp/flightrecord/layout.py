"""Makes lines of the flight record about the members of the group and their pods.

`changes` decides which of them are news.
"""

from collections import defaultdict
from collections.abc import Mapping
from operator import itemgetter

from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.facts.group import (
    FollowUp,
    GroupDescription,
    GroupReading,
    GroupState,
    GroupUnreadable,
    fingerprint,
)
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from streamapp.flightrecord.lines import Head
from streamapp.flightrecord.schema import GroupLine, Holder


def group_line(head: Head, reading: GroupReading, placement: MemberPlacement | None, epoch: int) -> GroupLine:
    """The group at one reading; without `placement` the line has no holders."""
    group = reading.group
    state, follow_up = group_state(group)
    holders: tuple[Holder, ...] = ()
    if isinstance(group, GroupDescription) and placement is not None:
        holders = _holders(group, placement)
    return GroupLine(
        **head,
        seq=0,
        ts=reading.ended_at,
        epoch=epoch,
        state=state,
        holders=holders,
        follow_up=follow_up,
    )


def group_state(group: GroupDescription | GroupUnreadable) -> tuple[str, bool | None]:
    """The state, or why the group could not be read; and whether a follow-up rebalance is scheduled."""
    if not isinstance(group, GroupDescription):
        return group.reason.name, None
    return group.state.value, _follow_up(group)


def shows_layout(reading: GroupReading) -> bool:
    """Whether a reading shows the assignment: not while members join, and not of an empty group."""
    group = reading.group
    return isinstance(group, GroupDescription) and group.state is GroupState.STABLE and group.is_decoded


def epoch_key(group: GroupDescription, placement: MemberPlacement) -> object:
    """A value whose change begins a new epoch."""
    return fingerprint(group), tuple(sorted(pods_of_members(placement).items(), key=itemgetter(1)))


def pods_of_members(placement: MemberPlacement) -> Mapping[str, Ordinal]:
    """The pod of each placed member, by member ID."""
    return {member.id: ordinal for ordinal, members in placement.by_ordinal.items() for member in members}


def processes(placement: MemberPlacement) -> Mapping[Ordinal, str]:
    """The process ID that the members of each pod show."""
    return {
        ordinal: str(member.process_id)
        for ordinal, members in placement.by_ordinal.items()
        for member in members
        if member.process_id is not None
    }


def _holders(group: GroupDescription, placement: MemberPlacement) -> tuple[Holder, ...]:
    pods = pods_of_members(placement)
    active: dict[ProcessId, set[TaskId]] = defaultdict(set)
    standby: dict[ProcessId, set[TaskId]] = defaultdict(set)
    threads: dict[ProcessId, int] = defaultdict(int)
    ordinals: dict[ProcessId, Ordinal] = {}
    probes = {member.id for member in placement.probe_members}
    for member in group.members:
        process = member.process_id
        if process is None or member.id in probes:
            continue
        threads[process] += 1
        if member.id in pods:
            ordinals[process] = pods[member.id]
        if member.assignment is not None:
            active[process] |= member.assignment.active
            standby[process] |= member.assignment.standby
    return tuple(
        Holder(
            process_id=str(process),
            ordinal=ordinals.get(process),
            active=tuple(map(str, sorted(active[process]))),
            standby=tuple(map(str, sorted(standby[process]))),
            threads=count,
        )
        for process, count in sorted(threads.items(), key=lambda item: str(item[0]))
    )


def _follow_up(group: GroupDescription) -> bool | None:
    answers = {member.assignment.follow_up for member in group.members if member.assignment is not None}
    if FollowUp.SCHEDULED in answers:
        return True
    return False if answers == {FollowUp.NONE} else None
