"""KEDA drives a StreamApp by consumer lag: up at once, down when no user notices, and up again during a hold.

The real KEDA with the example of `examples/autoscaling`, and the autoscaler that KEDA makes of it. One application for
all tests, in file order; each begins where the one before ended. KEDA must be in the lab's cache before:
`python -m lab build --keda`, as `make test PART=autoscaling` does.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, TopicPartition

from lab.build.keda import build_keda
from lab.clusters import keda
from lab.clusters.cluster import Session
from lab.clusters.embedded import import_image
from lab.clusters.kubectl import Kubectl, wait_until
from lab.node.layout import Layout
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.observed_app import PARTITIONS, ObservedApp, remove_all, unique_name
from lab.scenarios.stream_app import BUSY, LEAST, ON_DEMAND, QUIET, Autoscaled, StreamAppScenario
from lab.settings import EXAMPLES, Settings
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(900)]
NAMESPACE = "t-lag"
EXAMPLE = EXAMPLES / "autoscaling" / "keda-kafka.yaml"
LAG = 2000
"""Records that a pod may be behind: a fifth of a second of the busy load, far above what a rebalance leaves here."""
HOLD = "streamapp.dev/hold"


@dataclass(frozen=True)
class Driven:
    """The application and the ScaledObject that drives it."""

    observed: ObservedApp

    @property
    def app(self) -> StreamAppScenario:
        return self.observed.app

    def scaled_object(self) -> dict[str, Any]:
        """Give the example, with the names of this application and the windows of a test."""
        manifest: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text())
        application = self.app.application
        manifest["metadata"]["namespace"] = self.app.namespace
        manifest["spec"]["maxReplicaCount"] = LEAST + 1
        manifest["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"] = {
            "stabilizationWindowSeconds": 15
        }
        (trigger,) = manifest["spec"]["triggers"]
        trigger["metadata"] |= {
            "consumerGroup": application.application_id,
            "topic": application.input_topic,
            "lagThreshold": str(LAG),
        }
        return manifest

    def apply(self) -> None:
        self.app.kubectl.apply(json.dumps(self.scaled_object()))

    def run_keda(self, replicas: int) -> None:
        self.app.kubectl.run(
            "scale", "--namespace", keda.NAMESPACE, "deployment/keda-operator", f"--replicas={replicas}"
        )

    def is_ready(self) -> bool:
        found = self.app.kubectl.json("get", "scaledobject", "--namespace", self.app.namespace, "counter")
        conditions = {each["type"]: each["status"] for each in found.get("status", {}).get("conditions", [])}
        return conditions.get("Ready") == "True"

    def autoscaler(self) -> dict[str, Any]:
        """Give the HorizontalPodAutoscaler that KEDA made."""
        (found,) = self.app.kubectl.json("get", "hpa", "--namespace", self.app.namespace)["items"]
        return dict(found)

    def load(self, rate: int) -> None:
        Autoscaled(self.app).load(rate)

    def annotate(self, *changes: str) -> None:
        self.app.kubectl.run(
            "annotate", "--overwrite", "--namespace", self.app.namespace, f"streamapp/{self.app.name}", *changes
        )

    def wait_until_said(self, reason: str) -> str:
        """Wait for a reason of `AutoscalingHealthy`, and give the message."""

        def is_said() -> bool:
            return self.app.condition("AutoscalingHealthy").get("reason") == reason

        wait_until(f"AutoscalingHealthy says {reason}", is_said, 240, 1)
        return str(self.app.condition("AutoscalingHealthy")["message"])


@pytest.fixture(scope="module")
def lag_metrics(session: Session, kubectl: Kubectl) -> Iterator[None]:
    """Run KEDA, and remove it afterwards."""
    settings = Settings.from_environment()
    built = build_keda(settings)
    import_image(Layout(settings.state), built.image, session)
    keda.deploy(kubectl, built)
    yield
    keda.remove(kubectl, built)


@pytest.fixture(scope="module")
def driven(
    kubectl: Kubectl,
    bootstrap: str,
    operator: None,  # noqa: ARG001 (it must run)
    lag_metrics: None,  # noqa: ARG001 (it must answer)
) -> Iterator[Driven]:
    """Deploy the application with two pods and little load; only the autoscaler writes its replicas afterwards."""
    application = DemoApplication(unique_name("lag"), {}, 20_000, QUIET, NAMESPACE)
    remove_all(kubectl, bootstrap, [application])
    observed = ObservedApp.of(kubectl, bootstrap, application)
    observed.app.preload()
    observed.app.apply(None, **ON_DEMAND)
    observed.app.scale(LEAST)
    observed.app.wait_until_converged(LEAST)
    observed.start_load()
    # What was preloaded is lag until the application has committed it.
    wait_until("little lag", lambda: lag_of(observed) < LAG / 2, 120, 1)
    yield Driven(observed)
    # While KEDA runs: its finalizer would keep the namespace for ever.
    kubectl.run("delete", "scaledobjects", "--all", "--namespace", NAMESPACE)
    remove_all(kubectl, bootstrap, [application])


def lag_of(observed: ObservedApp) -> int:
    """Records of the input that the group has not committed."""
    application = observed.app.application
    places = [TopicPartition(application.input_topic, number) for number in range(PARTITIONS)]
    consumer = Consumer({"bootstrap.servers": observed.bootstrap, "group.id": application.application_id})
    try:
        committed = consumer.committed(places, timeout=20)
        ends = [consumer.get_watermark_offsets(place, timeout=20)[1] for place in places]
        return sum(end - max(one.offset, 0) for one, end in zip(committed, ends, strict=True))
    finally:
        consumer.close()


def test_keda_takes_the_example_and_aims_its_autoscaler_at_the_streamapp(driven: Driven) -> None:
    driven.apply()
    wait_until("the ScaledObject is ready", driven.is_ready, 120, 1)
    assert driven.autoscaler()["spec"]["scaleTargetRef"] == {
        "apiVersion": "streamapp.dev/v1alpha1",
        "kind": "StreamApp",
        "name": driven.app.name,
    }
    driven.wait_until_said("AutoscalingInOrder")


def test_little_lag_changes_nothing(driven: Driven) -> None:
    def measured() -> list[dict[str, Any]]:
        return list(driven.autoscaler().get("status", {}).get("currentMetrics") or [])

    wait_until("the autoscaler has read the lag", lambda: bool(measured()), 120, 1)
    ((kind, of_lag),) = [(each["type"], each["external"]) for each in measured()]
    assert kind == "External"
    assert re.fullmatch(r"s\d+-kafka-.*", of_lag["metric"]["name"])
    assert (driven.app.wish(), driven.app.granted()) == (LEAST, LEAST)


def test_lag_brings_a_pod_at_once(driven: Driven) -> None:
    driven.load(BUSY)
    wait_until("the autoscaler asks for a pod", lambda: driven.app.wish() > LEAST, 300)
    wait_until("the pod is granted", lambda: driven.app.granted() == LEAST + 1, 3, interval_seconds=0.05)


def test_lag_that_returns_ends_a_hold(driven: Driven) -> None:
    driven.annotate(f"{HOLD}=the load returns in a moment")
    driven.load(QUIET)
    wait_until("the autoscaler asks for fewer pods", lambda: driven.app.wish() == LEAST, 300)
    driven.observed.wait_until_held("HeldByUser")
    driven.load(BUSY)
    wait_until("the autoscaler asks for the held pod again", lambda: driven.app.wish() == LEAST + 1, 300)
    wait_until("the hold has ended", lambda: not driven.observed.held_for(), 30)
    assert driven.app.granted() == LEAST + 1
    driven.annotate(f"{HOLD}-")


def test_less_lag_lowers_the_replicas_and_no_user_notices(driven: Driven) -> None:
    driven.load(QUIET)
    wait_until("the autoscaler asks for fewer pods", lambda: driven.app.wish() == LEAST, 300)
    began = driven.observed.clock()
    driven.app.wait_until_converged(LEAST, 480)
    assert driven.observed.steps()[0] == (LEAST + 1, LEAST)
    assert driven.observed.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS


def test_an_autoscaler_that_reads_no_lag_is_named_and_removes_no_pod(driven: Driven) -> None:
    driven.run_keda(replicas=0)
    message = driven.wait_until_said("AutoscalerCannotAct")
    assert driven.autoscaler()["metadata"]["name"] in message
    assert (driven.app.wish(), driven.app.granted()) == (LEAST, LEAST)
    driven.run_keda(replicas=1)
    driven.wait_until_said("AutoscalingInOrder")


def test_nothing_was_lost(driven: Driven) -> None:
    require_no_record_lost(driven.observed)
