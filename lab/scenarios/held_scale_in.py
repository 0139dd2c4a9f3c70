"""The same scale-in twice under load: by the operator, and by a plain StatefulSet.

Both applications are the same image with the same settings, each with topics, state and load of its own. They are
prepared together and measured one after the other, so that neither is measured while the other works.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.meter.counts import CountReport
from lab.meter.gaps import GapReport, Window
from lab.meter.measure import check_counts, measure_gaps
from lab.scenarios import demo_application, operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.group import GroupReader
from lab.scenarios.plain_scale_in import BASELINE_SECONDS, PARTITIONS, RECOVERY_SECONDS, PlainScaleIn, ScaleIn
from lab.scenarios.stream_app import StreamAppScenario
from lab.terminal import step

PLAIN_NAMESPACE = "demo-plain"
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
class Comparison:
    """Both scale-ins and the counts of both applications."""

    growth: Growth
    held: Held
    held_counts: CountReport
    plain: ScaleIn
    plain_counts: CountReport


class HeldAgainstPlain:
    """Plays both in a session of a cluster that is up."""

    def __init__(self, session: Session, application: DemoApplication, watching: Watching) -> None:
        self._kubectl = Kubectl(session)
        self._bootstrap = session.environment["KAFKA_BOOTSTRAP"]
        self._application = application
        self._app = StreamAppScenario(self._kubectl, application)
        self._group = GroupReader(self._bootstrap, self._kubectl, application)
        # Not the same id with "-plain" behind it: its changelogs would look like those of the first.
        twin = f"{application.application_id}plain"
        self._plain_application = replace(application, application_id=twin, namespace=PLAIN_NAMESPACE)
        self._plain = PlainScaleIn(session, self._plain_application)
        self._watching = watching

    def run(self) -> Comparison:
        """Deploy both, grow and shrink one under the operator, shrink the other without."""
        self._deploy()
        quiet = self._quiet()
        growth = self._grow()
        held = self._shrink(quiet)
        held_counts = self._counts(self._application)
        with step(f"plain StatefulSet: start the same load of {self._application.rate} records a second"):
            self._plain.start_load()
        plain = self._plain.scale_in(GROWN, SHRUNK)
        return Comparison(growth, held, held_counts, plain, self._counts(self._plain_application))

    def _deploy(self) -> None:
        kubectl, both = self._kubectl, (self._application, self._plain_application)
        with step("remove what an earlier run left"):
            demo_application.remove(kubectl, self._bootstrap, *(each.namespace for each in both))
        with step("install the operator under its own service account"):
            operator_deployment.deploy(kubectl)
        with step(f"preload {self._application.records:,} keys, once for each of two applications"):
            for each in both:
                demo_application.begin_preload(kubectl, each)
            for each in both:
                demo_application.finish_preload(kubectl, each)
        with step(f"apply a StreamApp with {START} replicas, and a plain StatefulSet with {GROWN}"):
            self._app.apply(START)
            self._plain.start(GROWN)
        with step("build the state of both: every preloaded record counted once"):
            self._plain.wait_for_outputs()
            self._plain.wait_for_members(GROWN)
            self._app.wait_until_converged(START)
        with step(f"start the load of {self._application.rate} records a second"):
            began = self._clock()
            self._app.start_load()
            wait_until("first record of the load", lambda: self._clock() > began, RECOVERY_SECONDS)

    def _quiet(self) -> GapReport:
        with step(f"measure {BASELINE_SECONDS:.0f} s of quiet time"):
            began = self._clock()
            time.sleep(BASELINE_SECONDS)
            return self._gaps(began, self._clock())

    def _grow(self) -> Growth:
        with self._watching(f"kubectl scale streamapp/{self._app.name} --replicas={GROWN}: granted at once") as show:
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
        title = f"kubectl scale streamapp/{self._app.name} --replicas={SHRUNK}: held, and released step by step"
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
        return tuple(reversed(self._app.status()["lastSteps"][: GROWN - SHRUNK]))

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

    def _counts(self, application: DemoApplication) -> CountReport:
        with step("stop the load and check every count"):
            demo_application.stop_load(self._kubectl, application)
            return check_counts(
                self._bootstrap,
                application.input_topic,
                application.output_topic,
                exactly_once=application.exactly_once,
            )

    def _clock(self) -> int:
        return self._group.clock_ms(PARTITIONS)


def _owns_tasks(ordinal: int) -> Callable[[dict[str, Any]], bool]:
    def holds(status: dict[str, Any]) -> bool:
        return any(each["ordinal"] == ordinal and each.get("active", 0) > 0 for each in status.get("members", []))

    return holds


def _converged(replicas: int) -> Callable[[dict[str, Any]], bool]:
    def holds(status: dict[str, Any]) -> bool:
        conditions = {each["type"]: each["status"] for each in status.get("conditions", [])}
        now = (status.get("granted"), status.get("replicas"), conditions.get("Converged"))
        return now == (replicas, replicas, "True")

    return holds
