"""Where a pod template and what the operator adds to it would contradict each other.

Called by `reading`: such an object is as invalid as one that breaks its schema, but the schema cannot see into an open
template.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from streamapp.api.names import APP_LABEL
from streamapp.api.v1alpha1.pod_template import mapping, mappings
from streamapp.api.v1alpha1.spec import State, StreamAppSpec
from streamapp.api.validation.faults import Fault

SEEDER = "streamapp-seed"
"""The name of the init container that the operator adds: the last one, right before the application."""
FIRST_SEEDER = "streamapp-seed-first"
"""The name of its twin that runs before the init containers of the user."""
AGENT = "streamapp-agent"
"""The name of the other one, and of its volume and its port."""
OWN_INIT_CONTAINERS = frozenset({SEEDER, FIRST_SEEDER, AGENT})
"""Those whose images come with the operator, and not from the StreamApp."""
AGENT_FOLDER = "/streamapp/agent"
"""Where the agent's volume is mounted."""
AGENT_TLS = "streamapp-agent-tls"
"""The name of the volume with the agent's certificate: a pod that has it serves HTTPS at the agent's port."""
AGENT_TLS_FOLDER = "/streamapp/agent-tls"
"""Where that volume is mounted."""
AGENT_VARIABLES = "STREAMAPP_AGENT_"
"""What the names of the agent's own variables begin with."""


def conflicts(name: str, spec: StreamAppSpec) -> tuple[Fault, ...]:
    """Everything in the template of the StreamApp `name` that the operator would have to overwrite."""
    found = [*_labels(name, spec.template), *_seeder(spec.template)]
    if spec.agent.enabled:
        found += _agent(spec)
    if spec.state is not None:
        found += [*_volume(spec.state, spec.template), *_mount(spec.state, spec)]
    return tuple(found)


def _labels(name: str, template: Mapping[str, Any]) -> Iterator[Fault]:
    labels = mapping(mapping(template.get("metadata")).get("labels"))
    if labels.get(APP_LABEL, name) != name:
        yield Fault("spec.template.metadata.labels", f"must not set {APP_LABEL}, which is the StreamApp's name")


def _seeder(template: Mapping[str, Any]) -> Iterator[Fault]:
    for place in ("initContainers", "containers"):
        names = {one.get("name") for one in mappings(template["spec"].get(place))}
        for name in (SEEDER, FIRST_SEEDER):
            if name in names:
                yield Fault(f"spec.template.spec.{place}", f"must not have one called {name}, which the operator adds")


def _agent(spec: StreamAppSpec) -> Iterator[Fault]:
    pod, container = spec.template["spec"], spec.application_container
    field = f"spec.template.spec.containers[{container['name']}]"
    for place in ("initContainers", "containers"):
        if any(one.get("name") == AGENT for one in mappings(pod.get(place))):
            yield Fault(f"spec.template.spec.{place}", f"must not have one called {AGENT}, which the operator adds")
    volumes = {volume.get("name") for volume in mappings(pod.get("volumes"))}
    mounts = {str(mount.get("mountPath", "")).rstrip("/") for mount in mappings(container.get("volumeMounts"))}
    for volume, folder in ((AGENT, AGENT_FOLDER), (AGENT_TLS, AGENT_TLS_FOLDER)):
        if volume in volumes:
            yield Fault("spec.template.spec.volumes", f"must not have one called {volume}, which the operator adds")
        if folder in mounts:
            yield Fault(f"{field}.volumeMounts", f"must not mount anything at {folder}, where the agent goes")
    if any(str(one.get("name", "")).startswith(AGENT_VARIABLES) for one in mappings(container.get("env"))):
        yield Fault(f"{field}.env", f"must not set {AGENT_VARIABLES}…, which the operator sets")
    yield from _agent_port(spec)
    yield from _agent_option(spec, field)


def _agent_port(spec: StreamAppSpec) -> Iterator[Fault]:
    for container in mappings(spec.template["spec"]["containers"]):
        for port in mappings(container.get("ports")):
            if port.get("containerPort") == spec.agent.port and port.get("protocol", "TCP") == "TCP":
                yield Fault("spec.agent.port", f"must not be a port of container {container['name']}")
            if port.get("name") == AGENT:
                place = f"spec.template.spec.containers[{container['name']}].ports"
                yield Fault(place, f"must not have one called {AGENT}, which the operator adds")


def _agent_option(spec: StreamAppSpec, field: str) -> Iterator[Fault]:
    """A value of the user's that cannot be seen would be hidden by the operator's."""
    variable, container = spec.agent.inject_via.value, spec.application_container
    stated = [one for one in mappings(container.get("env")) if one.get("name") == variable]
    other = f"or let spec.agent.injectVia name another variable than {variable}"
    if any("valueFrom" in one for one in stated):
        yield Fault(
            f"{field}.env",
            f"must give {variable} as a value, since the agent is added to it and valueFrom cannot be seen: state the "
            f"value, {other}",
        )
    elif len(stated) > 1:
        yield Fault(f"{field}.env", f"must not have {variable} twice")
    elif container.get("envFrom") and not stated:
        yield Fault(
            f"{field}.envFrom",
            f"may set {variable}, which cannot be seen and would be hidden by the agent's: state in env the value that "
            f"{variable} is to have, an empty one if none, {other}",
        )


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
