"""The autoscalers that drive a StreamApp, and why a number that a person writes would not last beside them. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import GROUP, KIND
from streamapp.cli.errors import CliError
from streamapp.cli.model.app_view import View

OVERRIDE = "--despite-autoscaler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaler:
    """A HorizontalPodAutoscaler that is aimed at the StreamApp."""

    name: str
    least: int
    most: int
    scaled_object: str | None
    """The ScaledObject of KEDA that it is made from."""

    @property
    def stands_at_zero(self) -> bool:
        """Whether it leaves a StreamApp alone that wishes for nothing: Kubernetes' own does, KEDA does not."""
        return self.scaled_object is None

    def __str__(self) -> str:
        return f"{self.name} (min {self.least}, max {self.most})"


@dataclass(frozen=True, slots=True)
class Unlisted:
    """It is not known whether there is one."""

    why: str


def aimed_at(name: str, found: Iterable[Mapping[str, Any]]) -> tuple[Autoscaler, ...]:
    """Those that set the replicas of the StreamApp of this name.

    Args:
        name: The StreamApp.
        found: The HorizontalPodAutoscalers (autoscaling/v2) of its namespace.
    """
    return tuple(_read(one) for one in found if _is_aimed_at(name, one["spec"]["scaleTargetRef"]))


def _is_aimed_at(name: str, target: Mapping[str, Any]) -> bool:
    group = str(target.get("apiVersion", "")).partition("/")[0]
    return (group, target.get("kind"), target.get("name")) == (GROUP, KIND, name)


def _read(found: Mapping[str, Any]) -> Autoscaler:
    owners = found["metadata"].get("ownerReferences") or ()
    scaled = next((owner["name"] for owner in owners if owner.get("kind") == "ScaledObject"), None)
    spec = found["spec"]
    least = spec.get("minReplicas")
    return Autoscaler(
        name=found["metadata"]["name"],
        least=1 if least is None else least,
        most=spec["maxReplicas"],
        scaled_object=scaled,
    )


def overwriting(autoscalers: Sequence[Autoscaler], to: int) -> tuple[Autoscaler, ...]:
    """Those that would write over this number of replicas."""
    return tuple(one for one in autoscalers if to or not one.stands_at_zero)


def refusal(view: View, autoscalers: Sequence[Autoscaler], to: int) -> CliError:
    """Why this number is not written, and what is to be changed instead; at least one autoscaler."""
    first, several = autoscalers[0], len(autoscalers) > 1
    names = " and ".join(str(one) for one in autoscalers)
    why = f"{'they set' if several else 'it sets'} the replicas, and would overwrite {to} within seconds"
    bound = _how_to_bound(view.found.metadata.namespace, first, view.found.replicas, to)
    step = f"{bound}, or write it all the same with {OVERRIDE}"
    return CliError(f"StreamApp {view.name}, driven by HorizontalPodAutoscaler {names}", why, step)


def not_known(view: View, unlisted: Unlisted) -> CliError:
    """Nothing is written while it is not known whether it would be overwritten."""
    return CliError(
        f"StreamApp {view.name}",
        f"whether an autoscaler would overwrite it cannot be told: {unlisted.why}",
        "ask for a Role with list on horizontalpodautoscalers.autoscaling, "
        f"or write it all the same with {OVERRIDE} if you know that there is none",
    )


def _how_to_bound(namespace: str, one: Autoscaler, desired: int, to: int) -> str:
    if one.scaled_object is not None:
        return (
            f"change minReplicaCount and maxReplicaCount of ScaledObject {one.scaled_object}, from which KEDA makes it"
        )
    if to > desired:
        bounds = {"minReplicas": to} | ({"maxReplicas": to} if to > one.most else {})
    else:
        bounds = {"maxReplicas": to} | ({"minReplicas": to} if to < one.least else {})
    patch = json.dumps({"spec": bounds}, separators=(",", ":"))
    return f"change its bounds: `kubectl patch hpa {one.name} --namespace {namespace} --type=merge -p '{patch}'`"
