"""Volumes that are not what they were, and pods that never start.

Two small applications side by side. The first says good-bye when it closes: its pods are restarted often here, and who
runs with a wrong process ID is nobody's to put out of the group.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios import demo_application, operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import exchange, process_file, process_id, volume_folder
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(300)]
STANDBY = {"STREAMS_NUM_STANDBY_REPLICAS": "1"}
LEAVES = {"LEAVE_ON_CLOSE": "true"}


@pytest.fixture(scope="module")
def both(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[dict[str, ObservedApp]]:  # noqa: ARG001
    """Deploy both with three pods; of the second, one pod is never let in by the scheduler."""
    applications = [
        DemoApplication(unique_name("identity"), STANDBY | LEAVES, 5_000, 50, "t-identity", cpu_request="20m"),
        DemoApplication(unique_name("never-ran"), STANDBY, 5_000, 50, "t-never-ran", cpu_request="20m"),
    ]
    remove_all(kubectl, bootstrap, applications)
    whole, lame = (ObservedApp.of(kubectl, bootstrap, each) for each in applications)
    demo_application.preload(kubectl, lame.app.application)
    lame.app.apply(3, template=gated_template(lame))
    for ordinal in (0, 2):
        let_in(lame, ordinal)
    start_all({whole: 3})
    lame.start_load()
    yield {"identity": whole, "never ran": lame}
    remove_all(kubectl, bootstrap, applications)


def gated_template(one: ObservedApp) -> dict[str, Any]:
    """The template of pods that wait to be let in: each is made together with its claim, which has no past then."""
    template: dict[str, Any] = one.app.resource(None)["spec"]["template"]
    template["spec"]["schedulingGates"] = [{"name": "streamapp.dev/waits"}]
    return template


def let_in(one: ObservedApp, ordinal: int) -> None:
    """Let the scheduler have a pod as soon as it is made."""
    wait_until(f"pod {ordinal} is made", lambda: bool(one.pod(ordinal)), 60)
    patch = json.dumps([{"op": "remove", "path": "/spec/schedulingGates"}])
    place = ("--namespace", one.app.namespace, f"pod/{one.app.name}-{ordinal}")
    one.app.kubectl.run("patch", *place, "--type=json", f"--patch={patch}")


@pytest.fixture
def whole(both: dict[str, ObservedApp]) -> ObservedApp:
    """Give the one whose pods all run."""
    return both["identity"]


@pytest.fixture
def lame(both: dict[str, ObservedApp]) -> ObservedApp:
    """Give the one with a pod that does not start."""
    return both["never ran"]


def test_a_pod_that_never_starts_does_not_keep_another_from_going(lame: ObservedApp) -> None:
    # All tasks run, and have their copies, on the two that do.
    wait_until("all but one", lambda: lame.app.condition("Converged").get("reason") == "PodsNotReady", 120)
    began = lame.clock()
    lame.app.scale(2)
    wait_until("the step is done", lambda: lame.steps() == [(3, 2)], 120)
    names = {pod["metadata"]["name"]: pod["status"]["phase"] for pod in lame.app.pods()}
    assert names == {"counter-0": "Running", "counter-1": "Pending"}
    assert lame.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS


def test_a_pod_that_never_ran_goes_at_once_though_nothing_could_ever_be_covered(lame: ObservedApp) -> None:
    lame.app.apply(1, template=gated_template(lame), learners={"acceptableRecoveryLag": 0, "triggerRebalance": False})
    wait_until("it goes", lambda: lame.app.granted() == 1, 30)
    removed = 'streamapp_replicas_removed_total{name="counter",namespace="t-never-ran",reason="NeverRan"} 1.0'
    assert removed in operator_deployment.metrics(lame.app.kubectl).splitlines()


def test_pods_are_kept_while_two_of_them_run_with_one_process_id(whole: ObservedApp) -> None:
    one, two = folders(whole, 1, 2)
    own, doubled = (process_id(each, whole.app.application.application_id) for each in (two, one))
    write_process_id(two, whole, doubled)
    whole.delete_pod(2)
    wait_until_identity(whole, "False", "ProcessIdDuplicated")
    assert doubled in whole.app.condition("ProcessIdentityStable")["message"]
    whole.app.scale(2)
    whole.wait_until_held("ProcessIdDuplicated")
    granted, reasons = whole.watch_hold(15)
    assert (granted, "" in reasons) == ({3}, False)
    write_process_id(two, whole, own)


def test_pods_are_kept_while_two_of_them_have_each_others_volume(whole: ObservedApp) -> None:
    none, one = folders(whole, 0, 1)
    exchange(none, one)
    restart(whole, 0, 1, 2)
    wait_until_identity(whole, "False", "ProcessIdMismatch")
    whole.wait_until_held("ProcessIdMismatch")
    granted, reasons = whole.watch_hold(15)
    assert (granted, "" in reasons) == ({3}, False)
    exchange(none, one)


def test_the_scale_down_goes_on_when_every_pod_has_its_own_volume_again(whole: ObservedApp) -> None:
    restart(whole, 0, 1)
    whole.app.wait_until_converged(2)
    assert whole.app.condition("ProcessIdentityStable")["status"] == "True"
    assert whole.steps() == [(3, 2)]
    require_no_record_lost(whole)


def folders(observed: ObservedApp, *ordinals: int) -> list[Path]:
    """The folders of the volumes of some ordinals."""
    namespace = observed.app.namespace
    return [volume_folder(observed.app.kubectl, namespace, f"state-counter-{each}") for each in ordinals]


def write_process_id(volume: Path, observed: ObservedApp, identity: str) -> None:
    """Let the next process on a volume be another one."""
    file = process_file(volume, observed.app.application.application_id)
    file.write_text(json.dumps({"processId": identity}))


def restart(observed: ObservedApp, *ordinals: int) -> None:
    """Delete pods together, and wait until their successors run."""
    names = [f"counter-{each}" for each in ordinals]
    observed.app.kubectl.run("delete", "pod", "--namespace", observed.app.namespace, *names)
    wait_until("ready again", lambda: observed.app.status()["readyReplicas"] == 3, 60)


def wait_until_identity(observed: ObservedApp, status: str, reason: str) -> None:
    """Wait until the resource tells this of the identity of its pods."""

    def told() -> bool:
        condition = observed.app.condition("ProcessIdentityStable")
        return (condition.get("status"), condition.get("reason")) == (status, reason)

    wait_until(f"ProcessIdentityStable {status}: {reason}", told, 90)
