"""What another writer changed in the objects that the operator makes: live fields against those of the manifest.

Pure comparisons, called by the controller's gatherer and applier. The fields on which the safety of a removal rests are
compared as they are. The pod template is compared with what the API server would make of it (a dry run), since the API
server fills in defaults and writes numbers in its own way.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from streamapp.api.objects.manifests import Manifest
from streamapp.api.v1alpha1.pod_template import mapping, mappings
from streamapp.api.validation.conflicts import OWN_INIT_CONTAINERS

_STRATEGY = "spec.updateStrategy"
_RETENTION = "spec.persistentVolumeClaimRetentionPolicy"


def removal_drift(wanted: Manifest, live: Mapping[str, Any]) -> str:
    """Name the field of a StatefulSet that is not as `manifests.removal_fields` has it; empty where all are."""
    spec = mapping(live.get("spec"))
    strategy = mapping(spec.get("updateStrategy")).get("type", "RollingUpdate")
    if strategy != wanted["updateStrategy"]["type"]:
        return f"{_STRATEGY}: {strategy}"
    retention = mapping(spec.get("persistentVolumeClaimRetentionPolicy"))
    for when, policy in wanted.get("persistentVolumeClaimRetentionPolicy", {}).items():
        found = retention.get(when, "Retain")
        if found != policy:
            return f"{_RETENTION}.{when}: {found}"
    return ""


def retained(wanted: Manifest, live: Mapping[str, Any]) -> Manifest:
    """The retention policy as far as `manifests.retention_fields` has `Retain`, and the StatefulSet has not."""
    policy = mapping(mapping(live.get("spec")).get("persistentVolumeClaimRetentionPolicy"))
    asked = wanted.get("persistentVolumeClaimRetentionPolicy", {})
    return {when: word for when, word in asked.items() if word == "Retain" != policy.get(when, "Retain")}


def first_ordinal(live: Mapping[str, Any]) -> int:
    """Where the StatefulSet begins to count its pods: 0, unless another writer moved it."""
    return int(mapping(mapping(live.get("spec")).get("ordinals")).get("start") or 0)


def difference(expected: Mapping[str, Any], live: Mapping[str, Any]) -> str:
    """Name the first field of the spec that a write would change; empty where it would change nothing.

    Args:
        expected: The whole object as a dry run of the write gives it.
        live: The object as it is.
    """
    return _first("spec", mapping(expected.get("spec")), mapping(live.get("spec")))


def with_images_of(manifest: Manifest, live: Mapping[str, Any], manager: str) -> Manifest:
    """The manifest, with the images of our own init containers as this manager wrote them last.

    A newer operator has newer ones; to write them restarts every pod, and that waits for a change of the spec.
    """
    kept = deepcopy(manifest)
    pods = mapping(mapping(mapping(live.get("spec")).get("template")).get("spec"))
    found = {one.get("name"): one for one in mappings(pods.get("initContainers"))}
    for container in kept["spec"]["template"]["spec"].get("initContainers") or []:
        name = container.get("name")
        if name in OWN_INIT_CONTAINERS and name in found and _owns_image(live, manager, str(name)):
            container |= {key: found[name][key] for key in ("image", "imagePullPolicy") if key in found[name]}
    return kept


def covers(live: Mapping[str, Any], manifest: Mapping[str, Any]) -> bool:
    """Tell whether an object has every field of the manifest; a selector has these and no others."""
    return all(_has(name, live.get(name), value) for name, value in manifest.items())


def _has(name: str, live: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping) and name != "selector":
        return isinstance(live, Mapping) and covers(live, wanted)
    if isinstance(wanted, list):
        return isinstance(live, list) and all(any(_has("", one, each) for one in live) for each in wanted)
    return bool(live == wanted)


def _owns_image(live: Mapping[str, Any], manager: str, container: str) -> bool:
    """Whether the manager still owns the image: who changes a field takes it over."""
    for entry in mappings(mapping(live.get("metadata")).get("managedFields")):
        place: Any = entry.get("fieldsV1") if entry.get("manager") == manager else None
        for name in ("f:spec", "f:template", "f:spec", "f:initContainers"):
            place = mapping(place).get(name)
        if place is not None and (place == {} or "f:image" in mapping(place.get(f'k:{{"name":"{container}"}}'))):
            return True  # without keys, the list is owned as a whole
    return False


def _first(path: str, expected: Mapping[str, Any], live: Mapping[str, Any]) -> str:
    for name in sorted({*expected, *live}):
        one, other = expected.get(name), live.get(name)
        if one == other:
            continue
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            return _first(f"{path}.{name}", one, other)
        return f"{path}.{name}"
    return ""
