"""Makes lines of the flight record about pods: their containers, their volumes, and how containers ended.

A pod gets a line when it comes, changes or goes, and when its state or the free space of its volume moved by a
hundredth of the volume.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.containers import ContainerEnd
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.workload import Pod, Workload
from streamapp.flightrecord.lines import Head
from streamapp.flightrecord.schema import PodLine

FINENESS = 100
"""A line for each such part of the volume by which its bytes moved: a store that grows makes few lines."""


@dataclass(frozen=True, slots=True)
class ObservedPods:
    """The pods of one pass."""

    at: datetime
    workload: Workload
    """The pods as gates see them."""
    manifests: Iterable[Mapping[str, Any]]
    """The pods as the API server returned them."""
    processes: Mapping[Ordinal, str]
    """The process ID that the members of a pod show, by ordinal."""
    reports: Mapping[Ordinal, AgentReport]
    """Fresh agent reports, by ordinal."""
    ends: Iterable[ContainerEnd]


@dataclass(slots=True)
class PodLog:
    """The last state of each pod of one application, and the last line of each."""

    _seen: dict[str, PodLine] = field(default_factory=dict)
    """By UID."""
    _told: dict[str, PodLine] = field(default_factory=dict)
    """By UID, as it was written."""
    _tells_all: bool = True
    """Whether every pod gets a line in the next pass, changed or not."""

    def tell_again(self) -> None:
        """Write every pod in the next pass: nobody knows what was in force meanwhile."""
        self._tells_all = True

    def lines(self, head: Head, pods: ObservedPods) -> Iterator[PodLine]:
        """Give the lines that are news, and remember them as written."""
        ends = {end.container_id: end for end in pods.ends if end.is_trusted}
        live = {uid: _with_end(line, self._seen.get(uid), ends) for uid, line in _lines(head, pods).items()}
        # Removed pods come first: the last line of an ordinal must be that of the pod that replaced another.
        for uid, line in self._seen.items():
            if uid not in live:
                changes = {"ts": pods.at, "is_gone": True, "is_running": False, "is_ready": False}
                yield _with_end(line, line, ends).model_copy(update=changes)
        told: dict[str, PodLine] = {}
        for uid, line in live.items():
            before = self._told.get(uid)
            is_news = before is None or _identity(before) != _identity(line) or _has_moved(before, line)
            if before is None or is_news or self._tells_all:
                told[uid] = line
                yield line
            else:
                told[uid] = before
        self._seen, self._told, self._tells_all = live, told, False


def _lines(head: Head, pods: ObservedPods) -> Mapping[str, PodLine]:
    """Lines of all pods, by UID; without the ends of their containers."""
    by_uid = {manifest["metadata"]["uid"]: manifest for manifest in pods.manifests}
    volumes = {volume.ordinal: volume for volume in pods.workload.volumes}
    lines = {}
    for pod in pods.workload.pods:
        volume, report = volumes.get(pod.ordinal), pods.reports.get(pod.ordinal)
        process = None if volume is None else volume.process_id
        own = report if report is not None and report.pod_uid == pod.uid else None
        lines[pod.uid] = PodLine(
            **head,
            seq=0,
            ts=pods.at,
            process_id=str(process) if process is not None else pods.processes.get(pod.ordinal, ""),
            state_bytes=None if own is None else own.state_bytes,
            free_bytes=None if own is None else own.free_bytes,
            requested_bytes=None if volume is None else volume.requested,
            **_pod_fields(pod, by_uid.get(pod.uid, {})),
        )
    return lines


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


def _with_end(line: PodLine, before: PodLine | None, ends: Mapping[str, ContainerEnd]) -> PodLine:
    """The line with the last end of a container that this pod was seen with: ends of sidecars have no name here."""
    known = [line.container_id, *([] if before is None else [before.container_id])]
    end = next((ends[container] for container in known if container in ends), None)
    told: dict[str, Any]
    if end is not None:
        told = {"ended_at": end.finished_at, "end_reason": end.reason, "exit_code": _exit_code(end)}
    elif before is not None:
        told = {"ended_at": before.ended_at, "end_reason": before.end_reason, "exit_code": before.exit_code}
    else:
        return line
    return line.model_copy(update=told)


def _exit_code(end: ContainerEnd) -> int | None:
    return None if end.exit_code is None or end.exit_code < 0 else end.exit_code


def _identity(line: PodLine) -> tuple[object, ...]:
    """The fields whose change makes a new line."""
    return (
        *(line.ordinal, line.node, line.revision, line.is_scheduled, line.is_running, line.is_ready),
        *(line.is_terminating, line.container_id, line.process_id, line.volume, line.requested_bytes, line.ended_at),
    )


def _has_moved(told: PodLine, now: PodLine) -> bool:
    """Whether the bytes on the volume moved by its hundredth since they were written."""
    if now.state_bytes is None or now.free_bytes is None:
        return False
    if told.state_bytes is None or told.free_bytes is None:
        return True
    whole = told.state_bytes + told.free_bytes
    moved = max(abs(now.state_bytes - told.state_bytes), abs(now.free_bytes - told.free_bytes))
    return moved * FINENESS >= max(whole, FINENESS)
