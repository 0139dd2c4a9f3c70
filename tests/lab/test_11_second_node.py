"""A second node works as the first does: its pods are reached, looked into and drained, and volumes go along."""

import os
from collections.abc import Iterator

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.clusters.second_node import SecondNode, second_node
from lab.node.layout import FIRST, SECOND, Layout
from lab.node.namespaces import INSIDE
from lab.settings import Settings
from tests.lab.small_servers import CLAIM, SERVE, pod_spec, shell, start_pod

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(INSIDE not in os.environ, reason="only the embedded lab adds a node to itself"),
]

_STATE = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: state}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


@pytest.fixture(scope="module")
def node(session: Session) -> Iterator[SecondNode]:
    """Give a second node to all tests of this file."""
    with second_node(session, Layout(Settings.from_environment().state), images=("kafka",)) as node:
        yield node


def _ask(kubectl: Kubectl, namespace: str, host: str, port: int) -> str:
    """Give the page of a server as the pod `client` gets it."""
    return shell(
        kubectl, namespace, "client", f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 {host} {port} | tail -n 1"
    )


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(("here", "there"), [(FIRST.name, SECOND.name), (SECOND.name, FIRST.name)])
def test_pods_of_both_nodes_reach_each_other_by_address_and_by_service(
    kubectl: Kubectl, namespace: str, here: str, there: str
) -> None:
    server = start_pod(kubectl, namespace, "server", f"  nodeName: {there}\n{pod_spec()}")
    client = start_pod(kubectl, namespace, "client", f"  nodeName: {here}\n{pod_spec()}")
    assert server.rpartition(".")[0] != client.rpartition(".")[0]
    kubectl.run("expose", "pod", "server", "--namespace", namespace, "--port=80", "--target-port=8080")
    assert _ask(kubectl, namespace, server, 8080) == "server"
    # Nothing between the nodes changes the sender's address.
    assert client in kubectl.run("logs", "server", "--namespace", namespace)
    name = f"server.{namespace}.svc.cluster.local"
    wait_until("the Service leads to the other node", lambda: _ask(kubectl, namespace, name, 80) == "server", 20)


def test_a_pod_of_the_second_node_reaches_the_broker_and_the_api_server(
    kubectl: Kubectl, namespace: str, node: SecondNode
) -> None:
    start_pod(kubectl, namespace, "client", f"  nodeName: {node.name}\n{pod_spec()}")
    for target in ("kafka-0.kafka.kafka.svc.cluster.local 9092", "kafka.kafka.svc 9092", "kubernetes.default.svc 443"):
        assert shell(kubectl, namespace, "client", f"nc -w 5 {target} </dev/null && echo open") == "open"


def test_the_log_of_a_pod_of_the_second_node_can_be_read(kubectl: Kubectl, namespace: str, node: SecondNode) -> None:
    speak = f"echo said on $(hostname) && {SERVE}"
    start_pod(kubectl, namespace, "speaker", f"  nodeName: {node.name}\n{pod_spec(command=speak)}")
    assert kubectl.run("logs", "speaker", "--namespace", namespace).strip() == "said on speaker"


def test_a_drained_pod_moves_to_the_first_node_and_finds_what_it_wrote(
    kubectl: Kubectl, namespace: str, node: SecondNode
) -> None:
    kubectl.run("apply", "--namespace", namespace, "--filename=-", stdin=_STATE)
    spec = f"""
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: writer}}
spec:
  serviceName: writer
  selector: {{matchLabels: {{app: writer}}}}
  template:
    metadata: {{labels: {{app: writer}}}}
    spec:
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              preference:
                matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [{node.name}]}}]
{pod_spec(CLAIM).replace(chr(10), chr(10) + "    ")}
"""
    kubectl.run("apply", "--namespace", namespace, "--filename=-", stdin=spec)
    kubectl.wait_for_rollout(namespace, "statefulset/writer")
    assert kubectl.json("get", "pod", "writer-0", "--namespace", namespace)["spec"]["nodeName"] == node.name
    try:
        node.drain()
        kubectl.wait_for_rollout(namespace, "statefulset/writer")
        wait_until("the pod on the first node", lambda: _node_of(kubectl, namespace, "writer-0") == FIRST.name, 60)
        kubectl.run("wait", "--namespace", namespace, "pod/writer-0", "--for=condition=Ready", "--timeout=60s")
        assert shell(kubectl, namespace, "writer-0", "cat /data/index.html").split() == ["writer-0", "writer-0"]
    finally:
        kubectl.run("uncordon", node.name)


def _node_of(kubectl: Kubectl, namespace: str, pod: str) -> str:
    return str(kubectl.json("get", "pod", pod, "--namespace", namespace)["spec"].get("nodeName"))
