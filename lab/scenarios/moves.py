"""Measures how long the users of a task wait while it moves: many moves in each of several ways, one way at a time.

Each way is one application under the operator that goes from three pods to two and back, again and again. It is removed
before the next begins, so that nothing else loads the machine while its tasks move.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from statistics import quantiles
from typing import Any

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.errors import LabError
from lab.meter.counts import CountReport
from lab.meter.gaps import GapReport
from lab.scenarios import operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.layouts.task_layouts import generation
from lab.scenarios.observed_app import PARTITIONS, ObservedApp, remove_all, start_all, unique_name
from lab.scenarios.stream_app import ON_DEMAND
from lab.terminal import step

BEFORE, AFTER = 3, 2
SETTLE_SECONDS = 8.0
"""Quiet time before each scaling, which is measured too."""


@dataclass(frozen=True)
class Way:
    """How tasks are moved."""

    name: str
    spec: Mapping[str, Any]
    settings: Mapping[str, str]
    records: int = 100_000

    def of(self, records: int) -> "Way":
        """The same with so many keys."""
        return replace(self, records=records)


def _application(standbys: int, **more: str) -> dict[str, str]:
    return {"STREAMS_NUM_STANDBY_REPLICAS": str(standbys), "JDK_JAVA_OPTIONS": "-Xmx192m -XX:+UseSerialGC", **more}


_SLOW_HEARTBEATS = {**ON_DEMAND, "agent": {"enabled": True, "defaults": ["assignor", "leave"]}}
_EAGER = {**ON_DEMAND, "learners": {"source": "OnDemand", "rebalance": "Eager"}}
WAYS: Mapping[str, Way] = {
    one.name: one
    for one in (
        Way("on-demand", ON_DEMAND, _application(0)),
        Way("on-demand-exactly-once", ON_DEMAND, _application(0, EXACTLY_ONCE="true")),
        Way("on-demand-standby", ON_DEMAND, _application(1)),
        Way("on-demand-eager", _EAGER, _application(0)),
        Way("on-demand-heartbeat-3s", _SLOW_HEARTBEATS, _application(0)),
        Way("on-demand-large", ON_DEMAND, _application(0), records=2_000_000),
        Way("standby", {}, _application(1)),
        Way("standby-exactly-once", {}, _application(1, EXACTLY_ONCE="true")),
    )
}


@dataclass(frozen=True)
class Scaling:
    """One scaling, up or down."""

    to_replicas: int
    seconds: float
    """From the write of the scale subresource until everything was converged."""
    moved: Mapping[int, float | None]
    """Longest gap of each partition that changed its owner, in seconds; None where it is unknown."""
    untouched: float | None
    """Longest gap of all the others."""
    quiet: float | None
    """Longest gap of any partition just before."""
    at_stop: float | None
    """Down only: longest gap of any partition from when replicas were taken away on."""
    rebalances: int
    """Generations that the group went through."""


@dataclass(frozen=True)
class Moves:
    """All scalings in one way."""

    way: Way
    scalings: tuple[Scaling, ...]
    counts: CountReport

    def gaps(self, to_replicas: int) -> tuple[float, ...]:
        """Give the gap of every task that moved on the way to so many pods; LabError if one is unknown."""
        found = [gap for one in self.scalings if one.to_replicas == to_replicas for gap in one.moved.values()]
        known = tuple(gap for gap in found if gap is not None)
        if len(known) < len(found):
            raise LabError(f"{self.way.name}: the gap of a moved partition is unknown", "no input came", "raise --rate")
        return known

    def to_json(self) -> dict[str, Any]:
        """Give all figures for a file."""
        return {"way": asdict(self.way), "scalings": [asdict(one) for one in self.scalings], **self.counts.to_json()}


@dataclass(frozen=True)
class Spread:
    """What one wants to know of many gaps, in seconds."""

    count: int
    p50: float
    p99: float
    worst: float

    @classmethod
    def of(cls, gaps: Sequence[float]) -> "Spread | None":
        """Sum up; None where there is none. With less than a hundred, p99 lies between the two longest."""
        if not gaps:
            return None
        cuts = quantiles(gaps, n=100, method="inclusive") if len(gaps) > 1 else [gaps[0]] * 99
        return cls(len(gaps), cuts[49], cuts[98], max(gaps))


@dataclass
class Mover:
    """Plays ways in a session of a cluster that is up."""

    session: Session
    rate: int
    steps: int
    kubectl: Kubectl = field(init=False)
    bootstrap: str = field(init=False)

    def __post_init__(self) -> None:
        """Look where everything is."""
        self.kubectl = Kubectl(self.session)
        self.bootstrap = self.session.environment["KAFKA_BOOTSTRAP"]

    def run(self, ways: Sequence[Way]) -> tuple[Moves, ...]:
        """Play them one after the other."""
        operator_deployment.deploy_if_missing(self.kubectl)
        return tuple(self._play(way) for way in ways)

    def _play(self, way: Way) -> Moves:
        application = DemoApplication(
            unique_name(f"moves-{way.name}"), way.settings, way.records, self.rate, "moves", cpu_request="50m"
        )
        one = ObservedApp.of(self.kubectl, self.bootstrap, application)
        with step(f"{way.name}: {way.records:,} keys, {BEFORE} pods, {self.rate} records a second"):
            remove_all(self.kubectl, self.bootstrap, [application])
            start_all({one: BEFORE}, lambda _: way.spec)
        scalings = []
        for turn in range(self.steps):
            for replicas in (AFTER, BEFORE):
                with step(f"{way.name}: {turn + 1} of {self.steps}, to {replicas} pods"):
                    scalings.append(self._scale(one, replicas))
        with step(f"{way.name}: count every record"):
            counts = one.counts()
        with step(f"{way.name}: remove it"):
            remove_all(self.kubectl, self.bootstrap, [application])
        return Moves(way, tuple(scalings), counts)

    def _scale(self, one: ObservedApp, replicas: int) -> Scaling:
        quiet, old, before = (
            one.clock(),
            one.group.ownership(),
            self._generation(one),
        )
        time.sleep(SETTLE_SECONDS)
        began, start = one.clock(), time.monotonic()
        one.app.scale(replicas)
        one.app.wait_until_converged(replicas)
        if replicas > len(set(old.owners.values())):
            # Balance comes by learners of its own; until then the new pod is empty, which is no end.
            what = f"{one.app.namespace}: tasks on {replicas} pods"
            wait_until(what, lambda: one.group.ownership().is_even(replicas), 240)
            one.app.wait_until_converged(replicas)
        seconds = time.monotonic() - start
        time.sleep(2)
        ended, new = one.clock(), one.group.ownership()
        during = one.gaps(began, ended)
        moved = [number for number, owner in old.owners.items() if new.owners.get(number) != owner]
        return Scaling(
            to_replicas=replicas,
            seconds=seconds,
            moved={number: _gap(during, [number]) for number in moved},
            untouched=_gap(during, [number for number in range(PARTITIONS) if number not in moved]),
            quiet=_gap(one.gaps(quiet, began), range(PARTITIONS)),
            at_stop=self._at_stop(one, ended) if replicas == AFTER else None,
            rebalances=self._generation(one) - before,
        )

    def _generation(self, one: ObservedApp) -> int:
        """The group's."""
        return generation(self.bootstrap, one.app.application.application_id)

    def _at_stop(self, one: ObservedApp, ended: int) -> float | None:
        """Longest gap of any partition since replicas were taken away last."""
        (closed, *_) = one.app.status()["lastSteps"]
        taken_at = datetime.fromisoformat(closed["at"])
        return _gap(one.gaps(round(taken_at.timestamp() * 1000), ended), range(PARTITIONS))


def _gap(report: GapReport, among: Sequence[int]) -> float | None:
    row = report.worst(list(among)) if among else None
    return None if row is None else row.seconds
