"""A node that loses its power says nothing more, to its pods' peers and to the API server."""

import os
import socket
import time
from contextlib import closing

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.clusters.second_node import second_node
from lab.node.layout import FIRST, Layout
from lab.node.namespaces import INSIDE
from lab.settings import Settings
from tests.lab.small_servers import pod_spec, start_pod

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(INSIDE not in os.environ, reason="only the embedded lab adds a node to itself"),
]


def test_a_node_without_power_is_silent_and_its_pods_stay_until_it_is_removed(
    kubectl: Kubectl, session: Session, namespace: str
) -> None:
    with second_node(session, Layout(Settings.from_environment().state), images=("kafka",)) as lost:
        address = start_pod(kubectl, namespace, "server", f"  nodeName: {lost.name}\n{pod_spec()}")
        with closing(socket.create_connection((address, 8080), timeout=5)) as open_before:
            lost.cut_power()
            # A process that ends would have closed it; a timeout is all that a cable without a node gives.
            open_before.settimeout(1)
            with pytest.raises(TimeoutError):
                open_before.recv(1)
        with pytest.raises(TimeoutError):
            socket.create_connection((address, 8080), timeout=5)
        wait_until("the node is reported as lost", lambda: _ready(kubectl, lost.name) == "Unknown", 60)
        kubectl.run("delete", "pod", "server", "--namespace", namespace, "--wait=false")
        time.sleep(2)
        # The kubelet alone could say that the container has ended.
        assert "deletionTimestamp" in kubectl.json("get", "pod", "server", "--namespace", namespace)["metadata"]
    nodes = [node["metadata"]["name"] for node in kubectl.json("get", "nodes")["items"]]
    assert nodes == [FIRST.name]
    assert kubectl.json("get", "pods", "--namespace", namespace)["items"] == []


def _ready(kubectl: Kubectl, node: str) -> str:
    conditions = kubectl.json("get", "node", node)["status"]["conditions"]
    return next(str(each["status"]) for each in conditions if each["type"] == "Ready")
