"""Pods that do not run their application: what the StreamApp, its status and `doctor` say of each way to fail.

Every container, exit code and last word is that of a real kubelet. The applications have no group, since none of them
comes so far as to join one.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios import demo_application
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import restarts
from lab.scenarios.observed_app import remove_all, unique_name
from lab.scenarios.stream_app import StreamAppScenario
from streamapp.cli.__main__ import main

pytestmark = [pytest.mark.lab, pytest.mark.timeout(420)]

NAMESPACE = "t-failing"
MENDED = "has-no-node"
"""The one that runs in the end: its topics exist."""
CRASHES = 3
"""Restarts that are watched: between two of them Kubernetes calls the pod ready for a moment."""


@dataclass(frozen=True)
class Failure:
    """One way to fail: what is laid over the container and the pod, and what users must read."""

    said: tuple[str, ...]
    container: Mapping[str, Any]
    pod: Mapping[str, Any]
    reason: str = "PodFails"
    """Of the condition `Ready`."""


FAILURES = {
    "refuses-a-setting": Failure(
        ("ended with exit code 2 (", "counter: ", "NO_SUCH_GUARANTEE"),
        {"env": [{"name": "STREAMS_PROCESSING_GUARANTEE", "value": "NO_SUCH_GUARANTEE"}]},
        {},
    ),
    "has-no-memory": Failure(
        ("ended with exit code 137 (OOMKilled",), {"resources": {"limits": {"memory": "32Mi"}}}, {}
    ),
    "has-no-image": Failure(("does not start (",), {"image": "localhost/streamapp/no-such:1"}, {}),
    MENDED: Failure(
        ("is on no node (Unschedulable)", "node"),
        {},
        {"nodeSelector": {"streamapp.dev/no-such-label": "node"}},
        "PodsUnschedulable",
    ),
}


@pytest.fixture(scope="module")
def failing(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[dict[str, StreamAppScenario]]:  # noqa: ARG001 (it must run)
    """Deploy one StreamApp for each way to fail."""
    home = DemoApplication(unique_name("failing"), {}, 10, 1, NAMESPACE, cpu_request="20m")
    remove_all(kubectl, bootstrap, [home])
    demo_application.preload(kubectl, home)
    own = {name: replace(home, application_id=f"{home.application_id}-{name}") for name in FAILURES} | {MENDED: home}
    apps = {name: StreamAppScenario(kubectl, own[name], name) for name in FAILURES}
    for name, app in apps.items():
        app.apply(1, template=failing_template(app, FAILURES[name]))
    yield apps
    remove_all(kubectl, bootstrap, [home])


def failing_template(app: StreamAppScenario, failure: Failure) -> dict[str, Any]:
    """Lay the failure over the template of an application that runs."""
    template: dict[str, Any] = app.resource(1)["spec"]["template"]
    (container,) = template["spec"]["containers"]
    added = dict(failure.container)
    container["env"] = [*container.get("env", []), *added.pop("env", [])]
    container.update(added)
    template["spec"].update(failure.pod)
    return template


def says(app: StreamAppScenario, failure: Failure) -> bool:
    """Whether `Ready` names the failure."""
    ready = app.condition("Ready")
    return ready.get("reason") == failure.reason and all(words in ready.get("message", "") for words in failure.said)


@pytest.mark.parametrize("name", FAILURES)
def test_the_condition_the_member_and_doctor_name_why_a_pod_does_not_run(
    failing: dict[str, StreamAppScenario], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app, failure = failing[name], FAILURES[name]
    wait_until(f"Ready names it, not {app.condition('Ready')}", lambda: says(app, failure), 120)
    assert app.condition("Ready")["status"] == "False"
    (member,) = app.status()["members"]
    assert all(words in member["fault"] for words in failure.said)
    assert main(["doctor", name, "-n", NAMESPACE, "--exit-code", "-o", "json"]) != 0
    (part,) = json.loads(capsys.readouterr().out)["apps"]
    (found,) = (one for one in part["findings"] if one["code"] == "PodFails" and one["kind"] == "Found")
    assert all(words in found["detail"] for words in failure.said)


def test_a_pod_that_crashes_again_and_again_is_not_called_ready_between_two_crashes(
    failing: dict[str, StreamAppScenario],
) -> None:
    app = failing["refuses-a-setting"]

    wait_until("Ready names it", lambda: says(app, FAILURES["refuses-a-setting"]), 120)

    def crashes() -> int:
        (pod,) = app.pods()
        return restarts(pod)

    def is_counted() -> bool:
        ready = app.condition("Ready")
        assert (ready["status"], ready["reason"]) == ("False", "PodFails"), ready
        return f"{max(crashes(), CRASHES)} restarts" in ready["message"]

    wait_until(f"{CRASHES} restarts are counted", is_counted, 180)


def test_an_application_is_ready_again_when_its_cause_is_gone(failing: dict[str, StreamAppScenario]) -> None:
    app = failing[MENDED]
    app.apply(1)
    wait_until("ready", lambda: app.condition("Ready").get("status") == "True", 150)
    (member,) = app.status()["members"]
    assert "fault" not in member
