"""The operator in a real cluster under its own service account: growth at once, scale-down when it is safe.

One application for all tests, in file order; each begins where the one before ended. The gaps are what users of the
application see, measured on its topics.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.meter.gaps import Window
from lab.meter.measure import check_counts, measure_gaps
from lab.scenarios import demo_application, operator_deployment
from lab.scenarios.demo_application import DemoApplication, fresh_name
from lab.scenarios.faults import kill_container, restarts
from lab.scenarios.group import GroupReader
from lab.scenarios.stream_app import StreamAppScenario

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
NAMESPACE = "t-operator"
PARTITIONS = 6
SESSION_TIMEOUT_SECONDS = 45.0
NOBODY_THERE = "10.244.250.250:9092"
"""An address of the pods' network that no pod has: packets to it vanish."""


@dataclass(frozen=True)
class Running:
    """The application under load, and who measures it."""

    app: StreamAppScenario
    group: GroupReader
    bootstrap: str

    def worst_gap(self, began_ms: int, ended_ms: int) -> float:
        """The longest silence of any partition, in seconds."""
        application = self.app.application
        report = measure_gaps(
            self.bootstrap, application.input_topic, application.output_topic, Window(began_ms, ended_ms)
        )
        worst = report.worst()
        assert worst is not None
        assert worst.seconds is not None
        return worst.seconds

    def clock(self) -> int:
        """The broker's time in milliseconds."""
        return self.group.clock_ms(PARTITIONS)

    def seconds_until_granted(self, replicas: int) -> float:
        """Wish for so many and wait until they are granted."""
        began = time.monotonic()
        self.app.scale(replicas)
        wait_until(f"{replicas} granted", lambda: self.app.granted() == replicas, 30, interval_seconds=0.05)
        return time.monotonic() - began

    def pod(self, name: str) -> dict[str, Any]:
        """One pod as it is."""
        (pod,) = [pod for pod in self.app.pods() if pod["metadata"]["name"] == name]
        return pod

    def record(self) -> dict[str, Any]:
        """The hold record; empty where there is none."""
        found = self.app.kubectl.json("get", "--namespace", NAMESPACE, f"statefulset/{self.app.name}")
        text = found["metadata"].get("annotations", {}).get("streamapp.dev/hold-record", "{}")
        record: dict[str, Any] = json.loads(text)
        return record


@pytest.fixture(scope="module")
def running(session: Session, kubectl: Kubectl, operator: None) -> Iterator[Running]:  # noqa: ARG001 (it must run)
    """Deploy the application with three pods under load."""
    application = DemoApplication(fresh_name(), {"STREAMS_NUM_STANDBY_REPLICAS": "1"}, 50_000, 300, NAMESPACE)
    demo_application.remove(kubectl, session.environment["KAFKA_BOOTSTRAP"], NAMESPACE)
    app = StreamAppScenario(kubectl, application)
    app.preload()
    app.apply(3)
    app.wait_until_converged(3)
    app.start_load()
    bootstrap = session.environment["KAFKA_BOOTSTRAP"]
    yield Running(app, GroupReader(bootstrap, kubectl, application), bootstrap)
    demo_application.remove(kubectl, bootstrap, NAMESPACE)


@pytest.mark.guarantee(3)
def test_more_replicas_are_granted_at_once(running: Running) -> None:
    assert running.seconds_until_granted(4) < 3
    running.app.wait_until_converged(4)


@pytest.mark.guarantee(1)
@pytest.mark.guarantee(8)
def test_a_scale_down_is_held_until_it_is_safe_and_nobody_waits_for_a_session_timeout(running: Running) -> None:
    began = running.clock()
    running.app.scale(3)
    wait_until("held", lambda: running.app.condition("ScaleDownHeld").get("status") == "True", 30)
    assert running.app.granted() == 4
    running.app.wait_until_converged(3)
    time.sleep(5)
    assert running.worst_gap(began, running.clock()) < 15
    (step, *_) = running.app.status()["lastSteps"]
    assert (step["from"], step["to"]) == (4, 3)
    assert sorted(pod["metadata"]["name"] for pod in running.app.pods()) == ["counter-0", "counter-1", "counter-2"]


@pytest.mark.guarantee(2)
def test_a_hold_goes_on_when_the_operator_is_killed(running: Running) -> None:
    # With no lag allowed under load no copy is ever near enough: a hold that lasts.
    running.app.apply(2, learners={"acceptableRecoveryLag": 0})
    wait_until("hold on record", lambda: "hold" in running.record(), 60)
    before = running.record()
    operator_deployment.kill(running.app.kubectl)
    wait_until("taken over", lambda: running.record().get("epoch", [0, 0])[1] > before["epoch"][1], 60)
    time.sleep(15)
    after = running.record()
    assert (after["hold"]["id"], after["hold"]["since"]) == (before["hold"]["id"], before["hold"]["since"])
    assert running.app.granted() == 3


@pytest.mark.guarantee(3)
def test_a_hold_is_called_off_when_the_replicas_rise_again(running: Running) -> None:
    running.app.apply(3, learners={"acceptableRecoveryLag": 0})
    wait_until("record gone", lambda: running.record() == {}, 30)
    assert running.app.granted() == 3
    assert running.app.condition("ScaleDownHeld")["status"] == "False"
    running.app.apply(3)
    running.app.wait_until_converged(3)


def test_a_broker_that_swallows_packets_delays_nobody_else_and_no_growth(running: Running) -> None:
    silent = StreamAppScenario(running.app.kubectl, DemoApplication("silent", namespace=NAMESPACE), name="silent")
    template = {
        "metadata": {"labels": {"app.kubernetes.io/name": "silent"}},
        "spec": {"containers": [{"name": "idle", "image": "localhost/streamapp/pause:1"}]},
    }
    kafka = {"bootstrapServers": NOBODY_THERE}
    silent.apply(1, template=template, kafka=kafka, topology="", state=None)
    wait_until("silent made", lambda: silent.granted() == 1, 30)
    wait_until("silent known", lambda: silent.condition("KafkaReachable").get("status") == "False", 60)
    began = time.monotonic()
    silent.scale(2)
    wait_until("silent grown", lambda: silent.granted() == 2, 30, interval_seconds=0.05)
    assert time.monotonic() - began < 3
    assert running.seconds_until_granted(4) < 3
    running.app.kubectl.run("delete", "--namespace", NAMESPACE, "streamapp/silent")
    running.app.wait_until_converged(4)


def test_a_container_that_is_killed_costs_seconds_and_not_the_session_timeout(running: Running) -> None:
    time.sleep(25)  # its members must have been seen for a while
    began = running.clock()
    kill_container(running.pod("counter-1"))
    wait_until("restarted", lambda: restarts(running.pod("counter-1")) == 1, 60)
    running.app.wait_until_converged(4)
    time.sleep(5)
    assert running.worst_gap(began, running.clock()) < 30 < SESSION_TIMEOUT_SECONDS


def test_no_record_was_lost_or_counted_twice(running: Running) -> None:
    running.app.stop_load()
    application = running.app.application
    counts = check_counts(running.bootstrap, application.input_topic, application.output_topic, exactly_once=False)
    assert counts.nothing_lost


def test_the_operator_had_every_right_it_asked_for(running: Running) -> None:
    assert "forbidden" not in operator_deployment.logs(running.app.kubectl)
