"""The last file: what the operator may do, compared with what it was seen to do over the whole life of this lab."""

from datetime import datetime
from typing import Any

import pytest

from lab.clusters.kubectl import Kubectl
from lab.scenarios.api_changes import rights_used
from lab.scenarios.operator_deployment import NAMESPACE, RELEASE

pytestmark = pytest.mark.lab

Used = tuple[str, str, str]

NEVER_SEEN: dict[Used, str] = {
    ("streamapp.dev", "streamapps/finalizers", "update"): "asked for by OpenShift, when an owner is set",
    ("apps", "statefulsets", "create"): "an apply that makes an object is logged as a patch, and needs both",
    ("", "services", "create"): "the same",
    ("policy", "poddisruptionbudgets", "create"): "the same",
}
"""Rights that are needed although no request of their own is logged, each with its reason."""


def granted(role: dict[str, Any]) -> set[Used]:
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.fixture(scope="module")
def rights(kubectl: Kubectl, operator: None) -> set[Used]:  # noqa: ARG001 (it must be there)
    """Give what the chart's roles grant."""
    cluster = granted(kubectl.json("get", "clusterrole", RELEASE))
    cluster |= granted(kubectl.json("get", "clusterrole", f"{RELEASE}-nodes-{NAMESPACE}"))
    return cluster | granted(kubectl.json("get", "role", f"{RELEASE}-lease", "--namespace", NAMESPACE))


@pytest.fixture(scope="module")
def used(kubectl: Kubectl) -> set[Used]:
    """Give what was asked since the node was made."""
    (node,) = kubectl.json("get", "nodes")["items"]
    return rights_used(datetime.fromisoformat(node["metadata"]["creationTimestamp"]))


def test_everything_that_the_operator_asked_for_was_granted(rights: set[Used], used: set[Used]) -> None:
    assert used - rights == set()


def test_everything_that_is_granted_was_used_or_has_a_reason(rights: set[Used], used: set[Used]) -> None:
    assert rights - used == set(NEVER_SEEN)
