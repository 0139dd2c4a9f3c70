"""An application that changes its group protocol under load, there and back: real brokers, real JVMs, the real command.

The command is killed in the middle and run again. Counts, volumes and process IDs are compared with those before. An
autoscaler stands beside it, and may not raise the replicas meanwhile.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.observed_app import PARTITIONS, ObservedApp, remove_all, start_all, unique_name
from lab.scenarios.stream_app import ON_DEMAND, Autoscaled
from tests.lab.plugin import Ran, run_kubectl
from tests.lab.promises import require_no_record_lost

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(600)]

KEYS = 120_000
REPLICAS = 3
VARIABLE = "STREAMS_GROUP_PROTOCOL"
TO_STREAMS = ("--env", f"{VARIABLE}=streams", "--yes")
MIGRATION = "streamapp.dev/migration"
PROCESS_ID = "streamapp.dev/process-id"
TELLS_OF_RESTORES = (
    "-Xmx192m -XX:+UseSerialGC "
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.streams.processor.internals.StoreChangelogReader=info"
)
RESTORED = re.compile(r"[Ff]inished restoring changelog \S+ .*total number of (\d+) records")


@dataclass(frozen=True)
class Migrating:
    """The application, and a user at a shell."""

    session: Session
    one: ObservedApp
    autoscaler: Autoscaled

    def migrate(self, *arguments: str) -> Ran:
        """Run the command until it ends."""
        return run_kubectl(self.session, *self._command(*arguments), timeout_seconds=400)

    def interrupted(self, stage: str, *arguments: str) -> int:
        """Run the command, and press Ctrl-C when this stage is on record; give its exit code."""
        environment = dict(self.session.environment)
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        words = (*self.session.prefix, "kubectl", *self._command(*arguments))
        with subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, start_new_session=True) as running:
            wait_until(f"stage {stage}", lambda: self.record().get("stage") == stage, 200, interval_seconds=0.2)
            os.killpg(running.pid, signal.SIGINT)
            return running.wait(30)

    def _command(self, *arguments: str) -> tuple[str, ...]:
        app = self.one.app
        return ("streamapp", "migrate", app.name, "--namespace", app.namespace, *arguments)

    def record(self) -> dict[str, Any]:
        """The migration on record; empty without one."""
        annotations = self.one.app.read()["metadata"].get("annotations", {})
        found: dict[str, Any] = json.loads(annotations.get(MIGRATION, "{}"))
        return found

    def protocol(self) -> str:
        """Of the group, as the operator reads it."""
        return str(self.one.app.status().get("groupProtocol", "")).lower()

    def volumes(self) -> dict[int, tuple[str, str]]:
        """The UID and the process ID of each claim."""
        return {ordinal: self._volume(ordinal) for ordinal in range(REPLICAS)}

    def _volume(self, ordinal: int) -> tuple[str, str]:
        app = self.one.app
        name = f"persistentvolumeclaim/state-{app.name}-{ordinal}"
        metadata = app.kubectl.json("get", "--namespace", app.namespace, name)["metadata"]
        return metadata["uid"], metadata["annotations"][PROCESS_ID]

    def restored(self) -> int:
        """Records that the present pods have restored from changelogs, by their logs; each task has a line."""
        app = self.one.app
        logs = [app.kubectl.run("logs", "-n", app.namespace, f"{app.name}-{one}", "-c", "counter") for one in range(3)]
        counts = [int(count) for log in logs for count in RESTORED.findall(log)]
        assert len(counts) >= PARTITIONS, logs
        return sum(counts)

    def scale_up_policy(self) -> str:
        """Of the autoscaler."""
        app = self.one.app
        found = app.kubectl.json("get", "hpa", "--namespace", app.namespace, self.autoscaler.name)["spec"]
        return str(found["behavior"]["scaleUp"].get("selectPolicy"))


@pytest.fixture(scope="module")
def run(session: Session, kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[Migrating]:  # noqa: ARG001
    """Deploy it with the classic protocol, three pods, load and an autoscaler."""
    settings = {"EXACTLY_ONCE": "true", "JDK_JAVA_OPTIONS": TELLS_OF_RESTORES}
    made = DemoApplication(unique_name("migration"), settings, KEYS, 100, "t-migration", cpu_request="20m")
    remove_all(kubectl, bootstrap, [made])
    observed = ObservedApp.of(kubectl, bootstrap, made)
    start_all({observed: REPLICAS}, lambda _: ON_DEMAND)
    autoscaler = Autoscaled(observed.app)
    autoscaler.apply(minReplicas=REPLICAS, maxReplicas=REPLICAS)
    yield Migrating(session, observed, autoscaler)
    remove_all(kubectl, bootstrap, [made])


@pytest.fixture(scope="module")
def before(run: Migrating) -> dict[int, tuple[str, str]]:
    """The volumes as they were."""
    wait_until("a settled application", lambda: run.migrate(*TO_STREAMS, "--dry-run").code == 0, 90, interval_seconds=5)
    return run.volumes()


def outage(run: Migrating, ran: Ran, began: int) -> float:
    """What the command measured, and beside it what the users of the worst partition saw."""
    seconds = float(json.loads(ran.out[ran.out.index("{\n") :] if "{\n" in ran.out else ran.out)["outageSeconds"])
    print(f"outage {seconds} s, worst gap {run.one.worst_gap_since(began):.2f} s, restored {run.restored()}")  # noqa: T201
    return seconds


def test_a_dry_run_changes_nothing(run: Migrating, before: dict[int, tuple[str, str]]) -> None:
    assert run.record() == {}
    assert (run.protocol(), len(before), run.one.app.wish()) == ("classic", 3, 3)


@pytest.mark.usefixtures("before")
def test_a_template_that_the_api_server_refuses_stops_no_pod(run: Migrating, tmp_path: Path) -> None:
    patch = tmp_path / "patch.yaml"
    number = f"{{name: {VARIABLE}, value: 1}}"
    patch.write_text(f"spec: {{template: {{spec: {{containers: [{{name: counter, env: [{number}]}}]}}}}}}")
    ran = run.migrate("--patch", str(patch), "--yes")
    assert (ran.code, run.record(), run.one.app.wish()) == (1, {}, REPLICAS)
    assert "no pod could be made of it" in ran.err


@pytest.mark.usefixtures("before")
def test_it_is_interrupted_while_no_pod_runs_and_the_next_run_goes_on(run: Migrating) -> None:
    began = run.one.clock()
    assert run.interrupted("switch", *TO_STREAMS) == 130
    assert (run.one.app.pods(), run.one.app.wish()) == ([], 0)
    assert run.scale_up_policy() == "Disabled"
    ran = run.migrate("--yes", "--output", "json")
    assert ran.code == 0
    run.one.app.wait_until_converged(REPLICAS)
    assert (run.protocol(), run.record(), run.scale_up_policy()) == ("streams", {}, "Max")
    assert outage(run, ran, began) > 1


def test_the_volumes_and_the_process_ids_are_kept(run: Migrating, before: dict[int, tuple[str, str]]) -> None:
    assert run.volumes() == before


def test_the_way_back_restores_from_the_volumes(run: Migrating, before: dict[int, tuple[str, str]]) -> None:
    began = run.one.clock()
    ran = run.migrate("--back", "--env", f"{VARIABLE}=classic", "--yes", "--output", "json")
    assert ran.code == 0
    run.one.app.wait_until_converged(REPLICAS)
    assert (run.protocol(), run.record(), run.volumes()) == ("classic", {}, before)
    assert outage(run, ran, began) > 1
    assert run.restored() < KEYS / 10


def test_pods_that_do_not_start_are_taken_back(run: Migrating, before: dict[int, tuple[str, str]]) -> None:
    broken = run.migrate(*TO_STREAMS, "--env", "EXACTLY_ONCE=nonsense", "--timeout", "40s")
    assert (broken.code, run.record()["stage"]) == (1, "start")
    assert run.migrate("--abort", "--yes").code == 0
    run.one.app.wait_until_converged(REPLICAS)
    assert (run.protocol(), run.record(), run.volumes()) == ("classic", {}, before)


def test_no_record_was_lost_or_doubled(run: Migrating) -> None:
    assert run.one.app.application.exactly_once
    require_no_record_lost(run.one)
