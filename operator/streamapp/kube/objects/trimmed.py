"""What is kept of an object in the cache: a fleet has very many, and most of each is read by nobody here.

StatefulSets and StreamApps are kept whole: who owns their fields is part of the decision.
"""

from collections.abc import Mapping

from streamapp.api.names import APP_LABEL, APPLICATION_ID, CONTAINER, KEPT_STATE, PROCESS_ID, ZONE
from streamapp.api.validation.conflicts import AGENT, AGENT_TLS
from streamapp.kube.client.client import Json
from streamapp.kube.client.kinds import BUDGETS, CLAIMS, NODES, PODS, SERVICES, Kind
from streamapp.kube.client.object_cache import Trim
from streamapp.kube.objects import kept_states

_OF_CLAIM = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
_OF_NODE = ("unschedulable", "taints")
_CONTAINER_STATUS = ("name", "containerID", "restartCount", "state", "lastState")


def without_owners(one: Json) -> Json:
    """Leave out who owns which field."""
    metadata = {name: value for name, value in one["metadata"].items() if name != "managedFields"}
    return {**one, "metadata": metadata}


def claim(one: Json) -> Json:
    """Keep what names it, its application and its size: every claim of the scope is watched, whoever made it."""
    kept = _only(one["metadata"], _OF_CLAIM)
    for name, known in (("labels", (APP_LABEL,)), ("annotations", (PROCESS_ID, APPLICATION_ID, KEPT_STATE))):
        kept[name] = _only(one["metadata"].get(name) or {}, known)
    if len(kept["annotations"].get(KEPT_STATE, "")) > kept_states.MOST_CHARACTERS:
        del kept["annotations"][KEPT_STATE]
    requests = one.get("spec", {}).get("resources", {}).get("requests", {})
    spec = {"resources": {"requests": _only(requests, ("storage",))}}
    status = _only(one.get("status", {}), ("phase",))
    return {**_only(one, ("apiVersion", "kind")), "metadata": kept, "spec": spec, "status": status}


def pod(one: Json) -> Json:
    """Keep what `from_json` and the flight record read."""
    spec, status = one["spec"], one.get("status", {})
    kept: Json = {"initContainers": [_only(container, ("name",)) for container in spec.get("initContainers") or ()]}
    kept["containers"] = [_container(container) for container in spec.get("containers") or ()]
    kept |= {name: spec[name] for name in ("nodeName",) if name in spec}
    kept["volumes"] = [
        volume
        for volume in spec.get("volumes") or ()
        if "persistentVolumeClaim" in volume or volume["name"] == AGENT_TLS
    ]
    told: Json = {name: status[name] for name in ("phase", "podIPs") if name in status}
    told["conditions"] = [
        _only(condition, ("type", "status", "reason", "message")) for condition in status.get("conditions") or ()
    ]
    for name in ("containerStatuses", "initContainerStatuses"):
        told[name] = [_only(container, _CONTAINER_STATUS) for container in status.get(name) or ()]
    metadata = {name: value for name, value in one["metadata"].items() if name not in {"managedFields", "annotations"}}
    if container := (one["metadata"].get("annotations") or {}).get(CONTAINER):
        metadata["annotations"] = {CONTAINER: container}
    return {**one, "metadata": metadata, "spec": kept, "status": told}


def _container(one: Json) -> Json:
    """Keep its name, and by what the application's container is known."""
    ports = [_only(port, ("name", "containerPort")) for port in one.get("ports") or () if port.get("name") == AGENT]
    mounts = [_only(mount, ("name",)) for mount in one.get("volumeMounts") or ()]
    return {"name": one["name"], **({"ports": ports} if ports else {}), **({"volumeMounts": mounts} if mounts else {})}


def node(one: Json) -> Json:
    """Keep whether it must be drained, and its zone."""
    metadata = _only(one["metadata"], ("name", "uid", "resourceVersion"))
    metadata["labels"] = _only(one["metadata"].get("labels") or {}, (ZONE,))
    return {**_only(one, ("apiVersion", "kind")), "metadata": metadata, "spec": _only(one.get("spec") or {}, _OF_NODE)}


def _only(part: Json, names: tuple[str, ...]) -> Json:
    return {name: part[name] for name in names if name in part}


TRIMS: Mapping[Kind, Trim] = {PODS: pod, CLAIMS: claim, BUDGETS: without_owners, SERVICES: without_owners, NODES: node}
