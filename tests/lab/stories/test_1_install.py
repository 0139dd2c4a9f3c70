"""The chart as users meet it: installed, checked, guarded, cut to a namespace and back, removed, installed again."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from lab.clusters.helm import Helm
from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios import operator_deployment
from lab.scenarios.api_changes import rights_used
from lab.scenarios.operator_deployment import NAMESPACE, RELEASE
from lab.scenarios.stream_app import StreamAppScenario
from tests.lab.guarded import FORBIDDEN, is_served, patch, policies, rights_given, uids
from tests.lab.plugin import refusal
from tests.lab.stories.telling import Stage

CHECKED = "checked, nothing lacks"


@pytest.mark.lab
@pytest.mark.guarantee(4)
@pytest.mark.timeout(900)
@pytest.mark.steps(8)
def test_install(stage: Stage) -> None:
    story, kubectl, helm, began = stage.story, stage.kubectl, Helm(stage.session), datetime.now(UTC)
    app = stage.application({}, keys=2_000, rate=20).app
    with story.step("the chart is installed, and its own test finds rights, definition and readiness"):
        operator_deployment.deploy(kubectl)
        assert CHECKED in helm.run("test", RELEASE, "--namespace", NAMESPACE, "--logs", "--timeout=120s")
    with story.step("a StreamApp of two pods converges"):
        app.preload()
        app.apply(2)
        app.wait_until_converged(2)
        before = uids(app)
    with story.step("another hand does not lower the StatefulSet, nor change the operator's records"):
        is_guarded(kubectl, app)
    with story.step("a template that reaches for the node is refused"):
        for pod, words in FORBIDDEN.values():
            resource: dict[str, Any] = app.resource(1)
            resource["metadata"]["name"] = "other"
            resource["spec"]["template"]["spec"] |= pod
            told = refusal(kubectl, "create", "--filename=-", "--dry-run=server", stdin=json.dumps(resource))
            assert words in told
    with story.step("an upgrade to one namespace leaves no right in the cluster, and a rollback gives it back"):
        operator_deployment.deploy(kubectl, stage.namespace)
        assert kubectl.run("get", "clusterrolebinding", RELEASE, "--ignore-not-found") == ""
        is_served(app)
        helm.run("rollback", RELEASE, "--namespace", NAMESPACE, "--wait", "--force-conflicts", "--timeout=120s")
        kubectl.wait_for_rollout(NAMESPACE, "deployment/streamapp-operator")
        is_served(app)
        assert uids(app) == before
    with story.step("every right that the operator used was given to it"):
        assert rights_used(began) - rights_given(kubectl) == set()
    with story.step("an uninstall leaves the application as it is, and locks nobody out"):
        is_left_alone(kubectl, helm, app)
        assert uids(app) == before
    with story.step("another installation finds the definition and the application again"):
        operator_deployment.deploy(kubectl)
        is_served(app)
        assert uids(app) == before


def is_guarded(kubectl: Kubectl, app: StreamAppScenario) -> None:
    """What belongs to the operator is refused to others, by words that say what to do instead."""
    statefulset = "statefulset/counter"
    told = refusal(kubectl, *patch(app.namespace, statefulset, {"spec": {"replicas": 1}}))
    assert f"kubectl scale streamapp/counter --namespace {app.namespace} --replicas=1" in told
    told = refusal(kubectl, "scale", statefulset, "--namespace", app.namespace, "--replicas=0")
    assert f"kubectl scale streamapp/counter --namespace {app.namespace} --replicas=0" in told
    record = {"metadata": {"annotations": {"streamapp.dev/hold-record": "{}"}}}
    assert "belongs to a StreamApp" in refusal(kubectl, *patch(app.namespace, statefulset, record))
    assert app.granted() == 2


def is_left_alone(kubectl: Kubectl, helm: Helm, app: StreamAppScenario) -> None:
    """The budget is closed; an uninstall opens it, and leaves all that is the user's."""
    budget = ("get", "poddisruptionbudget/counter", "--namespace", app.namespace)
    kubectl.run(*patch(app.namespace, "streamapp/counter", {"spec": {"disruption": {"policy": "WhenCaughtUp"}}}))
    wait_until("closed at rest", lambda: kubectl.json(*budget)["spec"]["maxUnavailable"] == 0, 60)
    assert "streamapps.streamapp.dev" in helm.uninstall(RELEASE, NAMESPACE)
    assert kubectl.json(*budget)["spec"]["maxUnavailable"] == 1
    kinds = "streamapps,statefulsets,pods,services,poddisruptionbudgets"
    left = kubectl.json("get", kinds, "--namespace", app.namespace)["items"]
    assert {each["kind"] for each in left} >= {"StreamApp", "StatefulSet", "Pod", "Service", "PodDisruptionBudget"}
    assert [each["metadata"]["name"] for each in left if each["metadata"].get("finalizers")] == []
    assert not [name for name in policies(kubectl) if name.startswith(RELEASE)]
    lower = patch(app.namespace, "statefulset/counter", {"spec": {"replicas": 1}}, "--dry-run=server")
    # The API server uses a policy for a moment longer than it is there.
    wait_until("the StatefulSet can be lowered", lambda: bool(kubectl.run(*lower)), 30)
    assert app.granted() == 2
