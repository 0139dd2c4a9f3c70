"""An operator is replaced by another version, there and back, in the middle of a hold and of a step, under load.

The earlier version is built from the history of this clone: definition, chart, images of operator, seed and agent. It
must be in the lab's cache before: `python -m lab build --earlier`, as `make test PART=upgrade` does.
"""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.build.earlier_release import TAG, build_earlier_release
from lab.clusters.cluster import Session
from lab.clusters.embedded import import_image
from lab.clusters.helm import Helm
from lab.clusters.kubectl import Kubectl, wait_until
from lab.node.layout import Layout
from lab.scenarios import operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import volume_folder
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from lab.scenarios.operator_deployment import CHART, NAMESPACE, RELEASE
from lab.scenarios.stream_app import ON_DEMAND
from lab.settings import Settings
from streamapp.flightrecord.schema import RECORD, RecorderLine
from tests.lab.plugin import run_kubectl
from tests.lab.promises import SESSION_TIMEOUT_SECONDS

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(900)]

CLAIM = "flight-record"
NEVER_NEAR_ENOUGH = {"acceptableRecoveryLag": 0}
STOP_SECONDS = 60
"""How long a pod of the application with the open step takes to stop: longer than Helm needs for the operator."""
SHARED = {
    "record": {"volume": {"existingClaim": CLAIM, "accessMode": "ReadWriteMany"}, "closeSeconds": 10},
    "monitoring": {part: {"create": "never"} for part in ("podMonitor", "rules", "dashboard")},
}


@dataclass(frozen=True)
class Upgrade:
    """Two applications that run while the operator is replaced."""

    session: Session
    kubectl: Kubectl
    helm: Helm
    earlier: Path
    """The chart of the earlier version."""
    held: ObservedApp
    """With a standby of each task; its scale-down is held."""
    stepping: ObservedApp
    """With agents and learners on demand; its scale-down is a step that is open."""

    @property
    def both(self) -> tuple[ObservedApp, ObservedApp]:
        return self.held, self.stepping

    def images(self) -> set[str]:
        """Of the operator's pods."""
        pods = operator_deployment.pods(self.kubectl).values()
        return {pod["spec"]["containers"][0]["image"].rpartition(":")[2] for pod in pods}

    def has_definition_of(self, chart: Path) -> bool:
        """Whether the API server has the fields of a chart's definition."""
        written = yaml.safe_load((chart / "files" / "crd.yaml").read_text())
        return fields_of(written) == fields_of(self.kubectl.json("get", "crd", written["metadata"]["name"]))

    def to_today(self) -> None:
        self.helm.install(RELEASE, CHART, NAMESPACE, {**operator_deployment.lab_values(), **SHARED})

    def to_earlier(self) -> None:
        """As a user does: Helm has the release before."""
        self.helm.run("rollback", RELEASE, f"--namespace={NAMESPACE}", "--wait", "--timeout=180s", "--force-conflicts")


def fields_of(definition: Mapping[str, Any]) -> set[str]:
    """The fields below spec and status."""
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    return {f"{part}.{field}" for part in ("spec", "status") for field in schema[part]["properties"]}


@dataclass(frozen=True)
class Seen:
    """What must be as it was when the operator was replaced."""

    pods: dict[int, str]
    restarts: dict[str, int]
    template: str


def seen_of(one: ObservedApp, ordinals: int) -> Seen:
    app = one.app
    found = app.kubectl.json("get", "--namespace", app.namespace, f"statefulset/{app.name}")
    stay = {f"{app.name}-{ordinal}" for ordinal in range(ordinals)}
    restarts = {
        f"{pod['metadata']['name']}/{container['name']}": container["restartCount"]
        for pod in app.pods()
        if pod["metadata"]["name"] in stay
        for container in pod["status"]["containerStatuses"]
    }
    uids = {ordinal: uid for ordinal, uid in one.pods().items() if ordinal < ordinals}
    return Seen(uids, restarts, json.dumps(found["spec"]["template"], sort_keys=True))


@pytest.fixture(scope="module")
def upgrade(session: Session, kubectl: Kubectl, bootstrap: str) -> Iterator[Upgrade]:
    """Install the earlier version and run both applications with three pods under load."""
    settings, was_there = Settings.from_environment(), operator_deployment.is_there(kubectl)
    earlier = build_earlier_release(settings)
    for image in earlier.images.values():
        import_image(Layout(settings.state), image, session)
    operator_deployment.remove(kubectl)
    operator_deployment.make_namespace(kubectl)
    kubectl.apply(record_claim())
    images = {
        name: {"repository": image.reference.rpartition(":")[0], "tag": TAG} for name, image in earlier.images.items()
    }
    helm = Helm(session)
    helm.install(RELEASE, earlier.chart, NAMESPACE, {"images": images, **SHARED})
    operator_deployment.pod_name(kubectl)
    held = DemoApplication(
        unique_name("held"), {"STREAMS_NUM_STANDBY_REPLICAS": "1"}, 20_000, 50, "t-upgrade-held", cpu_request="20m"
    )
    stepping = replace(
        held,
        application_id=unique_name("stepping"),
        settings={"STREAMS_NUM_STANDBY_REPLICAS": "0"},
        namespace="t-upgrade-step",
    )
    remove_all(kubectl, bootstrap, [held, stepping])
    made = Upgrade(
        session, kubectl, helm, earlier.chart, *(ObservedApp.of(kubectl, bootstrap, each) for each in (held, stepping))
    )
    start_all(dict.fromkeys(made.both, 3), lambda one: slow_to_stop(one) if one is made.stepping else {})
    yield made
    remove_all(kubectl, bootstrap, [held, stepping])
    operator_deployment.remove(kubectl)
    if was_there:
        operator_deployment.deploy(kubectl)


def record_claim() -> str:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": CLAIM, "namespace": NAMESPACE}
    return json.dumps({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})


def slow_to_stop(one: ObservedApp) -> dict[str, Any]:
    """Learners on demand, and pods that go on for a while when they are told to stop."""
    template = one.app.resource(3)["spec"]["template"]
    template["spec"]["terminationGracePeriodSeconds"] = STOP_SECONDS + 60
    (container,) = template["spec"]["containers"]
    container["lifecycle"] = {"preStop": {"sleep": {"seconds": STOP_SECONDS}}}
    return {**ON_DEMAND, "template": template}


def play(upgrade: Upgrade, replace_operator: Callable[[], None]) -> None:
    """Replace the operator while one scale-down is held and the step of the other is open; see that nothing moves."""
    held, stepping = upgrade.both
    for one in upgrade.both:
        one.app.scale(3)
    for one in upgrade.both:
        one.app.wait_until_converged(3)
    assert [member["agent"] for member in stepping.app.status()["members"]] == ["Active"] * 3
    held.patch({"replicas": 2, "learners": NEVER_NEAR_ENOUGH})
    wait_until("the hold is on record", lambda: "hold" in held.record(), 60)
    steps = len(stepping.steps())
    stepping.app.scale(2)
    wait_until("the step is open", lambda: "step" in stepping.record(), 240, interval_seconds=0.2)
    hold, step = held.record()["hold"], stepping.record()["step"]
    before = {one: seen_of(one, ordinals) for one, ordinals in ((held, 3), (stepping, 2))}
    began = {one: one.clock() for one in upgrade.both}
    replace_operator()
    assert stepping.record().get("step") == step, "the step was closed before the operator was replaced"
    wait_until(
        "the other version took the record over",
        lambda: held.record()["epoch"][0] == operator_deployment.lease(upgrade.kubectl)["leaseTransitions"],
        60,
    )
    stepping.app.wait_until_converged(2)
    assert (held.record()["hold"]["id"], held.record()["hold"]["since"]) == (hold["id"], hold["since"])
    assert held.held_for() not in {"", "HoldRecordUnreadable"}
    assert (held.app.granted(), "step" in stepping.record()) == (3, False)
    assert (stepping.steps()[0], len(stepping.steps())) == ((3, 2), steps + 1)
    assert {one: seen_of(one, ordinals) for one, ordinals in ((held, 3), (stepping, 2))} == before
    gaps = {one.app.namespace: round(one.worst_gap_since(began[one]), 2) for one in upgrade.both}
    print(f"worst gaps: {gaps}")  # noqa: T201 (figures for the reader)
    assert max(gaps.values()) < SESSION_TIMEOUT_SECONDS
    held.patch({"replicas": 3, "learners": None})


def test_an_upgrade_goes_on_with_hold_and_step_and_restarts_no_pod(upgrade: Upgrade) -> None:
    assert (upgrade.images(), upgrade.has_definition_of(upgrade.earlier)) == ({TAG}, True)
    play(upgrade, upgrade.to_today)
    assert (upgrade.images(), upgrade.has_definition_of(CHART)) == ({"lab"}, True)


def test_the_earlier_flight_record_is_read_after_the_upgrade(upgrade: Upgrade) -> None:
    app = upgrade.stepping.app
    ran = run_kubectl(upgrade.session, "streamapp", "history", app.name, "--namespace", app.namespace, "--all")
    assert ran.code == 0, ran.err
    assert "3 to 2: held for" in ran.out
    assert ran.out.index("The operator's pod ") < ran.out.index("StepClosed")  # of the leader after the upgrade
    folder = volume_folder(upgrade.kubectl, NAMESPACE, CLAIM)
    lines = [
        RECORD.validate_json(line)
        for file in sorted(folder.rglob("*.gz"))
        for line in gzip.decompress(file.read_bytes()).splitlines()
    ]
    recorders = {line.recorder for line in lines if isinstance(line, RecorderLine)}
    assert len(recorders) >= 2, recorders


def test_a_downgrade_goes_on_with_hold_and_step_and_agents_of_both_versions(upgrade: Upgrade) -> None:
    """The third pod of the application with agents came after the upgrade, with the newer agent."""
    play(upgrade, upgrade.to_earlier)
    assert (upgrade.images(), upgrade.has_definition_of(upgrade.earlier)) == ({TAG}, True)


def test_no_record_is_lost_in_all_of_it(upgrade: Upgrade) -> None:
    counts = {one.app.namespace: one.counts() for one in upgrade.both}
    assert {name: (one.nothing_lost, one.undercounted) for name, one in counts.items()} == dict.fromkeys(
        counts, (True, 0)
    )
