"""`kubectl streamapp doctor` and `tasks` on a real cluster, of an application that is wrong and one that is not.

Both are small and without load; what is asked is what a person would type.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios import demo_application
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.observed_app import ObservedApp, remove_all, unique_name
from lab.scenarios.stream_app import ON_DEMAND
from streamapp.cli.__main__ import main

pytestmark = [pytest.mark.lab, pytest.mark.timeout(420)]

Ask = Callable[..., tuple[int, Any]]
ELSEWHERE = "/tmp/streams"
WRONG = {"STREAMS_NUM_STANDBY_REPLICAS": "0", "STATE_DIR": ELSEWHERE, "CLOSE_TIMEOUT": "3s"}


@pytest.fixture(scope="module")
def ill_and_well(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[tuple[ObservedApp, ObservedApp]]:  # noqa: ARG001 (it must run)
    """Deploy one without copies, its state off the volume and a short grace period, and one with learners on demand."""
    ill = DemoApplication(unique_name("ill"), WRONG, 2_000, 50, "t-doctor-ill", cpu_request="20m")
    well = DemoApplication(
        unique_name("well"), {"STREAMS_NUM_STANDBY_REPLICAS": "0"}, 2_000, 50, "t-doctor-well", cpu_request="20m"
    )
    remove_all(kubectl, bootstrap, [ill, well])
    observed = [ObservedApp.of(kubectl, bootstrap, one) for one in (ill, well)]
    for one in observed:
        demo_application.begin_preload(kubectl, one.app.application)
    for one in observed:
        demo_application.finish_preload(kubectl, one.app.application)
    template = observed[0].app.resource(2)["spec"]["template"]
    template["spec"]["terminationGracePeriodSeconds"] = 5
    observed[0].app.apply(2, template=template)
    observed[1].app.apply(2, **ON_DEMAND)
    observed[1].app.wait_until_converged(2)
    wait_until("both pods of the ill one are ready", lambda: observed[0].app.status().get("readyReplicas") == 2, 120)
    yield observed[0], observed[1]
    remove_all(kubectl, bootstrap, [ill, well])


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command; give its exit code and what it wrote, as JSON."""

    def asked(*arguments: str) -> tuple[int, Any]:
        code = main([*arguments, "-o", "json"])
        written = capsys.readouterr()
        assert written.err == ""
        return code, json.loads(written.out)

    return asked


def found(part: dict[str, Any], kind: str = "Found") -> dict[str, str]:
    """The particulars by code."""
    return {one["code"]: one.get("detail", "") for one in part["findings"] if one["kind"] == kind}


def diagnosed(ask: Ask, one: ObservedApp) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """The exit code, the part about the cluster and the one about this application."""
    code, document = ask("doctor", one.app.name, "-n", one.app.namespace, "--exit-code")
    (part,) = document["apps"]
    return code, document["cluster"], part


def test_one_that_is_wrong_in_several_ways_is_told_each_of_them(
    ill_and_well: tuple[ObservedApp, ObservedApp], ask: Ask
) -> None:
    ill, _ = ill_and_well
    wanted = {"NoCopies", "GracePeriodShort", "NoReadinessProbe"}
    wait_until("doctor has found it", lambda: wanted <= found(diagnosed(ask, ill)[2]).keys(), 60, 1)
    code, _, part = diagnosed(ask, ill)
    told = found(part)
    assert code == 4
    assert wanted <= told.keys()
    assert told["NoCopies"].startswith("6 stateful tasks, no standby of any")
    assert told["GracePeriodShort"] == "terminationGracePeriodSeconds is 5; Kubernetes' own is 30"
    assert "StateDirElsewhere" in found(part, "Unseen")
    assert not wanted & set(part["fine"])


def test_one_that_is_right_is_found_healthy(ill_and_well: tuple[ObservedApp, ObservedApp], ask: Ask) -> None:
    _, well = ill_and_well
    wait_until("nothing is found", lambda: found(diagnosed(ask, well)[2]) == {}, 60, 1)
    _, cluster, part = diagnosed(ask, well)
    assert found(part) == {}
    assert {"NoCopies", "IdentityUnstable", "BrokersUnreachable", "KafkaRightMissing", "AgentSilent"} <= set(
        part["fine"]
    )
    healthy = {"DefinitionMissing", "OperatorMissing", "OperatorUnreachable", "OperatorRightMissing"}
    assert healthy <= set(cluster["fine"])


def test_the_task_table_is_what_the_broker_says(ill_and_well: tuple[ObservedApp, ObservedApp], ask: Ask) -> None:
    for one in ill_and_well:
        _, told = ask("tasks", one.app.name, "-n", one.app.namespace)
        owners = {
            int(task["task"].partition("_")[2]): f"{one.app.name}-{task['owner']['ordinal']}" for task in told["tasks"]
        }
        assert dict(sorted(owners.items())) == one.group.ownership().owners
        assert {task["stateful"] for task in told["tasks"]} == {True}


def test_a_right_that_the_operator_lost_is_found_before_it_is_needed(
    ill_and_well: tuple[ObservedApp, ObservedApp], ask: Ask, kubectl: Kubectl
) -> None:
    _, well = ill_and_well
    rules = kubectl.json("get", "clusterrole/streamapp-operator")["rules"]
    poorer = [
        {**rule, "verbs": [verb for verb in rule["verbs"] if (rule["resources"], verb) != (["pods"], "delete")]}
        for rule in rules
    ]
    patch = ("patch", "clusterrole/streamapp-operator", "--type=merge")
    kubectl.run(*patch, f"--patch={json.dumps({'rules': poorer})}")
    try:
        wait_until("it is found", lambda: "OperatorRightMissing" in found(diagnosed(ask, well)[1]), 20, 1)
        assert found(diagnosed(ask, well)[1])["OperatorRightMissing"].endswith(": delete pods")
    finally:
        kubectl.run(*patch, f"--patch={json.dumps({'rules': rules})}")
