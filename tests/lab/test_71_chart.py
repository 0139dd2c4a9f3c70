"""The chart, as its users meet it: install, check, guard, upgrade, roll back, uninstall, under a running application.

One application for all tests, in file order; each begins where the one before ended.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lab.build.cache import Cache
from lab.build.chart_tools import prometheus_definitions
from lab.clusters.cluster import Session
from lab.clusters.helm import Helm
from lab.clusters.kubectl import Kubectl, wait_until
from lab.errors import LabError
from lab.scenarios import demo_application, operator_deployment
from lab.scenarios.demo_application import DemoApplication, fresh_name
from lab.scenarios.operator_deployment import NAMESPACE, RELEASE
from lab.scenarios.stream_app import StreamAppScenario
from lab.settings import Settings
from tests.lab.guarded import FORBIDDEN, is_served, patch, policies, uids
from tests.lab.plugin import refusal

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]
PLACE = "t-chart"
POLICIES = ("operator", "scale", "statefulsets", "templates")


@pytest.fixture(scope="module")
def helm(session: Session) -> Helm:
    return Helm(session)


@pytest.fixture(scope="module")
def app(session: Session, kubectl: Kubectl, operator: None) -> Iterator[StreamAppScenario]:  # noqa: ARG001 (it must run)
    """Run a small application with three pods."""
    bootstrap = session.environment["KAFKA_BOOTSTRAP"]
    application = DemoApplication(fresh_name(), {"STREAMS_NUM_STANDBY_REPLICAS": "1"}, 2_000, 20, PLACE)
    demo_application.remove(kubectl, bootstrap, PLACE)
    app = StreamAppScenario(kubectl, application)
    app.preload()
    app.apply(3)
    app.wait_until_converged(3)
    yield app
    demo_application.remove(kubectl, bootstrap, PLACE)


@pytest.fixture(scope="module")
def prometheus(kubectl: Kubectl) -> Iterator[None]:
    """Have the API server serve, and so judge, what the Prometheus operator reads, until the release is rid of it."""
    settings = Settings.from_environment()
    folder = str(prometheus_definitions(settings.versions, Cache(settings.cache)))
    kubectl.run("apply", "--server-side", "--filename", folder)
    kubectl.run("wait", "--for=condition=Established", "--filename", folder, "--timeout=30s")
    yield
    kubectl.run("delete", "--filename", folder)


@pytest.mark.usefixtures("app")
def test_helm_test_proves_rights_definition_and_readiness(helm: Helm) -> None:
    told = helm.run("test", RELEASE, "--namespace", NAMESPACE, "--logs", "--timeout=120s")
    assert "Succeeded" in told
    assert "checked, nothing lacks" in told
    assert "yes    patch statefulsets.apps" in told


def test_nobody_else_lowers_the_statefulset_itself(kubectl: Kubectl, app: StreamAppScenario) -> None:
    told = refusal(kubectl, *patch(PLACE, "statefulset/counter", {"spec": {"replicas": 1}}))
    assert f"StatefulSet {PLACE}/counter belongs to a StreamApp" in told
    assert f"kubectl scale streamapp/counter --namespace {PLACE} --replicas=1" in told
    assert f"kubectl label namespace {PLACE} streamapp.dev/guard=off" in told
    assert app.granted() == 3


@pytest.mark.parametrize("replicas", [2, 0])
def test_nobody_else_lowers_it_through_its_scale(kubectl: Kubectl, app: StreamAppScenario, replicas: int) -> None:
    told = refusal(kubectl, "scale", "statefulset/counter", "--namespace", PLACE, f"--replicas={replicas}")
    assert f"kubectl scale streamapp/counter --namespace {PLACE} --replicas={replicas}" in told
    assert app.granted() == 3


def test_raising_it_is_let_pass_on_both_ways(kubectl: Kubectl, app: StreamAppScenario) -> None:
    kubectl.run(*patch(PLACE, "statefulset/counter", {"spec": {"replicas": 4}}, "--dry-run=server"))
    scale = json.dumps({"spec": {"replicas": 4}})
    more = ("--subresource=scale", "--type=merge", f"--patch={scale}", "--dry-run=server")
    kubectl.run("patch", "statefulset/counter", "--namespace", PLACE, *more)
    assert app.granted() == 3


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"labels": {"streamapp.dev/operator": None}}, "labels"),
        ({"labels": {"streamapp.dev/app": "other"}}, "labels"),
        ({"annotations": {"streamapp.dev/hold-record": "{}"}}, "annotations"),
        ({"annotations": {"streamapp.dev/hold-generation": "7"}}, "annotations"),
        ({"annotations": {"streamapp.dev/template-hash": None}}, "annotations"),
    ],
)
def test_nobody_else_changes_the_operators_labels_and_records(
    kubectl: Kubectl, app: StreamAppScenario, content: dict[str, Any], what: str
) -> None:
    assert app.granted() == 3
    told = refusal(kubectl, *patch(PLACE, "statefulset/counter", {"metadata": content}))
    assert f"belongs to a StreamApp: its {what} streamapp.dev/" in told


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}, "persistentVolumeClaimRetentionPolicy"),
        ({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}, "persistentVolumeClaimRetentionPolicy"),
        ({"updateStrategy": {"type": "RollingUpdate"}}, "updateStrategy"),
        ({"ordinals": {"start": 1}}, "other ordinals"),
        ({"template": {"spec": {"terminationGracePeriodSeconds": 1}}}, "pod template"),
    ],
)
def test_nobody_else_changes_by_what_pods_are_restarted_and_claims_deleted(
    kubectl: Kubectl, app: StreamAppScenario, spec: dict[str, Any], what: str
) -> None:
    before = app.kubectl.json("get", "statefulset/counter", "--namespace", PLACE)["spec"]
    told = refusal(kubectl, *patch(PLACE, "statefulset/counter", {"spec": spec}))
    assert f"StatefulSet {PLACE}/counter belongs to a StreamApp" in told
    assert what in told
    assert app.kubectl.json("get", "statefulset/counter", "--namespace", PLACE)["spec"] == before


@pytest.mark.usefixtures("app")
def test_a_rollout_restart_may_still_be_asked_for(kubectl: Kubectl) -> None:
    asked = {"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "today"}}}}}
    kubectl.run(*patch(PLACE, "statefulset/counter", asked, "--dry-run=server"))


@pytest.mark.usefixtures("app")
def test_whoever_breaks_the_glass_may_do_both(kubectl: Kubectl) -> None:
    kubectl.run("label", "namespace", PLACE, "streamapp.dev/guard=off")
    lower = {"metadata": {"labels": {"streamapp.dev/operator": None}}, "spec": {"replicas": 1}}
    wait_until(
        "let pass", lambda: bool(kubectl.run(*patch(PLACE, "statefulset/counter", lower, "--dry-run=server"))), 10
    )
    zero = ("--subresource=scale", "--type=merge", '--patch={"spec":{"replicas":0}}', "--dry-run=server")
    kubectl.run("patch", "statefulset/counter", "--namespace", PLACE, *zero)
    kubectl.run("label", "namespace", PLACE, "streamapp.dev/guard-")
    wait_until("guarded", lambda: "belongs" in _why(kubectl, *patch(PLACE, "statefulset/counter", lower)), 10)


def _why(kubectl: Kubectl, *command: str) -> str:
    try:
        kubectl.run(*command, "--dry-run=server")
    except LabError as error:
        return error.why
    return ""


@pytest.mark.parametrize("wrong", FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_template_that_reaches_for_the_node_is_refused(
    kubectl: Kubectl, app: StreamAppScenario, wrong: tuple[dict[str, Any], str]
) -> None:
    pod, words = wrong
    resource = app.resource(1)
    resource["metadata"]["name"] = "other"
    resource["spec"]["template"]["spec"] |= pod
    told = refusal(kubectl, "create", "--filename=-", "--dry-run=server", stdin=json.dumps(resource))
    assert words in told
    assert "chart value admission.templates.allow" in told


def test_an_eviction_is_refused_while_a_step_is_open_and_accepted_after_it(
    kubectl: Kubectl, app: StreamAppScenario
) -> None:
    app.scale(2)
    budget = ("get", "poddisruptionbudget/counter", "--namespace", PLACE)
    wait_until("a step is open", lambda: kubectl.json(*budget)["spec"]["maxUnavailable"] == 0, 60, 0.1)
    told = refusal(kubectl, *_eviction("counter-0"), stdin=_body("counter-0"))
    assert "Cannot evict pod as it would violate the pod's disruption budget" in told
    before = uids(app)
    app.wait_until_converged(2)
    assert uids(app)["counter-0"] == before["counter-0"]
    wait_until("evicted", lambda: bool(kubectl.run(*_eviction("counter-0"), stdin=_body("counter-0"))), 30)
    wait_until("another pod", lambda: uids(app).get("counter-0", before["counter-0"]) != before["counter-0"], 90)
    app.wait_until_converged(2)


def _eviction(pod: str) -> tuple[str, ...]:
    return ("create", f"--raw=/api/v1/namespaces/{PLACE}/pods/{pod}/eviction", "--filename=-")


def _body(pod: str) -> str:
    metadata = {"name": pod, "namespace": PLACE}
    return json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})


@pytest.mark.usefixtures("prometheus")
def test_an_upgrade_to_namespaces_touches_no_pod_and_leaves_no_right_in_the_cluster(
    kubectl: Kubectl, helm: Helm, app: StreamAppScenario
) -> None:
    before, key = uids(app), operator_deployment.agent_key(kubectl)
    more = {"networkPolicy": {"enabled": True}, "monitoring": {}}
    operator_deployment.deploy(kubectl, PLACE, **more)
    assert operator_deployment.agent_key(kubectl) == key
    assert kubectl.run("get", "clusterrolebinding", RELEASE, "--ignore-not-found") == ""
    assert kubectl.run("get", "networkpolicy", RELEASE, "--namespace", NAMESPACE, "--output=name")
    for_prometheus = "podmonitor,prometheusrule,configmap"
    made = kubectl.json("get", for_prometheus, "--namespace", NAMESPACE, "--selector", operator_deployment.SELECTOR)
    assert sorted(each["kind"] for each in made["items"]) == ["ConfigMap", "PodMonitor", "PrometheusRule"]
    told = helm.run("test", RELEASE, "--namespace", NAMESPACE, "--logs", "--timeout=120s")
    assert "checked, nothing lacks" in told
    is_served(app)
    assert uids(app) == before


@pytest.mark.usefixtures("prometheus")
def test_in_namespaced_mode_pods_are_restarted_for_a_new_template(app: StreamAppScenario) -> None:
    before = uids(app)
    template = {"metadata": {"annotations": {"generation": "2"}}}
    app.kubectl.run(
        *patch(PLACE, "streamapp/counter", {"spec": {"rollout": {"policy": "Immediate"}, "template": template}})
    )
    wait_until("all pods are new", lambda: _are_new(uids(app), before), 120)
    app.wait_until_converged(2)


def _are_new(now: dict[str, str], before: dict[str, str]) -> bool:
    return set(now) == set(before) and not set(now.values()) & set(before.values())


def test_a_rollback_touches_no_pod_either(kubectl: Kubectl, helm: Helm, app: StreamAppScenario) -> None:
    before = uids(app)
    helm.run("rollback", RELEASE, "--namespace", NAMESPACE, "--wait", "--force-conflicts", "--timeout=120s")
    kubectl.wait_for_rollout(NAMESPACE, "deployment/streamapp-operator")
    assert kubectl.run("get", "role", RELEASE, "--namespace", PLACE, "--ignore-not-found") == ""
    is_served(app)
    assert uids(app) == before


def test_an_uninstall_leaves_the_applications_running_and_locks_nobody_out(
    kubectl: Kubectl, helm: Helm, app: StreamAppScenario
) -> None:
    before, key = uids(app), operator_deployment.agent_key(kubectl)
    kubectl.run(*patch(PLACE, "streamapp/counter", {"spec": {"disruption": {"policy": "WhenCaughtUp"}}}))
    budget = ("get", "poddisruptionbudget/counter", "--namespace", PLACE)
    wait_until("closed at rest", lambda: kubectl.json(*budget)["spec"]["maxUnavailable"] == 0, 30)
    assert "streamapps.streamapp.dev" in helm.uninstall(RELEASE, NAMESPACE)
    assert kubectl.json(*budget)["spec"]["maxUnavailable"] == 1
    assert operator_deployment.agent_key(kubectl) == key
    everything = ("streamapps", "statefulsets", "pods", "services", "poddisruptionbudgets")
    left = kubectl.json("get", ",".join(everything), "--namespace", PLACE)["items"]
    assert {each["kind"] for each in left} >= {"StreamApp", "StatefulSet", "Pod", "Service", "PodDisruptionBudget"}
    assert [each["metadata"]["name"] for each in left if each["metadata"].get("finalizers")] == []
    assert not [name for name in policies(kubectl) if name.startswith(RELEASE)]
    lower = patch(PLACE, "statefulset/counter", {"spec": {"replicas": 1}}, "--dry-run=server")
    # The API server goes by a policy for a moment longer than it is there.
    wait_until("the StatefulSet can be lowered", lambda: bool(kubectl.run(*lower)), 30)
    time.sleep(5)
    assert (uids(app), app.granted()) == (before, 2)


def test_an_install_finds_the_definition_and_the_applications_again(kubectl: Kubectl, app: StreamAppScenario) -> None:
    before = uids(app)
    kubectl.run(*patch(PLACE, "streamapp/counter", {"spec": {"disruption": None}}))
    began = time.monotonic()
    operator_deployment.deploy(kubectl)
    print(f"installed and ready after {time.monotonic() - began:.0f} s")  # noqa: T201 (a figure for docs)
    is_served(app)
    assert uids(app) == before
    assert [name for name in policies(kubectl) if name.startswith(RELEASE)] == [
        f"{RELEASE}-{part}" for part in POLICIES
    ]
