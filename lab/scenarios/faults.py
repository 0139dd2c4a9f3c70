"""What goes wrong in a cluster, brought about on purpose: killed containers, full memory, lost packets, moved volumes.

All of it within the embedded lab's own namespaces: its containers, its network, the folders of its volumes.
"""

import json
import subprocess
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


def restarts(pod: Mapping[str, Any]) -> int:
    """How often the containers of a pod were restarted; 0 before any began."""
    return sum(int(each["restartCount"]) for each in pod["status"].get("containerStatuses", ()))


def kill_container(pod: Mapping[str, Any]) -> None:
    """Send SIGKILL to process 1 of a pod's first container."""
    identity = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    node = next(node for node in NODES if node.name == pod["spec"]["nodeName"])
    layout = Layout(Settings.from_environment().state, node)
    ctr = ("ctr", "--address", str(layout.containerd_socket), "--namespace", "k8s.io")
    command = (*enter(layout), *ctr, "tasks", "kill", "--signal", "SIGKILL", identity)
    subprocess.run(command, check=True, capture_output=True)


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
