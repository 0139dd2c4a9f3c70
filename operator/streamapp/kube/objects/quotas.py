"""Which ResourceQuotas keep another pod of a StatefulSet from being made, from their status as Kubernetes writes it.

Pure functions over the API server's JSON, called by the controller's `quotas`. For messages alone: nothing is decided.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from streamapp.api.v1alpha1.quantities import parse_quantity
from streamapp.core.facts.workload import QuotaLimit
from streamapp.kube.client.client import Json

_ONE = Decimal(1)
_COUNTED = ("pods", "count/pods")
_CLAIMS = ("persistentvolumeclaims", "count/persistentvolumeclaims")


def limits(quotas: Iterable[Json], statefulset: Json, *, has_claims: bool) -> tuple[QuotaLimit, ...]:
    """Give what a new pod of the StatefulSet would pass, by name.

    A quota with scopes counts only some pods. Whether it counts these is not known, so it is left out. So is a request
    that only a LimitRange sets.

    Args:
        quotas: Those of the namespace.
        statefulset: Whose pod is missing.
        has_claims: Whether the claims of that pod are there already.
    """
    needs = _needs(statefulset["spec"], has_claims=has_claims)
    found = (limit for one in quotas for limit in _passed(one, needs))
    return tuple(sorted(found, key=lambda limit: (limit.quota, limit.resource)))


def _passed(quota: Json, needs: Mapping[str, Decimal]) -> Iterator[QuotaLimit]:
    spec, status = quota.get("spec") or {}, quota.get("status") or {}
    if spec.get("scopes") or spec.get("scopeSelector"):
        return
    used = status.get("used") or {}
    for resource, hard in (status.get("hard") or {}).items():
        need = needs.get(resource, Decimal(0))
        taken = str(used.get(resource, "0"))
        if need and parse_quantity(taken) + need > parse_quantity(str(hard)):
            yield QuotaLimit(quota=str(quota["metadata"]["name"]), resource=resource, used=taken, hard=str(hard))


def _needs(spec: Mapping[str, Any], *, has_claims: bool) -> Mapping[str, Decimal]:
    pod = spec["template"]["spec"]
    needs = dict.fromkeys(_COUNTED, _ONE)
    for kind, prefix in (("requests", "requests."), ("limits", "limits.")):
        for resource, amount in _of_pod(pod, kind).items():
            needs[f"{prefix}{resource}"] = amount
            if kind == "requests":
                needs[resource] = amount
    templates = () if has_claims else spec.get("volumeClaimTemplates") or ()
    if templates:
        needs |= dict.fromkeys(_CLAIMS, Decimal(len(templates)))
        sizes = (one["spec"].get("resources", {}).get("requests", {}).get("storage", "0") for one in templates)
        needs["requests.storage"] = sum((parse_quantity(str(size)) for size in sizes), Decimal(0))
    return needs


def _of_pod(pod: Mapping[str, Any], kind: str) -> Mapping[str, Decimal]:
    """As Kubernetes counts it: all containers together, or the largest init container."""
    together: dict[str, Decimal] = {}
    for one in pod["containers"]:
        for resource, amount in _of_container(one, kind):
            together[resource] = together.get(resource, Decimal(0)) + amount
    for one in pod.get("initContainers") or ():
        for resource, amount in _of_container(one, kind):
            together[resource] = max(together.get(resource, Decimal(0)), amount)
    return together


def _of_container(container: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Decimal]]:
    for resource, amount in ((container.get("resources") or {}).get(kind) or {}).items():
        yield resource, parse_quantity(str(amount))
