"""Lines of the flight record about where things are: pods with their volumes, and the members of the group.

Called by `changes`, which knows what is news.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.group import (
    FollowUp,
    GroupDescription,
    GroupReading,
    GroupState,
    GroupUnreadable,
    fingerprint,
)
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from streamapp.core.facts.workload import Pod as SeenPod
from streamapp.core.facts.workload import Workload
from streamapp.flightrecord.lines import Head
from streamapp.flightrecord.schema import Group, Holder, Pod


def pod_lines(
    head: Head,
    at: datetime,
    workload: Workload,
    live: Iterable[Mapping[str, Any]],
    shown: Mapping[Ordinal, str],
    reports: Mapping[Ordinal, AgentReport],
) -> Mapping[str, Pod]:
    """Every pod there is, by its UID.

    Args:
        head: What all lines share.
        at: When it was so.
        workload: The pods as they are judged.
        live: The same as they were read, for what no judgement needs.
        shown: The process of each pod, where it is known.
        reports: What agents say, by ordinal.
    """
    raw = {one["metadata"]["uid"]: one for one in live}
    recorded = {one.ordinal: one.process_id for one in workload.volumes}
    found = {}
    for pod in workload.pods:
        process = recorded.get(pod.ordinal)
        report = reports.get(pod.ordinal)
        own = report if report is not None and report.pod_uid == pod.uid else None
        found[pod.uid] = Pod(
            **head,
            seq=0,
            ts=at,
            process_id=str(process) if process is not None else shown.get(pod.ordinal, ""),
            state_bytes=None if own is None else own.state_bytes,
            free_bytes=None if own is None else own.free_bytes,
            **_of_the_pod(pod, raw.get(pod.uid, {})),
        )
    return found


def what_a_pod_is(line: Pod) -> tuple[object, ...]:
    """What makes a line worth writing where it changes; the room on its volume changes all the time."""
    return (
        *(line.ordinal, line.node, line.revision, line.is_scheduled, line.is_running, line.is_ready),
        *(line.is_terminating, line.container_id, line.process_id, line.volume),
    )


def group_line(head: Head, reading: GroupReading, placement: MemberPlacement | None, epoch: int) -> Group:
    """The group at one look; `placement` is needed where it shows who holds what."""
    group = reading.group
    state, follow_up = what_a_group_says(group)
    holders: tuple[Holder, ...] = ()
    if isinstance(group, GroupDescription) and placement is not None:
        holders = _holders(group, placement)
    return Group(
        **head,
        seq=0,
        ts=reading.ended_at,
        epoch=epoch,
        state=state,
        holders=holders,
        follow_up=follow_up,
    )


def what_a_group_says(group: GroupDescription | GroupUnreadable) -> tuple[str, bool | None]:
    """Its state, or why it could not be read; and whether another rebalance is scheduled, where that is known."""
    if not isinstance(group, GroupDescription):
        return group.reason.name, None
    return group.state.value, _follow_up(group)


def shows_layout(reading: GroupReading) -> bool:
    """Tell whether a look shows who holds what; while members join it does not, and an empty group holds nothing."""
    group = reading.group
    return isinstance(group, GroupDescription) and group.state is GroupState.STABLE and group.is_decoded


def layout(group: GroupDescription, placement: MemberPlacement) -> object:
    """What makes another epoch where it changes."""
    places = tuple((one.id, ordinal) for ordinal, found in sorted(placement.by_ordinal.items()) for one in found)
    return fingerprint(group), places


def processes(placement: MemberPlacement) -> Mapping[Ordinal, str]:
    """The process that the members of each ordinal show."""
    return {
        ordinal: str(one.process_id)
        for ordinal, members in placement.by_ordinal.items()
        for one in members
        if one.process_id is not None
    }


def _of_the_pod(pod: SeenPod, live: Mapping[str, Any]) -> dict[str, Any]:
    spec = live.get("spec", {})
    return {
        "ordinal": pod.ordinal,
        "pod_uid": pod.uid,
        "node": spec.get("nodeName", ""),
        "revision": pod.revision,
        "is_scheduled": bool(spec.get("nodeName")),
        "is_running": pod.is_running,
        "is_ready": pod.ready,
        "is_terminating": pod.terminating,
        "container_id": pod.container.id or "",
        "volume": _claim(spec.get("volumes") or (), pod.ordinal),
    }


def _claim(volumes: Sequence[Mapping[str, Any]], ordinal: Ordinal) -> str:
    """The claim that a StatefulSet made for this ordinal: its name ends like the pod's."""
    names = (str(one.get("persistentVolumeClaim", {}).get("claimName", "")) for one in volumes)
    return next((name for name in names if name.endswith(f"-{ordinal}")), "")


def _holders(group: GroupDescription, placement: MemberPlacement) -> tuple[Holder, ...]:
    ordinals = {one.id: ordinal for ordinal, found in placement.by_ordinal.items() for one in found}
    active: dict[ProcessId, set[TaskId]] = defaultdict(set)
    standby: dict[ProcessId, set[TaskId]] = defaultdict(set)
    threads: dict[ProcessId, int] = defaultdict(int)
    places: dict[ProcessId, Ordinal] = {}
    phantoms = {one.id for one in placement.probe_members}
    for member in group.members:
        process = member.process_id
        if process is None or member.id in phantoms:
            continue
        threads[process] += 1
        if member.id in ordinals:
            places[process] = ordinals[member.id]
        if member.assignment is not None:
            active[process] |= member.assignment.active
            standby[process] |= member.assignment.standby
    return tuple(
        Holder(
            process_id=str(process),
            ordinal=places.get(process),
            active=tuple(map(str, sorted(active[process]))),
            standby=tuple(map(str, sorted(standby[process]))),
            threads=count,
        )
        for process, count in sorted(threads.items(), key=lambda one: str(one[0]))
    )


def _follow_up(group: GroupDescription) -> bool | None:
    said = {member.assignment.follow_up for member in group.members if member.assignment is not None}
    if FollowUp.SCHEDULED in said:
        return True
    return False if said == {FollowUp.NONE} else None
