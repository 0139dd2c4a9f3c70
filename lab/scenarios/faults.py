"""What goes wrong in a cluster, brought about on purpose: killed and frozen processes, full memory, lost packets.

Volumes that change places, too. All of it within the embedded lab's own namespaces: its processes, its network, the
folders of its volumes.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.clusters.kubectl import Kubectl
from lab.clusters.second_node import enter
from lab.node.layout import NODES, Layout
from lab.settings import Settings

_PROCESS_FILE = "kafka-streams-process-metadata"
_EATERS = 24
_EATEN_MEGABYTES = 40
_STOPPED_SECONDS, _RUNNING_SECONDS = 0.8, 0.2
"""Of a process that is made slow."""


def restarts(pod: Mapping[str, Any]) -> int:
    """How often the containers of a pod were restarted; 0 before any began."""
    return sum(int(each["restartCount"]) for each in pod["status"].get("containerStatuses", ()))


def kill_container(pod: Mapping[str, Any]) -> None:
    """Send SIGKILL to process 1 of a pod's first container."""
    subprocess.run(
        (*_tasks(pod), "kill", "--signal", "SIGKILL", _first_container(pod)), check=True, capture_output=True
    )


@contextmanager
def frozen_container(pod: Mapping[str, Any]) -> Iterator[None]:
    """Stop every process of a pod's first container in this block; connections stay open, and nobody answers."""
    subprocess.run((*_tasks(pod), "pause", _first_container(pod)), check=True, capture_output=True)
    try:
        yield
    finally:
        # The kubelet may have ended it meanwhile.
        subprocess.run((*_tasks(pod), "resume", _first_container(pod)), check=False, capture_output=True)


def slow_part(layout: Layout, name: str, seconds: float) -> None:
    """Let a part of a node run only a fifth of the time, for so many seconds."""
    parts = json.loads(layout.status.read_text())["parts"]
    process = next(int(part["pid"]) for part in parts if part["name"] == name)
    ends = time.monotonic() + seconds
    try:
        while time.monotonic() < ends:
            os.kill(process, signal.SIGSTOP)
            time.sleep(_STOPPED_SECONDS)
            os.kill(process, signal.SIGCONT)
            time.sleep(_RUNNING_SECONDS)
    finally:
        os.kill(process, signal.SIGCONT)


def _tasks(pod: Mapping[str, Any]) -> tuple[str, ...]:
    node = next(node for node in NODES if node.name == pod["spec"]["nodeName"])
    layout = Layout(Settings.from_environment().state, node)
    return (*enter(layout), "ctr", "--address", str(layout.containerd_socket), "--namespace", "k8s.io", "tasks")


def _first_container(pod: Mapping[str, Any]) -> str:
    return str(pod["status"]["containerStatuses"][0]["containerID"]).removeprefix("containerd://")


def fill_memory(kubectl: Kubectl, pod: Mapping[str, Any]) -> None:
    """Use up the memory of a pod's container, until the kernel kills its largest process.

    By many small processes, so that the largest is the application where the kernel kills but one.
    """
    eat = f"head -c {_EATEN_MEGABYTES}m /dev/zero | tail -c {_EATEN_MEGABYTES}m | sleep 20 &"
    script = "".join(eat for _ in range(_EATERS)) + " sleep 15"
    target = ("--namespace", pod["metadata"]["namespace"], pod["metadata"]["name"])
    # It ends with the container that it runs in.
    kubectl.run("exec", *target, "--", "sh", "-c", f"({script}) >/dev/null 2>&1 & exit 0")


@contextmanager
def lost_packets(source: str, word: str) -> Iterator[None]:
    """Lose every packet from an address of the pods' network that contains a word, within the lab's own network."""
    rule = ("FORWARD", "--source", source, "--match", "string", "--algo", "bm", "--string", word, "--jump", "DROP")
    subprocess.run(("iptables", "--wait", "--insert", *rule), check=True)
    try:
        yield
    finally:
        subprocess.run(("iptables", "--wait", "--delete", *rule), check=True)


def volume_folder(kubectl: Kubectl, namespace: str, claim: str) -> Path:
    """Give the folder of a claim's volume."""
    volume = kubectl.json("get", "pvc", "--namespace", namespace, claim)["spec"]["volumeName"]
    return Path(kubectl.json("get", "pv", volume)["spec"]["local"]["path"])


def exchange(one: Path, other: Path) -> None:
    """Let two volumes change places; containers that run keep the one they have until they are started anew."""
    aside = one.with_name(f"{one.name}.aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def process_file(volume: Path, application_id: str) -> Path:
    """Give the file in which Kafka Streams keeps the process ID."""
    return volume / application_id / _PROCESS_FILE


def process_id(volume: Path, application_id: str) -> str:
    """Read the process ID of a volume."""
    return str(json.loads(process_file(volume, application_id).read_text())["processId"])
