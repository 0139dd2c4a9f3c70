"""How a story is played: numbered steps that are printed as they pass, and what the report must find of it later."""

import fcntl
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl
from lab.scenarios.api_changes import WatchHistory, watch_history
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.observed_app import ObservedApp, unique_name
from lab.scenarios.record import flight_record

LEFT = Path(".gate", "stories")
"""What stories leave for the report: the flight record, and for each application what was seen of it."""


@dataclass(frozen=True)
class Seen:
    """What a story saw of one application."""

    namespace: str
    name: str
    uid: str
    steps: tuple[tuple[int, int], ...]
    """Replicas before and after, oldest first, as the resource had them."""
    holds: tuple[str, ...]
    """IDs of the holds that the story saw on record, in order."""
    cluster: str
    """UID of the cluster, which tells what another one left."""
    input_topic: str
    output_topic: str

    def keep(self) -> None:
        """Write it down."""
        (LEFT / f"{self.namespace}.json").write_text(json.dumps(asdict(self), indent=2))

    @classmethod
    def left_in(cls, cluster: str) -> "list[Seen]":
        """Read what the stories of this cluster left."""
        every = [json.loads(path.read_text()) for path in sorted(LEFT.glob("*.json"))]
        return [
            cls(**{**one, "steps": tuple(map(tuple, one["steps"])), "holds": tuple(one["holds"])})
            for one in every
            if one["cluster"] == cluster
        ]


@dataclass
class Story:
    """One story; its steps are counted."""

    title: str
    show: Callable[[str], object]
    steps: int = 0
    """How many it has."""
    passed: int = 0

    @contextmanager
    def step(self, what: str) -> Iterator[datetime]:
        """Play one step, and say how it ended; gives the time at which it began."""
        self.passed += 1
        number = f"step {self.passed} of {self.steps}"
        began = datetime.now(UTC)
        try:
            yield began
        except BaseException:
            self.show(f"{self.title}: {number} FAILED: {what}")
            raise
        self.show(f"{self.title}: {number}, {(datetime.now(UTC) - began).total_seconds():.0f} s: {what}")


@dataclass(frozen=True)
class Stage:
    """Where a story is played: a running operator, and a namespace of the story's own."""

    story: Story
    session: Session
    bootstrap: str
    namespace: str

    @property
    def kubectl(self) -> Kubectl:
        """Kubectl as the lab's admin."""
        return Kubectl(self.session)

    def application(self, settings: Mapping[str, str], keys: int, rate: int) -> ObservedApp:
        """Give the demo application with names of its own; nothing of it is in the cluster yet."""
        name = self.namespace.rpartition("-")[0]
        made = DemoApplication(unique_name(name), settings, keys, rate, self.namespace, cpu_request="20m")
        return ObservedApp.of(self.kubectl, self.bootstrap, made)

    @property
    def cluster(self) -> str:
        """UID of the cluster: that of a namespace that lives as long as it."""
        return uid_of(self.kubectl)

    @contextmanager
    def watched(self, kind: str) -> Iterator[WatchHistory]:
        """Record every state of the StreamApp's objects of a kind."""
        with watch_history(self.session, self.namespace, kind, "--selector=streamapp.dev/app") as history:
            yield history


def keep_for_the_report(one: ObservedApp, steps: list[tuple[int, int]], holds: list[str]) -> None:
    """Take the flight record out of the operator's pods, and write down what the story saw of this application.

    Args:
        one: The application, which is still there.
        steps: Its steps, oldest first.
        holds: IDs of the holds that were on record, in order.
    """
    application = one.app.application
    LEFT.mkdir(parents=True, exist_ok=True)
    Seen(
        one.app.namespace,
        one.app.name,
        one.app.read()["metadata"]["uid"],
        tuple(steps),
        tuple(holds),
        uid_of(one.app.kubectl),
        application.input_topic,
        application.output_topic,
    ).keep()
    # Two stories may end at the same time, and each takes the files of all.
    with (LEFT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        flight_record.take(one.app.kubectl, LEFT / "record")


def uid_of(kubectl: Kubectl) -> str:
    """Give the UID of the cluster."""
    return str(kubectl.json("get", "namespace", "kube-system")["metadata"]["uid"])
