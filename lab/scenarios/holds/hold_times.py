"""Measures how long a scale-down from four pods to two is held, and by which reason.

From the write of `spec.replicas` to the last write of the StatefulSet's replicas, both as a watch shows them. The
stabilization window is zero, so that all of it is the operator's. One application at a time.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.errors import LabError
from lab.meter.counts import CountReport
from lab.scenarios import operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.holds.timed_watch import Seen, TimedWatch, timed_watch
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from lab.scenarios.stream_app import ON_DEMAND
from lab.terminal import step

BEFORE, AFTER = 4, 2
SETTLE_SECONDS = 20.0
"""Between two holds: nothing of the scale-up goes on."""
NOT_HELD = "not held yet"
"""From the write until the status says why pods are held."""
_COMMON = {"scaleDown": {"stabilizationWindow": "0s"}}
KINDS: Mapping[str, tuple[int, Mapping[str, Any]]] = {
    "standby": (1, _COMMON),
    "on-demand": (0, {**_COMMON, **ON_DEMAND}),
}
"""Standbys, and what is laid over the spec."""
AIMS = {"standby": 15.0, "on-demand": 8.0}
"""Seconds that a hold should take at most on a free machine."""
_CONDITION = '.status.conditions[?(@.type=="ScaleDownHeld")]'
_FIELDS = (".spec.replicas", f"{_CONDITION}.status", f"{_CONDITION}.reason")


@dataclass(frozen=True)
class Hold:
    """One scale-down."""

    seconds: float
    """From the write of `spec.replicas` to the last write of the StatefulSet's."""
    steps: tuple[float, ...]
    """When each lower number of replicas was written, in seconds since the write of `spec.replicas`."""
    waits: Mapping[str, float]
    """Seconds that each reason was shown, within `seconds`."""


@dataclass(frozen=True)
class Holds:
    """All scale-downs of one kind."""

    kind: str
    held: tuple[Hold, ...]
    counts: CountReport

    def to_json(self) -> dict[str, Any]:
        """Give all figures for a file."""
        return {"kind": self.kind, "held": [asdict(one) for one in self.held], **self.counts.to_json()}


@dataclass
class Holder:
    """Plays holds in a session of a cluster that is up."""

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

    def run(self, kinds: Sequence[str]) -> Iterator[Holds]:
        """Play one kind after the other."""
        operator_deployment.deploy_if_missing(self.kubectl)
        for kind in kinds:
            yield self._play(kind)

    def _play(self, kind: str) -> Holds:
        standbys, spec = KINDS[kind]
        settings = {
            "STREAMS_NUM_STANDBY_REPLICAS": str(standbys),
            "JDK_JAVA_OPTIONS": "-Xmx192m -XX:+UseSerialGC",
        }
        application = DemoApplication(
            unique_name(f"holds-{kind}"), settings, self.records, self.rate, "holds", cpu_request="50m"
        )
        one = ObservedApp.of(self.kubectl, self.bootstrap, application)
        with step(f"{kind}: {self.records:,} keys, {BEFORE} pods, {self.rate} records a second"):
            remove_all(self.kubectl, self.bootstrap, [application])
            start_all({one: BEFORE}, lambda _: spec)
        held = []
        for turn in range(self.turns):
            with step(f"{kind}: hold {turn + 1} of {self.turns}"):
                if turn:
                    one.app.scale(BEFORE)
                self._wait_until_shared(one)
                time.sleep(SETTLE_SECONDS)
                held.append(self._hold(one))
        with step(f"{kind}: count every record"):
            counts = one.counts()
        remove_all(self.kubectl, self.bootstrap, [application])
        return Holds(kind, tuple(held), counts)

    def _wait_until_shared(self, one: ObservedApp) -> None:
        one.app.wait_until_converged(BEFORE)
        wait_until(f"{one.app.namespace}: tasks on all pods", lambda: one.group.ownership().is_even(BEFORE), 240, 1)
        one.app.wait_until_converged(BEFORE)

    def _hold(self, one: ObservedApp) -> Hold:
        namespace, name = one.app.namespace, one.app.name
        with (
            timed_watch(self.session, namespace, f"streamapp/{name}", _FIELDS) as reasons,
            timed_watch(self.session, namespace, f"statefulset/{name}", (".spec.replicas",)) as replicas,
        ):
            wait_until("both watches have begun", lambda: bool(reasons.events and replicas.events), 30)
            one.app.scale(AFTER)
            wait_until(f"{AFTER} replicas", lambda: replicas.first(str(AFTER)) is not None, 240, 0.2)
            time.sleep(1)
        found = hold_of(reasons, replicas)
        one.app.wait_until_converged(AFTER)
        return found


def hold_of(reasons: TimedWatch, replicas: TimedWatch) -> Hold:
    """Put the two watches together.

    Raises:
        LabError: the StreamApp never asked for fewer, or the StatefulSet never got there.
    """
    asked, last = reasons.first(str(AFTER)), replicas.first(str(AFTER))
    if asked is None or last is None:
        what = f"hold from {BEFORE} to {AFTER}: not seen whole"
        raise LabError(what, "an event of a watch is missing", "play it again")
    lower = [one for one in replicas.events if one.at >= asked.at and int(one.words[0]) < BEFORE]
    firsts = {one.words[0]: one.at - asked.at for one in reversed(lower)}
    return Hold(last.at - asked.at, tuple(sorted(firsts.values())), _waits(reasons.events, asked.at, last.at))


def _waits(events: Sequence[Seen], begin: float, end: float) -> dict[str, float]:
    """Add up how long each reason was shown between two moments."""
    waits: dict[str, float] = {}
    shown = [one for one in events if one.at < end]
    for one, until in zip(shown, [*(each.at for each in shown[1:]), end], strict=True):
        seconds = until - max(one.at, begin)
        if seconds > 0:
            reason = one.words[2] if one.words[1] == "True" else NOT_HELD
            waits[reason] = waits.get(reason, 0.0) + seconds
    return waits
