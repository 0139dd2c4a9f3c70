"""What HorizontalPodAutoscalers of a namespace aim at and how they fare, as the values that the core reports.

Pure functions over the API server's JSON. Called by the controller's `autoscaling`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from streamapp.api.names import GROUP, KIND
from streamapp.core.facts.autoscalers import Aim, Autoscaler
from streamapp.kube.client.client import Json
from streamapp.kube.client.kinds import STATEFUL_SETS

_AIMS = {(GROUP, KIND): Aim.STREAM_APP, (STATEFUL_SETS.group, STATEFUL_SETS.name): Aim.STATEFUL_SET}
_AT_WORK = frozenset({"AbleToScale", "ScalingActive"})
"""Its conditions that say so."""
_ON_PURPOSE = "ScalingDisabled"
"""The desired replicas are zero, which disables an autoscaler."""


def by_target(live: Iterable[Json]) -> Mapping[str, tuple[Autoscaler, ...]]:
    """Give the autoscalers that aim at a StreamApp or a StatefulSet, by the name of that."""
    by_name: dict[str, list[Autoscaler]] = defaultdict(list)
    for one in live:
        target = one["spec"]["scaleTargetRef"]
        group = str(target.get("apiVersion", "")).rpartition("/")[0]
        aim = _AIMS.get((group, target["kind"]))
        if aim is not None:
            by_name[target["name"]].append(_autoscaler(one, aim))
    return {name: tuple(several) for name, several in by_name.items()}


def _autoscaler(live: Json, aim: Aim) -> Autoscaler:
    spec, status = live["spec"], live.get("status") or {}
    # Before its first look the numbers are there, and mean nothing.
    looked = status if status.get("conditions") else {}
    return Autoscaler(
        name=live["metadata"]["name"],
        aim=aim,
        least=spec.get("minReplicas", 1),
        most=spec["maxReplicas"],
        cannot_act="; ".join(_troubles(status)) or None,
        current=looked.get("currentReplicas"),
        desired=looked.get("desiredReplicas"),
        is_active=_is_active(status),
    )


def _is_active(status: Mapping[str, Any]) -> bool | None:
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    return {"True": True, "False": False}.get(conditions.get("ScalingActive", ""))


def _troubles(status: Mapping[str, Any]) -> Iterator[str]:
    for condition in status.get("conditions") or ():
        is_at_work = condition["type"] not in _AT_WORK or condition["status"] != "False"
        if not is_at_work and condition.get("reason") != _ON_PURPOSE:
            yield str(condition.get("message") or condition.get("reason") or condition["type"])
