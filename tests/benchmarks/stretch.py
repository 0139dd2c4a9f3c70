"""A stretch of a lab day in which things go wrong on purpose, and the report of it.

Three applications side by side, with learners on demand: one whose autoscaler flaps, one whose highest pod has a sick
volume, one that crashes once and is rolled out three times. A second stretch, after a person applied the advice, is
played with `--remedied` on the same applications. It needs the embedded lab, with the operator in it:
`python -m lab exec -- python -m tests.benchmarks.stretch --folder FOLDER`. No run is published yet.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from lab.clusters.choice import chosen
from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import kill_container
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all
from lab.scenarios.record import flight_record, report
from lab.scenarios.stream_app import BUSY, ON_DEMAND, QUIET, Autoscaled
from lab.settings import Settings
from lab.terminal import step

FLAPPING, SICK, STEADY = "flapping", "sick", "steady"
KEYS: Final = {FLAPPING: 20_000, SICK: 400_000, STEADY: 60_000}
START: Final = 2
HALF_SECONDS: Final = 50.0
"""So long the load of the flapping application is high, and so long it is low."""
TURN_SECONDS: Final = 240.0
"""Between two changes of the replicas of the application with the sick volume."""
LOOK_SECONDS: Final = 2.0
SIZE: Final = "640Mi"
CRASH: Final = 0.25
ROLLOUTS: Final = (0.4, 0.6, 0.8)
"""When, as parts of the stretch."""
SETTINGS: Final = {"STREAMS_NUM_STANDBY_REPLICAS": "0"}


@dataclass
class Stretch:
    """One stretch, and when each thing is to happen next."""

    session: Session
    apps: dict[str, ObservedApp]
    seconds: float
    is_remedied: bool
    happened: list[dict[str, Any]] = field(default_factory=list)
    """What was done and when, to hold the page against."""

    def play(self) -> None:
        """Do everything that is due, look by look, until the time has passed."""
        began = time.time()
        due = sorted(self._plan(), key=lambda one: one[0])
        while (passed := time.time() - began) < self.seconds:
            while due and due[0][0] <= passed:
                _, what, act = due.pop(0)
                self.happened.append({"at": time.time(), "what": what})
                act()
            if not self.is_remedied:
                make_sick(self.session, self.apps[SICK], START)
            time.sleep(LOOK_SECONDS)

    def _roll(self, nth: int) -> None:
        """Change the pod template in nothing that the application notices."""
        self.apps[STEADY].change_template(stretch=f"{time.time():.0f}-{nth}")

    def _plan(self) -> Iterator[tuple[float, str, Callable[[], None]]]:
        """Seconds from the beginning, what happens, and what makes it happen."""
        autoscaler, sick, steady = Autoscaled(self.apps[FLAPPING].app), self.apps[SICK].app, self.apps[STEADY].app
        for nth in range(int(self.seconds / HALF_SECONDS)):
            rate = QUIET if nth % 2 else BUSY
            yield nth * HALF_SECONDS, f"{FLAPPING}: load {rate}", lambda rate=rate: autoscaler.load(rate)  # type: ignore[misc]
        for nth in range(int(self.seconds / TURN_SECONDS)):
            pods = START if nth % 2 else START + 1
            yield nth * TURN_SECONDS, f"{SICK}: {pods} pods", lambda pods=pods: sick.scale(pods)  # type: ignore[misc]
        yield CRASH * self.seconds, f"{STEADY}: crash", lambda: kill_container(steady.pods()[0])
        for nth, part in enumerate(ROLLOUTS):
            yield part * self.seconds, f"{STEADY}: rollout", lambda nth=nth: self._roll(nth)  # type: ignore[misc]


def make_sick(session: Session, one: ObservedApp, ordinal: int) -> None:
    """Let every write to the volume of a pod wait for the disk, as long as it is mounted; nothing without the pod."""
    found = one.app.kubectl.json("get", "--namespace", one.app.namespace, "persistentvolumeclaims")["items"]
    name = f"state-{one.app.name}-{ordinal}"
    volume = next((each["spec"].get("volumeName") for each in found if each["metadata"]["name"] == name), None)
    if volume is None:
        return
    mounts = session.run("findmnt", "--raw", "--noheadings", "--output=TARGET,OPTIONS", stdin=None, timeout_seconds=10)
    for line in mounts.stdout.splitlines():
        target, _, options = line.partition(" ")
        if volume in target and "sync" not in options.split(","):
            session.run("mount", "-o", "remount,sync", target, stdin=None, timeout_seconds=10)
            return


def observed(session: Session) -> dict[str, ObservedApp]:
    """The three applications, of names that do not change, so that a second stretch finds those of the first."""
    kubectl, bootstrap = Kubectl(session), session.environment["KAFKA_BOOTSTRAP"]
    applications = {
        name: DemoApplication(f"stretch-{name}", SETTINGS, keys, QUIET, f"stretch-{name}", cpu_request="20m")
        for name, keys in KEYS.items()
    }
    return {name: ObservedApp.of(kubectl, bootstrap, one) for name, one in applications.items()}


def start(apps: dict[str, ObservedApp]) -> None:
    """Deploy them anew, the one with the sick volume on volumes that are file systems of their own."""
    first = apps[STEADY]
    remove_all(first.app.kubectl, first.bootstrap, [one.app.application for one in apps.values()])

    def spec(one: ObservedApp) -> dict[str, Any]:
        if one is not apps[SICK]:
            return ON_DEMAND
        state = one.app.resource(START)["spec"]["state"]
        claim = {**state["volumeClaimTemplate"], "storageClassName": "sized"}
        return {
            **ON_DEMAND,
            "state": {**state, "volumeClaimTemplate": {**claim, "resources": {"requests": {"storage": SIZE}}}},
        }

    start_all(dict.fromkeys(apps.values(), START), spec)
    Autoscaled(apps[FLAPPING].app).apply()


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="For the record, the page and the plan.")
@click.option("--minutes", default=45.0, show_default=True, help="Length of the stretch.")
@click.option("--remedied", is_flag=True, help="Go on with what is there, and plant no sick volume.")
def main(folder: Path, minutes: float, remedied: bool) -> None:
    """Play one stretch, and write the report of it; happened.json says what was done and when."""
    with chosen(Settings.from_environment()).session() as session:
        if session.prefix:
            raise click.ClickException(
                "run it inside of the lab: python -m lab exec -- python -m tests.benchmarks.stretch"
            )
        apps = observed(session)
        if not remedied:
            with step("three applications and their load"):
                start(apps)
        stretch = Stretch(session, apps, 60 * minutes, remedied)
        with step(f"a stretch of {minutes:g} minutes"):
            stretch.play()
        time.sleep(flight_record.WRITTEN_WITHIN_SECONDS + 2)
        flight_record.take(Kubectl(session), report.clear(folder))
    (folder / "happened.json").write_text(json.dumps(stretch.happened, indent=1) + "\n")
    click.echo(f"{report.make(folder).page}")


if __name__ == "__main__":
    main()
