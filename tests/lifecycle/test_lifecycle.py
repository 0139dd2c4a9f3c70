"""The lab comes up, goes down, and can be killed at any moment without leaving what stops the next start."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.clusters.embedded import EmbeddedCluster
from lab.clusters.kubectl import Kubectl, wait_until
from lab.errors import LabError
from lab.node import namespaces
from lab.node.usage import processes_of
from lab.settings import REPOSITORY

Traces = Callable[[], dict[str, object]]

pytestmark = [pytest.mark.lifecycle, pytest.mark.timeout(600)]


def _up_in_background() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "lab", "up"], cwd=REPOSITORY, stderr=subprocess.DEVNULL)


def _wait_for_phase(cluster: EmbeddedCluster, phase: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError):
            if json.loads(cluster.layout.status.read_text())["phase"] == phase:
                return
        time.sleep(0.01)
    pytest.fail(f"the lab never was in phase {phase!r}")


def _ready(cluster: EmbeddedCluster) -> bool:
    with cluster.session() as session:
        nodes = Kubectl(session).json("get", "nodes")["items"]
    conditions = [condition for node in nodes for condition in node["status"]["conditions"]]
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _node_is_usable(cluster: EmbeddedCluster) -> bool:
    wait_until("node ready", lambda: _ready(cluster), 60)
    return True


def test_up_then_down_leaves_no_trace_and_a_second_up_is_refused(cluster: EmbeddedCluster, traces: Traces) -> None:
    before = traces()
    cluster.up()
    lab = namespaces.find(cluster.layout)
    assert lab is not None
    processes = processes_of(lab.pid)
    assert len(processes) > 10
    assert traces()["sysctls"] == before["sysctls"]
    assert traces()["network links"] == before["network links"]
    with pytest.raises(LabError) as raised:
        cluster.up()
    assert raised.value.what == "lab: up already"
    assert "python -m lab down" in raised.value.next_step
    assert _node_is_usable(cluster)
    cluster.down()
    assert traces() == before
    assert [pid for pid in processes if Path(f"/proc/{pid}").exists()] == []


@pytest.mark.parametrize("phase", ["preparing namespaces", "starting the API server", "starting the node", "running"])
def test_a_lab_killed_in_any_phase_does_not_stop_the_next(cluster: EmbeddedCluster, traces: Traces, phase: str) -> None:
    before = traces()
    up = _up_in_background()
    _wait_for_phase(cluster, phase)
    lab = namespaces.find(cluster.layout)
    assert lab is not None
    os.kill(lab.pid, signal.SIGKILL)
    assert up.wait(timeout=300) != 0
    assert traces()["sysctls"] == before["sysctls"]
    assert traces()["network links"] == before["network links"]
    cluster.start_node()
    assert _node_is_usable(cluster)


def test_an_up_that_was_killed_is_taken_over_and_two_at_once_do_not_meet(cluster: EmbeddedCluster) -> None:
    killed = _up_in_background()
    _wait_for_phase(cluster, "starting the node")
    with pytest.raises(LabError) as raised:
        cluster.up()
    assert raised.value.what == "lab: another `up` or `down` is at work"
    killed.kill()
    killed.wait(timeout=10)
    assert namespaces.find(cluster.layout) is not None
    cluster.up()
    assert _node_is_usable(cluster)
    assert cluster.layout.complete.exists()


def test_a_proxy_of_the_machine_is_not_asked_for_the_node(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Port 9 of this machine answers nobody: whoever asks it fails.
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    cluster.start_node()
    assert _node_is_usable(cluster)


def test_a_part_that_ends_is_started_again(cluster: EmbeddedCluster) -> None:
    cluster.start_node()
    coredns = _part(cluster, "coredns")
    with cluster.session() as session:
        subprocess.run((*session.prefix, "kill", "-9", str(coredns["pid"])), env=session.environment, check=True)
    wait_until("coredns again", lambda: bool(_part(cluster, "coredns")["restarts"]), 20)
    again = _part(cluster, "coredns")
    assert (again["restarts"], again["last_exit"]) == (1, -signal.SIGKILL)


def _part(cluster: EmbeddedCluster, name: str) -> dict[str, Any]:
    return next(part for part in cluster.status()["parts"] if part["name"] == name)


def test_down_without_a_lab_is_no_error_and_status_says_how_to_start_one(cluster: EmbeddedCluster) -> None:
    cluster.down()
    with pytest.raises(LabError) as raised:
        cluster.status()
    assert raised.value.what == "lab: not up"
    assert "make lab-up" in raised.value.next_step
