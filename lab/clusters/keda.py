"""KEDA in the lab, by its own manifests: its operator and the metrics server that autoscalers ask.

Without its admission webhook, which only checks what users write. Called by the test of an autoscaler by lag.
"""

import json
from typing import Any

import yaml

from lab.build.keda import BuiltKeda
from lab.clusters.kubectl import Kubectl

NAMESPACE = "keda"
DEPLOYMENTS = ("keda-operator", "keda-metrics-apiserver")
_SECONDS_UNTIL_READY = 240
"""Its two parts wait for certificates that one of them makes, and the kubelet mounts them a minute later."""


def deploy(kubectl: Kubectl, keda: BuiltKeda) -> None:
    """Apply KEDA's manifests with the lab's image, and wait until it is ready and answers for external metrics."""
    rendered = kubectl.run("kustomize", str(keda.manifests / "minimal"))
    objects = [adapted(each, keda.image.reference) for each in yaml.safe_load_all(rendered) if each]
    whole = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    # Its definitions are larger than the annotation in which a client-side apply keeps them.
    kubectl.run("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=whole)
    for name in DEPLOYMENTS:
        kubectl.wait_for_rollout(NAMESPACE, f"deployment/{name}", _SECONDS_UNTIL_READY)
    condition = ("--for=condition=Available", "apiservice/v1beta1.external.metrics.k8s.io")
    kubectl.run("wait", *condition, f"--timeout={_SECONDS_UNTIL_READY}s", timeout_seconds=_SECONDS_UNTIL_READY + 30)


def remove(kubectl: Kubectl, keda: BuiltKeda) -> None:
    """Delete all that `deploy` made; its definitions go with whatever ScaledObjects there are."""
    rendered = kubectl.run("kustomize", str(keda.manifests / "minimal"))
    kubectl.run("delete", "--ignore-not-found", "--filename=-", stdin=rendered, timeout_seconds=240)


def adapted(manifest: dict[str, Any], image: str) -> dict[str, Any]:
    """Have the containers of a Deployment use an image that is on the node, and no webhook; others stay as they are."""
    if manifest["kind"] != "Deployment":
        return manifest
    for container in manifest["spec"]["template"]["spec"]["containers"]:
        container |= {"image": image, "imagePullPolicy": "Never"}
        if container["name"] == "keda-operator":
            container["args"].append("--enable-webhook-patching=false")
    return manifest
