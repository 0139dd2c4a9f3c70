"""`kubectl streamapp` against a real API server, as kubectl runs it: what it writes, refuses and shows.

One application for all tests, in file order. No copy's word counts for it, so that every scale-down is held for good
and nothing depends on how fast copies are.
"""

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.archives import unpack
from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.errors import NotYetError
from lab.scenarios import demo_application
from lab.scenarios.demo_application import DemoApplication, fresh_name
from lab.scenarios.stream_app import StreamAppScenario
from tests.lab.plugin import Ran, run_kubectl

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]
NAMESPACE = "t-command-line"
HOLD, OVERRIDE = "streamapp.dev/hold", "streamapp.dev/override"


@dataclass(frozen=True)
class Terminal:
    """Somebody at a shell whose PATH has the plugin."""

    session: Session
    app: StreamAppScenario

    def __call__(self, *arguments: str) -> Ran:
        """Run `kubectl streamapp`, with nobody there to answer a question."""
        return self.kubectl("streamapp", *arguments, "--namespace", NAMESPACE)

    def kubectl(self, *arguments: str) -> Ran:
        """Run kubectl, and show what it says."""
        return run_kubectl(self.session, *arguments)

    def annotations(self) -> dict[str, str]:
        """The annotations of the StreamApp that people write."""
        found = self.app.read()["metadata"].get("annotations", {})
        return {name: found[name] for name in (HOLD, OVERRIDE) if name in found}

    def managed_fields(self) -> list[dict[str, Any]]:
        """Who wrote what of the StreamApp."""
        found = self.app.kubectl.json(
            "get", f"streamapp/{self.app.name}", "--namespace", NAMESPACE, "--show-managed-fields"
        )
        return list(found["metadata"]["managedFields"])

    def held_for(self) -> str:
        """The reason for which pods are kept; empty where none are."""
        held = self.app.condition("ScaleDownHeld")
        return str(held["reason"]) if held.get("status") == "True" else ""


@pytest.fixture(scope="module")
def shell(session: Session, kubectl: Kubectl, operator: None) -> Iterator[Terminal]:  # noqa: ARG001 (it must run)
    """Deploy the application with three pods."""
    application = DemoApplication(fresh_name(), {"STREAMS_NUM_STANDBY_REPLICAS": "1"}, 2_000, 10, NAMESPACE)
    bootstrap = session.environment["KAFKA_BOOTSTRAP"]
    demo_application.remove(kubectl, bootstrap, NAMESPACE)
    app = StreamAppScenario(kubectl, application)
    app.preload()
    app.apply(3, learners={"assignor": "Unknown"})
    app.wait_until_converged(3)
    yield Terminal(session, app)
    demo_application.remove(kubectl, bootstrap, NAMESPACE)


def test_a_dry_run_names_the_pod_and_its_tasks_and_writes_nothing(shell: Terminal) -> None:
    before = shell.app.read()
    ran = shell("scale", "counter", "--to", "66%", "--dry-run", "-o", "json")
    assert ran.code == 0
    document = json.loads(ran.out)
    (pod,) = document["leaving"]
    assert (document["from"], document["to"], pod["ordinal"]) == (3, 2, 2)
    assert pod["active"] + pod["copies"] > 0
    after = shell.app.read()
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])
    assert shell("scale", "counter", "--to", "66%", "--dry-run").code == 0


def test_a_pause_is_heard_by_the_operator(shell: Terminal) -> None:
    assert shell("pause", "counter").code == 0
    wait_until("paused", lambda: shell.app.condition("ScaleDownHeld").get("reason") == "Paused", 30)
    assert shell("resume", "counter").code == 0
    wait_until("resumed", lambda: shell.app.condition("ScaleDownHeld").get("reason") != "Paused", 30)


def test_an_autoscaler_is_found_and_left_alone(shell: Terminal, kubectl: Kubectl) -> None:
    kubectl.apply(json.dumps(an_autoscaler()))
    try:
        ran = shell("scale", "counter", "2")
        assert ran.code == 1
        assert "driven by HorizontalPodAutoscaler words (min 3, max 6)" in ran.err
        assert shell.app.read()["spec"]["replicas"] == 3
        # The command that it names does what it says.
        patch = '{"spec":{"maxReplicas":2,"minReplicas":2}}'
        assert f"kubectl patch hpa words --namespace {NAMESPACE} --type=merge -p '{patch}'" in ran.err
        kubectl.run("patch", "hpa", "words", "--namespace", NAMESPACE, "--type=merge", f"-p={patch}")
    finally:
        kubectl.run("delete", "hpa", "words", "--namespace", NAMESPACE)


def test_a_persons_hold_stands_before_every_other(shell: Terminal) -> None:
    # An autoscaler may have been at work a moment ago.
    assert shell("scale", "counter", "3").code == 0
    assert shell("hold", "counter", "--reason", "disks are moved").code == 0
    assert shell.annotations() == {HOLD: "disks are moved"}
    ran = shell("scale", "counter", "--by", "-1")
    assert ran.code == 0
    assert "A user holds scale-downs (disks are moved)" in " ".join(ran.out.split())
    (entry,) = [
        one
        for one in shell.managed_fields()
        if one["manager"] == "kubectl-streamapp" and one.get("subresource") == "scale"
    ]
    assert entry["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    wait_until("held by a person", lambda: shell.held_for() == "HeldByUser", 30)
    assert shell("unhold", "counter").code == 0
    assert shell.annotations() == {}
    wait_until("held by the operator", lambda: shell.held_for() == "AssignorUnknown", 30)


def test_the_scale_of_an_older_version_is_not_written(shell: Terminal, kubectl: Kubectl) -> None:
    stale = {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 1}}
    target = ("streamapp/counter", "--namespace", NAMESPACE, "--subresource=scale", "--type=merge")
    with pytest.raises(NotYetError) as refused:
        kubectl.run("patch", *target, f"-p={json.dumps(stale)}")
    assert "the object has been modified" in str(refused.value)
    assert shell.app.read()["spec"]["replicas"] == 2


def test_an_override_lets_this_one_go_and_is_on_record(shell: Terminal) -> None:
    wait_until("hold on record", lambda: "holdId" in shell.app.status().get("scaleDown", {}), 30)
    hold_id = shell.app.status()["scaleDown"]["holdId"]
    ran = shell("override", "counter", "--reason", "tried in the lab")
    assert ran.code == 1
    assert "add --yes" in ran.err
    assert (shell.annotations(), shell.app.granted()) == ({}, 3)
    ran = shell("override", "counter", "--hold-id", "h-0", "--reason", "tried in the lab", "--yes")
    assert ran.code == 1
    assert f"the present hold is {hold_id}" in ran.err
    assert shell("override", "counter", "--reason", "tried in the lab", "--yes").code == 0
    assert shell.annotations() == {OVERRIDE: f"{hold_id} tried in the lab"}
    ran = shell("scale", "counter", "2", "--wait")
    assert (ran.code, shell.app.granted()) == (0, 2)


def test_history_has_the_step_and_the_writer_from_the_flight_record(shell: Terminal) -> None:
    wait_until("step finished", lambda: bool(shell.app.status().get("lastSteps")), 90)
    assert shell("history", "counter").code == 0

    def recorded() -> dict[str, Any]:
        read: dict[str, Any] = json.loads(shell("history", "counter", "-o", "json").out)
        return read

    def steps() -> list[dict[str, Any]]:
        return [entry for entry in recorded()["entries"] if entry["what"] == "Step"]

    # The record is written some seconds after the status.
    wait_until("the record has the step", lambda: bool(steps()), 60, 2)
    document = recorded()
    assert document["source"] == "record"
    (step,) = steps()
    assert step["message"].startswith("3 to 2: held for ")
    assert "overridden by " in step["message"]
    writers = [entry["by"] for entry in document["entries"] if entry["what"] == "Replicas"]
    assert "kubectl-streamapp" in writers


def test_a_bundle_has_every_file_of_a_real_cluster_and_no_value_of_the_environment(
    shell: Terminal, tmp_path: Path
) -> None:
    archive = tmp_path / "bundle.tar.gz"
    ran = shell("bundle", "counter", "--application-logs", "--yes", "--file", str(archive))
    assert ran.code == 0
    with tarfile.open(archive) as tar:
        unpack(tar, tmp_path)
    folder = tmp_path / "bundle"
    contents = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert contents.keys() >= {"about.txt", "streamapp.yaml", "pods.yaml", "events.yaml", "doctor.json"}
    assert contents.keys() >= {"operator/findings.json", "operator/tasks.json", "operator/history.json"}
    for word in ("operator/", "logs/counter-0.counter"):
        assert any(path.startswith(word) and path.endswith(".log") for path in contents)
    assert shell.app.application.application_id in contents["streamapp.yaml"]
    pods = yaml.safe_load(contents["pods.yaml"])
    containers = [one for pod in pods for one in pod["spec"]["containers"]]
    assert len(pods) == 2
    assert {one["value"] for container in containers for one in container["env"] if "value" in one} == {"<removed>"}
    assert "not read:" not in contents["about.txt"]


def test_kubectl_completes_the_name(shell: Terminal) -> None:
    ran = shell.kubectl("__complete", "streamapp", "history", "--namespace", NAMESPACE, "cou")
    assert ran.out.splitlines()[:2] == ["counter", ":4"]


def an_autoscaler() -> dict[str, Any]:
    """One that is aimed at the StreamApp; without a metric to go by it changes nothing but by its bounds."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "words", "namespace": NAMESPACE},
        "spec": {
            "scaleTargetRef": {"apiVersion": "streamapp.dev/v1alpha1", "kind": "StreamApp", "name": "counter"},
            "minReplicas": 3,
            "maxReplicas": 6,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 90}},
                }
            ],
        },
    }
