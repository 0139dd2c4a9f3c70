"""The demo application as a StreamApp in a namespace of its own, with its topics and, if wanted, its load.

Made from the same manifests as the plain deployment (`demo_application`), so that what is compared differs in nothing
but who scales it.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import yaml

from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios import demo_application
from lab.scenarios.demo_application import MANIFESTS, DemoApplication, adapt
from lab.scenarios.topology_text import topology_text
from lab.settings import Settings

NAME = "counter"
ON_DEMAND = {"learners": {"source": "OnDemand"}, "agent": {"enabled": True}}
"""Laid over a spec: copies are made when they are needed, by the agent and its assignor."""
_IN_CLUSTER = "kafka.kafka.svc:9092"


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
            "kafka": {"bootstrapServers": _IN_CLUSTER},
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
        found: dict[str, Any] = self.kubectl.json("get", "--namespace", self.namespace, f"streamapp/{self.name}")
        return found

    def status(self) -> dict[str, Any]:
        """Give its status."""
        status: dict[str, Any] = self.read().get("status", {})
        return status

    def condition(self, kind: str) -> dict[str, Any]:
        """Give one condition; empty where it is not there yet."""
        return next((each for each in self.status().get("conditions", []) if each["type"] == kind), {})

    def granted(self) -> int:
        """Give the replicas of the StatefulSet."""
        found = self.kubectl.json("get", "--namespace", self.namespace, f"statefulset/{self.name}")
        return int(found["spec"]["replicas"])

    def pods(self, selector: str = "") -> list[dict[str, Any]]:
        """Give its pods, or those of another selector."""
        wanted = selector or f"streamapp.dev/app={self.name}"
        return demo_application.pods(self.kubectl, self.application, wanted)

    def wait_until_converged(self, replicas: int, timeout_seconds: float = 240) -> None:
        """Wait until so many pods run, every task runs, every standby is caught up, and no step or rollout goes on."""

        def holds() -> bool:
            status = self.status()
            told = {each["type"]: each["status"] for each in status.get("conditions", [])}
            counts, settled = (
                (status.get("statefulSetReplicas"), status.get("readyReplicas")),
                (told.get("Converged"), told.get("Reconciling")),
            )
            return (counts, settled) == ((replicas, replicas), ("True", "False"))

        wait_until(f"streamapp {self.namespace}/{self.name} converged with {replicas}", holds, timeout_seconds, 1)
