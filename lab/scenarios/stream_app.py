"""The demo application as a StreamApp in a namespace of its own, with its topics, its load and its autoscaler.

Uses the manifests of the plain deployment (`demo_application`), so that only the scaling differs. The text for
`spec.topology` comes from the jars of the image, run on this machine: no broker or cluster is needed. The autoscaler
uses processor time; only its stabilization windows are shorter than the cluster's defaults.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from lab.build.cache import Cache
from lab.build.maven import package
from lab.build.plan import COUNTER
from lab.build.toolchains import java_home
from lab.clusters.kubectl import Kubectl, wait_until
from lab.errors import LabError, NotYetError
from lab.scenarios import demo_application
from lab.scenarios.demo_application import MANIFESTS, DemoApplication, adapt
from lab.settings import Settings

NAME = "counter"
ON_DEMAND = {"learners": {"source": "OnDemand"}, "agent": {"enabled": True}}
"""Laid over a spec: copies are made when they are needed, by the agent and its assignor."""
_TIMEOUT_SECONDS = 60
_MAIN = "dev.streamapp.examples.counter.Counter"

LEAST, MOST = 2, 5
QUIET, BUSY = 50, 9000
"""Records a second that two pods can process, and that two pods cannot process."""
TARGET = "100m"
"""Target processor time of a pod: twice that of an idle pod. With less than 1.5 times, three idle pods would stay."""
CALM_SECONDS = 15
"""Stabilization window of the autoscaler; five minutes by default."""


@dataclass(frozen=True)
class StreamAppScenario:
    """One StreamApp with its topics and its load."""

    kubectl: Kubectl
    application: DemoApplication
    name: str = NAME
    settings: Settings = field(default_factory=Settings.from_environment)
    """Where the application's jars lie, which describe their topology."""

    @property
    def namespace(self) -> str:
        """Where it lives."""
        return self.application.namespace

    def preload(self) -> None:
        """Make the namespace and the topics, and write every key once; returns when all are written."""
        demo_application.preload(self.kubectl, self.application)

    def start_load(self) -> None:
        """Start the steady load."""
        demo_application.start_load(self.kubectl, self.application)

    def stop_load(self) -> None:
        """End it and wait until its last record is written."""
        demo_application.stop_load(self.kubectl, self.application)

    def apply(self, replicas: int | None, **spec: Any) -> None:
        """Create or change the StreamApp; `spec` is laid over what the demo's StatefulSet makes, None takes away.

        Without replicas, somebody else is to drive it.
        """
        self.kubectl.apply(json.dumps(self.resource(replicas, **spec)))

    def resource(self, replicas: int | None, **spec: Any) -> dict[str, Any]:
        """Give the StreamApp."""
        documents = yaml.safe_load_all((MANIFESTS / "statefulset.yaml").read_text())
        statefulset = next(document for document in documents if document["kind"] == "StatefulSet")
        adapt(statefulset, self.application, None)
        template = statefulset["spec"]["template"]
        (container,) = template["spec"]["containers"]
        state = next(mount for mount in container["volumeMounts"] if mount["name"] == "state")
        container["volumeMounts"].remove(state)
        claim = statefulset["spec"]["volumeClaimTemplates"][0]["spec"]
        made = {
            "replicas": replicas,
            "applicationId": self.application.application_id,
            "kafka": {"bootstrapServers": self.application.bootstrap},
            "template": template,
            "state": {"mountPath": state["mountPath"], "volumeClaimTemplate": claim},
            "scaleDown": {"stabilizationWindow": "2s"},
            "topology": None if self.application.is_inferable else topology_text(self.application, self.settings),
            **spec,
        }
        return {
            "apiVersion": "streamapp.dev/v1alpha1",
            "kind": "StreamApp",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {field: value for field, value in made.items() if value is not None},
        }

    def scale(self, replicas: int) -> None:
        """Write the scale subresource of the StreamApp, as a HorizontalPodAutoscaler does."""
        self.kubectl.run("scale", "--namespace", self.namespace, f"streamapp/{self.name}", f"--replicas={replicas}")

    def wish(self) -> int:
        """Give the replicas that are wished for."""
        return int(self.read()["spec"]["replicas"])

    def read(self) -> dict[str, Any]:
        """Give the StreamApp as it is."""
        document: dict[str, Any] = self.kubectl.json("get", "--namespace", self.namespace, f"streamapp/{self.name}")
        return document

    def status(self) -> dict[str, Any]:
        """Give its status."""
        status: dict[str, Any] = self.read().get("status", {})
        return status

    def condition(self, kind: str) -> dict[str, Any]:
        """Give one condition; empty where it is not there yet."""
        return next((each for each in self.status().get("conditions", []) if each["type"] == kind), {})

    def granted(self) -> int:
        """Give the replicas of the StatefulSet."""
        document = self.kubectl.json("get", "--namespace", self.namespace, f"statefulset/{self.name}")
        return int(document["spec"]["replicas"])

    def pods(self, selector: str = "") -> list[dict[str, Any]]:
        """Give its pods, or those of another selector."""
        label_selector = selector or f"streamapp.dev/app={self.name}"
        return demo_application.pods(self.kubectl, self.application, label_selector)

    def wait_until_converged(self, replicas: int | None = None, timeout_seconds: float = 240) -> None:
        """Wait until so many pods run, every task runs, every standby is caught up, and no step or rollout goes on.

        Args:
            replicas: The pods; by default as many as are desired at the moment of each look.
            timeout_seconds: How long to wait.
        """

        def holds() -> bool:
            pods = self.wish() if replicas is None else replicas
            status = self.status()
            conditions = {each["type"]: each for each in status.get("conditions", [])}
            statuses = {kind: each["status"] for kind, each in conditions.items()}
            counts = (status.get("statefulSetReplicas"), status.get("readyReplicas"))
            if (counts, statuses.get("Converged"), statuses.get("Reconciling")) == ((pods, pods), "True", "False"):
                return True
            raise NotYetError("not converged", _seen_of(counts, conditions), "look at its conditions")

        number = "the desired replicas" if replicas is None else replicas
        wait_until(f"streamapp {self.namespace}/{self.name} converged with {number}", holds, timeout_seconds, 1)


def _seen_of(counts: tuple[int | None, int | None], conditions: Mapping[str, Mapping[str, str]]) -> str:
    told = [f"{kind}={each['status']} {each['reason']}: {each.get('message', '')}" for kind, each in conditions.items()]
    return "; ".join(["{} pods granted, {} ready".format(*counts), *told])


def topology_text(application: DemoApplication, settings: Settings) -> str:
    """Give the text of `Topology#describe()` with the application's shape and topics. Raises LabError."""
    jars = package(COUNTER, settings.versions, Cache(settings.cache))
    command = [
        str(java_home(settings.versions) / "bin" / "java"),
        "-cp",
        f"{jars}/counter.jar:{jars}/lib/*",
        _MAIN,
        "describe",
    ]
    try:
        described = subprocess.run(
            command,
            # A pod has a host name, under which a static member joins.
            env={"PATH": os.environ.get("PATH", ""), "HOSTNAME": "describe", **application.environment},
            capture_output=True,
            text=True,
            check=True,
            timeout=_TIMEOUT_SECONDS,
        )
    except subprocess.CalledProcessError as error:
        raise LabError(
            f"topology of {application.application_id}: cannot be described",
            error.stderr.strip() or f"exit code {error.returncode}",
            "see the settings of examples/counter/README.md",
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(
            f"topology of {application.application_id}: cannot be described", str(error), "check the Java of the lab"
        ) from error
    return described.stdout


@dataclass(frozen=True)
class Autoscaled:
    """A StreamApp under a HorizontalPodAutoscaler."""

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
        document: dict[str, Any] = self.app.kubectl.json("get", "hpa", "--namespace", self.app.namespace, self.name)
        return dict(document.get("status", {}))

    def processor_time(self) -> dict[str, int]:
        """Give what metrics-server says of each pod of the application, in thousandths of a core, by name."""
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{self.app.namespace}/pods"
        selector = f"labelSelector=streamapp.dev/app%3D{self.app.name}"
        document = json.loads(self.app.kubectl.run("get", "--raw", f"{path}?{selector}"))["items"]
        return {
            pod["metadata"]["name"]: sum(_thousandths(each["usage"]["cpu"]) for each in pod["containers"])
            for pod in document
        }

    def load(self, rate: int) -> None:
        """Let the load write so many records a second from now on."""
        application = replace(self.app.application, rate=rate)
        demo_application.apply(self.app.kubectl, application, "load.yaml")
        self.app.kubectl.wait_for_rollout(self.app.namespace, "deployment/load")

    def wait_until_wished(self, least: int, most: int, timeout_seconds: float = 300) -> int:
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
