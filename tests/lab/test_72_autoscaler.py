"""A HorizontalPodAutoscaler by processor time drives a StreamApp: up at once, down when nobody notices.

One application for all tests, in file order; each begins where the one before ended. The autoscaler looks every 15 s
and metrics-server every 10 s, as everywhere; only the windows of the autoscaler are short.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.observed_app import PARTITIONS, ObservedApp, remove_all, unique_name
from lab.scenarios.stream_app import LEAST, ON_DEMAND, QUIET, Autoscaled, StreamAppScenario
from lab.settings import EXAMPLES
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]
NAMESPACE = "t-autoscaler"
TARGET = "150m"
"""Three times what an idle pod takes: three pods that have little to do are clearly too many."""
BRISK = 4000
"""Records a second for which two pods need twice the target, and which leave nothing to catch up with."""
NAMED_WITHIN = 90
"""Seconds: autoscalers are listed every 30 s, and at rest there is a pass every 30 s."""


@dataclass(frozen=True)
class Driven:
    """The application, its autoscaler, and what is measured."""

    observed: ObservedApp
    autoscaler: Autoscaled

    @property
    def app(self) -> StreamAppScenario:
        return self.observed.app

    def sound(self) -> dict[str, Any]:
        return self.app.condition("AutoscalingHealthy")

    def wait_until_said(self, reason: str) -> str:
        """Wait for a reason of `AutoscalingHealthy`, and give the message."""
        wait_until(f"AutoscalingHealthy says {reason}", lambda: self.sound().get("reason") == reason, NAMED_WITHIN, 1)
        return str(self.sound()["message"])


@pytest.fixture(scope="module")
def driven(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[Driven]:  # noqa: ARG001 (it must run)
    """Deploy the application with two pods and little load; nobody writes its replicas but by scaling."""
    application = DemoApplication(unique_name("autoscaler"), {}, 20_000, QUIET, NAMESPACE)
    remove_all(kubectl, bootstrap, [application])
    observed = ObservedApp.of(kubectl, bootstrap, application)
    observed.app.preload()
    observed.app.apply(None, **ON_DEMAND)
    observed.app.scale(LEAST)
    observed.app.wait_until_converged(LEAST)
    observed.start_load()
    yield Driven(observed, Autoscaled(observed.app, TARGET))
    remove_all(kubectl, bootstrap, [application])


@pytest.mark.parametrize("name", ["cpu.yaml", "lag-prometheus-adapter.yaml"])
def test_the_api_server_takes_the_example(name: str, driven: Driven, kubectl: Kubectl) -> None:
    manifest = yaml.safe_load((EXAMPLES / "autoscaling" / name).read_text())
    manifest["metadata"]["namespace"] = driven.app.namespace
    given = kubectl.run(
        *("create", "--dry-run=server", "--validate=strict", "--filename=-", "--output=yaml"),
        stdin=yaml.safe_dump(manifest),
    )
    behavior, wanted = yaml.safe_load(given)["spec"]["behavior"], manifest["spec"]["behavior"]
    kept = {way: {field: behavior[way].get(field) for field in of} for way, of in wanted.items()}
    assert {way: of.get("tolerance") for way, of in kept.items()} == {
        way: "20m" if "tolerance" in of else None for way, of in wanted.items()
    }


def test_nobody_is_named_while_a_person_scales_it(driven: Driven) -> None:
    assert (driven.sound()["status"], driven.sound()["reason"]) == ("True", "AutoscalingInOrder")


def test_more_load_brings_more_pods_at_once(driven: Driven) -> None:
    driven.autoscaler.apply(maxReplicas=LEAST + 1)
    driven.autoscaler.load(BRISK)
    wish = driven.autoscaler.wait_until_wished(LEAST + 1, LEAST + 1)
    began = time.monotonic()
    wait_until(f"{wish} granted", lambda: driven.app.granted() >= wish, 10, interval_seconds=0.1)
    assert time.monotonic() - began < 3
    # A new autoscaler cannot act before the first metrics, and is looked at every 30 s.
    driven.wait_until_said("AutoscalingInOrder")


@pytest.mark.timeout(900)  # on a busy machine pods that start let the autoscaler raise again, and again
def test_less_load_lowers_the_wish_and_pods_are_held_until_nobody_misses_them(driven: Driven) -> None:
    driven.app.wait_until_converged()
    began, before = driven.observed.clock(), driven.app.granted()
    driven.autoscaler.load(QUIET)
    driven.autoscaler.wait_until_wished(LEAST, LEAST)
    driven.observed.wait_until_held()
    driven.app.wait_until_converged(LEAST, 480)
    ((step_from, step_to), *_) = driven.observed.steps()
    assert (step_from <= before, step_to) == (True, LEAST)
    assert driven.observed.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
    require_no_record_lost(driven.observed)


def test_a_manifest_with_replicas_is_named_beside_the_autoscaler(driven: Driven) -> None:
    driven.app.apply(LEAST, **ON_DEMAND)
    message = driven.wait_until_said("TwoWritersOfReplicas")
    assert "HorizontalPodAutoscaler cpu, kubectl-client-side-apply." in message


def test_an_autoscaler_past_the_streamapp_is_named(driven: Driven) -> None:
    past = Autoscaled(driven.app, name="past")
    # It has nothing to go by, so that it only stands there.
    missing = {"metric": {"name": "nowhere"}, "target": {"type": "AverageValue", "averageValue": "1"}}
    past.apply(
        scaleTargetRef={"apiVersion": "apps/v1", "kind": "StatefulSet", "name": driven.app.name},
        metrics=[{"type": "External", "external": missing}],
    )
    assert "HorizontalPodAutoscaler past." in driven.wait_until_said("AutoscalerAimsAtStatefulSet")
    # That it is forgotten shows in the next test: nothing else is told while it is there.
    past.delete()


def test_more_pods_than_tasks_are_named(driven: Driven) -> None:
    driven.autoscaler.delete()
    driven.app.scale(PARTITIONS + 1)
    message = driven.wait_until_said("IdlePods")
    assert f"There are {PARTITIONS + 1} pods and {PARTITIONS} tasks" in message
