"""Measures how long users wait when a pod goes, by every way in which a pod goes, with the operator and without.

One application at a time, so that nothing else loads the machine. Before each departure every pod has its share of the
tasks and every copy is caught up. The gap is the longest wait of any partition until all is settled again.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.clusters.second_node import second_node
from lab.meter.counts import CountReport
from lab.node.layout import FIRST, Layout
from lab.scenarios import operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.departing_app import RECOVERY_SECONDS, DepartingApp, Operated, Plain
from lab.scenarios.faults import fill_memory, kill_container, restarts
from lab.scenarios.observed_app import remove_all, unique_name
from lab.scenarios.stream_app import ON_DEMAND
from lab.settings import Settings
from lab.terminal import step

PODS, VICTIM, LAST = 3, 1, 2
QUIET_SECONDS = 8.0
IMAGES = ("kafka", "counter", "seed", "agent")
"""Of the pods that can be scheduled on a second node."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
"""How an administrator says that a node will not come back; without it its pods stay for ever."""
_COMMON = {"disruption": {"policy": "WhenCaughtUp"}, "scaleDown": {"stabilizationWindow": "2s", "allowZero": True}}


@dataclass(frozen=True)
class Kind:
    """What is deployed."""

    name: str
    standbys: int
    spec: Mapping[str, Any] | None
    """Laid over the spec of the StreamApp; None: a plain StatefulSet."""
    settings: Mapping[str, str] = field(default_factory=dict)


KINDS: Mapping[str, Kind] = {
    one.name: one
    for one in (
        Kind("on-demand", 0, {**_COMMON, **ON_DEMAND}),
        Kind("on-demand-exactly-once", 0, {**_COMMON, **ON_DEMAND}, {"EXACTLY_ONCE": "true"}),
        Kind("standby", 1, _COMMON),
        Kind("plain", 1, None),
    )
}


@dataclass(frozen=True)
class Departure:
    """One pod that went, or several."""

    kind: str
    way: str
    seconds: float
    """From the cause until all was settled again."""
    gap: float | None
    """Longest wait of any partition in that time; None where it is unknown."""
    quiet: float | None
    """The same just before."""


@dataclass(frozen=True)
class Departures:
    """All that one kind went through."""

    kind: Kind
    played: tuple[Departure, ...]
    counts: CountReport

    def of(self, way: str) -> tuple[Departure, ...]:
        """Those of one way, in the order in which they were played."""
        return tuple(one for one in self.played if one.way == way)

    def to_json(self) -> dict[str, Any]:
        """Give all figures for a file."""
        return {"kind": asdict(self.kind), "played": [asdict(one) for one in self.played], **self.counts.to_json()}


@dataclass
class Departer:
    """Lets pods go in a session of a cluster that is up."""

    session: Session
    rate: int
    turns: int
    records: int = 100_000
    kubectl: Kubectl = field(init=False)
    bootstrap: str = field(init=False)

    def __post_init__(self) -> None:
        """Look where everything is."""
        self.kubectl = Kubectl(self.session)
        self.bootstrap = self.session.environment["KAFKA_BOOTSTRAP"]

    def run(self, kinds: Sequence[Kind], ways: Sequence[str]) -> Iterator[Departures]:
        """Play every way with every kind, one kind after the other."""
        operator_deployment.deploy_if_missing(self.kubectl)
        for kind in kinds:
            yield self._play(kind, ways)

    def _play(self, kind: Kind, ways: Sequence[str]) -> Departures:
        settings = {
            "STREAMS_NUM_STANDBY_REPLICAS": str(kind.standbys),
            "JDK_JAVA_OPTIONS": "-Xmx192m -XX:+UseSerialGC",
            **kind.settings,
        }
        application = DemoApplication(
            unique_name(f"leaves-{kind.name}"), settings, self.records, self.rate, "departures", cpu_request="50m"
        )
        one = self._app(kind, application)
        with step(f"{kind.name}: {self.records:,} keys, {PODS} pods, {self.rate} records a second"):
            remove_all(self.kubectl, self.bootstrap, [application])
            one.start(PODS)
            one.wait_until_settled(PODS)
        played = []
        for turn in range(self.turns):
            for way in ways:
                with step(f"{kind.name}: {way}, {turn + 1} of {self.turns}"):
                    played.append(self._measured(one, kind, way))
        with step(f"{kind.name}: count every record"):
            counts = one.counts()
        remove_all(self.kubectl, self.bootstrap, [application])
        return Departures(kind, tuple(played), counts)

    def _app(self, kind: Kind, application: DemoApplication) -> DepartingApp:
        if kind.spec is None:
            return Plain(self.kubectl, self.bootstrap, application)
        return Operated(self.kubectl, self.bootstrap, application, kind.spec)

    def _measured(self, one: DepartingApp, kind: Kind, way: str) -> Departure:
        quiet = one.clock()
        time.sleep(QUIET_SECONDS)
        with WAYS[way](self, one) as depart:
            began, start = one.clock(), time.monotonic()
            left = depart()
            one.wait_until_settled(left)
            seconds = time.monotonic() - start
            time.sleep(2)
            ended = one.clock()
        if left != PODS:
            one.scale(PODS)
        one.wait_until_settled(PODS)
        return Departure(kind.name, way, seconds, one.worst_gap(began, ended), one.worst_gap(quiet, began))

    @contextmanager
    def scaled_down(self, one: DepartingApp) -> Iterator["Depart"]:
        """The desired replicas fall by one."""
        yield partial(_scale, one, PODS - 1)

    @contextmanager
    def rolled(self, one: DepartingApp) -> Iterator["Depart"]:
        """The pod template changes, and every pod is restarted."""

        def roll() -> int:
            before = _uids(one)
            one.roll()
            wait_until("every pod is a new one", lambda: _all_new(one, before), RECOVERY_SECONDS, 1)
            return PODS

        yield roll

    @contextmanager
    def evicted(self, one: DepartingApp) -> Iterator["Depart"]:
        """An administrator drains a node of one pod, which comes back as soon as it has gone."""

        def drain() -> int:
            # The revision tells this application from others whose pods have the same names.
            labels = one.pod(VICTIM)["metadata"]["labels"]
            chosen = ("statefulset.kubernetes.io/pod-name", "controller-revision-hash")
            pods = f"--pod-selector={','.join(f'{label}={labels[label]}' for label in chosen)}"
            limit = round(RECOVERY_SECONDS)
            options = ("--delete-emptydir-data", "--ignore-daemonsets", f"--timeout={limit}s")
            try:
                self.kubectl.run("drain", FIRST.name, pods, *options, timeout_seconds=limit + 30)
            finally:
                self.kubectl.run("uncordon", FIRST.name)
            return PODS

        yield drain

    @contextmanager
    def killed(self, one: DepartingApp) -> Iterator["Depart"]:
        """The first process of the container gets SIGKILL."""
        yield partial(self._ended, one, kill_container)

    @contextmanager
    def out_of_memory(self, one: DepartingApp) -> Iterator["Depart"]:
        """The kernel ends the container's largest process."""
        yield partial(self._ended, one, partial(fill_memory, self.kubectl))

    def _ended(self, one: DepartingApp, end: Callable[[dict[str, Any]], None]) -> int:
        pod = one.pod(VICTIM)
        end(pod)
        wait_until("the container was restarted", lambda: restarts(one.pod(VICTIM)) > restarts(pod), 60)
        return PODS

    @contextmanager
    def node_lost(self, one: DepartingApp) -> Iterator["Depart"]:
        """The node of one pod loses its power; it is declared out of service as soon as Kubernetes misses it."""
        with second_node(self.session, Layout(Settings.from_environment().state), images=IMAGES) as node:
            self.kubectl.run("cordon", FIRST.name)
            try:
                self.kubectl.run(*one.of_namespace("delete", f"pod/counter-{VICTIM}"))
                wait_until("a pod on the second node", lambda: _node(one) == node.name, 60)
            finally:
                self.kubectl.run("uncordon", FIRST.name)
            one.wait_until_settled(PODS)

            def lose() -> int:
                node.cut_power()
                wait_until("the node is missed", lambda: is_missed(self.kubectl, node.name), 120)
                self.kubectl.run("taint", "node", node.name, OUT_OF_SERVICE)
                wait_until("a pod on the first node", lambda: _node(one) == FIRST.name, 120)
                return PODS

            yield lose

    @contextmanager
    def to_zero(self, one: DepartingApp) -> Iterator["Depart"]:
        """The desired replicas are zero, and rise again when no pod is left: the gap is the whole time between."""

        def stop() -> int:
            one.scale(0)
            wait_until("no pod is left", lambda: not one.pods(), RECOVERY_SECONDS, 1)
            one.scale(PODS)
            return PODS

        yield stop


Depart = Callable[[], int]
"""Lets a pod go, and gives how many are left when all is settled."""

WAYS: Mapping[str, Callable[[Departer, DepartingApp], Any]] = {
    "scale-down": Departer.scaled_down,
    "rollout": Departer.rolled,
    "eviction": Departer.evicted,
    "kill": Departer.killed,
    "out-of-memory": Departer.out_of_memory,
    "node-lost": Departer.node_lost,
    "to-zero": Departer.to_zero,
}
"""Every way in which a pod goes, by its name."""


def _scale(one: DepartingApp, replicas: int) -> int:
    one.scale(replicas)
    return replicas


def _uids(one: DepartingApp) -> set[str]:
    return {pod["metadata"]["uid"] for pod in one.pods()}


def _all_new(one: DepartingApp, before: set[str]) -> bool:
    now = _uids(one)
    return len(now) == PODS and not now & before


def _node(one: DepartingApp) -> str:
    pods = {pod["metadata"]["name"]: pod for pod in one.pods()}
    pod = pods.get(f"counter-{VICTIM}", {"spec": {}})
    return str(pod["spec"].get("nodeName", ""))


def is_missed(kubectl: Kubectl, node: str) -> bool:
    """Tell whether Kubernetes has called a node lost, since it says nothing any more."""
    conditions = kubectl.json("get", "node", node)["status"]["conditions"]
    return any(one["type"] == "Ready" and one["status"] == "Unknown" for one in conditions)
