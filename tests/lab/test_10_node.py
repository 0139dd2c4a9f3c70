"""The node is a whole Kubernetes: every part does its work, seen from a user's side."""

import json
import os
import socket

import pytest

from lab.clusters.kubectl import Kubectl, wait_until
from lab.node.layout import Layout
from lab.node.namespaces import INSIDE
from lab.settings import Settings, Versions

pytestmark = pytest.mark.lab
embedded_only = pytest.mark.skipif(INSIDE not in os.environ, reason="parts and addresses of the embedded lab")

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
    writer = _pod("writer", "id -u > /data/who && stat -c %g /data", volume)
    kubectl.run("apply", "--namespace", namespace, "--filename=-", stdin=writer)
    assert _output(kubectl, namespace, "writer").strip() == "10010"
    kubectl.run("delete", "pod", "writer", "--namespace", namespace)
    kubectl.run("apply", "--namespace", namespace, "--filename=-", stdin=_pod("reader", "cat /data/who", volume))
    assert _output(kubectl, namespace, "reader").strip() == "10009"


def test_names_of_services_and_of_single_pods_resolve_inside_pods(kubectl: Kubectl, namespace: str) -> None:
    command = "nslookup kafka-0.kafka.kafka.svc.cluster.local && nslookup kubernetes.default.svc.cluster.local"
    kubectl.run("apply", "--namespace", namespace, "--filename=-", stdin=_pod("resolver", command))
    found = _output(kubectl, namespace, "resolver")
    assert "10.96.0.1" in found
    assert kubectl.json("get", "pod", "kafka-0", "--namespace=kafka")["status"]["podIP"] in found


def test_a_service_address_leads_to_its_pod(kubectl: Kubectl, namespace: str) -> None:
    # The API server's own Service has an address that exists only in kube-proxy's rules.
    command = "nc -w 5 kubernetes.default.svc 443 </dev/null && echo connected"
    kubectl.run("apply", "--namespace", namespace, "--filename=-", stdin=_pod("caller", command))
    assert _output(kubectl, namespace, "caller").strip() == "connected"


def test_the_node_and_its_pods_have_cpu_and_memory_figures(kubectl: Kubectl) -> None:
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
    token = kubectl.run("create", "token", "default", "--namespace", namespace).strip()
    kubectl.run("get", "configmaps", "--namespace", namespace, f"--as=system:serviceaccount:{namespace}:default",
                "--as-group=system:masters")  # fmt: skip
    assert token
    log = Layout(Settings.from_environment().state).audit_log

    def written() -> bool:
        events = [json.loads(line) for line in log.read_text().splitlines()]
        return any(
            event["verb"] == "list"
            and event["objectRef"]["resource"] == "configmaps"
            and event["objectRef"].get("namespace") == namespace
            and event["impersonatedUser"]["username"] == f"system:serviceaccount:{namespace}:default"
            for event in events
            if "impersonatedUser" in event and "objectRef" in event
        )

    wait_until("the request in the audit log", written, 20)


@embedded_only
def test_no_packet_can_leave_the_lab() -> None:
    # Asked of the kernel: /sys shows the namespace in which it was mounted.
    names = sorted(name for _, name in socket.if_nameindex() if not name.startswith("veth"))
    assert names == ["cni0", "lo"]
