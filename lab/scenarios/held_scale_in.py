"""The same scale-in under load, several times: by the operator, in each way it has, and by a plain StatefulSet.

All applications are the same image, each with topics, state and load of its own. They are prepared together and
measured one after the other, so that none is measured while another works.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.meter.counts import CountReport
from lab.meter.gaps import GapReport, Window
from lab.meter.measure import measure_gaps
from lab.scenarios import demo_application, operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.group import GroupReader
from lab.scenarios.observed_app import count_report
from lab.scenarios.plain_scale_in import BASELINE_SECONDS, PARTITIONS, RECOVERY_SECONDS, PlainScaleIn, ScaleIn
from lab.scenarios.stream_app import StreamAppScenario
from lab.terminal import step

START, GROWN, SHRUNK = 3, 4, 2
_LOOK_SECONDS = 0.5

Show = Callable[[dict[str, Any]], None]
"""Is given the StreamApp as it is, again and again while something happens to it."""
Watching = Callable[[str], AbstractContextManager[Show]]
"""Begins a step of this title, and gives what shows the StreamApp until it ends."""


@dataclass(frozen=True)
class Growth:
    """What one more replica took, in seconds from the write of the scale subresource."""

    granted: float
    """Until the StatefulSet had it."""
    owning: float
    """Until the new pod had active tasks."""
    worst: float | None
    """Longest gap of any partition until then, in seconds; None if that is unknown."""


@dataclass(frozen=True)
class Held:
    """A scale-in by the operator."""

    scale_in: ScaleIn
    seconds: float
    """From the write of the scale subresource until everything was converged on the pods that stay."""
    steps: tuple[dict[str, Any], ...]
    """`status.lastSteps` of this scale-in, oldest first."""
    most_waited_for: int
    """The most tasks without a caught-up copy that were seen while it held."""


@dataclass(frozen=True)
class Contender:
    """One application that the operator scales."""

    title: str
    application: DemoApplication
    spec: Mapping[str, Any]
    """What is laid over the spec of its StreamApp."""


@dataclass(frozen=True)
class Shown:
    """What one of them did."""

    contender: Contender
    growth: Growth
    held: Held
    counts: CountReport


@dataclass(frozen=True)
class Comparison:
    """All scale-ins, and the counts of all applications."""

    held: tuple[Shown, ...]
    """In the order in which they were measured."""
    plain: ScaleIn
    plain_counts: CountReport


class HeldAgainstPlain:
    """Plays all of them in a session of a cluster that is up."""

    def __init__(
        self, session: Session, contenders: Sequence[Contender], plain: DemoApplication, watching: Watching
    ) -> None:
        self._kubectl = Kubectl(session)
        self._bootstrap = session.environment["KAFKA_BOOTSTRAP"]
        self._held = [_UnderOperator(self._kubectl, self._bootstrap, one, watching) for one in contenders]
        self._plain_application = plain
        self._plain = PlainScaleIn(session, plain)

    def run(self) -> Comparison:
        """Deploy all, grow and shrink those under the operator, shrink the one without."""
        self._deploy()
        shown = tuple(one.run() for one in self._held)
        plain = self._plain_application
        with step(f"plain StatefulSet: start the same load of {plain.rate} records a second"):
            self._plain.start_load()
        scale_in = self._plain.scale_in(GROWN, SHRUNK)
        return Comparison(shown, scale_in, _counts(self._kubectl, self._bootstrap, plain))

    def _deploy(self) -> None:
        kubectl, applications = self._kubectl, [one.contender.application for one in self._held]
        everyone = [*applications, self._plain_application]
        with step("remove what an earlier run left"):
            demo_application.remove(kubectl, self._bootstrap, *(each.namespace for each in everyone))
        with step("install the operator under its own service account"):
            operator_deployment.deploy_anew(kubectl, self._plain_application.application_id)
        with step(f"preload {everyone[0].records:,} keys, once for each of {len(everyone)} applications"):
            for each in everyone:
                demo_application.begin_preload(kubectl, each)
            for each in everyone:
                demo_application.finish_preload(kubectl, each)
        with step(f"apply {len(self._held)} StreamApps with {START} replicas, and a plain StatefulSet with {GROWN}"):
            for one in self._held:
                one.apply(START)
            self._plain.start(GROWN)
        with step("build the state of all: every preloaded record counted once"):
            self._plain.wait_for_outputs()
            self._plain.wait_for_members(GROWN)
            for one in self._held:
                one.wait_until_converged(START)


class _UnderOperator:
    """One application under the operator."""

    def __init__(self, kubectl: Kubectl, bootstrap: str, contender: Contender, watching: Watching) -> None:
        self.contender = contender
        self._kubectl = kubectl
        self._bootstrap = bootstrap
        self._application = contender.application
        self._app = StreamAppScenario(kubectl, contender.application)
        self._group = GroupReader(bootstrap, kubectl, contender.application)
        self._watching = watching

    def apply(self, replicas: int) -> None:
        """Create its StreamApp."""
        self._app.apply(replicas, **self.contender.spec)

    def wait_until_converged(self, replicas: int) -> None:
        """Wait until all is quiet."""
        self._app.wait_until_converged(replicas)

    def run(self) -> Shown:
        """Grow and shrink it under load."""
        with step(f"{self.contender.title}: start the load of {self._application.rate} records a second"):
            began = self._clock()
            self._app.start_load()
            wait_until("first record of the load", lambda: self._clock() > began, RECOVERY_SECONDS)
        quiet = self._quiet()
        growth = self._grow()
        held = self._shrink(quiet)
        return Shown(self.contender, growth, held, _counts(self._kubectl, self._bootstrap, self._application))

    def _quiet(self) -> GapReport:
        with step(f"measure {BASELINE_SECONDS:.0f} s of quiet time"):
            began = self._clock()
            time.sleep(BASELINE_SECONDS)
            return self._gaps(began, self._clock())

    def _grow(self) -> Growth:
        title = f"{self.contender.title}: kubectl scale streamapp/{self._app.name} --replicas={GROWN}: granted at once"
        with self._watching(title) as show:
            clock, began = self._clock(), time.monotonic()
            self._app.scale(GROWN)
            wait_until(f"{GROWN} granted", lambda: self._app.granted() == GROWN, 30, interval_seconds=0.02)
            granted = time.monotonic() - began
            # Not until it is converged: the copies of what it took over are yet to be made when the next wish comes.
            self._watch_until("the new pod owns tasks", _owns_tasks(GROWN - 1), show)
            owning = time.monotonic() - began
        worst = self._gaps(clock, self._clock()).worst()
        return Growth(granted, owning, None if worst is None else worst.seconds)

    def _shrink(self, quiet: GapReport) -> Held:
        title = f"{self.contender.title}: kubectl scale streamapp/{self._app.name} --replicas={SHRUNK}: held, released"
        with self._watching(title) as show:
            old, before, began_at = self._group.ownership(), self._clock(), time.monotonic()
            self._app.scale(SHRUNK)
            most = self._watch_until(f"converged with {SHRUNK}", _converged(SHRUNK), show)
            seconds = time.monotonic() - began_at
            time.sleep(2)
            after, new = self._clock(), self._group.ownership()
        scale_in = ScaleIn.between(quiet, self._gaps(before, after), old, new)
        return Held(scale_in, seconds, self._steps(), most)

    def _steps(self) -> tuple[dict[str, Any], ...]:
        """Give the steps of this scale-in, oldest first; the status has the newest first."""
        steps = self._app.status()["lastSteps"]
        begins = next(count for count, each in enumerate(steps, start=1) if each["from"] == GROWN)
        return tuple(reversed(steps[:begins]))

    def _gaps(self, start: int, end: int) -> GapReport:
        application = self._application
        return measure_gaps(self._bootstrap, application.input_topic, application.output_topic, Window(start, end))

    def _watch_until(self, what: str, holds: Callable[[dict[str, Any]], bool], show: Show) -> int:
        """Show the StreamApp until something is so; give the most tasks that a hold was seen to wait for."""
        most = 0

        def look() -> bool:
            nonlocal most
            app = self._app.read()
            show(app)
            most = max(most, app.get("status", {}).get("scaleDown", {}).get("waitingFor", 0))
            return holds(app.get("status", {}))

        wait_until(what, look, 300, interval_seconds=_LOOK_SECONDS)
        return most

    def _clock(self) -> int:
        return self._group.clock_ms(PARTITIONS)


def _counts(kubectl: Kubectl, bootstrap: str, application: DemoApplication) -> CountReport:
    with step("stop the load and check every count"):
        demo_application.stop_load(kubectl, application)
        return count_report(bootstrap, application)


def _owns_tasks(ordinal: int) -> Callable[[dict[str, Any]], bool]:
    def holds(status: dict[str, Any]) -> bool:
        return any(each["ordinal"] == ordinal and each.get("active", 0) > 0 for each in status.get("members", []))

    return holds


def _converged(replicas: int) -> Callable[[dict[str, Any]], bool]:
    def holds(status: dict[str, Any]) -> bool:
        conditions = {each["type"]: each["status"] for each in status.get("conditions", [])}
        now = (status.get("statefulSetReplicas"), status.get("replicas"), conditions.get("Converged"))
        return now == (replicas, replicas, "True")

    return holds
