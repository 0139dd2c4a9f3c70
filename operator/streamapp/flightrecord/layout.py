"""Makes lines of the flight record about pods, their volumes, and the members of the group.

`changes` decides which of them are news.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
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
from streamapp.core.facts.workload import Pod, Workload
from streamapp.flightrecord.lines import Head
from streamapp.flightrecord.schema import GroupLine, Holder, PodLine


def pod_lines(
    head: Head,
    at: datetime,
    workload: Workload,
    manifests: Iterable[Mapping[str, Any]],
    processes: Mapping[Ordinal, str],
    reports: Mapping[Ordinal, AgentReport],
) -> Mapping[str, PodLine]:
    """Lines of all pods, by UID.

    Args:
        head: Fields that all lines share.
        at: Time of the pass.
        workload: The pods as gates see them.
        manifests: The pods as the API server returned them.
        processes: The process ID that the members of a pod show, by ordinal.
        reports: Fresh agent reports, by ordinal.
    """
    by_uid = {manifest["metadata"]["uid"]: manifest for manifest in manifests}
    recorded = {volume.ordinal: volume.process_id for volume in workload.volumes}
    lines = {}
    for pod in workload.pods:
        process = recorded.get(pod.ordinal)
        report = reports.get(pod.ordinal)
        own = report if report is not None and report.pod_uid == pod.uid else None
        lines[pod.uid] = PodLine(
            **head,
            seq=0,
            ts=at,
            process_id=str(process) if process is not None else processes.get(pod.ordinal, ""),
            state_bytes=None if own is None else own.state_bytes,
            free_bytes=None if own is None else own.free_bytes,
            **_pod_fields(pod, by_uid.get(pod.uid, {})),
        )
    return lines


def pod_identity(line: PodLine) -> tuple[object, ...]:
    """The fields whose change makes a new line; the free space of the volume changes all the time."""
    return (
        *(line.ordinal, line.node, line.revision, line.is_scheduled, line.is_running, line.is_ready),
        *(line.is_terminating, line.container_id, line.process_id, line.volume),
    )


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


def _pod_fields(pod: Pod, manifest: Mapping[str, Any]) -> dict[str, Any]:
    spec = manifest.get("spec", {})
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
    """The claim that the StatefulSet made for this ordinal: its name ends like the pod's."""
    names = (str(volume.get("persistentVolumeClaim", {}).get("claimName", "")) for volume in volumes)
    return next((name for name in names if name.endswith(f"-{ordinal}")), "")


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
