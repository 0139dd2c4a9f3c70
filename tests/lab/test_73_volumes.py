"""Volumes with a size: they grow under a running application, also a full one, and an ordinal gets another class.

The class `sized` makes loop devices, on which the real kubelet makes and enlarges the file systems.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.node.namespaces import INSIDE
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import kill_container
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from tests.lab.plugin import run_kubectl

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timeout(420),
    pytest.mark.skipif(INSIDE not in os.environ, reason="only the embedded lab has volumes with a size"),
]

NAMESPACE = "t-volumes"
BEFORE, AFTER, LAST = "320Mi", "640Mi", "960Mi"
MEBIBYTES = {BEFORE: 320, AFTER: 640, LAST: 960}
FILLER = "filler"
STORAGE = "spec.state.volumeClaimTemplate.resources.requests.storage"
"""What the user must raise."""
FILE_SYSTEM = 0.8
"""The least part of a device that the file system leaves to files."""


@pytest.fixture(scope="module")
def observed(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (it must run)
    """Deploy an application with standbys and two pods, under load, on volumes with a size."""
    settings = {"STREAMS_NUM_STANDBY_REPLICAS": "1"}
    application = DemoApplication(unique_name("volumes"), settings, 60_000, 100, NAMESPACE, cpu_request="20m")
    remove_all(kubectl, bootstrap, [application])
    one = ObservedApp.of(kubectl, bootstrap, application)
    start_all({one: 2}, lambda one: {"state": of_class(one, "sized", BEFORE)})
    yield one
    remove_all(kubectl, bootstrap, [application])


def of_class(one: ObservedApp, name: str, storage: str) -> dict[str, Any]:
    """Give the state of the application on volumes of a class and a size."""
    state: dict[str, Any] = one.app.resource(2)["spec"]["state"]
    template = {**state["volumeClaimTemplate"], "storageClassName": name}
    return {**state, "volumeClaimTemplate": {**template, "resources": {"requests": {"storage": storage}}}}


def claim(one: ObservedApp, ordinal: int) -> dict[str, Any]:
    """Give the claim of an ordinal."""
    name = f"persistentvolumeclaim/state-{one.app.name}-{ordinal}"
    found: dict[str, Any] = one.app.kubectl.json("get", "--namespace", NAMESPACE, name)
    return found


def capacities(one: ObservedApp, ordinals: range) -> list[str]:
    """Give what Kubernetes says that the volumes have."""
    return [claim(one, ordinal)["status"].get("capacity", {}).get("storage", "") for ordinal in ordinals]


def mebibytes(one: ObservedApp, ordinal: int) -> int:
    """Give the size of the file system as the container sees it."""
    return int(in_container(one, ordinal, "df", "-m", folder(one)).splitlines()[-1].split()[1])


def events(one: ObservedApp, reason: str) -> list[str]:
    """Give the notes of the Events of a reason."""
    found = one.app.kubectl.json("get", "--namespace", NAMESPACE, "events.events.k8s.io")
    return [event["note"] for event in found["items"] if event["reason"] == reason]


def test_volumes_grow_under_the_running_application(observed: ObservedApp) -> None:
    pods = observed.pods()
    assert capacities(observed, range(2)) == [BEFORE] * 2
    assert all(mebibytes(observed, ordinal) <= MEBIBYTES[BEFORE] for ordinal in range(2))
    observed.app.apply(2, state=of_class(observed, "sized", AFTER))
    wait_until("volumes have grown", lambda: capacities(observed, range(2)) == [AFTER] * 2, 120)
    assert all(mebibytes(observed, ordinal) >= FILE_SYSTEM * MEBIBYTES[AFTER] for ordinal in range(2))
    assert observed.pods() == pods
    observed.app.wait_until_converged(2)


def test_the_volume_of_a_new_ordinal_grows_as_soon_as_it_is_there(observed: ObservedApp) -> None:
    observed.app.scale(3)
    wait_until("the third volume has grown", lambda: capacities(observed, range(3)) == [AFTER] * 3, 120)
    observed.app.wait_until_converged(3)
    observed.app.scale(2)
    observed.app.wait_until_converged(2)


def test_a_full_volume_is_named_with_its_size_and_the_pod_runs_again_when_it_has_grown(
    observed: ObservedApp, session: Session
) -> None:
    """RocksDB writes to the disk only now and then, but at every start: so the container is killed once."""
    (size,) = set(capacities(observed, range(2)))
    pods, words = observed.pods(), ("exit code 1", "No space left on device", f"{MEBIBYTES[size]} MiB")
    fill(observed, 1)
    kill_container(observed.pod(1))
    wait_until("Ready names it", lambda: observed.app.condition("Ready").get("reason") == "VolumeFull", 120)
    ready = observed.app.condition("Ready")
    assert (ready["status"], [word for word in words if word not in ready["message"]]) == ("False", [])
    (fault,) = (member["fault"] for member in observed.app.status()["members"] if "fault" in member)
    assert [word for word in words if word not in fault] == []
    assert [word for word in ("No space left on device", STORAGE) if word not in say(session, "status")] == []
    assert [word for word in ("No space left on device", STORAGE) if word not in say(session, "explain")] == []
    (found,) = (one for one in findings(session) if one["code"] == "VolumeFull" and one["kind"] == "Found")
    assert [word for word in words if word not in found["detail"]] == []
    observed.app.apply(2, state=of_class(observed, "sized", LAST))
    wait_until("volumes have grown", lambda: capacities(observed, range(2)) == [LAST] * 2, 120)
    observed.app.wait_until_converged(2)
    assert observed.pods() == pods
    in_container(observed, 1, "rm", "-f", f"{folder(observed)}/{FILLER}")


def folder(one: ObservedApp) -> str:
    """Give where the volume is mounted."""
    return str(one.app.read()["spec"]["state"]["mountPath"])


def in_container(one: ObservedApp, ordinal: int, *command: str) -> str:
    """Run a command in the application's container."""
    pod = ("--namespace", NAMESPACE, f"{one.app.name}-{ordinal}", "--container", "counter")
    return one.app.kubectl.run("exec", *pod, "--", *command)


def fill(one: ObservedApp, ordinal: int) -> None:
    """Write until the volume has no byte left."""
    write = f"dd if=/dev/zero of={folder(one)}/{FILLER} bs=64k; dd if=/dev/zero of={folder(one)}/{FILLER}.end bs=1k"
    in_container(one, ordinal, "sh", "-c", f"{write}; exit 0")


def say(session: Session, command: str) -> str:
    """Give what a command of the plugin says of the application."""
    ran = run_kubectl(session, "streamapp", command, "counter", "--namespace", NAMESPACE)
    return " ".join(ran.out.split())


def findings(session: Session) -> list[dict[str, Any]]:
    """Give what `doctor` finds."""
    ran = run_kubectl(session, "streamapp", "doctor", "counter", "--namespace", NAMESPACE, "--output", "json")
    (part,) = json.loads(ran.out)["apps"]
    found: list[dict[str, Any]] = part["findings"]
    return found


def test_an_ordinal_gets_a_volume_of_another_class(observed: ObservedApp, session: Session) -> None:
    pods, volumes = observed.pods(), [claim(observed, ordinal)["spec"]["volumeName"] for ordinal in range(2)]
    observed.app.apply(2, state=of_class(observed, "standard", LAST))
    wait_until("the other class is told", lambda: bool(events(observed, "OtherStorageClassFound")), 60)
    assert "sized, not standard" in events(observed, "OtherStorageClassFound")[0]
    statefulset = (f"statefulset/{observed.app.name}", "--cascade=orphan")
    observed.app.kubectl.run("delete", "--namespace", NAMESPACE, *statefulset)
    observed.app.wait_until_converged(2)
    assert observed.pods() == pods
    restart = ("restart", observed.app.name, "--ordinal", "1", "--new-volume", "--yes", "--namespace", NAMESPACE)
    assert run_kubectl(session, "streamapp", *restart).code == 0
    wait_until("a volume of the other class", lambda: is_of_class(observed, 1, "standard"), 180)
    observed.app.wait_until_converged(2)
    assert claim(observed, 0)["spec"]["volumeName"] == volumes[0]
    assert observed.pods()[0] == pods[0]


def is_of_class(one: ObservedApp, ordinal: int, name: str) -> bool:
    """Whether the claim of an ordinal is there and bound to a volume of a class."""
    found = one.app.kubectl.json("get", "--namespace", NAMESPACE, "persistentvolumeclaims")
    wanted = f"state-{one.app.name}-{ordinal}"
    specs = [each["spec"] for each in found["items"] if each["metadata"]["name"] == wanted]
    return any(spec["storageClassName"] == name and "volumeName" in spec for spec in specs)


def test_nothing_was_lost(observed: ObservedApp) -> None:
    counts = observed.counts()
    assert counts.lost == 0
    assert counts.inputs > 0
