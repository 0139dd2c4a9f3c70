"""Tries a changed pod template before any pod stops: a template that no pod can be made of would end in an outage.

The operator's own rules are asked, then the API server, by the dry run of a Pod. Where the API server refuses a Pod of
the present template too (a right is missing, a quota is used up), its answer about the new one says nothing.
"""

from collections.abc import Mapping
from typing import Any

from streamapp.api.v1alpha1.pod_template import mapping, mappings
from streamapp.api.v1alpha1.spec import StreamAppSpec
from streamapp.api.validation.parse import InvalidStreamApp, parse
from streamapp.cli.cluster import streamapps
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import InvalidError, KubeError, RefusedError, UnauthenticatedError
from streamapp.kube.client.kinds import PODS

Json = dict[str, Any]


def fault_of_spec(resource: Json, after: Mapping[str, Any]) -> str:
    """Why the StreamApp would be invalid with another template; empty if it would not, or is so already."""
    before = parse(resource)
    if isinstance(before, InvalidStreamApp):
        return ""
    if fault := _without_image(resource["spec"]["template"], after):
        return fault
    changed = parse({**resource, "spec": {**resource["spec"], "template": after}})
    if isinstance(changed, InvalidStreamApp):
        return changed.sentence
    former, new = (str(one.spec.application_container.get("name")) for one in (before, changed))
    if former != new:
        return f"the application's container would be {new}, and is {former}"
    return _hidden_state(before.spec, changed.spec)


def _without_image(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """A container that only the change names: most likely its name is misspelt."""
    for place in ("containers", "initContainers"):
        known = {one.get("name") for one in mappings(mapping(before.get("spec")).get(place))}
        for one in mappings(mapping(after.get("spec")).get(place)):
            if one.get("name") not in known and not one.get("image"):
                names = ", ".join(sorted(map(str, known))) or "none"
                return f"{place} {one.get('name')} is new and has no image; the template has {names}"
    return ""


def _hidden_state(before: StreamAppSpec, after: StreamAppSpec) -> str:
    """A new mount below the volume of the state, or above it: the state would lie elsewhere, or be hidden."""
    state = after.state
    if state is None:
        return ""
    known = _mounts(before)
    for place, volume in sorted(_mounts(after).items()):
        is_near = f"{place}/".startswith(f"{state.mount_path}/") or f"{state.mount_path}/".startswith(f"{place}/")
        if is_near and volume != state.claim_name and known.get(place) != volume:
            return f"{volume} at {place or '/'} would hide state on the volume at {state.mount_path}"
    return ""


def _mounts(spec: StreamAppSpec) -> dict[str, str]:
    mounts = mappings(spec.application_container.get("volumeMounts"))
    return {str(one.get("mountPath", "")).rstrip("/"): str(one.get("name", "")) for one in mounts}


async def fault_of_pod(client: KubeClient, resource: Json, after: Mapping[str, Any]) -> str:
    """Why the API server takes no Pod of another template; empty if it does, or the answer says nothing."""
    fault = await _refusal(client, resource, after)
    return fault if fault and not await _refusal(client, resource, resource["spec"]["template"]) else ""


async def _refusal(client: KubeClient, resource: Json, template: Mapping[str, Any]) -> str:
    """Why a Pod is refused; empty if it is accepted, or the API server does not answer."""
    namespace, name = resource["metadata"]["namespace"], resource["metadata"]["name"]
    metadata = {**template.get("metadata", {}), "namespace": namespace, "generateName": f"{name}-trial-"}
    pod = {"metadata": metadata, "spec": template.get("spec", {})}
    try:
        await client.create(PODS, pod, manager=streamapps.MANAGER, dry_run=True)
    except UnauthenticatedError:
        raise
    except (InvalidError, RefusedError) as error:
        return error.why
    except KubeError:
        return ""
    return ""
