"""What a PodDisruptionBudget says, as it is read back."""

from typing import Any

import pytest

from streamapp.api.objects import manifests
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.workload import Budget
from streamapp.kube.objects.from_json import BudgetFacts, budget
from tests.streamapps import a_streamapp

HERE = manifests.Installation(name="test", seed_image="seed:1", agent_image="agent:1")
WRITTEN = (
    BudgetFacts(Budget.OPEN),
    BudgetFacts(Budget.CLOSED),
    BudgetFacts(Budget.OPEN, None, 0),
    BudgetFacts(Budget.CLOSED, None, 12),
    BudgetFacts(Budget.OPEN_FOR_ONE, Ordinal(11), 3),
)


@pytest.mark.parametrize("facts", WRITTEN)
def test_what_the_operator_writes_is_read_back(facts: BudgetFacts) -> None:
    made = manifests.disruption_budget(
        a_streamapp(), HERE, allows=facts.allows, evictable=facts.evictable, lease=facts.lease
    )
    assert budget(made) == facts


def test_one_that_is_not_there_allows_everything() -> None:
    assert budget(None) == BudgetFacts(Budget.ABSENT)


def expression(**changes: Any) -> dict[str, Any]:
    return {"key": "statefulset.kubernetes.io/pod-name", "operator": "NotIn", "values": ["words-1"], **changes}


CHANGED: dict[str, dict[str, Any]] = {
    "more than one pod": {"maxUnavailable": 2},
    "a share": {"maxUnavailable": "50%"},
    "another field": {"minAvailable": 1},
    "two pods left out": {"maxUnavailable": 0, "selector": {"matchExpressions": [expression(values=["a-1", "a-2"])]}},
    "all pods of a label left out": {"maxUnavailable": 0, "selector": {"matchExpressions": [expression(key="tier")]}},
    "no ordinal": {"maxUnavailable": 0, "selector": {"matchExpressions": [expression(values=["words"])]}},
    "one left out and one allowed": {"maxUnavailable": 1, "selector": {"matchExpressions": [expression()]}},
}


@pytest.mark.parametrize("spec", CHANGED.values(), ids=CHANGED.keys())
def test_one_that_another_writer_changed_is_of_no_lease(spec: dict[str, Any]) -> None:
    live = {"metadata": {"annotations": {"streamapp.dev/lease": "3"}}, "spec": spec}
    assert budget(live) == BudgetFacts(Budget.OPEN)


@pytest.mark.parametrize("text", ["", "-1", "three", "٣", "9" * 5000])
def test_a_lease_that_is_no_number_is_none(text: str) -> None:
    live = {"metadata": {"annotations": {"streamapp.dev/lease": text}}, "spec": {"maxUnavailable": 0}}
    assert budget(live) == BudgetFacts(Budget.CLOSED)
