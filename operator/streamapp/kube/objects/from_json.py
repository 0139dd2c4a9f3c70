"""What was read of StatefulSet, pods, claims and budget, as the values that the core decides about.

Pure functions over the API server's JSON. Called by the controller's gathering and, for container ends, by its watch
handlers. A field that is missing is what Kubernetes says it means then; nothing is guessed.
"""

import ipaddress
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from streamapp.api.names import (
    APPLICATION_ID,
    CONTAINER,
    HOLD_GENERATION,
    HOLD_RECORD,
    KEPT_STATE,
    LEASE,
    POD_NAME_LABEL,
    PROCESS_ID,
    ZONE,
)
from streamapp.api.objects.drift import first_ordinal
from streamapp.api.v1alpha1.quantities import parse_quantity
from streamapp.api.v1alpha1.spec import MOST_REPLICAS
from streamapp.api.validation.conflicts import AGENT, AGENT_TLS, SEEDER
from streamapp.core.facts.containers import ContainerEnd
from streamapp.core.facts.hold_annotation import decode, with_generation
from streamapp.core.facts.hold_record import HoldRecord, RecordUnreadable
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.core.facts.workload import (
    UNSCHEDULABLE,
    Budget,
    Container,
    LastUse,
    NodeDrain,
    Pod,
    StatefulSet,
    StateSeen,
    Volume,
)
from streamapp.kube.client.client import Json
from streamapp.kube.objects import kept_states
from streamapp.kube.objects.pod_faults import pod_fault

_ORDINAL = re.compile(r"-(\d+)$", re.ASCII)
MOST_DIGITS = 18
"""Of a number that another writer can change."""
LONGEST_IDLE_SECONDS = 10**10
"""Three centuries: a file's date can be any, and what is older than this cannot be reckoned with."""


def time(text: str) -> datetime:
    """Read a time stamp of the API server."""
    return datetime.fromisoformat(text).astimezone(UTC)


def replicas_written_at(app: Json) -> datetime | None:
    """When `spec.replicas` got its value, or later, by the API server's clock; None if that is not known.

    The API server dates each manager's fields anew when that manager changes one of them. So of the managers that own
    the field the latest date counts: a rewrite of other fields makes it later, never earlier. A write through `scale`,
    as of an HPA, takes the field over without a date; then nothing is known. Nor is it where somebody wrote such an
    entry himself, with the year 0, say, which the API server takes.
    """
    entries = app["metadata"].get("managedFields") or ()
    dates = [one.get("time") for one in entries if "f:replicas" in ((one.get("fieldsV1") or {}).get("f:spec") or {})]
    try:
        return max(map(time, dates)) if dates and all(dates) else None
    except (ValueError, OverflowError):
        return None


def statefulset(
    live: Json,
    *,
    is_ours: bool,
    template_is_written: bool,
    drift: str = "",
    storage_class: str = "",
    is_half_made: bool = False,
    deletes_kept_claims: bool = False,
) -> StatefulSet:
    """Give the StatefulSet, with the results of a comparison with the StreamApp."""
    metadata, status = live["metadata"], live.get("status", {})
    return StatefulSet(
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        generation=metadata["generation"],
        observed_generation=status.get("observedGeneration", 0),
        replicas=live["spec"]["replicas"],
        update_revision=status.get("updateRevision", ""),
        template_is_written=template_is_written,
        is_ours=is_ours,
        record=hold_record(metadata),
        drift=drift,
        storage_class=storage_class,
        first_ordinal=first_ordinal(live),
        is_half_made=is_half_made,
        deletes_kept_claims=deletes_kept_claims,
        deleting="deletionTimestamp" in metadata,
    )


def _is_number(text: str) -> bool:
    """Whether it is an ordinal as a StatefulSet writes it: `00` is the name of another object, which anybody can make.

    Two objects of one ordinal would be a contradiction that no pass can go on from.
    """
    return text.isascii() and text.isdecimal() and text == str(int(text))


def _is_pod_of(statefulset_name: str, name: str) -> bool:
    number = name.removeprefix(f"{statefulset_name}-")
    return number != name and _is_number(number)


def is_controlled_by(live: Json, owner_uid: str) -> bool:
    """Whether the object's controller is the owner."""
    owners = live["metadata"].get("ownerReferences", ())
    return any(owner.get("controller") and owner["uid"] == owner_uid for owner in owners)


PodVersion = tuple[str, str, str]
"""UID and version of a pod, and the name of the application's container: of these a pod says always the same."""


def pods(
    live: Sequence[Json],
    statefulset_name: str,
    statefulset_uid: str | None,
    container: str,
    known: MutableMapping[PodVersion, Pod] | None = None,
) -> tuple[Pod, ...]:
    """Give the StatefulSet's pods; those that only carry its labels are left out.

    Args:
        live: The pods with the StreamApp's label.
        statefulset_name: Pods are called `<statefulset>-<ordinal>`.
        statefulset_uid: Their controller; None where it is gone and has left orphans, which all count.
        container: Name of the application's container; empty where the pods have one.
        known: Pods as they were read last, which are not read again; afterwards these pods.
    """
    named = [one for one in live if _is_pod_of(statefulset_name, one["metadata"]["name"])]
    own = [one for one in named if _is_own(one, statefulset_uid)]
    if known is None:
        return tuple(_pod(one, container) for one in own)
    versions = [(one["metadata"]["uid"], one["metadata"].get("resourceVersion", ""), container) for one in own]
    found = [known.get(version) or _pod(one, container) for version, one in zip(versions, own, strict=True)]
    known.clear()
    known.update((version, pod) for version, pod in zip(versions, found, strict=True) if version[1])
    return tuple(found)


def _is_own(pod: Json, statefulset_uid: str | None) -> bool:
    """Whether a pod of this name is the StatefulSet's, or was.

    Anybody who can make pods can make one of a StatefulSet that is gone, and it is made anew as large as its highest
    orphan says. No StreamApp asks for so many that a larger number could be its own.
    """
    return ordinal(pod) < MOST_REPLICAS if statefulset_uid is None else is_controlled_by(pod, statefulset_uid)


def volumes(
    live: Sequence[Json],
    template: str,
    statefulset_name: str,
    application_id: str,
    given_up: Collection[Ordinal] = frozenset(),
) -> tuple[Volume, ...]:
    """Give the volumes that the StatefulSet made from its claim template: `<template>-<statefulset>-<ordinal>`.

    A process ID counts only if it was recorded for this application: another one has a state directory and a process
    file of its own on the volume.

    Args:
        live: The claims.
        template: The name of the claim template.
        statefulset_name: Of the StatefulSet.
        application_id: Whose process IDs count.
        given_up: Ordinals whose volume is known until their pod is gone; of others a claim that is being deleted is
            left out. One that has lost its volume always is, until it is being deleted.
    """
    volumes_found = []
    for claim in live:
        name = str(claim["metadata"]["name"])
        prefix = f"{template}-{statefulset_name}-"
        number = name.removeprefix(prefix)
        if number == name or not _is_number(number):
            continue
        ordinal, deleting = Ordinal(int(number)), "deletionTimestamp" in claim["metadata"]
        is_lost = claim.get("status", {}).get("phase") == "Lost"
        is_known = ordinal in given_up if deleting else not is_lost
        if is_known:
            volumes_found.append(_volume(claim, ordinal, application_id))
    return tuple(volumes_found)


def _volume(claim: Json, ordinal: Ordinal, application_id: str) -> Volume:
    metadata, process_id = claim["metadata"], _process_id(recorded_process_id(claim, application_id))
    text = metadata.get("annotations", {}).get(KEPT_STATE)
    return Volume(
        ordinal=ordinal,
        process_id=process_id,
        uid=str(metadata.get("uid", "")),
        deleting="deletionTimestamp" in metadata,
        created_at=_created_at(metadata),
        requested=_requested(claim),
        kept=None if process_id is None or text is None else kept_states.decode(text),
    )


def recorded_process_id(claim: Json, application_id: str) -> str | None:
    """The process ID that stands on a claim for this application."""
    annotations = claim["metadata"].get("annotations", {})
    recorded: str | None = annotations.get(PROCESS_ID)
    return recorded if annotations.get(APPLICATION_ID) == application_id else None


@dataclass(frozen=True, slots=True)
class BudgetFacts:
    """What a PodDisruptionBudget says."""

    allows: Budget
    evictable: Ordinal | None = None
    """The pod that its selector leaves out."""
    lease: int | None = None
    """As its annotation has it."""


def budget(live: Json | None) -> BudgetFacts:
    """Read the PodDisruptionBudget. One that is not as the operator writes it allows anything, and nobody's lease."""
    if live is None:
        return BudgetFacts(Budget.ABSENT)
    text = str(live["metadata"].get("annotations", {}).get(LEASE, ""))
    # A program that reads numbers refuses one of thousands of digits, and anybody may have written this one.
    lease = int(text) if text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS else None
    most, left_out = live["spec"].get("maxUnavailable"), live["spec"].get("selector", {}).get("matchExpressions") or []
    if not left_out and most in {0, 1}:
        return BudgetFacts(Budget.OPEN if most else Budget.CLOSED, None, lease)
    named = [_ORDINAL.search(str(name)) for one in left_out for name in one.get("values") or ()]
    known = [Ordinal(int(match[1])) for match in named if match is not None]
    is_ours = len(left_out) == len(named) == len(known) == 1 and left_out[0]["key"] == POD_NAME_LABEL
    if is_ours and most == 0:
        return BudgetFacts(Budget.OPEN_FOR_ONE, known[0], lease)
    return BudgetFacts(Budget.OPEN)


def drain_of(node: Json, taints: Collection[str]) -> NodeDrain | None:
    """Give why a node must be drained; None where nothing says so.

    Args:
        node: As read.
        taints: Keys of taints by which autoscalers and upgrades say that a node goes.
    """
    name, spec = str(node["metadata"]["name"]), node.get("spec", {})
    if spec.get("unschedulable"):
        return NodeDrain(name, UNSCHEDULABLE)
    found = next((str(taint["key"]) for taint in spec.get("taints") or () if taint["key"] in taints), None)
    return None if found is None else NodeDrain(name, found)


def zone_of(one: Json) -> str:
    """Give the zone of a node, or of a pod that Kubernetes labels with the zone of its node; empty if it has none.

    The API server copies the label when a pod is bound to its node: by default from Kubernetes 1.35 on.
    """
    return str((one["metadata"].get("labels") or {}).get(ZONE, ""))


def container_ends(pod: Json) -> tuple[ContainerEnd, ...]:
    """Give the ends of containers in a pod's status: of the present run, and of the run before."""
    uid = pod["metadata"]["uid"]
    return tuple(
        ContainerEnd(
            pod_uid=uid,
            container_id=end["containerID"],
            finished_at=time(end["finishedAt"]),
            reason=end.get("reason", ""),
            exit_code=end.get("exitCode"),
            started_at=time(end["startedAt"]) if end.get("startedAt") else None,
            is_followed=newest != end["containerID"],
        )
        for newest, end in _terminations(pod)
        if end.get("containerID") and end.get("finishedAt")
    )


def is_ready(pod: Json) -> bool:
    """Whether a pod says that it is ready; it can be on its way out."""
    conditions = pod.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def ordinal(pod: Json) -> Ordinal:
    """Give the pod's ordinal; ValueError if it is no pod of a StatefulSet."""
    name = pod["metadata"]["name"]
    match = _ORDINAL.search(name)
    if match is None:
        raise ValueError(f"pod {name}: its name does not end in an ordinal")
    return Ordinal(int(match[1]))


def hold_record(metadata: Mapping[str, Any]) -> HoldRecord | RecordUnreadable | None:
    """Give the hold record of a StatefulSet by its metadata, with what stands beside it."""
    annotations = metadata.get("annotations") or {}
    text = annotations.get(HOLD_RECORD)
    return None if text is None else with_generation(decode(text), annotations.get(HOLD_GENERATION))


def _requested(claim: Json) -> int | None:
    """Bytes that a claim asks for; None where it does not say, or in no words that this release can read.

    None also before it has a volume: Kubernetes refuses to expand such a claim.
    """
    if claim.get("status", {}).get("phase") != "Bound":
        return None
    text = claim.get("spec", {}).get("resources", {}).get("requests", {}).get("storage")
    try:
        return None if text is None else int(parse_quantity(str(text)))
    except ValueError:
        return None


def _created_at(metadata: Mapping[str, Any]) -> datetime | None:
    return time(metadata["creationTimestamp"]) if metadata.get("creationTimestamp") else None


def _process_id(text: str | None) -> ProcessId | None:
    try:
        return None if text is None else ProcessId.parse(text)
    except ValueError:
        # A word that is no ID must not look like "not recorded yet": it is an ID that nobody has, and so a mismatch.
        return ProcessId(UUID(int=0))


def _pod(pod: Json, container: str) -> Pod:
    metadata, status = pod["metadata"], pod.get("status", {})
    addresses = [str(ipaddress.ip_address(entry["ip"])) for entry in status.get("podIPs", ())]
    return Pod(
        ordinal=ordinal(pod),
        uid=metadata["uid"],
        revision=metadata.get("labels", {}).get("controller-revision-hash", ""),
        ips=tuple(addresses),
        ready=is_ready(pod),
        terminating="deletionTimestamp" in metadata,
        container=_container(pod, container),
        has_agent=any(one["name"] == AGENT for one in pod["spec"].get("initContainers") or ()),
        agent_port=_agent_port(pod["spec"]),
        agent_tls_secret=_agent_tls_secret(pod["spec"]),
        last_use=_last_use(pod, container),
        fault=pod_fault(pod, _application_of(pod, container)),
        node=str(pod["spec"].get("nodeName") or ""),
        created_at=_created_at(metadata),
        zone=zone_of(pod),
    )


def _agent_tls_secret(spec: Json) -> str | None:
    """The Secret of the volume with the agent's certificate; a pod's volumes never change.

    A volume of that name without a Secret is one of a Secret that nobody can read: plain HTTP must not follow from it.
    """
    for volume in spec.get("volumes") or ():
        if volume["name"] == AGENT_TLS:
            return str((volume.get("secret") or {}).get("secretName") or "")
    return None


def _status_of(pod: Json, container: str | None, field: str) -> Mapping[str, Any]:
    """The status of one container; empty where the kubelet has reported none."""
    statuses = pod.get("status", {}).get(field) or ()
    return next((status for status in statuses if status["name"] == container), {})


def _last_use(pod: Json, container: str) -> LastUse | None:
    """The seeder's last run, or the end of the application's last run after it; None while the application runs.

    None, too, where that cannot be told: its container is not known, or the kubelet lost sight of a run.
    """
    application_container = _application_of(pod, container)
    ended = _status_of(pod, SEEDER, "initContainerStatuses").get("state", {}).get("terminated", {})
    if application_container is None or ended.get("exitCode") != 0 or not ended.get("finishedAt"):
        return None
    ended_at = time(ended["finishedAt"])
    status = _status_of(pod, application_container, "containerStatuses")
    states = (status.get("state", {}), status.get("lastState", {}))
    runs = [state[name] for state in states for name in ("running", "terminated") if name in state]
    if any(not run.get("startedAt") for run in runs):
        return None
    later = [run for run in runs if time(run["startedAt"]) >= ended_at]
    if not later:
        return LastUse(ended_at=ended_at, idle=_idle(ended.get("message", "")))
    ends = [time(run["finishedAt"]) for run in later if run.get("finishedAt")]
    return LastUse(ended_at=max(ends), idle=timedelta(0)) if len(ends) == len(later) else None


def _idle(report: str) -> timedelta | StateSeen:
    """Read the report of `operator/images/seed`; one of an older release does not have the field."""
    try:
        seconds = json.loads(report)["idleSeconds"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return StateSeen.UNKNOWN
    if seconds is None:
        return StateSeen.NONE
    is_age = type(seconds) is int and 0 <= seconds <= LONGEST_IDLE_SECONDS
    return timedelta(seconds=seconds) if is_age else StateSeen.UNKNOWN


def _container(pod: Json, name: str) -> Container:
    application_container = _application_of(pod, name)
    container_status = _status_of(pod, application_container, "containerStatuses")
    state = container_status.get("state", {})
    running = state.get("running", {}).get("startedAt")
    ran = container_status.get("restartCount", 0) > 0 or any(
        part in states
        for states in (state, container_status.get("lastState", {}))
        for part in ("running", "terminated")
    )
    identity = container_status.get("containerID") or None
    return Container(
        id=identity,
        running_since=time(running) if running and identity else None,
        # It is unknown whether a container ran that cannot be identified; so it counts as one that did.
        ever_ran=bool(ran) or application_container is None,
    )


def _application_of(pod: Json, name: str) -> str | None:
    """Name the application's container: sidecars that others inject may stand before it, so its place tells nothing.

    A pod keeps the container that its own template had, although the StreamApp names another one by now. So what the
    operator gave that container tells first: the agent's port, or the mount of the pod's volume claim; and else the
    pod's annotation. Without them the name does. An older template may have another name: then it is known only where
    there is no other container.
    """
    marks: tuple[Callable[[Json], bool], ...] = (_has_agent_port, partial(_mounts_claim_of, pod))
    for has_mark in marks:
        marked = [str(one["name"]) for one in pod["spec"]["containers"] if has_mark(one)]
        if len(marked) == 1:
            return marked[0]
    names = [str(one["name"]) for one in pod["spec"]["containers"]]
    name = next((one for one in (_annotated(pod), name) if one in names), name)
    if not name:
        return names[0]
    if name in names:
        return name
    return names[0] if len(names) == 1 else None


def _annotated(pod: Json) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(CONTAINER, ""))


def _has_agent_port(container: Json) -> bool:
    return any(port.get("name") == AGENT for port in container.get("ports") or ())


def _mounts_claim_of(pod: Json, container: Json) -> bool:
    """Whether it mounts the claim that the StatefulSet made for this very pod; a user can mount other claims, too."""
    claims = {
        volume["name"]: volume["persistentVolumeClaim"].get("claimName")
        for volume in pod["spec"].get("volumes") or ()
        if "persistentVolumeClaim" in volume
    }
    mounted = (str(mount.get("name")) for mount in container.get("volumeMounts") or ())
    return any(claims.get(name) == f"{name}-{pod['metadata']['name']}" for name in mounted)


def _agent_port(spec: Json) -> int | None:
    """Where the agent of a pod serves; the ports of a pod never change."""
    ports = (port for container in spec["containers"] for port in container.get("ports") or ())
    return next((int(port["containerPort"]) for port in ports if port.get("name") == AGENT), None)


def running_containers(pod: Json) -> Iterator[str]:
    """Give the IDs of the containers of a pod that run."""
    for status in pod.get("status", {}).get("containerStatuses", ()):
        if "running" in status.get("state", {}) and status.get("containerID"):
            yield str(status["containerID"])


def _terminations(pod: Json) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The ends of containers, each with the newest container in its place."""
    for status in pod.get("status", {}).get("containerStatuses", ()):
        for state in (status.get("state", {}), status.get("lastState", {})):
            if "terminated" in state:
                yield status.get("containerID") or "", state["terminated"]
