"""What a StatefulSet was before its adoption: kept as an annotation of the StreamApp, for the way back. Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from streamapp.api.names import ADOPTED_FROM
from streamapp.api.v1alpha1.pod_template import mapping

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The fields that the operator's StatefulSet has otherwise, or that the way there changes."""

    uid: str
    """Of the StatefulSet itself: only this one gets its update strategy back."""
    selector: Json
    service_name: str
    pod_management_policy: str
    update_strategy: Json
    service_selector: Json | None
    """Of the Service that has the StatefulSet's name; None: there is none."""

    @classmethod
    def of(cls, statefulset: Mapping[str, Any], service: Mapping[str, Any] | None) -> Self:
        """Read it off the objects, as they are before the first write."""
        spec = mapping(statefulset.get("spec"))
        return cls(
            uid=str(statefulset["metadata"]["uid"]),
            selector=dict(mapping(spec.get("selector"))),
            service_name=str(spec.get("serviceName") or ""),
            pod_management_policy=str(spec.get("podManagementPolicy") or "OrderedReady"),
            update_strategy=dict(mapping(spec.get("updateStrategy"))) or {"type": "RollingUpdate"},
            service_selector=None if service is None else dict(mapping(mapping(service.get("spec")).get("selector"))),
        )

    @property
    def text(self) -> str:
        """The value of the annotation."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))


def origin_on(streamapp: Mapping[str, Any]) -> Origin | None:
    """The origin on a StreamApp; None where there is none, or another program wrote something else there."""
    text = mapping(mapping(streamapp.get("metadata")).get("annotations")).get(ADOPTED_FROM)
    try:
        return None if text is None else Origin(**json.loads(text))
    except (ValueError, TypeError):
        return None
