"""The operator in a real cluster under its own service account: growth at once, scale-down when it is safe.

One application for all tests, in file order; each begins where the one before ended. The gaps are what users of the
application see, measured on its topics.
"""

import json
import time
from collections.abc import Iterator

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios import operator_deployment
from lab.scenarios.demo_application import DemoApplication, fresh_name
from lab.scenarios.faults import kill_container, restarts
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all
from lab.scenarios.stream_app import StreamAppScenario
from tests.lab.plugin import run_kubectl
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
NAMESPACE = "t-operator"
NOBODY_THERE = "10.244.250.250:9092"
"""An address of the pods' network that no pod has: packets to it vanish."""

LEVELS = 3_000
"""The API server takes 10,000, and Python gives up at 1,000 by itself."""


@pytest.fixture(scope="module")
def running(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (it must run)
    """Deploy the application with three pods under load."""
    application = DemoApplication(fresh_name(), {"STREAMS_NUM_STANDBY_REPLICAS": "1"}, 50_000, 300, NAMESPACE)
    remove_all(kubectl, bootstrap, [application])
    observed = ObservedApp.of(kubectl, bootstrap, application)
    start_all({observed: 3})
    yield observed
    remove_all(kubectl, bootstrap, [application])


@pytest.mark.guarantee(3)
def test_more_replicas_are_granted_at_once(running: ObservedApp) -> None:
    running.raise_to(4)
    running.app.wait_until_converged(4)


@pytest.mark.guarantee(1)
@pytest.mark.guarantee(8)
def test_a_scale_down_is_held_until_it_is_safe_and_nobody_waits_for_a_session_timeout(running: ObservedApp) -> None:
    began = running.clock()
    running.app.scale(3)
    running.wait_until_held(timeout_seconds=30)
    assert running.app.granted() == 4
    running.app.wait_until_converged(3)
    time.sleep(5)
    assert running.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
    assert running.steps()[0] == (4, 3)
    assert sorted(pod["metadata"]["name"] for pod in running.app.pods()) == ["counter-0", "counter-1", "counter-2"]


@pytest.mark.guarantee(2)
def test_a_hold_goes_on_when_the_operator_is_killed(running: ObservedApp) -> None:
    # With no lag allowed under load no copy is ever near enough: a hold that lasts.
    running.app.apply(2, learners={"acceptableRecoveryLag": 0})
    wait_until("hold on record", lambda: "hold" in running.record(), 60)
    before = running.record()
    operator_deployment.kill(running.app.kubectl)
    wait_until("taken over", lambda: running.record().get("epoch", [0, 0])[1] > before["epoch"][1], 60)
    time.sleep(15)
    after = running.record()
    assert (after["hold"]["id"], after["hold"]["since"]) == (before["hold"]["id"], before["hold"]["since"])
    assert running.app.granted() == 3


@pytest.mark.guarantee(3)
def test_a_hold_is_called_off_when_the_replicas_rise_again(running: ObservedApp) -> None:
    running.app.apply(3, learners={"acceptableRecoveryLag": 0})
    wait_until("record gone", lambda: running.record() == {}, 30)
    assert running.app.granted() == 3
    assert running.app.condition("ScaleDownHeld")["status"] == "False"
    running.app.apply(3)
    running.app.wait_until_converged(3)


def test_a_broker_that_swallows_packets_delays_nobody_else_and_no_growth(running: ObservedApp) -> None:
    silent = StreamAppScenario(running.app.kubectl, DemoApplication("silent", namespace=NAMESPACE), name="silent")
    template = {
        "metadata": {"labels": {"app.kubernetes.io/name": "silent"}},
        "spec": {"containers": [{"name": "idle", "image": "localhost/streamapp/pause:1"}]},
    }
    kafka = {"bootstrapServers": NOBODY_THERE}
    silent.apply(1, template=template, kafka=kafka, topology="", state=None)
    wait_until("silent made", lambda: silent.granted() == 1, 30)
    wait_until("silent known", lambda: silent.condition("KafkaReachable").get("status") == "False", 60)
    silent.scale(2)
    wait_until("silent grown", lambda: silent.granted() == 2, 30)
    running.raise_to(4)
    running.app.kubectl.run("delete", "--namespace", NAMESPACE, "streamapp/silent")
    running.app.wait_until_converged(4)


@pytest.mark.guarantee(1)
@pytest.mark.guarantee(4)
def test_one_pod_gets_a_new_volume_by_one_command_and_no_other_restarts(running: ObservedApp, session: Session) -> None:
    before, claim, began = running.pods(), running.claim_uid(1), running.clock()
    ran = run_kubectl(
        session,
        *("streamapp", "restart", "--namespace", NAMESPACE, "counter"),
        *("--ordinal", "1", "--new-volume", "--yes", "--wait"),
    )
    assert (ran.code, ran.err) == (0, "")
    running.app.wait_until_converged(4)
    time.sleep(5)
    after = running.pods()
    assert [ordinal for ordinal in before if before[ordinal] != after[ordinal]] == [1]
    assert running.claim_uid(1) != claim
    assert running.app.condition("ProcessIdentityStable")["status"] == "True"
    assert running.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS


def test_a_container_that_is_killed_costs_seconds_and_not_the_session_timeout(running: ObservedApp) -> None:
    began = running.clock()
    # One that was there from the start: members are put out of the group only if they were seen for a while.
    kill_container(running.pod(2))
    wait_until("restarted", lambda: restarts(running.pod(2)) == 1, 60)
    running.app.wait_until_converged(4)
    time.sleep(5)
    assert running.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS


@pytest.mark.guarantee(3)
def test_a_streamapp_that_is_nested_very_deep_keeps_no_operator_from_working(running: ObservedApp) -> None:
    kubectl = running.app.kubectl
    deep = StreamAppScenario(kubectl, DemoApplication("deep", namespace=NAMESPACE), name="deep")
    streamapp = deep.resource(1)
    streamapp["spec"]["template"]["spec"]["deep"] = "HERE"
    text = json.dumps(streamapp)
    kubectl.apply(text.replace('"HERE"', '{"a":' * LEVELS + "1" + "}" * LEVELS))
    reason = '--output=jsonpath={.status.conditions[?(@.type=="Stalled")].reason}'
    read = ("get", "--namespace", NAMESPACE, "streamapp/deep", reason)
    wait_until("it is told", lambda: kubectl.run(*read) == "InvalidSpec", 60)
    operator_deployment.kill(kubectl)
    running.raise_to(5)
    kubectl.run("delete", "--namespace", NAMESPACE, "streamapp/deep")


def test_no_record_was_lost(running: ObservedApp) -> None:
    require_no_record_lost(running)


def test_the_operator_had_every_right_it_asked_for(running: ObservedApp) -> None:
    assert "forbidden: User" not in operator_deployment.logs(running.app.kubectl)
