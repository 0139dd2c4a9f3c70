"""Two replicas of the operator, one Lease: whoever takes over goes on where the record is.

One application for all tests, in file order; each begins where the one before ended. How long a takeover took is read
from the Lease: this machine's clock is that of the pods.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from lab.clusters.kubectl import Kubectl, wait_until
from lab.errors import LabError
from lab.scenarios import operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import kill_container
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost

pytestmark = [pytest.mark.timeout(600)]
NEVER_NEAR_ENOUGH = {"acceptableRecoveryLag": 0}
KILLS = 10


@pytest.fixture(scope="module")
def held(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (it must run)
    """Deploy the application with three pods under load."""
    settings = {"STREAMS_NUM_STANDBY_REPLICAS": "1"}
    application = DemoApplication(unique_name("leaders"), settings, 20_000, 200, "t-leaders", cpu_request="20m")
    remove_all(kubectl, bootstrap, [application])
    observed = ObservedApp.of(kubectl, bootstrap, application)
    start_all({observed: 3})
    yield observed
    remove_all(kubectl, bootstrap, [application])


@pytest.mark.lab
@pytest.mark.guarantee(2)
def test_a_held_step_is_made_once_and_by_the_successor_of_a_leader_that_was_killed(held: ObservedApp) -> None:
    kubectl, began, before = held.app.kubectl, held.clock(), held.steps()
    hold_for_ever(held, 2)
    hold, term = held.record()["hold"]["id"], operator_deployment.lease(kubectl)["leaseTransitions"]
    assert held.record()["epoch"][0] == term
    seconds = takeover_by_kill(kubectl)
    print(f"taken over {seconds:.1f} s after a kill")  # noqa: T201 (a figure for the reader)
    assert seconds < SESSION_TIMEOUT_SECONDS
    wait_until("the record is taken over", lambda: held.record()["epoch"][0] == term + 1, 10)
    assert (held.record()["hold"]["id"], held.app.granted()) == (hold, 3)
    held.app.apply(2)
    held.app.wait_until_converged(2)
    assert held.steps() == [(3, 2), *before]
    assert held.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS


@pytest.mark.lab
def test_a_leader_that_is_told_to_end_hands_over_in_seconds_and_the_hold_goes_on(held: ObservedApp) -> None:
    kubectl = held.app.kubectl
    held.app.apply(3)
    held.app.wait_until_converged(3)
    before = held.steps()
    hold_for_ever(held, 2)
    hold, leader = held.record()["hold"]["id"], operator_deployment.pod_name(kubectl)
    lease, told_at = operator_deployment.lease(kubectl), time.time()
    kubectl.run("delete", "pod", "--namespace", operator_deployment.NAMESPACE, leader, "--wait=false")
    seconds = taken_over_after(kubectl, lease["holderIdentity"], told_at)
    print(f"taken over {seconds:.1f} s after the order to end")  # noqa: T201 (a figure for the reader)
    # Of a leader that gave nothing back the successor waits until its lease is over.
    assert seconds < lease["leaseDurationSeconds"]
    held.app.apply(2)
    held.app.wait_until_converged(2)
    assert held.steps() == [(3, 2), *before]
    assert hold.startswith("h-")
    renew_pods(kubectl)


@pytest.mark.lab
def test_one_replica_says_that_it_leads_and_the_other_that_it_stands_by(held: ObservedApp) -> None:
    kubectl = held.app.kubectl
    leader = operator_deployment.pod_name(kubectl)
    pods = operator_deployment.pods(kubectl)
    assert len(pods) == 2
    said = {name: proxied(kubectl, name, "metrics").splitlines() for name in pods}
    assert {name for name, lines in said.items() if "streamapp_leader 1.0" in lines} == {leader}
    (other,) = pods.keys() - {leader}
    assert leader in proxied(kubectl, other, "readyz")
    assert "forbidden: User" not in operator_deployment.logs(kubectl)


@pytest.mark.lab
def test_the_pod_network_reads_nothing_of_applications(held: ObservedApp) -> None:
    kubectl = held.app.kubectl
    leader = operator_deployment.pod_name(kubectl)
    for port, why in ((8080, "NotFound"), (8081, "connection refused")):
        with pytest.raises(LabError, match=why):
            proxied(kubectl, leader, "v1/operator", port)


@pytest.mark.proofs
@pytest.mark.guarantee(2)
@pytest.mark.timeout(2400)
def test_ten_leaders_are_killed_in_holds_and_steps_and_no_step_is_lost_or_repeated(held: ObservedApp) -> None:
    kubectl, chance, took = held.app.kubectl, Random(70), []  # noqa: S311 (plays a story, protects nothing)
    for number in range(KILLS):
        held.app.apply(3)
        held.app.wait_until_converged(3)
        before, began = held.steps(), held.clock()
        if number % 2:
            held.app.apply(2)
            wait_until("the step is made", lambda: held.app.granted() == 2, 120, interval_seconds=0.05)
            time.sleep(chance.uniform(0, 2))
        else:
            hold_for_ever(held, 2)
            time.sleep(chance.uniform(0, 4))  # anywhere between two renewals
        took.append(takeover_by_kill(kubectl))
        held.app.apply(2)
        held.app.wait_until_converged(2)
        assert held.steps() == [(3, 2), *before][: len(held.steps())]
        assert held.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
    print("taken over after", ", ".join(f"{seconds:.1f} s" for seconds in took))  # noqa: T201 (for the reader)
    assert max(took) < SESSION_TIMEOUT_SECONDS
    require_no_record_lost(held)


def hold_for_ever(observed: ObservedApp, replicas: int) -> None:
    """Wish for fewer pods under a condition that is never met, and wait until that is on record."""
    observed.app.apply(replicas, learners=NEVER_NEAR_ENOUGH)
    wait_until("the hold is on record", lambda: "hold" in observed.record(), 60)


def takeover_by_kill(kubectl: Kubectl) -> float:
    """Send SIGKILL to the leader; give the seconds until another one had the Lease."""
    leader = operator_deployment.pod_name(kubectl)
    former = operator_deployment.lease(kubectl)["holderIdentity"]
    pod: dict[str, Any] = operator_deployment.pods(kubectl)[leader]
    killed_at = time.time()
    kill_container(pod)
    seconds = taken_over_after(kubectl, former, killed_at)
    # Its container starts again ever more slowly; another pod does so at once.
    kubectl.run("delete", "pod", "--namespace", operator_deployment.NAMESPACE, leader, "--wait=false")
    renew_pods(kubectl)
    return seconds


def taken_over_after(kubectl: Kubectl, former: str, since: float) -> float:
    """Wait until another process has the Lease; give the seconds from then to when it was taken."""
    wait_until("another leader", lambda: operator_deployment.lease(kubectl)["holderIdentity"] not in {"", former}, 60)
    taken_at = datetime.fromisoformat(operator_deployment.lease(kubectl)["acquireTime"]).astimezone(UTC)
    return taken_at.timestamp() - since


def renew_pods(kubectl: Kubectl) -> None:
    """Wait until there are two again, ready."""
    wait_until("two replicas", lambda: len(operator_deployment.pods(kubectl)) == 2, 60)
    kubectl.wait_for_rollout(operator_deployment.NAMESPACE, "deployment/streamapp-operator")


def proxied(kubectl: Kubectl, pod: str, path: str, port: int = 8080) -> str:
    """Give what a replica answers over HTTP in the pod network."""
    door = f"/api/v1/namespaces/{operator_deployment.NAMESPACE}/pods/{pod}:{port}/proxy"
    return kubectl.run("get", f"--raw={door}/{path}")
