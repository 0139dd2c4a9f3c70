"""The operator in a cluster, as its users install it: by Helm, from the repository's chart, with the lab's images.

Of its two pods one leads; whoever asks for *the* pod means that one, which the Lease names.
"""

import base64
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import yaml

from lab.clusters.helm import Helm
from lab.clusters.kubectl import Kubectl, wait_until
from lab.node.layout import Layout
from lab.settings import LAB, REPOSITORY, Settings
from lab.terminal import step

NAMESPACE = "streamapp-system"
SELECTOR = "app.kubernetes.io/name=streamapp-operator"
CHART = REPOSITORY / "charts" / "streamapp-operator"
RELEASE = "streamapp-operator"
LABELS = {"pod-security.kubernetes.io/enforce": "restricted"}
"""On the operator's namespace: its own pods must do with little."""
_DEPLOYMENT = "deployment/streamapp-operator"
LEASE = "streamapp-operator"
AGENT_KEY = "streamapp-agent-key"
"""The Secret with the key from which agents' tokens are derived; the chart makes it."""


def deploy(kubectl: Kubectl, *namespaces: str, **values: Any) -> None:
    """Install or renew it for StreamApps of these namespaces, or of all, and wait until it is ready.

    With the image that was imported last. `values` are laid over those of the lab.
    """
    make_namespace(kubectl)
    Helm(kubectl.session).install(RELEASE, CHART, NAMESPACE, {**lab_values(namespaces), **values})
    kubectl.wait_for_rollout(NAMESPACE, _DEPLOYMENT)
    pod_name(kubectl)


def deploy_if_missing(kubectl: Kubectl) -> None:
    """Install it where it is not deployed, for StreamApps of all namespaces; one that is there stays as it is."""
    if not is_there(kubectl):
        with step("install the operator"):
            deploy(kubectl)


def deploy_anew(kubectl: Kubectl, run: str) -> None:
    """Install it with pods of its own for a run, so that its flight record begins with that run."""
    deploy(kubectl, podAnnotations={"streamapp.dev/lab-run": run})


def lab_values(namespaces: Sequence[str] = ()) -> dict[str, Any]:
    """Give the chart's values for the lab's images and these namespaces; all where there is none."""
    # The tag of an image stays the same when the image changes, and pods that run the old one must go.
    imported = Layout(Settings.from_environment().state).imported
    stamp = imported.stat().st_mtime_ns if imported.exists() else time.time_ns()
    monitoring = {part: {"create": "never"} for part in ("podMonitor", "rules", "dashboard")}
    return {
        **yaml.safe_load((LAB / "manifests" / "operator-values.yaml").read_text()),
        "watchNamespaces": list(namespaces),
        "monitoring": monitoring,
        "podAnnotations": {"streamapp.dev/lab-images": str(stamp)},
    }


def make_namespace(kubectl: Kubectl) -> None:
    """Make its namespace, which admits pods of the restricted standard only."""
    whole = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": LABELS}}
    kubectl.apply(json.dumps(whole))


def agent_key(kubectl: Kubectl) -> bytes:
    """Give the key from which agents' tokens are derived."""
    data = kubectl.json("get", "secret", AGENT_KEY, "--namespace", NAMESPACE)["data"]
    return base64.b64decode(data["keys"]).split()[0]


def is_there(kubectl: Kubectl) -> bool:
    """Tell whether it is deployed."""
    return bool(kubectl.run("get", _DEPLOYMENT, "--namespace", NAMESPACE, "--ignore-not-found", "--output=name"))


def is_newest(kubectl: Kubectl) -> bool:
    """Tell whether its pods were started after the last image was imported; False where that cannot be told."""
    imported = Layout(Settings.from_environment().state).imported
    started = [datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) for pod in pods(kubectl).values()]
    if not imported.exists() or not started:
        return False
    return min(started).timestamp() > imported.stat().st_mtime


def remove(kubectl: Kubectl) -> None:
    """Take it away; the definition stays, and with it whatever StreamApps there are."""
    if is_there(kubectl):
        Helm(kubectl.session).uninstall(RELEASE, NAMESPACE)
    kubectl.run("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout_seconds=180)


def pods(kubectl: Kubectl) -> dict[str, dict[str, Any]]:
    """Give its pods by name, without those that are ending."""
    found = kubectl.json("get", "pods", "--namespace", NAMESPACE, "--selector", SELECTOR)["items"]
    return {pod["metadata"]["name"]: pod for pod in found if "deletionTimestamp" not in pod["metadata"]}


def lease(kubectl: Kubectl) -> dict[str, Any]:
    """Give what its Lease says; empty where there is none."""
    text = kubectl.run("get", "lease", LEASE, "--namespace", NAMESPACE, "--ignore-not-found", "--output=json")
    found: dict[str, Any] = json.loads(text)["spec"] if text else {}
    return found


def leader(kubectl: Kubectl) -> str:
    """Give the name of the pod that leads, as the Lease says; empty where nobody does."""
    return str(lease(kubectl).get("holderIdentity", "")).rpartition("_")[0]


def pod_name(kubectl: Kubectl) -> str:
    """Give the name of the pod that leads, as soon as one does."""
    wait_until("a leader of the operator", lambda: leader(kubectl) in pods(kubectl), 60)
    return leader(kubectl)


def address(kubectl: Kubectl) -> str:
    """Give the address of the pod that leads."""
    return str(kubectl.json("get", "pod", "--namespace", NAMESPACE, pod_name(kubectl))["status"]["podIP"])


def kill(kubectl: Kubectl) -> None:
    """Delete the pod that leads without any grace; wait until another one leads, and all are ready again."""
    before = pod_name(kubectl)
    kubectl.run("delete", "pod", "--namespace", NAMESPACE, before, "--grace-period=0", "--force")
    wait_until("another leader of the operator", lambda: leader(kubectl) not in {"", before}, 60)
    kubectl.wait_for_rollout(NAMESPACE, _DEPLOYMENT)


@contextmanager
def absent(kubectl: Kubectl) -> Iterator[None]:
    """Take all of its pods away without any grace, and bring them back when the block is left."""
    replicas = kubectl.json("get", "--namespace", NAMESPACE, _DEPLOYMENT)["spec"]["replicas"]
    kubectl.run("scale", "--namespace", NAMESPACE, _DEPLOYMENT, "--replicas=0")
    kubectl.run(
        *("delete", "pod", "--namespace", NAMESPACE, "--selector", SELECTOR, "--grace-period=0", "--force"),
        "--ignore-not-found",
    )
    try:
        yield
    finally:
        kubectl.run("scale", "--namespace", NAMESPACE, _DEPLOYMENT, f"--replicas={replicas}")
        kubectl.wait_for_rollout(NAMESPACE, _DEPLOYMENT)
        pod_name(kubectl)


def logs(kubectl: Kubectl) -> str:
    """Give what the pod that leads has said."""
    return kubectl.run("logs", "--namespace", NAMESPACE, pod_name(kubectl), "--tail=-1")


def metrics(kubectl: Kubectl) -> str:
    """Give what the pod that leads tells Prometheus."""
    return kubectl.run("get", f"--raw=/api/v1/namespaces/{NAMESPACE}/pods/{pod_name(kubectl)}:8080/proxy/metrics")
