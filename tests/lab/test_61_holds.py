"""What a scale-down meets on its way, on real parts: pods are kept, the resource says why, and it goes on by itself.

One application for all tests, in file order; each begins where the one before ended. A hold that is to last is one
without any lag allowed: under load no copy is ever that near.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios import operator_deployment
from lab.scenarios.api_changes import watch_history
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import lost_packets
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from tests.lab.leading import SAYS_WHO_LEADS, leader
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost
from tests.lab.restless import restless_member

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(300)]
NEVER_NEAR_ENOUGH = {"acceptableRecoveryLag": 0}
SETTINGS = {
    "STREAMS_NUM_STANDBY_REPLICAS": "1",
    "JDK_JAVA_OPTIONS": f"-Xmx192m -XX:+UseSerialGC {SAYS_WHO_LEADS}",
}


@pytest.fixture(scope="module")
def held(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (it must run)
    """Deploy the application with three pods under load."""
    application = DemoApplication(unique_name("holds"), SETTINGS, 20_000, 200, "t-holds", cpu_request="20m")
    remove_all(kubectl, bootstrap, [application])
    observed = ObservedApp.of(kubectl, bootstrap, application)
    start_all({observed: 3})
    yield observed
    remove_all(kubectl, bootstrap, [application])


def test_replicas_that_rise_in_mid_hold_are_granted_at_once(held: ObservedApp) -> None:
    hold_for_ever(held, 2)
    held.raise_to(4)
    wait_until("the record is gone", lambda: held.record() == {}, 30)
    wait_until("nothing is held", lambda: held.held_for() == "", 10)
    held.app.apply(4)
    held.app.wait_until_converged(4)


def test_while_the_brokers_are_out_of_reach_pods_are_kept_and_then_they_go_one_by_one(held: ObservedApp) -> None:
    began = held.clock()
    hold_for_ever(held, 2)
    with lost_packets(operator_deployment.address(held.app.kubectl), held.app.application.application_id):
        held.app.apply(2)
        held.wait_until_held("BrokersUnreachable")
        assert held.app.condition("KafkaReachable")["status"] == "False"
        assert held.watch_hold(12) == ({4}, {"BrokersUnreachable"})
    held.app.wait_until_converged(2)
    assert held.steps()[:2] == [(3, 2), (4, 3)]
    assert held.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS


def test_pods_are_kept_while_a_stranger_is_in_the_group(held: ObservedApp) -> None:
    held.app.scale(3)
    held.app.wait_until_converged(3)
    with stranger(held) as address:
        held.app.scale(2)
        held.wait_until_held("ForeignMember")
        assert address in held.app.condition("ScaleDownHeld")["message"]
        granted, reasons = held.watch_hold(15)
        # the stranger takes its tasks over in rebalances of its own
        assert (granted, "ForeignMember" in reasons) == ({3}, True)
        assert reasons <= {"ForeignMember", "GroupRebalancing"}
    held.app.wait_until_converged(2)
    assert held.steps()[0] == (3, 2)


def test_pods_are_kept_while_the_group_rebalances_all_the_time(held: ObservedApp) -> None:
    held.app.scale(4)
    held.app.wait_until_converged(4)
    with restless_member(held.bootstrap, held.app.application.application_id):
        held.app.scale(2)
        held.wait_until_held("GroupRebalancing")
        granted, reasons = held.watch_hold(12)
        # between two joins the group may be seen stable for a moment, with one member too many
        assert (granted, "GroupRebalancing" in reasons) == ({4}, True)
        assert reasons <= {"ForeignMember", "GroupChanged", "GroupRebalancing"}
        # Down, up, down, below what is granted: one hold, with another target.
        before = held.record()["hold"]["id"]
        held.app.scale(3)
        wait_until("the target is 3", lambda: held.record()["hold"]["target"] == 3, 30)
        held.app.scale(2)
        wait_until("the target is 2", lambda: held.record()["hold"]["target"] == 2, 30)
        assert held.record()["hold"]["id"] == before
        assert held.app.granted() == 4
    wait_until("the first pod goes", lambda: held.app.granted() == 3, 120)


def test_down_up_and_down_again_takes_only_pods_that_are_not_wished_for(held: ObservedApp, session: Session) -> None:
    began = held.clock()
    with watch_history(session, held.app.namespace, "pods", f"--selector=streamapp.dev/app={held.app.name}") as history:
        # The step from 4 to 3 is still open.
        held.raise_to(4)
        held.app.scale(2)
        held.app.wait_until_converged(2)
        assert history.pods_down(among=2) == []
    assert held.steps()[:3] == [(3, 2), (4, 3), (4, 3)]
    assert held.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS


def test_a_hold_outlives_the_leader_of_the_group(held: ObservedApp) -> None:
    held.app.scale(3)
    held.app.wait_until_converged(3)
    hold_for_ever(held, 2)
    before = held.record()["hold"]["id"]
    time.sleep(15)  # its members must have been seen for a while
    began = held.clock()
    ordinal = leader(held)
    former = held.pod(ordinal)["metadata"]["uid"]
    held.delete_pod(ordinal)
    wait_until("another leader", lambda: held.app.condition("Converged").get("reason") != "GroupRebalancing", 60)
    granted, reasons = held.watch_hold(15)
    assert (granted, "" in reasons) == ({3}, False)
    assert held.record()["hold"]["id"] == before
    assert held.pod(ordinal)["metadata"]["uid"] != former
    held.app.apply(2)
    held.app.wait_until_converged(2)
    assert held.steps()[0] == (3, 2)
    assert held.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS


def test_through_all_of_this_nothing_was_lost_or_counted_too_low(held: ObservedApp) -> None:
    require_no_record_lost(held)


def hold_for_ever(observed: ObservedApp, replicas: int) -> None:
    """Wish for fewer pods under a condition that is never met, and wait until that is on record."""
    observed.app.apply(replicas, learners=NEVER_NEAR_ENOUGH)
    wait_until("the hold is on record", lambda: "hold" in observed.record(), 60)


@contextmanager
def stranger(observed: ObservedApp) -> Iterator[str]:
    """Run one more instance of the application beside the StreamApp, and give its address."""
    app = observed.app
    pod = stray_pod(app.resource(1)["spec"]["template"], app.namespace)
    target = ("--namespace", app.namespace, "pod/stranger")
    app.kubectl.apply(json.dumps(pod))
    try:
        app.kubectl.run("wait", *target, "--for=condition=Ready", "--timeout=60s")
        yield app.kubectl.json("get", *target)["status"]["podIP"]
    finally:
        app.kubectl.run("delete", *target)


def stray_pod(template: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The application's pod by itself, with a folder of its own; it leaves the group when it goes."""
    spec = template["spec"]
    (container,) = spec["containers"]
    container["volumeMounts"].append({"name": "state", "mountPath": "/var/lib/streams"})
    container["env"].append({"name": "LEAVE_ON_CLOSE", "value": "true"})
    spec["volumes"].append({"name": "state", "emptyDir": {}})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger", "namespace": namespace}, "spec": spec}
