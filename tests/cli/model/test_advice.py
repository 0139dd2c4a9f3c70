"""What a reason advises has to exist: fields of the resource, annotations, and commands."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from lab.settings import REPOSITORY
from streamapp.api import names
from streamapp.api.v1alpha1.spec import StreamAppSpec
from streamapp.core.reasons import Reason

ANNOTATIONS = {getattr(names, name) for name in ("HOLD", "OVERRIDE", "RESTART", "HOLD_RECORD")}
OF_KAFKA = {
    "__consumer_offsets",
    "acceptable.recovery.lag",
    "close()",
    "group.protocol=classic",
    "kafka-streams-process-metadata",
    "num.standby.replicas",
    "rack.aware.assignment.tags",
    "session.timeout.ms",
    "streams.num.standby.replicas",
    "streamapp.assignor.warm.ms",
    "Topology#describe()",
}
OF_KUBERNETES = {
    "allowVolumeExpansion",
    "maxReplicas",
    "ordinals.start",
    "scaleTargetRef",
    "topology.kubernetes.io/zone",
}
OTHER_REASONS = {reason.name for reason in Reason}
VALUES = yaml.safe_load((REPOSITORY / "charts" / "streamapp-operator" / "values.yaml").read_text())

COMMANDS = {
    f"openssl rand -hex 32 | kubectl create secret generic {VALUES['agent']['keySecret']} --namespace streamapp-system "
    "--from-file=keys=/dev/stdin",
    "kubectl describe pod",
    "kubectl drain",
    "kubectl streamapp restart NAME --ordinal N",
    "kubectl get pvc",
    "kubectl streamapp adopt statefulset/NAME",
    "kubectl streamapp restart NAME --ordinal N --new-volume",
    "kubectl label namespace NAMESPACE streamapp.dev/guard=off",
    "kubectl logs --previous",
    "kubectl delete statefulset NAME --cascade=orphan",
    "kubectl get statefulset NAME --output=yaml --show-managed-fields",
    """kubectl patch streamapp NAME --type=merge --patch '{"spec":{"rollout":{"policy":"Immediate"}}}'""",
}
"""Of kubectl alone, for a user without the plugin."""


def fields(schema: dict[str, Any], node: dict[str, Any], path: str) -> Iterator[str]:
    """The path of every field below a node of a JSON schema."""
    node = schema["$defs"][node["$ref"].split("/")[-1]] if "$ref" in node else node
    for option in node.get("anyOf", ()):
        yield from fields(schema, option, path)
    for name, below in node.get("properties", {}).items():
        yield f"{path}{name}"
        yield from fields(schema, below, f"{path}{name}.")


SCHEMA = StreamAppSpec.model_json_schema()
OF_CHART = {
    *VALUES,
    *(f"{name}.{below}" for name, value in VALUES.items() if isinstance(value, dict) for below in value),
}
FIELDS = {path for start in ("", "spec.") for path in fields(SCHEMA, SCHEMA, start)}
LAST = {path.rsplit(".", 1)[-1] for path in FIELDS}
KNOWN = FIELDS | LAST | ANNOTATIONS | OF_KAFKA | OF_KUBERNETES | OF_CHART | COMMANDS | OTHER_REASONS


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.name)
def test_a_reason_names_only_what_exists(reason: Reason) -> None:
    for quoted in re.findall(r"`([^`]+)`", f"{reason.note} {reason.next_step}"):
        name = quoted if quoted in COMMANDS else quoted.split(":")[0]
        assert name in FIELDS | LAST | ANNOTATIONS | OF_KAFKA | OF_KUBERNETES | OF_CHART | COMMANDS | OTHER_REASONS, (
            quoted
        )
