"""The autoscalers of a StreamApp, and why a number that a user sets would not last beside them. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import GROUP, KIND
from streamapp.cli.errors import CliError
from streamapp.cli.model.app_view import AppView

OPTION = "--despite-autoscaler"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetingAutoscaler:
    """A HorizontalPodAutoscaler whose scale target is the StreamApp."""

    name: str
    least: int
    most: int
    scaled_object: str | None
    """The ScaledObject of KEDA that owns the autoscaler."""

    @property
    def ignores_zero(self) -> bool:
        """Whether it leaves a StreamApp with zero replicas alone: Kubernetes' own does, KEDA's does not."""
        return self.scaled_object is None

    def __str__(self) -> str:
        return f"{self.name} (min {self.least}, max {self.most})"


@dataclass(frozen=True, slots=True)
class AutoscalersUnknown:
    """The autoscalers cannot be listed."""

    why: str


def autoscalers_of(name: str, objects: Iterable[Mapping[str, Any]]) -> tuple[TargetingAutoscaler, ...]:
    """The autoscalers whose scale target is this StreamApp.

    Args:
        name: The StreamApp.
        objects: The HorizontalPodAutoscalers (autoscaling/v2) of its namespace.
    """
    return tuple(map(_read, aimed_at(name, objects)))


def aimed_at(name: str, objects: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The objects of the autoscalers whose scale target is this StreamApp; arguments as above."""
    return tuple(dict(body) for body in objects if _is_target(name, body["spec"]["scaleTargetRef"]))


def _is_target(name: str, target: Mapping[str, Any]) -> bool:
    group = str(target.get("apiVersion", "")).partition("/")[0]
    return (group, target.get("kind"), target.get("name")) == (GROUP, KIND, name)


def _read(body: Mapping[str, Any]) -> TargetingAutoscaler:
    owners = body["metadata"].get("ownerReferences") or ()
    scaled = next((owner["name"] for owner in owners if owner.get("kind") == "ScaledObject"), None)
    spec = body["spec"]
    least = spec.get("minReplicas")
    return TargetingAutoscaler(
        name=body["metadata"]["name"],
        least=1 if least is None else least,
        most=spec["maxReplicas"],
        scaled_object=scaled,
    )


def overwriting(autoscalers: Sequence[TargetingAutoscaler], to: int) -> tuple[TargetingAutoscaler, ...]:
    """The autoscalers that would overwrite this number of replicas."""
    return tuple(autoscaler for autoscaler in autoscalers if to or not autoscaler.ignores_zero)


def refusal(view: AppView, autoscalers: Sequence[TargetingAutoscaler], to: int) -> CliError:
    """Why this number is not written, and what to change instead; at least one autoscaler."""
    first, several = autoscalers[0], len(autoscalers) > 1
    names = " and ".join(map(str, autoscalers))
    why = f"{'they set' if several else 'it sets'} the replicas, and would overwrite {to} within seconds"
    bounds = _how_to_bound(view.streamapp.metadata.namespace, first, view.streamapp.replicas, to)
    return CliError(
        f"StreamApp {view.name}, driven by HorizontalPodAutoscaler {names}",
        why,
        f"{bounds}, or write it anyway with {OPTION}",
    )


def refusal_if_unknown(view: AppView, unknown: AutoscalersUnknown) -> CliError:
    """Why nothing is written if the autoscalers are unknown."""
    return CliError(
        f"StreamApp {view.name}",
        f"an autoscaler may overwrite the number, and autoscalers cannot be listed: {unknown.why}",
        "ask for a Role with list on horizontalpodautoscalers.autoscaling, "
        f"or write it anyway with {OPTION} if you know that there is no autoscaler",
    )


def _how_to_bound(namespace: str, autoscaler: TargetingAutoscaler, desired: int, to: int) -> str:
    if autoscaler.scaled_object is not None:
        return f"change minReplicaCount and maxReplicaCount of ScaledObject {autoscaler.scaled_object}, its KEDA owner"
    if to > desired:
        bounds = {"minReplicas": to} | ({"maxReplicas": to} if to > autoscaler.most else {})
    else:
        bounds = {"maxReplicas": to} | ({"minReplicas": to} if to < autoscaler.least else {})
    patch = json.dumps({"spec": bounds}, separators=(",", ":"))
    return f"change its bounds: `kubectl patch hpa {autoscaler.name} --namespace {namespace} --type=merge -p '{patch}'`"
