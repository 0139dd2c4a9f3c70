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

import pytest

from lab.clusters.embedded import EmbeddedCluster
from lab.clusters.kubectl import Kubectl
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


def _node_is_usable(cluster: EmbeddedCluster) -> bool:
    with cluster.session() as session:
        ready = Kubectl(session).json("get", "nodes")["items"][0]["status"]["conditions"]
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in ready)


def test_up_then_down_leaves_no_trace(cluster: EmbeddedCluster, traces: Traces) -> None:
    before = traces()
    cluster.up()
    lab = namespaces.find(cluster.layout)
    assert lab is not None
    processes = processes_of(lab.pid)
    assert len(processes) > 10
    assert _node_is_usable(cluster)
    assert traces()["sysctls"] == before["sysctls"]
    assert traces()["network links"] == before["network links"]
    cluster.down()
    assert traces() == before
    assert [pid for pid in processes if Path(f"/proc/{pid}").exists()] == []


def test_a_second_up_is_refused_and_harms_nothing(cluster: EmbeddedCluster) -> None:
    cluster.up()
    with pytest.raises(LabError) as raised:
        cluster.up()
    assert raised.value.what == "lab: up already"
    assert "python -m lab down" in raised.value.next_step
    assert _node_is_usable(cluster)


def test_two_ups_at_once_do_not_meet(cluster: EmbeddedCluster) -> None:
    first = _up_in_background()
    try:
        _wait_for_phase(cluster, "starting the API server")
        with pytest.raises(LabError) as raised:
            cluster.up()
        assert raised.value.what == "lab: another `up` or `down` is at work"
    finally:
        assert first.wait(timeout=300) == 0
    assert _node_is_usable(cluster)


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
    cluster.up()
    assert _node_is_usable(cluster)


def test_an_up_that_was_killed_is_taken_over_by_the_next(cluster: EmbeddedCluster) -> None:
    up = _up_in_background()
    _wait_for_phase(cluster, "starting the node")
    up.kill()
    up.wait(timeout=10)
    cluster.up()
    assert _node_is_usable(cluster)
    assert cluster.layout.complete.exists()


def test_a_part_that_ends_is_started_again(cluster: EmbeddedCluster) -> None:
    cluster.up()
    coredns = next(part for part in cluster.status()["parts"] if part["name"] == "coredns")
    with cluster.session() as session:
        subprocess.run((*session.prefix, "kill", "-9", str(coredns["pid"])), env=session.environment, check=True)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        again = next(part for part in cluster.status()["parts"] if part["name"] == "coredns")
        if again["pid"] and again["restarts"] == 1:
            break
        time.sleep(0.1)
    assert (again["restarts"], again["last_exit"]) == (1, -signal.SIGKILL)


def test_down_without_a_lab_is_no_error_and_status_says_how_to_start_one(cluster: EmbeddedCluster) -> None:
    cluster.down()
    with pytest.raises(LabError) as raised:
        cluster.status()
    assert raised.value.what == "lab: not up"
    assert "make lab-up" in raised.value.next_step
