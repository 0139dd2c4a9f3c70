"""What is kept of an object in the cache: a fleet has very many, and most of each is read by nobody here.

StatefulSets and StreamApps are kept whole: who owns their fields is part of the decision.
"""

from collections.abc import Mapping

from streamapp.api.names import APP_LABEL, APPLICATION_ID, KEPT_STATE, PROCESS_ID, ZONE
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
    """Keep what names it and its application: every claim of the scope is watched, whoever made it."""
    kept = _only(one["metadata"], _OF_CLAIM)
    for name, known in (("labels", (APP_LABEL,)), ("annotations", (PROCESS_ID, APPLICATION_ID, KEPT_STATE))):
        kept[name] = _only(one["metadata"].get(name) or {}, known)
    if len(kept["annotations"].get(KEPT_STATE, "")) > kept_states.MOST_CHARACTERS:
        del kept["annotations"][KEPT_STATE]
    return {**_only(one, ("apiVersion", "kind")), "metadata": kept}


def pod(one: Json) -> Json:
    """Keep what `from_json` and the flight record read."""
    spec, status = one["spec"], one.get("status", {})
    kept: Json = {
        name: [{"name": container["name"]} for container in spec.get(name) or ()]
        for name in ("containers", "initContainers")
    }
    kept |= {name: spec[name] for name in ("nodeName",) if name in spec}
    kept["volumes"] = [volume for volume in spec.get("volumes") or () if "persistentVolumeClaim" in volume]
    told: Json = {name: status[name] for name in ("phase", "podIPs") if name in status}
    told["conditions"] = [
        _only(condition, ("type", "status", "reason", "message")) for condition in status.get("conditions") or ()
    ]
    for name in ("containerStatuses", "initContainerStatuses"):
        told[name] = [_only(container, _CONTAINER_STATUS) for container in status.get(name) or ()]
    metadata = {name: value for name, value in one["metadata"].items() if name not in {"managedFields", "annotations"}}
    return {**one, "metadata": metadata, "spec": kept, "status": told}


def node(one: Json) -> Json:
    """Keep whether it must be drained, and its zone."""
    metadata = _only(one["metadata"], ("name", "uid", "resourceVersion"))
    metadata["labels"] = _only(one["metadata"].get("labels") or {}, (ZONE,))
    return {**_only(one, ("apiVersion", "kind")), "metadata": metadata, "spec": _only(one.get("spec") or {}, _OF_NODE)}


def _only(part: Json, names: tuple[str, ...]) -> Json:
    return {name: part[name] for name in names if name in part}


TRIMS: Mapping[Kind, Trim] = {PODS: pod, CLAIMS: claim, BUDGETS: without_owners, SERVICES: without_owners, NODES: node}
