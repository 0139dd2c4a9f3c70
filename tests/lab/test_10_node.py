"""The node is a whole Kubernetes: every part does its work, seen from a user's side."""

import json
import os
import socket
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from lab.clusters.kubectl import Kubectl, wait_until
from lab.node.layout import FIRST, Layout
from lab.node.namespaces import INSIDE
from lab.settings import Settings, Versions

pytestmark = [pytest.mark.lab]
embedded_only = pytest.mark.skipif(INSIDE not in os.environ, reason="parts and addresses of the embedded lab")

# The broker's image is on every cluster of the lab. Its base is a public one or the lab's own, so its pods use `sh` and
# `java` alone.
_POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  automountServiceAccountToken: false
  securityContext: {{runAsNonRoot: true, runAsUser: 10009, runAsGroup: 10009, fsGroup: 10010}}
  containers:
    - name: main
      image: localhost/streamapp/kafka:{broker}
      imagePullPolicy: IfNotPresent
      command: [sh, -c, {command}]
      volumeMounts: [{{name: data, mountPath: /data}}]
  volumes:
    - {volume}
"""
# A real client's exchange with the broker at an address that the shell puts in; prints one line.
_ASK_BROKER = (
    "java -Xmx64m -XX:+UseSerialGC -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp '/opt/kafka/lib/*' "
    "kafka.admin.ConfigCommand --describe --entity-type brokers --entity-name 1 --bootstrap-server "
)
_BROKER_ANSWERED = "Dynamic configs for broker 1 are:"


def _pod(name: str, command: str, volume: str = "{name: data, emptyDir: {}}") -> str:
    return _POD.format(name=name, command=json.dumps(command), volume=volume, broker=Versions.read().broker)


def _phase(kubectl: Kubectl, namespace: str, pod: str) -> str:
    return str(kubectl.json("get", "pod", pod, "--namespace", namespace)["status"].get("phase"))


def _output(kubectl: Kubectl, namespace: str, pod: str) -> str:
    def ended() -> bool:
        return _phase(kubectl, namespace, pod) in {"Succeeded", "Failed"}

    wait_until(f"pod {pod} ended", ended, 90)
    log = kubectl.run("logs", pod, "--namespace", namespace)
    assert _phase(kubectl, namespace, pod) == "Succeeded", log
    return log


def test_a_pod_without_rights_writes_to_a_dynamic_volume_that_outlives_it(kubectl: Kubectl, namespace: str) -> None:
    claim = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: state}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
    volume = "{name: data, persistentVolumeClaim: {claimName: state}}"
    kubectl.run("apply", "--namespace", namespace, "--filename=-", stdin=claim)
    # The group of the volume is what lets this user write at all: it is neither root nor the folder's owner.
    writer = _pod("writer", "echo written > /data/file && echo done", volume)
    kubectl.run("apply", "--namespace", namespace, "--filename=-", stdin=writer)
    assert _output(kubectl, namespace, "writer").strip() == "done"
    kubectl.run("delete", "pod", "writer", "--namespace", namespace)
    reader = _pod("reader", "read -r line < /data/file && echo $line", volume)
    kubectl.run("apply", "--namespace", namespace, "--filename=-", stdin=reader)
    assert _output(kubectl, namespace, "reader").strip() == "written"


@pytest.mark.parametrize("name", ["kafka-0.kafka.kafka.svc.cluster.local", "kafka.kafka.svc"])
def test_names_of_single_pods_and_of_services_resolve_inside_pods(kubectl: Kubectl, namespace: str, name: str) -> None:
    caller = _pod("caller", f"{_ASK_BROKER} {name}:9092")
    kubectl.run("apply", "--namespace", namespace, "--filename=-", stdin=caller)
    assert _output(kubectl, namespace, "caller").strip() == _BROKER_ANSWERED


@pytest.fixture
def broker_behind_an_address(kubectl: Kubectl) -> Iterator[str]:
    """Give a Service with an address of its own before the broker's pod, beside the headless one that clients use."""
    service = """
apiVersion: v1
kind: Service
metadata: {name: t-address, namespace: kafka}
spec: {selector: {app.kubernetes.io/name: kafka}, ports: [{port: 9092}]}
"""
    kubectl.apply(service)
    yield str(kubectl.json("get", "service", "t-address", "--namespace=kafka")["spec"]["clusterIP"])
    kubectl.run("delete", "service", "t-address", "--namespace=kafka")


def test_a_service_address_leads_from_one_pod_to_another_of_the_same_node(
    kubectl: Kubectl, namespace: str, broker_behind_an_address: str
) -> None:
    # The address exists only in kube-proxy's rules, and the answer comes over the bridge alone: unless the kernel shows
    # bridged packets to these rules (br_netfilter), the caller gets it from an address that it never called.
    caller = _pod("caller", f"{_ASK_BROKER} {broker_behind_an_address}:9092")
    kubectl.run("apply", "--namespace", namespace, "--filename=-", stdin=caller)
    assert _output(kubectl, namespace, "caller").strip() == _BROKER_ANSWERED


def test_the_node_and_its_pods_have_cpu_and_memory_figures(kubectl: Kubectl) -> None:
    registered = kubectl.run("get", "apiservice", "v1beta1.metrics.k8s.io", "--ignore-not-found", "--output=name")
    if INSIDE not in os.environ and not registered:
        pytest.skip("this cluster has no metrics API: kind brings none, nor need a cluster of one's own")

    def measured() -> bool:
        answer = json.loads(kubectl.run("get", "--raw=/apis/metrics.k8s.io/v1beta1/namespaces/kafka/pods"))
        return any(c["usage"]["memory"] != "0" for pod in answer["items"] for c in pod["containers"])

    wait_until("figures of the broker's pod", measured, 60, interval_seconds=2)


def test_a_restricted_namespace_refuses_a_privileged_pod(kubectl: Kubectl) -> None:
    privileged = """
apiVersion: v1
kind: Pod
metadata: {name: refused, namespace: kafka}
spec: {containers: [{name: main, image: none, securityContext: {privileged: true}}]}
"""
    with pytest.raises(Exception, match="violates PodSecurity"):
        kubectl.run("apply", "--filename=-", stdin=privileged)


@embedded_only
def test_the_audit_log_names_who_did_what(kubectl: Kubectl, namespace: str) -> None:
    # The log outlives tests of this name, so the request is for something that nobody asked for before.
    unique = f"audited-{uuid.uuid4().hex}"
    account = f"system:serviceaccount:{namespace}:default"
    kubectl.run(
        *("get", "configmap", unique, "--namespace", namespace, "--ignore-not-found"),
        *(f"--as={account}", "--as-group=system:masters"),
    )
    log = Layout(Settings.from_environment().state).audit_log

    def written() -> bool:
        lines = (line for line in log.read_text().splitlines() if unique in line)
        found = [json.loads(line) for line in lines]
        return [(each["verb"], each["objectRef"]["name"], each["impersonatedUser"]["username"]) for each in found] == [
            ("get", unique, account)
        ]

    wait_until("the request in the audit log", written, 20)


@embedded_only
def test_the_gateway_keeps_its_hardware_address_while_pods_come_and_go() -> None:
    # The broker's pod came before: a bridge without an address of its own would have taken that of the pod's link.
    (bridge,) = json.loads(subprocess.check_output(["ip", "-json", "link", "show", "cni0"]))
    assert bridge["address"] == FIRST.mac


@embedded_only
def test_no_packet_can_leave_the_lab() -> None:
    # Asked of the kernel: /sys shows the namespace in which it was mounted.
    names = sorted(name for _, name in socket.if_nameindex() if not name.startswith("veth"))
    assert names == ["cni0", "lo"]
