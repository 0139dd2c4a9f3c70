"""StreamApps under load, and what their users and the API server see of them: gaps, counts, steps, the hold record.

Several applications are brought up side by side, since most of the time of each is spent waiting.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lab.clusters.kubectl import Kubectl, wait_until
from lab.clusters.ownership import require_own
from lab.errors import LabError, NotYetError
from lab.meter.counts import CountReport
from lab.meter.gaps import GapReport, Window
from lab.meter.measure import check_counts, measure_gaps, wait_until_caught_up
from lab.scenarios import demo_application
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.group import GroupReader
from lab.scenarios.stream_app import StreamAppScenario

PARTITIONS = 6
_RECORD = "streamapp.dev/hold-record"
_TIMEOUT_SECONDS = 20


@dataclass(frozen=True, eq=False)
class ObservedApp:
    """One StreamApp and all that is measured of it."""

    app: StreamAppScenario
    group: GroupReader
    bootstrap: str

    @classmethod
    def of(cls, kubectl: Kubectl, bootstrap: str, application: DemoApplication) -> "ObservedApp":
        """Observe the StreamApp of an application that is, or will be, in its namespace."""
        app = StreamAppScenario(kubectl, application)
        return cls(app, GroupReader(bootstrap, kubectl, application), bootstrap)

    def start_load(self) -> None:
        """Start the steady load and wait for its first record."""
        self.app.start_load()
        before = self.clock()
        wait_until(f"{self.app.namespace}: first record of the load", lambda: self.clock() > before, 180)

    def clock(self) -> int:
        """The broker's time of the newest input, in milliseconds."""
        return self.group.clock_ms(PARTITIONS)

    def gaps(self, began_ms: int, ended_ms: int) -> GapReport:
        """How long the users of each partition waited in a window of the broker's time."""
        return gap_report(self.bootstrap, self.app.application, began_ms, ended_ms)

    def worst_gap_since(self, began_ms: int) -> float:
        """The longest wait of any partition from then to now, in seconds; LabError where no input came."""
        worst = self.gaps(began_ms, self.clock()).worst()
        if worst is None or worst.seconds is None:
            what = f"gaps of {self.app.namespace}: none is known"
            raise LabError(what, "no input came to any partition", "read the log of the pod `load` in the namespace")
        return worst.seconds

    def counts(self) -> CountReport:
        """Stop the load and compare every output with the inputs."""
        self.app.stop_load()
        return count_report(self.bootstrap, self.app.application)

    def record(self) -> dict[str, Any]:
        """The hold record; empty where there is none."""
        found = self.app.kubectl.json("get", "--namespace", self.app.namespace, f"statefulset/{self.app.name}")
        return record_of(found)

    def held_for(self) -> str:
        """The reason for which the scale-down is held; empty where it is not."""
        held = self.app.condition("ScaleDownHeld")
        return str(held["reason"]) if held.get("status") == "True" else ""

    def wait_until_held(self, reason: str = "", timeout_seconds: float = 60) -> None:
        """Wait until pods are kept, for this reason if one is given."""

        def holds() -> bool:
            found = self.held_for()
            if found and reason in ("", found):
                return True
            raise NotYetError("not held so", f"last held for: {found or 'nothing'}", "look at its conditions")

        wait_until(f"{self.app.namespace}: held {reason}", holds, timeout_seconds)

    def watch_hold(self, seconds: float) -> tuple[set[int], set[str]]:
        """Give the replicas that are granted within so many seconds, and the reasons told for holding them."""
        granted, reasons = set(), set()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            granted.add(self.app.granted())
            reasons.add(self.held_for())
            time.sleep(1)
        return granted, reasons

    def steps(self) -> list[tuple[int, int]]:
        """The finished steps on the resource, newest first, as replicas before and after."""
        return [(step["from"], step["to"]) for step in self.app.status().get("lastSteps", [])]

    def raise_to(self, replicas: int) -> float:
        """Wish for more and wait until they are granted; give the seconds until then (LabError after 30 s)."""
        began = time.monotonic()
        self.app.scale(replicas)
        wait_until(f"{replicas} granted", lambda: self.app.granted() == replicas, 30, interval_seconds=0.05)
        return time.monotonic() - began

    def pod(self, ordinal: int) -> dict[str, Any]:
        """The pod of an ordinal."""
        name = f"{self.app.name}-{ordinal}"
        found: dict[str, Any] = self.app.kubectl.json("get", "--namespace", self.app.namespace, f"pod/{name}")
        return found

    def pods(self) -> dict[int, str]:
        """The UIDs of the pods by ordinal."""
        return {int(one["metadata"]["name"].rsplit("-", 1)[1]): one["metadata"]["uid"] for one in self.app.pods()}

    def claim_uid(self, ordinal: int) -> str:
        """The UID of the volume claim of an ordinal."""
        name = f"persistentvolumeclaim/state-{self.app.name}-{ordinal}"
        return str(self.app.kubectl.json("get", "--namespace", self.app.namespace, name)["metadata"]["uid"])

    def delete_pod(self, ordinal: int) -> None:
        """Delete a pod as anybody may, and wait until it is gone."""
        self.app.kubectl.run("delete", "pod", "--namespace", self.app.namespace, f"{self.app.name}-{ordinal}")

    def change_template(self, **annotations: str) -> None:
        """Change the pod template of the StreamApp in nothing that the application notices."""
        self.patch({"template": {"metadata": {"annotations": annotations}}})

    def patch(self, spec: Mapping[str, Any]) -> None:
        """Lay something over the spec of the StreamApp, in one write."""
        target = ("--namespace", self.app.namespace, f"streamapp/{self.app.name}")
        self.app.kubectl.run("patch", *target, "--type=merge", f"--patch={json.dumps({'spec': spec})}")


def record_of(statefulset: Mapping[str, Any]) -> dict[str, Any]:
    """The hold record on a StatefulSet; empty where there is none."""
    record: dict[str, Any] = json.loads(statefulset["metadata"].get("annotations", {}).get(_RECORD, "{}"))
    return record


def gap_report(bootstrap: str, application: DemoApplication, began_ms: int, ended_ms: int) -> GapReport:
    """How long the users of each partition of an application waited in a window of the broker's time."""
    window = Window(began_ms, ended_ms)
    return measure_gaps(bootstrap, application.input_topic, application.output_topic, window)


def count_report(bootstrap: str, application: DemoApplication) -> CountReport:
    """Compare every output of an application, whose load has ended, with the inputs."""
    topics = application.input_topic, application.output_topic
    return check_counts(bootstrap, *topics, exactly_once=application.exactly_once)


def wait_for_outputs(bootstrap: str, application: DemoApplication, timeout_seconds: float) -> None:
    """Wait until every input of an application so far has its output."""
    topics = application.input_topic, application.output_topic
    wait_until_caught_up(bootstrap, *topics, exactly_once=application.exactly_once, timeout_s=timeout_seconds)


def unique_name(word: str) -> str:
    """Give an application id that no earlier run used."""
    return time.strftime(f"{word}-%m%d-%H%M%S", time.gmtime())


def start_all(
    observed: Mapping[ObservedApp, int], adapt: Callable[[ObservedApp], Mapping[str, Any]] | None = None
) -> None:
    """Bring them all up with so many replicas each and their load, side by side, and wait until all are converged.

    Args:
        observed: How many replicas each is to have.
        adapt: Gives what is laid over the spec of each.
    """
    for each in observed:
        demo_application.begin_preload(each.app.kubectl, each.app.application)
    for each, replicas in observed.items():
        demo_application.finish_preload(each.app.kubectl, each.app.application)
        each.app.apply(replicas, **(adapt(each) if adapt else {}))
    for each, replicas in observed.items():
        each.app.wait_until_converged(replicas)
    for each in observed:
        demo_application.apply(each.app.kubectl, each.app.application, "load.yaml")
    for each in observed:
        each.start_load()


def remove_all(kubectl: Kubectl, bootstrap: str, applications: Sequence[DemoApplication]) -> None:
    """Delete the namespaces of these applications and their own topics, and nobody else's."""
    namespaces = [each.namespace for each in applications]
    require_own(kubectl, *namespaces)
    demo_application.delete_namespaces(kubectl, *namespaces)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    own = tuple(f"{each.application_id}-" for each in applications)
    left = [name for name in admin.list_topics(timeout=_TIMEOUT_SECONDS).topics if name.startswith(own)]
    for deleted in (admin.delete_topics(left) if left else {}).values():
        try:
            deleted.result(_TIMEOUT_SECONDS)
        except KafkaException:
            # A topic that goes on its own is as good as deleted.
            continue
