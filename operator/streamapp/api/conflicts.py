"""Where a pod template and what the operator adds to it would contradict each other.

Called by `reading`: such an object is as invalid as one that breaks its schema, but the schema cannot see into an open
template.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from streamapp.api.faults import Fault
from streamapp.api.names import APP_LABEL
from streamapp.api.template import mapping, mappings
from streamapp.api.v1alpha1.spec import State, StreamAppSpec

SEEDER = "streamapp-seed"
"""The name of the init container that the operator adds."""


def conflicts(name: str, spec: StreamAppSpec) -> tuple[Fault, ...]:
    """Everything in the template of the StreamApp `name` that the operator would have to overwrite."""
    found = [*_labels(name, spec.template), *_seeder(spec.template)]
    if spec.state is not None:
        found += [*_volume(spec.state, spec.template), *_mount(spec.state, spec)]
    return tuple(found)


def _labels(name: str, template: Mapping[str, Any]) -> Iterator[Fault]:
    labels = mapping(mapping(template.get("metadata")).get("labels"))
    if labels.get(APP_LABEL, name) != name:
        yield Fault("spec.template.metadata.labels", f"must not set {APP_LABEL}, which is the StreamApp's name")


def _seeder(template: Mapping[str, Any]) -> Iterator[Fault]:
    for place in ("initContainers", "containers"):
        if any(one.get("name") == SEEDER for one in mappings(template["spec"].get(place))):
            yield Fault(f"spec.template.spec.{place}", f"must not have one called {SEEDER}, which the operator adds")


def _volume(state: State, template: Mapping[str, Any]) -> Iterator[Fault]:
    if any(volume.get("name") == state.claim_name for volume in mappings(template["spec"].get("volumes"))):
        yield Fault("spec.template.spec.volumes", f"must not have one called {state.claim_name}, as spec.state has")


def _mount(state: State, spec: StreamAppSpec) -> Iterator[Fault]:
    container = spec.application_container
    field = f"spec.template.spec.containers[{container['name']}].volumeMounts"
    for mount in mappings(container.get("volumeMounts")):
        place, volume = str(mount.get("mountPath", "")).rstrip("/"), mount.get("name")
        if volume == state.claim_name and (place != state.mount_path or mount.get("subPath") or mount.get("readOnly")):
            yield Fault(field, f"must mount {volume} at {state.mount_path}, whole and writable, or not at all")
        elif volume != state.claim_name and place == state.mount_path:
            yield Fault(field, f"must not mount {volume} at {place}, where the volume of spec.state goes")
