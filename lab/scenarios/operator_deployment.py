"""The operator in a cluster: its definition, its rights and its one pod, from the repository's plain manifests."""

from lab.clusters.kubectl import Kubectl, wait_until
from lab.settings import LAB, REPOSITORY

NAMESPACE = "streamapp-system"
SELECTOR = "app.kubernetes.io/name=streamapp-operator"
CRD = REPOSITORY / "crds" / "streamapps.streamapp.dev.yaml"
_DEPLOYMENT = "deployment/streamapp-operator"


def deploy(kubectl: Kubectl, *namespaces: str) -> None:
    """Install or renew it for StreamApps of these namespaces, or of all, and wait until it is ready.

    With the image that was imported last.
    """
    kubectl.run("apply", "--server-side", "--force-conflicts", "--filename", str(CRD))
    kubectl.run("wait", "--for=condition=Established", "crd/streamapps.streamapp.dev", "--timeout=30s")
    kubectl.apply(LAB / "manifests" / "operator.yaml")
    kubectl.run("set", "env", "--namespace", NAMESPACE, _DEPLOYMENT, f"STREAMAPP_NAMESPACES={','.join(namespaces)}")
    # Its tag stays the same when the image changes.
    kubectl.run("rollout", "restart", "--namespace", NAMESPACE, _DEPLOYMENT)
    kubectl.wait_for_rollout(NAMESPACE, _DEPLOYMENT)


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


def kill(kubectl: Kubectl) -> None:
    """Delete its pod without any grace, and wait until another one is ready."""
    before = pod_name(kubectl)
    kubectl.run("delete", "pod", "--namespace", NAMESPACE, before, "--grace-period=0", "--force")
    wait_until("another pod of the operator", lambda: pod_name(kubectl) != before, 60)
    kubectl.wait_for_rollout(NAMESPACE, _DEPLOYMENT)


def logs(kubectl: Kubectl) -> str:
    """Give what its pod has said."""
    return kubectl.run("logs", "--namespace", NAMESPACE, _DEPLOYMENT, "--tail=-1")
