"""Measures the operator: held scale-ins one after the other, beside plain ones, with all that belongs to them.

Three applications run at the same time, so that a run takes minutes: at-least-once and exactly-once under the operator,
at-least-once as a plain StatefulSet. Their figures are therefore those of a busy machine.
"""

import json
import re
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.meter.counts import CountReport
from lab.scenarios import demo_application, operator_deployment
from lab.scenarios.api_changes import WatchHistory, watch_history, writes_since
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.observed_app import ObservedApp, record_of, remove_all, start_all, unique_name
from lab.scenarios.plain_scale_in import PlainScaleIn, ScaleIn
from lab.terminal import step

BEFORE, AFTER = 3, 2
PROBING_SECONDS = 60
"""`probing.rebalance.interval.ms` of the applications: the least that Kafka Streams takes; its default is 600."""
SETTLE_SECONDS = 12.0
"""Between two scalings: a member that left is to be seen gone, one that came to be seen for a while."""
_RESTORES = "org.apache.kafka.streams.processor.internals.StoreChangelogReader"
_RESTORED = re.compile(r"^(\S+) INFO .*Finished restoring changelog (\S+) to store \S+ with .*number of (\d+) records")
_JAVA_OPTIONS = f"-Xmx192m -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.log.{_RESTORES}=info"


@dataclass(frozen=True)
class HeldStep:
    """One scale-in by the operator, and the scale-up before it."""

    scale_in: ScaleIn
    granted_after: float
    """Scale-up: seconds from the write of the scale subresource to the PATCH of the StatefulSet."""
    grown_after: float
    """Scale-up: seconds from that write until everything was converged on all pods."""
    held_for: float
    """Scale-in: seconds from the write of the scale subresource to the PATCH."""
    covered_to_patch: float
    """Seconds from the facts that showed the step to be covered to the PATCH that the API server received."""
    closed_after: float
    """Seconds from the PATCH until the step was closed, as the resource says."""
    restores: tuple[int, ...]
    """Records of every restore of an active task on the pods that stayed."""

    def restored_from_zero(self, whole: int) -> int:
        """How many of them read at least half of what there is."""
        return sum(1 for count in self.restores if 2 * count >= whole)


@dataclass(frozen=True)
class Case:
    """All steps of one application."""

    name: str
    steps: tuple[HeldStep, ...]
    counts: CountReport
    unaided: tuple[float, ...]
    """Seconds that scale-ups took to converge without triggered rebalances."""


@dataclass(frozen=True)
class Benchmark:
    """One run."""

    began_at: datetime
    records: int
    rate: int
    cases: tuple[Case, ...]
    plain: tuple[ScaleIn, ...]
    operator_mebibytes: tuple[float, ...]
    """Memory of the operator after each step, as the metrics server says."""

    @property
    def whole(self) -> int:
        """Records of a task's changelog at the beginning."""
        return self.records // 6

    def to_json(self) -> dict[str, Any]:
        """Give all figures for a file."""
        return {
            "beganAt": self.began_at.isoformat(timespec="seconds"),
            "records": self.records,
            "rate": self.rate,
            "probingSeconds": PROBING_SECONDS,
            "cases": {each.name: self._case(each) for each in self.cases},
            "plain": [each.to_json() for each in self.plain],
            "operatorMebibytes": self.operator_mebibytes,
        }

    def _case(self, case: Case) -> dict[str, Any]:
        steps = [
            asdict(each) | {"scale_in": each.scale_in.to_json(), "from_zero": each.restored_from_zero(self.whole)}
            for each in case.steps
        ]
        return {"steps": steps, "counts": case.counts.to_json(), "withoutTriggeredRebalances": case.unaided}


class Benchmarker:
    """Plays all of it in a session of a cluster that is up."""

    def __init__(self, session: Session, records: int, rate: int) -> None:
        self._session = session
        self._kubectl = Kubectl(session)
        self._bootstrap = session.environment["KAFKA_BOOTSTRAP"]
        self._records, self._rate = records, rate
        self._memory: list[float] = []

    def run(self, held: int, plain: int, unaided: int) -> Benchmark:
        """Make so many held steps in each case, plain scale-ins, and scale-ups without triggered rebalances."""
        began_at = datetime.now(UTC)
        alone = self._application("plain", exactly_once=False)
        cases = {name: self._application(name, exactly_once=name == "exactly-once") for name in CASES}
        everything = [alone, *cases.values()]
        with step("remove what an earlier run left"):
            remove_all(self._kubectl, self._bootstrap, everything)
        operator_deployment.deploy_if_missing(self._kubectl)
        scenario = PlainScaleIn(self._session, alone)
        observed = {name: ObservedApp.of(self._kubectl, self._bootstrap, one) for name, one in cases.items()}
        with step(f"three applications of {self._records:,} keys and {self._rate} records a second each"):
            demo_application.preload(self._kubectl, alone)
            scenario.start(BEFORE)
            start_all(dict.fromkeys(observed.values(), BEFORE))
            scenario.start_load()
        with step(f"{held} held steps in each of {len(cases)} cases, beside {plain} plain ones"):
            with ThreadPoolExecutor(len(everything)) as pool:
                running = {name: pool.submit(self._case, name, one, held, unaided) for name, one in observed.items()}
                plain_ones: Future[tuple[ScaleIn, ...]] = pool.submit(self._plain, scenario, alone, plain)
            benchmark = Benchmark(
                began_at=began_at,
                records=self._records,
                rate=self._rate,
                cases=tuple(one.result() for one in running.values()),
                plain=plain_ones.result(),
                operator_mebibytes=tuple(self._memory),
            )
        with step("remove the applications"):
            remove_all(self._kubectl, self._bootstrap, everything)
        return benchmark

    def _application(self, name: str, *, exactly_once: bool) -> DemoApplication:
        settings = {
            "STREAMS_NUM_STANDBY_REPLICAS": "1",
            "STREAMS_PROBING_REBALANCE_INTERVAL_MS": str(PROBING_SECONDS * 1000),
            "EXACTLY_ONCE": str(exactly_once).lower(),
            "JDK_JAVA_OPTIONS": _JAVA_OPTIONS,
        }
        return DemoApplication(
            unique_name(f"bench-{name}"),
            settings,
            self._records,
            self._rate,
            f"bench-{name}",
            cpu_request="50m",
        )

    def _plain(self, scenario: PlainScaleIn, application: DemoApplication, repeat: int) -> tuple[ScaleIn, ...]:
        found = []
        for turn in range(repeat):
            if turn:
                demo_application.scale(self._kubectl, application, BEFORE)
                scenario.wait_for_members(BEFORE)
                time.sleep(SETTLE_SECONDS)
            found.append(scenario.scale_in(BEFORE, AFTER))
        return tuple(found)

    def _case(self, name: str, one: ObservedApp, held: int, unaided: int) -> Case:
        steps = []
        grown = Grown(0.0, 0.0)
        with watch_history(self._session, one.app.namespace, "statefulsets") as history:
            for turn in range(held):
                if turn:
                    grown = self._grow(one)
                steps.append(self._step(one, history, grown))
                self._memory.append(self._operator_memory())
        slow = tuple(self._unaided(one) for _ in range(unaided)) if name == CASES[0] else ()
        return Case(name, tuple(steps), one.counts(), slow)

    def _grow(self, one: ObservedApp) -> "Grown":
        wished, began = datetime.now(UTC), time.monotonic()
        one.app.scale(BEFORE)
        wait_until_shared(one, BEFORE, 240)
        one.app.wait_until_converged(BEFORE)
        grown_after = time.monotonic() - began
        events = writes_since(one.app.namespace, wished)
        request = next(each for each in events if each.what == "streamapps/scale" and not each.by_operator)
        granted = next(each for each in events if each.what == "statefulsets" and each.by_operator)
        return Grown((granted.at - request.at).total_seconds(), grown_after)

    def _step(self, one: ObservedApp, history: WatchHistory, grown: "Grown") -> HeldStep:
        quiet, old = one.clock(), one.group.ownership()
        time.sleep(SETTLE_SECONDS)
        wished, began = datetime.now(UTC), one.clock()
        one.app.scale(AFTER)
        one.app.wait_until_converged(AFTER)
        time.sleep(2)
        scale_in = ScaleIn.between(one.gaps(quiet, began), one.gaps(began, one.clock()), old, one.group.ownership())
        judged = _judged_at(history)
        patch = next(
            each
            for each in writes_since(one.app.namespace, judged)
            if each.what == "statefulsets" and each.by_operator and each.at >= judged
        )
        (closed, *_) = one.app.status()["lastSteps"]
        return HeldStep(
            scale_in=scale_in,
            granted_after=grown.granted_after,
            grown_after=grown.grown_after,
            held_for=(patch.at - wished).total_seconds(),
            covered_to_patch=(patch.at - judged).total_seconds(),
            closed_after=_seconds(closed["duration"]),
            restores=tuple(self._restores(one, wished)),
        )

    def _unaided(self, one: ObservedApp) -> float:
        """Let the stock assignor finish a scale-up on its own."""
        one.app.apply(AFTER, learners={"triggerRebalance": False})
        time.sleep(SETTLE_SECONDS)
        began = time.monotonic()
        one.app.apply(BEFORE, learners={"triggerRebalance": False})
        wait_until_shared(one, BEFORE, 8 * PROBING_SECONDS)
        # That all of them run is told one rebalance later, which nobody asks for here; that none is to come, at once.
        wait_until(f"{one.app.namespace}: no follow-up", lambda: not _is_to_move(one), 8 * PROBING_SECONDS, 0.5)
        seconds = time.monotonic() - began
        one.app.apply(AFTER)
        one.app.wait_until_converged(AFTER)
        return seconds

    def _restores(self, one: ObservedApp, since: datetime) -> list[int]:
        """Records of the restores that the application's own log tells of."""
        found = []
        for pod in one.app.pods():
            name = pod["metadata"]["name"]
            target = ("--namespace", one.app.namespace, name, "--container=counter")
            log = self._kubectl.run("logs", *target, f"--since-time={since.isoformat(timespec='seconds')}")
            found += [int(match[3]) for line in log.splitlines() if (match := _RESTORED.match(line))]
        return found

    def _operator_memory(self) -> float:
        """Mebibytes of its container."""
        name = operator_deployment.pod_name(self._kubectl)
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{operator_deployment.NAMESPACE}/pods/{name}"
        (container,) = json.loads(self._kubectl.run("get", f"--raw={path}"))["containers"]
        return int(str(container["usage"]["memory"]).removesuffix("Ki")) / 1024


CASES = ("at-least-once", "exactly-once")


@dataclass(frozen=True)
class Grown:
    """What one scale-up took, in seconds."""

    granted_after: float
    grown_after: float


def _is_to_move(one: ObservedApp) -> bool:
    return one.app.condition("Converged")["reason"] in {"FollowUpScheduled", "GroupRebalancing"}


def wait_until_shared(one: ObservedApp, replicas: int, timeout_seconds: float) -> None:
    """Wait until so many pods share the tasks evenly."""

    def shared() -> bool:
        active = [member.get("active", 0) for member in one.app.status().get("members", [])]
        return len(active) == replicas and max(active) - min(active) <= 1

    wait_until(f"{one.app.namespace}: tasks shared by {replicas}", shared, timeout_seconds, 0.5)


def _judged_at(history: WatchHistory) -> datetime:
    """When the facts of the newest step were complete, as the hold record says."""
    steps = [record_of(each.object).get("step") for each in history.changes()]
    newest = [each for each in steps if each is not None][-1]
    return datetime.fromisoformat(newest["grantedAt"])


def _seconds(text: str) -> float:
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([\d.]+)(ms|h|m|s)", text))
