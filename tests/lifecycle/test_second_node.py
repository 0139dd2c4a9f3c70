"""A second node goes with the process that asked for it, however that ends, and leaves nothing of itself."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.clusters.embedded import EmbeddedCluster, import_image
from lab.clusters.kubectl import Kubectl, wait_until
from lab.clusters.second_node import second_node
from lab.errors import LabError
from lab.node import namespaces
from lab.node.layout import FIRST, SECOND
from lab.node.usage import proc_of
from lab.settings import REPOSITORY, Settings, Versions

pytestmark = [pytest.mark.lifecycle, pytest.mark.timeout(300)]

_POD = f"""
apiVersion: v1
kind: Pod
metadata: {{name: sleeper}}
spec:
  nodeName: {SECOND.name}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers:
    - {{name: main, image: "localhost/streamapp/kafka:{Versions.read().broker}", command: [sleep, "1000"]}}
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[EmbeddedCluster]:
    """Give one lab to all tests of this file, with the image of the broker and without a broker."""
    settings = Settings.from_environment()
    cluster = EmbeddedCluster(settings)
    if namespaces.find(cluster.layout) is not None:
        pytest.fail("a lab is up and somebody may be using it; stop it first: make lab-down")
    try:
        built = cluster.start_node()
        with cluster.session() as session:
            wait_until("service account", lambda: bool(Kubectl(session).json("get", "sa", "default")), 30)
            for name in ("pause", "kafka"):
                import_image(cluster.layout, built.images[name], session)
        yield cluster
    finally:
        cluster.down()


def _traces(cluster: EmbeddedCluster) -> dict[str, Any]:
    """What of a second node could be left, as the machine and the API server see it."""
    lab = namespaces.find(cluster.layout)
    assert lab is not None
    with cluster.session() as session:
        nodes = Kubectl(session).json("get", "nodes")["items"]
        pods = Kubectl(session).json("get", "pods", "--all-namespaces")["items"]
        links = session.run("ip", "-brief", "link", stdin=None, timeout_seconds=10).stdout.splitlines()
        routes = session.run("ip", "route", stdin=None, timeout_seconds=10).stdout.splitlines()
        neighbours = session.run("ip", "neighbour", stdin=None, timeout_seconds=10).stdout.splitlines()
    inside = proc_of(Path("/proc"), lab.pid)
    return {
        "nodes": [node["metadata"]["name"] for node in nodes],
        "pods": [pod["metadata"]["name"] for pod in pods],
        "links": [line.split()[0].partition("@")[0] for line in links],
        "routes": [line.split()[0] for line in routes],
        "neighbours": [line for line in neighbours if SECOND.address in line],
        "processes": sorted(_command(path) for path in inside.glob("[0-9]*") if SECOND.name in _command(path)),
        "mounts": [line for line in Path(f"/proc/{lab.pid}/mounts").read_text().splitlines() if SECOND.name in line],
        "cgroups": sorted(map(str, Path("/sys/fs/cgroup").glob(f"**/{SECOND.name}"))),
        "files": sorted(path.name for path in (*cluster.layout.state.iterdir(), *cluster.layout.var.iterdir())),
    }


def _command(process: Path) -> str:
    with contextlib.suppress(OSError):
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def _start_pod(cluster: EmbeddedCluster) -> None:
    with cluster.session() as session:
        kubectl = Kubectl(session)
        kubectl.apply(_POD)
        kubectl.run("wait", "pod/sleeper", "--for=condition=Ready", "--timeout=60s")


@contextlib.contextmanager
def _node_whose_keeper_is_killed(cluster: EmbeddedCluster) -> Iterator[None]:
    with (
        pytest.raises(LabError, match="its keeper was ended"),
        cluster.session() as session,
        second_node(session, cluster.layout, images=("kafka",)),
    ):
        yield


def _processes(cluster: EmbeddedCluster) -> list[Path]:
    """Give the outside folders of all processes of the lab, those of nodes and containers in it too."""
    inside = {path.name for path in cluster.nodes()[0].proc.glob("[0-9]*")}
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            lines = dict(line.split(":", 1) for line in (path / "status").read_text().splitlines())
            # Each namespace around a process has an id of its own for it; the second is the lab's.
            if set(lines["NSpid"].split()[1:2]) & inside:
                found.append(path)
    return found


def _keeper(cluster: EmbeddedCluster) -> int:
    (path,) = (path for path in _processes(cluster) if " -m lab.node.second " in _command(path))
    return int(path.name)


def _differing(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    return {name for name in one if one[name] != other[name]}


# What of a node exists while it runs; a route and a neighbour of its own stay only after a power cut.
_SEEN = {"nodes", "pods", "links", "routes", "processes", "cgroups", "files"}


def test_a_node_that_is_drained_and_removed_leaves_nothing(lab: EmbeddedCluster) -> None:
    before = _traces(lab)
    with lab.session() as session, second_node(session, lab.layout, images=("kafka",)) as node:
        _start_pod(lab)
        assert _differing(before, _traces(lab)) >= _SEEN
        with pytest.raises(LabError) as raised, second_node(session, lab.layout):
            pass
        assert raised.value.what == "second node: there already"
        assert [each.node for each in lab.nodes()] == [FIRST, SECOND]
        node.drain()
        assert _traces(lab)["pods"] == []
    assert _traces(lab) == before


def test_a_node_goes_with_its_killed_owner(lab: EmbeddedCluster) -> None:
    before = _traces(lab)
    owner = subprocess.Popen(
        [sys.executable, "-m", "lab", "second-node", "--image", "kafka"], cwd=REPOSITORY, stderr=subprocess.PIPE
    )
    with owner:
        assert owner.stderr is not None
        for line in owner.stderr:
            if b"is there until" in line:
                break
        _start_pod(lab)
        assert _differing(before, _traces(lab)) >= _SEEN
        os.kill(owner.pid, signal.SIGKILL)
    wait_until("nothing left", lambda: _traces(lab) == before, 20)


def test_a_node_ends_with_its_killed_keeper_and_the_next_one_starts(lab: EmbeddedCluster) -> None:
    before = _traces(lab)
    with _node_whose_keeper_is_killed(lab):
        os.kill(_keeper(lab), signal.SIGKILL)
        wait_until("no process left", lambda: _traces(lab)["processes"] == before["processes"], 20)
    with lab.session() as session, second_node(session, lab.layout, images=("kafka",)):
        _start_pod(lab)
    assert _traces(lab) == before


def test_a_lab_goes_down_with_a_second_node(lab: EmbeddedCluster) -> None:
    with _node_whose_keeper_is_killed(lab):
        _start_pod(lab)
        processes = _processes(lab)
        commands = " ".join(map(_command, processes))
        assert (commands.count("/kubelet --config"), commands.count("sleep 1000")) == (2, 1)
        lab.down()
        assert [path for path in processes if path.exists()] == []
        assert list(Path("/sys/fs/cgroup").glob("**/streamapp-lab")) == []
        assert [path.name for path in lab.layout.state.iterdir()] == [".streamapp-lab", "logs"]
