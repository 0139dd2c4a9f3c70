"""Tries a changed pod template before any pod stops: a template that no pod can be made of would end in an outage.

The operator's own rules are asked, then the API server, by the dry run of a Pod. Where the API server refuses a Pod of
the present template too (a right is missing, a quota is used up), its answer about the new one says nothing.
"""

from collections.abc import Mapping
from typing import Any

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
    changed = parse({**resource, "spec": {**resource["spec"], "template": after}})
    return changed.sentence if isinstance(changed, InvalidStreamApp) else ""


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
