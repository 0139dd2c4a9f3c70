"""Which quotas keep another pod from being made."""

from typing import Any

import pytest

from streamapp.core.facts.workload import QuotaLimit
from streamapp.kube.objects.quotas import limits

Json = dict[str, Any]


def container(**resources: Json) -> Json:
    return {"name": "app", "resources": resources}


def statefulset(*containers: Json, init: tuple[Json, ...] = (), storage: str | None = None) -> Json:
    claims = [] if storage is None else [{"spec": {"resources": {"requests": {"storage": storage}}}}]
    pod = {"containers": list(containers) or [container()], "initContainers": list(init)}
    return {"spec": {"template": {"spec": pod}, "volumeClaimTemplates": claims}}


def quota(hard: Json, used: Json, name: str = "compute", **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": spec, "status": {"hard": hard, "used": used}}


def passed(one: Json, of: Json, *, has_claims: bool = False) -> list[str]:
    return [limit.resource for limit in limits([one], of, has_claims=has_claims)]


def test_a_quota_that_one_more_pod_would_pass_is_named_with_its_figures() -> None:
    full = quota({"pods": "10", "requests.cpu": "4"}, {"pods": "10", "requests.cpu": "1"})
    found = limits([full, quota({"pods": "11"}, {"pods": "10"}, "wide")], statefulset(), has_claims=True)
    assert found == (QuotaLimit(quota="compute", resource="pods", used="10", hard="10"),)
    assert str(found[0]) == "quota compute: 10 of 10 pods are used"


@pytest.mark.parametrize(
    ("hard", "used", "is_passed"),
    [
        ({"requests.cpu": "2"}, {"requests.cpu": "1500m"}, True),
        ({"requests.cpu": "2"}, {"requests.cpu": "1400m"}, False),
        ({"cpu": "2"}, {"cpu": "1500m"}, True),
        ({"limits.memory": "1Gi"}, {"limits.memory": "600Mi"}, True),
        ({"limits.memory": "1Gi"}, {"limits.memory": "512Mi"}, False),
        ({"requests.memory": "1Mi"}, {"requests.memory": "1Mi"}, False),
        ({"count/pods": "3"}, {"count/pods": "3"}, True),
        ({"services": "3"}, {"services": "3"}, False),
    ],
)
def test_a_pod_needs_what_all_its_containers_ask_for(hard: Json, used: Json, is_passed: bool) -> None:
    pod = statefulset(
        container(requests={"cpu": "500m"}, limits={"memory": "256Mi"}),
        container(requests={"cpu": "0.1"}, limits={"memory": "256Mi"}),
    )
    assert bool(passed(quota(hard, used), pod)) is is_passed


def test_an_init_container_counts_if_it_asks_for_more_than_the_others_together() -> None:
    small, large = container(requests={"cpu": "1"}), container(requests={"cpu": "3"})
    full = quota({"requests.cpu": "4"}, {"requests.cpu": "2"})
    assert passed(full, statefulset(small, init=(small,))) == []
    assert passed(full, statefulset(small, init=(large,))) == ["requests.cpu"]


def test_a_claim_that_is_there_already_is_not_counted_again() -> None:
    full = quota(
        {"persistentvolumeclaims": "3", "requests.storage": "30Gi"},
        {"persistentvolumeclaims": "3", "requests.storage": "21Gi"},
    )
    assert passed(full, statefulset(storage="10Gi")) == ["persistentvolumeclaims", "requests.storage"]
    assert passed(full, statefulset(storage="10Gi"), has_claims=True) == []


@pytest.mark.parametrize("spec", [{"scopes": ["BestEffort"]}, {"scopeSelector": {"matchExpressions": []}}])
def test_a_quota_of_some_pods_only_is_left_out(spec: Json) -> None:
    assert passed(quota({"pods": "1"}, {"pods": "1"}, **spec), statefulset()) == []


def test_a_quota_without_a_status_says_nothing() -> None:
    assert passed({"metadata": {"name": "new"}, "spec": {"hard": {"pods": "0"}}}, statefulset()) == []
