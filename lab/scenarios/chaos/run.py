"""A run of chaos: applications under load on two nodes, a script of dangers, and the end in which all must be well."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.errors import LabError
from lab.meter.counts import CountReport
from lab.meter.gaps import Window
from lab.meter.measure import measure_long_gaps
from lab.scenarios import operator_deployment
from lab.scenarios.chaos.acts import Actor, SkippedError
from lab.scenarios.chaos.losable_node import LosableNode, losable_node
from lab.scenarios.chaos.outcome import LEAST_GAP_SECONDS, CameTo, LongGap, Outcome, Played, count_faults, long_gaps
from lab.scenarios.chaos.script import Act, Danger, script
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.departures import KINDS, Kind
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from lab.terminal import progress, step

PODS = 3
"""At the begin and at the end."""
SETTLE_SECONDS = 420.0
"""For drains that go on, then for each application: three pods that start and restore one after the other, and more."""
CHAOS_KINDS = ("on-demand", "on-demand-exactly-once", "standby")
_RECORDS, _RATE = 60_000, 120
_THREADS = 24
_MUST_END = frozenset({Danger.DRAIN, Danger.NODE_LOST})
"""Dangers that leave something behind if they fail."""


@dataclass
class Chaos:
    """Plays one seed in a session of the embedded lab."""

    session: Session
    seed: int
    seconds: float
    kinds: Sequence[str] = CHAOS_KINDS
    kubectl: Kubectl = field(init=False)
    bootstrap: str = field(init=False)

    def __post_init__(self) -> None:
        """Look where everything is."""
        self.kubectl = Kubectl(self.session)
        self.bootstrap = self.session.environment["KAFKA_BOOTSTRAP"]

    def run(self) -> Outcome:
        """Deploy, play the script, let all settle, count, and remove all."""
        operator_deployment.deploy_if_missing(self.kubectl)
        applications = {name: _application(KINDS[name]) for name in self.kinds}
        remove_all(self.kubectl, self.bootstrap, list(applications.values()))
        observed = {name: ObservedApp.of(self.kubectl, self.bootstrap, one) for name, one in applications.items()}
        with losable_node(self.session, self.kubectl) as node:
            with step(f"start {len(observed)} applications of {PODS} pods on two nodes"):
                names = {one: name for name, one in observed.items()}
                start_all(dict.fromkeys(observed.values(), PODS), lambda one: KINDS[names[one]].spec or {})
            outcome = self._outcome(observed, node)
            remove_all(self.kubectl, self.bootstrap, list(applications.values()))
        return outcome

    def _outcome(self, observed: Mapping[str, ObservedApp], node: LosableNode) -> Outcome:
        began_at, actor = datetime.now(UTC), Actor(self.kubectl, observed, node)
        clocks = {name: one.clock() for name, one in observed.items()}
        with ThreadPoolExecutor(_THREADS) as threads:
            with step(f"seed {self.seed}: {self.seconds:.0f} s of chaos"):
                plays = self._play(actor, threads, script(self.seed, self.seconds, tuple(observed)))
            began = time.monotonic()
            with step(f"seed {self.seed}: until all is settled"):
                faults = [*self._settle(actor, observed, plays)]
        settled, played = time.monotonic() - began, tuple(each.result() for each in plays)
        faults += [f"{one.act}: {one.words}" for one in played if one.act.danger in _MUST_END and _failed(one)]
        with step(f"seed {self.seed}: measure gaps and count every record"):
            gaps = tuple(gap for name, one in observed.items() for gap in self._gaps(name, one, clocks[name], played))
            counts = {name: counted for name, one in observed.items() if (counted := _counts(name, one, faults))}
        return Outcome(
            seed=self.seed,
            seconds=self.seconds,
            began_at=f"{began_at:%Y-%m-%d %H:%M}",
            settled_seconds=settled,
            played=played,
            gaps=gaps,
            counts=counts,
            faults=(*faults, *count_faults(counts)),
        )

    def _play(self, actor: Actor, threads: ThreadPoolExecutor, acts: Sequence[Act]) -> list["Future[Played]"]:
        began, plays = time.monotonic(), []
        for act in acts:
            time.sleep(max(0.0, began + act.at - time.monotonic()))
            plays.append(threads.submit(_performed, actor, act))
        time.sleep(max(0.0, began + self.seconds - time.monotonic()))
        return plays

    def _settle(
        self, actor: Actor, observed: Mapping[str, ObservedApp], plays: Sequence["Future[Played]"]
    ) -> Iterator[str]:
        """Ask for the pods of the begin, and say what does not come to rest."""
        for one in observed.values():
            wait_until("the last replicas are written", lambda one=one: _scaled(one), 60)  # type: ignore[misc]
        wait(plays, SETTLE_SECONDS)
        actor.drains_end.set()
        wait(plays)
        for name, one in observed.items():
            try:
                one.app.wait_until_converged(PODS, SETTLE_SECONDS)
                wait_until("no record is left", lambda one=one: one.record() == {}, 60)  # type: ignore[misc]
            except LabError as error:
                yield f"{name}: {error.what}; {one.app.condition('Converged')}; record {one.record()}"

    def _gaps(self, name: str, one: ObservedApp, began: int, played: Sequence[Played]) -> tuple[LongGap, ...]:
        topics = one.app.application.input_topic, one.app.application.output_topic
        found = measure_long_gaps(self.bootstrap, *topics, Window(began, one.clock()), LEAST_GAP_SECONDS)
        return long_gaps(name, found, played)


def _application(kind: Kind) -> DemoApplication:
    settings = {
        "STREAMS_NUM_STANDBY_REPLICAS": str(kind.standbys),
        "JDK_JAVA_OPTIONS": "-Xmx192m -XX:+UseSerialGC",
        **kind.settings,
    }
    name = f"chaos-{kind.name}"
    return DemoApplication(unique_name(name), settings, _RECORDS, _RATE, name, cpu_request="20m")


def _performed(actor: Actor, act: Act) -> Played:
    began = round(time.time() * 1000)
    try:
        came_to, words = CameTo.DONE, actor.perform(act)
    except SkippedError as skipped:
        came_to, words = CameTo.SKIPPED, str(skipped)
    except LabError as error:
        came_to, words = CameTo.FAILED, f"{error.what}: {error.why}"
    progress.print(f"  [dim]{act}: {came_to} {words}[/]", soft_wrap=True)
    return Played(act, began, round(time.time() * 1000), came_to, words)


def _failed(one: Played) -> bool:
    return one.came_to is CameTo.FAILED


def _scaled(one: ObservedApp) -> bool:
    one.app.scale(PODS)
    return True


def _counts(name: str, one: ObservedApp, faults: list[str]) -> CountReport | None:
    try:
        return one.counts()
    except LabError as error:
        # Outputs that never come are what is looked for, and no reason to lose the rest of the figures.
        faults.append(f"{name}: {error.what}; {error.why}")
        return None
