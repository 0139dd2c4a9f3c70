"""A StreamApp under a HorizontalPodAutoscaler by processor time, and a load that rises and falls.

The autoscaler, metrics-server and their paces are the cluster's own; only the windows of this one are short, so that a
test need not wait for five minutes of quiet.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

from lab.clusters.kubectl import wait_until
from lab.scenarios import demo_application
from lab.scenarios.stream_app import StreamAppScenario

LEAST, MOST = 2, 5
QUIET, BUSY = 50, 9000
"""Records a second for which two pods are enough, and for which they are not."""
TARGET = "100m"
"""Processor time that a pod is meant to use: twice that of one that has next to nothing to do. Were it less than half
as much again, three idle pods would stay three."""
CALM_SECONDS = 15
"""How long less must have been enough; five minutes by default."""


@dataclass(frozen=True)
class Autoscaled:
    """One of them."""

    app: StreamAppScenario
    target: str = TARGET
    name: str = "cpu"

    def manifest(self, **changes: Any) -> dict[str, Any]:
        """Give the autoscaler; `changes` are laid over its spec."""
        now = {"stabilizationWindowSeconds": 0}
        calm = {
            "stabilizationWindowSeconds": CALM_SECONDS,
            "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
        }
        metric = {"name": "cpu", "target": {"type": "AverageValue", "averageValue": self.target}}
        made = {
            "scaleTargetRef": {"apiVersion": "streamapp.dev/v1alpha1", "kind": "StreamApp", "name": self.app.name},
            "minReplicas": LEAST,
            "maxReplicas": MOST,
            "metrics": [{"type": "Resource", "resource": metric}],
            "behavior": {"scaleUp": now, "scaleDown": calm},
            **changes,
        }
        return {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": self.name, "namespace": self.app.namespace},
            "spec": made,
        }

    def apply(self, **changes: Any) -> None:
        """Create or change it."""
        self.app.kubectl.apply(json.dumps(self.manifest(**changes)))

    def delete(self) -> None:
        """Delete it; the wish stays as it is."""
        self.app.kubectl.run("delete", "hpa", "--namespace", self.app.namespace, self.name)

    def status(self) -> dict[str, Any]:
        """Give its status."""
        found: dict[str, Any] = self.app.kubectl.json("get", "hpa", "--namespace", self.app.namespace, self.name)
        return dict(found.get("status", {}))

    def processor_time(self) -> dict[str, int]:
        """Give what metrics-server says of each pod of the application, in thousandths of a core, by name."""
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{self.app.namespace}/pods"
        selector = f"labelSelector=streamapp.dev/app%3D{self.app.name}"
        found = json.loads(self.app.kubectl.run("get", "--raw", f"{path}?{selector}"))["items"]
        return {
            pod["metadata"]["name"]: sum(_thousandths(each["usage"]["cpu"]) for each in pod["containers"])
            for pod in found
        }

    def load(self, rate: int) -> None:
        """Let the load write so many records a second from now on."""
        application = replace(self.app.application, rate=rate)
        demo_application.apply(self.app.kubectl, application, "load.yaml")
        self.app.kubectl.wait_for_rollout(self.app.namespace, "deployment/load")

    def wait_until_wished(self, least: int, most: int, timeout_seconds: float = 150) -> int:
        """Wait until so many are wished for, and give how many."""
        wait_until(
            f"{self.app.namespace}: {least} to {most} wished for",
            lambda: least <= self.app.wish() <= most,
            timeout_seconds,
        )
        return self.app.wish()


def _thousandths(quantity: str) -> int:
    """Read a quantity of processor time as metrics-server writes it."""
    for unit, divisor in (("n", 1_000_000), ("u", 1_000), ("m", 1)):
        if quantity.endswith(unit):
            return round(int(quantity[:-1]) / divisor)
    return int(quantity) * 1000
