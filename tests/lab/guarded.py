"""What the chart's guard keeps users from, and how a test asks for it: shared by the tests of the chart and a story."""

import json
from typing import Any

from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios.operator_deployment import NAMESPACE, RELEASE
from lab.scenarios.stream_app import StreamAppScenario
from tests.lab.rights import Right


def patch(namespace: str, kind: str, content: dict[str, Any], *more: str) -> tuple[str, ...]:
    """The command that lays something over an object."""
    return ("patch", kind, "--namespace", namespace, "--type=merge", f"--patch={json.dumps(content)}", *more)


def uids(app: StreamAppScenario) -> dict[str, str]:
    """Which pods run: another UID is another pod."""
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in app.pods()}


def policies(kubectl: Kubectl) -> list[str]:
    """Which admission policies are in force."""
    found = kubectl.json("get", "validatingadmissionpolicybindings")["items"]
    return sorted(each["metadata"]["name"] for each in found)


def is_served(app: StreamAppScenario) -> None:
    """See that an operator answers a new generation of the StreamApp."""
    generation = app.read()["metadata"]["generation"]
    change = {"spec": {"scaleDown": {"timeout": f"{generation}m"}}}
    app.kubectl.run(*patch(app.namespace, f"streamapp/{app.name}", change))
    wait_until("answered", lambda: app.status()["observedGeneration"] > generation, 60)


def given(role: dict[str, Any]) -> set[Right]:
    """The rights of a role: group, resource, verb."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def rights_given(kubectl: Kubectl) -> set[Right]:
    """What the chart's roles give the operator, where it may watch all namespaces."""
    cluster = given(kubectl.json("get", "clusterrole", RELEASE))
    cluster |= given(kubectl.json("get", "clusterrole", f"{RELEASE}-nodes-{NAMESPACE}"))
    return cluster | given(kubectl.json("get", "role", f"{RELEASE}-lease", "--namespace", NAMESPACE))


FORBIDDEN: dict[str, tuple[dict[str, Any], str]] = {
    "hostPath": ({"volumes": [{"name": "host", "hostPath": {"path": "/"}}]}, "a volume of type hostPath"),
    "hostNetwork": ({"hostNetwork": True}, "hostNetwork, hostPID and hostIPC"),
    "privileged": (
        {"containers": [{"name": "x", "image": "x", "securityContext": {"privileged": True}}]},
        "privileged",
    ),
    "privileged at first": (
        {"initContainers": [{"name": "x", "image": "x", "securityContext": {"privileged": True}}]},
        "privileged",
    ),
    "hostPort": ({"containers": [{"name": "x", "image": "x", "ports": [{"hostPort": 80}]}]}, "hostPort"),
}
"""What a template must not have, and the words of the refusal."""
