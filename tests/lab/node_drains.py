"""What an administrator does to nodes: cordon, drain, evict; and where the pods of an application are then."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from lab.clusters.kubectl import Kubectl
from lab.scenarios.observed_app import ObservedApp
from tests.lab.plugin import refusal

FOLLOWS = {"disruption": {"policy": "WhenCaughtUp"}}
SECONDS_OF_A_DRAIN = 300


def nodes_of(one: ObservedApp) -> dict[int, str]:
    """The node of each pod, by ordinal."""
    pods = {int(pod["metadata"]["name"].rsplit("-", 1)[1]): pod["spec"].get("nodeName", "") for pod in one.app.pods()}
    return dict(sorted(pods.items()))


def drain(kubectl: Kubectl, name: str, selector: str = "streamapp.dev/app") -> None:
    """Cordon a node and evict the pods of StreamApps, or of one of them, as an administrator does."""
    those = (f"--pod-selector={selector}", "--ignore-daemonsets", "--delete-emptydir-data")
    kubectl.run("drain", name, *those, f"--timeout={SECONDS_OF_A_DRAIN}s", timeout_seconds=SECONDS_OF_A_DRAIN + 30)


def pods_of(one: ObservedApp) -> str:
    """Select the pods of one application that has converged, whatever its name."""
    (revision,) = {pod["metadata"]["labels"]["controller-revision-hash"] for pod in one.app.pods()}
    return f"controller-revision-hash={revision}"


@contextmanager
def cordoned(kubectl: Kubectl, name: str) -> Iterator[None]:
    """Let a node be drained in this block; pods can be scheduled there afterwards."""
    try:
        yield
    finally:
        kubectl.run("uncordon", name)


def evict(one: ObservedApp, ordinal: int) -> str:
    """Try to evict a pod, as a descheduler does; give the refusal."""
    name, namespace = f"{one.app.name}-{ordinal}", one.app.namespace
    path = f"--raw=/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    metadata = {"name": name, "namespace": namespace}
    body = json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})
    return refusal(one.app.kubectl, "create", path, "--filename=-", stdin=body)
