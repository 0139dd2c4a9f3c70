"""A new version of an application has one sub-topology more: it is rolled out pod by pod, and nobody loses anything.

Two applications under load with standbys, side by side: of one its user gives the text of the topology, of the other
the agents report it.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios.api_changes import watch_history
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.observed_app import PARTITIONS, ObservedApp, remove_all, start_all, unique_name
from lab.scenarios.stream_app import topology_text
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(600)]
VERSIONS = ("text", "agents")
ECHO = {"TOPOLOGY": "echo"}


@pytest.fixture(scope="module")
def apps(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[dict[str, ObservedApp]]:  # noqa: ARG001
    """Deploy both with three pods."""
    made = {
        version: DemoApplication(
            unique_name(version), {"STREAMS_NUM_STANDBY_REPLICAS": "1"}, 10_000, 100, f"t-new-{version}", "20m"
        )
        for version in VERSIONS
    }
    remove_all(kubectl, bootstrap, list(made.values()))
    observed = {version: ObservedApp.of(kubectl, bootstrap, application) for version, application in made.items()}
    by_agents = {"agent": {"enabled": True}, "learners": {"source": "Standbys"}}
    start_all(dict.fromkeys(observed.values(), 3), lambda one: by_agents if one is observed["agents"] else {})
    yield observed
    remove_all(kubectl, bootstrap, list(made.values()))


def newer(one: ObservedApp) -> dict[str, Any]:
    """The template of the new version."""
    (container,) = one.app.read()["spec"]["template"]["spec"]["containers"]
    environment = [*container["env"], *({"name": name, "value": value} for name, value in ECHO.items())]
    return {"spec": {"containers": [{**container, "env": environment}]}}


def tasks(status: Mapping[str, Any]) -> int:
    """How many tasks the operator knows by a status; 0 where it does not say."""
    return int(status.get("convergence", {}).get("tasks", 0))


def has_rolled_out(one: ObservedApp) -> bool:
    """Whether every pod has the new version."""
    pods: Mapping[str, Any] = {pod["metadata"]["name"]: pod for pod in one.app.pods()}
    return len(pods) == 3 and all("echo" in str(pod["spec"]["containers"]) for pod in pods.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_one_sub_topology_more_is_rolled_out_pod_by_pod(
    apps: dict[str, ObservedApp], session: Session, version: str
) -> None:
    one = apps[version]
    began = one.clock()
    application = one.app.application
    text = topology_text(replace(application, settings={**application.settings, **ECHO}), one.app.settings)
    with ExitStack() as stack:
        selection = f"--selector=streamapp.dev/app={one.app.name}"
        pods = stack.enter_context(watch_history(session, one.app.namespace, "pods", selection))
        one.patch({"template": newer(one), **({"topology": text} if version == "text" else {})})
        wait_until("rolled out", lambda: has_rolled_out(one), 300)
        one.app.wait_until_converged(3)
        assert all(len(down) == 1 for down in pods.pods_down(among=3))
    assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS


@pytest.mark.parametrize("version", VERSIONS)
def test_then_it_scales_down_with_all_tasks_covered(
    apps: dict[str, ObservedApp], session: Session, version: str
) -> None:
    one = apps[version]
    began = one.clock()
    with watch_history(session, one.app.namespace, "streamapps") as seen:
        one.app.scale(2)
        one.app.wait_until_converged(2)
        # With agents, a status at rest counts no tasks: it takes ends, and nobody needs them then.
        assert max(tasks(each.object["status"]) for each in seen.changes()) == 2 * PARTITIONS
    (step,) = one.app.status()["lastSteps"]
    assert (step["to"], "forced" in step) == (2, False)
    assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
    require_no_record_lost(one)
