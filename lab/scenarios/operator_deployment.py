"""The operator in a cluster: its definition, its rights and its one pod, from the repository's plain manifests."""

import base64
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from lab.clusters.kubectl import Kubectl, wait_until
from lab.node.layout import Layout
from lab.settings import LAB, REPOSITORY, Settings

NAMESPACE = "streamapp-system"
SELECTOR = "app.kubernetes.io/name=streamapp-operator"
CRD = REPOSITORY / "crds" / "streamapps.streamapp.dev.yaml"
_DEPLOYMENT = "deployment/streamapp-operator"
AGENT_KEY = "streamapp-agent-key"
"""The Secret with the key from which agents' tokens are derived."""


def deploy(kubectl: Kubectl, *namespaces: str) -> None:
    """Install or renew it for StreamApps of these namespaces, or of all, and wait until it is ready.

    With the image that was imported last.
    """
    kubectl.run("apply", "--server-side", "--force-conflicts", "--filename", str(CRD))
    kubectl.run("wait", "--for=condition=Established", "crd/streamapps.streamapp.dev", "--timeout=30s")
    kubectl.apply(LAB / "manifests" / "operator.yaml")
    _give_key(kubectl)
    kubectl.run("set", "env", "--namespace", NAMESPACE, _DEPLOYMENT, f"STREAMAPP_NAMESPACES={','.join(namespaces)}")
    # Its tag stays the same when the image changes.
    kubectl.run("rollout", "restart", "--namespace", NAMESPACE, _DEPLOYMENT)
    kubectl.wait_for_rollout(NAMESPACE, _DEPLOYMENT)


def _give_key(kubectl: Kubectl) -> None:
    """Make a key unless there is one: another key would restart every pod with an agent."""
    if kubectl.run("get", "secret", AGENT_KEY, "--namespace", NAMESPACE, "--ignore-not-found", "--output=name"):
        return
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": AGENT_KEY, "namespace": NAMESPACE},
        "stringData": {"keys": secrets.token_hex(32)},
    }
    # Not as an argument, which every process on the machine can see.
    kubectl.run("create", "--filename=-", stdin=json.dumps(secret))


def agent_key(kubectl: Kubectl) -> bytes:
    """Give the key from which agents' tokens are derived."""
    data = kubectl.json("get", "secret", AGENT_KEY, "--namespace", NAMESPACE)["data"]
    return base64.b64decode(data["keys"]).split()[0]


def is_there(kubectl: Kubectl) -> bool:
    """Tell whether it is deployed."""
    return bool(kubectl.run("get", _DEPLOYMENT, "--namespace", NAMESPACE, "--ignore-not-found", "--output=name"))


def is_newest(kubectl: Kubectl) -> bool:
    """Tell whether its pod was started after the last image was imported; False where that cannot be told."""
    imported = Layout(Settings.from_environment().state).imported
    pods = kubectl.json("get", "pods", "--namespace", NAMESPACE, "--selector", SELECTOR)["items"]
    if not imported.exists() or len(pods) != 1:
        return False
    started = datetime.fromisoformat(pods[0]["metadata"]["creationTimestamp"])
    return started.timestamp() > imported.stat().st_mtime


def remove(kubectl: Kubectl) -> None:
    """Take it away; the definition stays, and with it whatever StreamApps there are."""
    kubectl.run(
        "delete", "--filename", str(LAB / "manifests" / "operator.yaml"), "--ignore-not-found", timeout_seconds=180
    )


def pod_name(kubectl: Kubectl) -> str:
    """Give the name of its pod."""
    pods = kubectl.json("get", "pods", "--namespace", NAMESPACE, "--selector", SELECTOR)["items"]
    (name,) = [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return str(name)


def address(kubectl: Kubectl) -> str:
    """Give the address of its pod."""
    return str(kubectl.json("get", "pod", "--namespace", NAMESPACE, pod_name(kubectl))["status"]["podIP"])


def kill(kubectl: Kubectl) -> None:
    """Delete its pod without any grace, and wait until another one is ready."""
    before = pod_name(kubectl)
    kubectl.run("delete", "pod", "--namespace", NAMESPACE, before, "--grace-period=0", "--force")
    wait_until("another pod of the operator", lambda: pod_name(kubectl) != before, 60)
    kubectl.wait_for_rollout(NAMESPACE, _DEPLOYMENT)


@contextmanager
def absent(kubectl: Kubectl) -> Iterator[None]:
    """Take its pod away without any grace, and bring it back when the block is left."""
    before = pod_name(kubectl)
    kubectl.run("scale", "--namespace", NAMESPACE, _DEPLOYMENT, "--replicas=0")
    kubectl.run(
        *("delete", "pod", "--namespace", NAMESPACE, before, "--grace-period=0", "--force", "--ignore-not-found")
    )
    try:
        yield
    finally:
        kubectl.run("scale", "--namespace", NAMESPACE, _DEPLOYMENT, "--replicas=1")
        kubectl.wait_for_rollout(NAMESPACE, _DEPLOYMENT)


def logs(kubectl: Kubectl) -> str:
    """Give what its pod has said."""
    return kubectl.run("logs", "--namespace", NAMESPACE, _DEPLOYMENT, "--tail=-1")


def metrics(kubectl: Kubectl) -> str:
    """Give what it tells Prometheus."""
    return kubectl.run("get", f"--raw=/api/v1/namespaces/{NAMESPACE}/pods/{pod_name(kubectl)}:8080/proxy/metrics")
