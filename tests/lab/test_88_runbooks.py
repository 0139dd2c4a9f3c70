"""The bad days of docs/runbooks.md: each is brought about under load, and the commands of the page end it.

In file order: each begins with the application as the one before left it.
"""

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.node.namespaces import INSIDE
from lab.scenarios import operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import kill_container
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from tests.lab.runbook import Runbook, reader

pytestmark = [
    pytest.mark.proofs,
    pytest.mark.timeout(600),
    pytest.mark.skipif(INSIDE not in os.environ, reason="only the embedded lab has volumes with a size"),
]

NAMESPACE = "t-runbooks"
SIZE = "320Mi"
STOP_SECONDS = 20
"""How long a pod takes to stop, so that a step stays open while the operator is killed."""

FILL = "cd /var/lib/streams; for size in 1M 512; do dd if=/dev/zero of=filler-$size bs=$size; done; exit 0"

Book = Callable[[str], Runbook]


@pytest.fixture(scope="module")
def app(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (it must run)
    """Run an application with standbys and three pods, under load, on volumes with a size."""
    settings = {"STREAMS_NUM_STANDBY_REPLICAS": "1"}
    application = DemoApplication(unique_name("runbooks"), settings, 20_000, 100, NAMESPACE, cpu_request="20m")
    remove_all(kubectl, bootstrap, [application])
    one = ObservedApp.of(kubectl, bootstrap, application)
    start_all({one: 3}, small_and_slow_to_stop)
    yield one
    remove_all(kubectl, bootstrap, [application])


def small_and_slow_to_stop(one: ObservedApp) -> dict[str, Any]:
    """Lay small volumes and a slow stop over the spec."""
    spec = one.app.resource(3)["spec"]
    claim = {**spec["state"]["volumeClaimTemplate"], "storageClassName": "sized"}
    claim["resources"] = {"requests": {"storage": SIZE}}
    (container,) = spec["template"]["spec"]["containers"]
    container["lifecycle"] = {"preStop": {"sleep": {"seconds": STOP_SECONDS}}}
    return {"state": {**spec["state"], "volumeClaimTemplate": claim}, "template": spec["template"]}


@pytest.fixture(scope="module")
def book(session: Session, tmp_path_factory: pytest.TempPathFactory) -> Book:
    """Give a section of the page, for a user of this application."""
    environment = reader(session, NAMESPACE, tmp_path_factory.mktemp("user"))
    return lambda title: Runbook(title, environment, {"NAME": "counter"})


def test_a_full_volume_is_named_and_grows(app: ObservedApp, book: Book) -> None:
    page = book("A volume is full")
    pods = app.pods()
    fill = ("exec", "--namespace", NAMESPACE, "counter-2", "--container=counter", "--", "sh", "-c")
    app.app.kubectl.run(*fill, FILL)
    kill_container(app.pod(2))
    words = "No space left on device"
    assert words in page.spans
    wait_until("the condition has the last words", lambda: words in app.app.condition("Ready").get("message", ""), 180)
    assert app.app.condition("Ready")["reason"] == "PodFails"
    assert page.run("kubectl streamapp hold").code == 0
    assert "state-counter-2" in page.run("kubectl get pvc").out
    assert page.run("kubectl patch streamapp").code == 0
    app.app.wait_until_converged(3, timeout_seconds=400)
    assert app.pods() == pods
    assert page.run("kubectl streamapp tasks").code == 0
    app.app.scale(2)
    app.wait_until_held("HeldByUser")
    app.app.scale(3)
    assert page.run("kubectl streamapp unhold").code == 0


def test_without_brokers_pods_stay_and_come_and_the_hold_goes_on_by_itself(
    app: ObservedApp, book: Book, kubectl: Kubectl
) -> None:
    page = book("The brokers are away")
    assert "KafkaReachable" in page.spans
    broker = ("--namespace", "kafka", "statefulset/kafka")
    kubectl.run("scale", *broker, "--replicas=0")
    try:
        wait_until("it is reported", lambda: app.app.condition("KafkaReachable").get("status") == "False", 120)
        assert app.app.condition("KafkaReachable")["message"]
        app.raise_to(4)
        app.app.scale(2)
        app.wait_until_held()
        granted, _ = app.watch_hold(15)
        assert granted == {4}
    finally:
        kubectl.run("scale", *broker, "--replicas=1")
        kubectl.wait_for_rollout("kafka", "statefulset/kafka")
    app.app.wait_until_converged(2, timeout_seconds=400)
    assert app.app.condition("KafkaReachable")["status"] == "True"
    app.app.scale(3)
    app.app.wait_until_converged(3)


def budget(app: ObservedApp) -> Any:
    """Give the spec of the application's PodDisruptionBudget."""
    return app.app.kubectl.json("get", "--namespace", NAMESPACE, "poddisruptionbudget/counter")["spec"]


def eviction(page: Runbook, pod: str) -> str:
    """Ask for an eviction, as a drain does, without carrying it out; give the refusal, empty if there is none."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction"
    metadata = {"name": pod, "namespace": NAMESPACE}
    options = {"dryRun": ["All"]}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
    asked = page.shell(f"kubectl create --raw={path} --filename=- <<'END'\n{json.dumps(body)}\nEND")
    return asked.err if asked.code else ""


def test_a_drain_waits_for_an_open_step_and_a_budget_without_an_operator_is_opened_by_hand(
    app: ObservedApp, book: Book, kubectl: Kubectl
) -> None:
    page = book("A node drain hangs")
    symptom = next(span for span in page.spans if "Cannot evict pod" in span)
    at_rest = budget(app)
    assert eviction(page, "counter-0") == ""
    app.app.scale(2)
    wait_until("the step is open", lambda: "step" in app.record(), 120, interval_seconds=0.2)
    assert symptom in eviction(page, "counter-0")
    assert "maxUnavailable: 0" in page.run("kubectl get poddisruptionbudget").out
    assert page.run("kubectl streamapp status").code == 0
    with operator_deployment.absent(kubectl):
        wait_until("the pod is gone", lambda: sorted(app.pods()) == [0, 1], 120)
        assert symptom in eviction(page, "counter-0")
        assert page.run("kubectl patch poddisruptionbudget").code == 0
        wait_until("the drain goes on", lambda: eviction(page, "counter-0") == "", 30)
    app.app.wait_until_converged(2)
    assert page.run("kubectl streamapp explain").code == 0
    wait_until("the operator's own budget", lambda: budget(app) == at_rest, 60)


def test_an_upgrade_that_does_not_start_is_rolled_back_and_no_pod_of_an_application_restarts(
    app: ObservedApp, book: Book, kubectl: Kubectl
) -> None:
    page = book("An upgrade went wrong")
    pods, before = app.pods(), set(operator_deployment.pods(kubectl))
    release, namespace = operator_deployment.RELEASE, operator_deployment.NAMESPACE
    bad = "--reset-then-reuse-values --set images.operator.tag=none"
    upgrade = f"helm upgrade {release} {operator_deployment.CHART} --namespace {namespace} {bad}"
    assert page.shell(upgrade).code == 0
    wait_until("a pod that does not start", lambda: bool(set(operator_deployment.pods(kubectl)) - before), 60)
    assert page.run("helm rollback").code == 0
    kubectl.wait_for_rollout(namespace, f"deployment/{release}")
    operator_deployment.pod_name(kubectl)
    assert page.run("kubectl streamapp explain").code == 0
    app.raise_to(3)
    app.app.wait_until_converged(3)
    assert {ordinal: uid for ordinal, uid in app.pods().items() if ordinal < 2} == pods


def test_no_record_was_lost(app: ObservedApp) -> None:
    counts = app.counts()
    assert (counts.lost, counts.inputs > 0) == (0, True)
