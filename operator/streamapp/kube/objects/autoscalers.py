"""What HorizontalPodAutoscalers of a namespace aim at and how they fare, as the values that the core reports.

Pure functions over the API server's JSON. Called by the controller's `autoscaling`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from streamapp.api.names import GROUP, KIND
from streamapp.core.facts.autoscalers import Aim, Autoscaler
from streamapp.kube.client.client import Json
from streamapp.kube.client.kinds import STATEFUL_SETS

_AIMS = {(GROUP, KIND): Aim.STREAM_APP, (STATEFUL_SETS.group, STATEFUL_SETS.name): Aim.STATEFUL_SET}
_AT_WORK = frozenset({"AbleToScale", "ScalingActive"})
"""Its conditions that say so."""
_LIMITED = "ScalingLimited"
"""Its condition that it wants another number than its bounds and policies allow."""
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
    troubles = tuple(_troubles(status))
    return Autoscaler(
        name=live["metadata"]["name"],
        aim=aim,
        least=spec.get("minReplicas", 1),
        most=spec["maxReplicas"],
        cannot_act="; ".join(map(_words, troubles)) or None,
        hindrance=str(troubles[0].get("reason") or troubles[0]["type"]) if troubles else "",
        limited_by=_limited_by(status),
        up_window=_window(spec, "scaleUp"),
        down_window=_window(spec, "scaleDown"),
        current=looked.get("currentReplicas"),
        desired=looked.get("desiredReplicas"),
        is_active=_is_active(status),
    )


def _is_active(status: Mapping[str, Any]) -> bool | None:
    conditions = {one["type"]: one["status"] for one in status.get("conditions") or ()}
    return {"True": True, "False": False}.get(conditions.get("ScalingActive", ""))


def _limited_by(status: Mapping[str, Any]) -> str:
    limited = (one for one in status.get("conditions") or () if one["type"] == _LIMITED and one["status"] == "True")
    return next((str(one.get("reason") or _LIMITED) for one in limited), "")


def _window(spec: Mapping[str, Any], way: str) -> timedelta | None:
    seconds = ((spec.get("behavior") or {}).get(way) or {}).get("stabilizationWindowSeconds")
    return None if seconds is None else timedelta(seconds=seconds)


def _words(condition: Mapping[str, Any]) -> str:
    return str(condition.get("message") or condition.get("reason") or condition["type"])


def _troubles(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for condition in status.get("conditions") or ():
        is_at_work = condition["type"] not in _AT_WORK or condition["status"] != "False"
        if not is_at_work and condition.get("reason") != _ON_PURPOSE:
            yield condition
