"""The last file: what the operator may do, compared with what it was seen to do over the whole life of this lab."""

from datetime import datetime

import pytest

from lab.clusters.kubectl import Kubectl
from lab.scenarios.api_changes import rights_used
from tests.lab.guarded import Right, rights_given

pytestmark = pytest.mark.lab

NEVER_SEEN: dict[Right, str] = {
    ("streamapp.dev", "streamapps/finalizers", "update"): "asked for by OpenShift, when an owner is set",
    ("apps", "statefulsets", "create"): "an apply that makes an object is logged as a patch, and needs both",
    ("", "services", "create"): "the same",
    ("policy", "poddisruptionbudgets", "create"): "the same",
}
"""Rights that are needed although no request of their own is logged, each with its reason."""


@pytest.fixture(scope="module")
def rights(kubectl: Kubectl, operator: None) -> set[Right]:  # noqa: ARG001 (it must be there)
    """Give what the chart's roles grant."""
    return rights_given(kubectl)


@pytest.fixture(scope="module")
def used(kubectl: Kubectl) -> set[Right]:
    """Give what was asked since the node was made."""
    (node,) = kubectl.json("get", "nodes")["items"]
    return rights_used(datetime.fromisoformat(node["metadata"]["creationTimestamp"]))


def test_everything_that_the_operator_asked_for_was_granted(rights: set[Right], used: set[Right]) -> None:
    assert used - rights == set()


def test_everything_that_is_granted_was_used_or_has_a_reason(rights: set[Right], used: set[Right]) -> None:
    assert rights - used == set(NEVER_SEEN)
