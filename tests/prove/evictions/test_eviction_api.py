"""The Eviction API of the sweep answers as that of Kubernetes does."""

import asyncio
import random
from typing import Any

import pytest

from streamapp.api.names import POD_NAME_LABEL
from tests.kube.object_store import ObjectStore
from tests.prove.evictions.eviction_api import DisruptionController, EvictionApi
from tests.prove.virtual_time import VirtualLoop, run

Json = dict[str, Any]
READY = {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "app"}]}
STARTED = {"containerStatuses": [{"name": "app"}]}


def a_pod(ordinal: int, status: Json) -> Json:
    name = f"counter-{ordinal}"
    labels = {"app": "counter", POD_NAME_LABEL: name}
    return {"metadata": {"name": name, "namespace": "demo", "labels": labels}, "spec": {}, "status": status}


def a_budget(most: int, policy: str, *left_out: str, name: str = "counter") -> Json:
    expressions = [{"key": POD_NAME_LABEL, "operator": "NotIn", "values": [*left_out]}] if left_out else []
    selector = {"matchLabels": {"app": "counter"}, "matchExpressions": expressions}
    spec = {"maxUnavailable": most, "unhealthyPodEvictionPolicy": policy, "selector": selector}
    return {"metadata": {"name": name, "namespace": "demo"}, "spec": spec}


def answers(
    statuses: list[Json], budgets: list[Json], tries: list[str], pause: float = 3.0, *, fewer: int = 0
) -> list[int]:
    """The statuses of the answers, tried one right after the other; `fewer` pods are desired than there are."""

    async def ask() -> list[int]:
        store = ObjectStore(loop.now)
        DisruptionController(store, loop, random.Random(1))  # noqa: S311 (plays a story)
        api = EvictionApi(store, loop)
        spec = {"replicas": len(statuses) - fewer}
        store.put("statefulsets", {"metadata": {"name": "counter", "namespace": "demo"}, "spec": spec})
        for ordinal, status in enumerate(statuses):
            store.put("pods", a_pod(ordinal, status))
        for budget in budgets:
            store.put("poddisruptionbudgets", budget)
        await asyncio.sleep(pause)
        return [api.evict("demo", name)[0] for name in tries]

    loop = VirtualLoop()
    return run(loop, ask())


@pytest.mark.parametrize(
    ("statuses", "budgets", "tries", "expected"),
    [
        pytest.param([READY] * 3, [], ["counter-0", "counter-1"], [201, 201], id="without a budget any pod goes"),
        pytest.param(
            [READY] * 3, [a_budget(1, "IfHealthyBudget")], ["counter-0", "counter-1"], [201, 429], id="one at a time"
        ),
        pytest.param([READY] * 3, [a_budget(0, "AlwaysAllow")], ["counter-0"], [429], id="none"),
        pytest.param(
            [READY] * 3, [a_budget(0, "IfHealthyBudget", "counter-1")], ["counter-0", "counter-1"], [429, 201], id="one"
        ),
        pytest.param(
            [READY, STARTED, READY], [a_budget(0, "AlwaysAllow")], ["counter-1"], [201], id="one that is not ready"
        ),
        pytest.param(
            [READY, STARTED, READY],
            [a_budget(1, "IfHealthyBudget")],
            ["counter-0", "counter-1"],
            [429, 201],
            id="of a healthy budget, only one that is not ready",
        ),
        pytest.param(
            [READY, STARTED, READY], [a_budget(0, "IfHealthyBudget")], ["counter-1"], [429], id="not of a closed budget"
        ),
        pytest.param(
            [READY, {}, READY], [a_budget(0, "IfHealthyBudget")], ["counter-1"], [201], id="one that is pending"
        ),
        pytest.param(
            [READY] * 3,
            [a_budget(1, "AlwaysAllow"), a_budget(1, "AlwaysAllow", name="other")],
            ["counter-0"],
            [500],
            id="two budgets",
        ),
        pytest.param([READY], [], ["counter-7"], [404], id="none of this name"),
    ],
)
def test_the_eviction_api_takes_what_budgets_allow(
    statuses: list[Json], budgets: list[Json], tries: list[str], expected: list[int]
) -> None:
    assert answers(statuses, budgets, tries) == expected


def test_no_eviction_passes_a_budget_that_its_controller_has_not_seen() -> None:
    assert answers([READY] * 3, [a_budget(1, "IfHealthyBudget")], ["counter-0"], pause=0.0) == [429]


def test_a_closed_budget_counts_a_pod_that_will_be_removed_until_it_is_marked() -> None:
    """As in Kubernetes, where it is so after replicas fell and until the StatefulSet's controller deletes the pod."""
    closed = a_budget(0, "IfHealthyBudget")
    assert answers([READY] * 3, [closed], ["counter-0", "counter-1"], fewer=1) == [201, 429]
