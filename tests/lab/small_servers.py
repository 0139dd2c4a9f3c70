"""Pods that serve one page and can be asked for it: the broker's image has BusyBox, and `lab` has it on every node."""

import json

from lab.clusters.kubectl import Kubectl
from lab.settings import Versions

_CONTAINERS = """
  terminationGracePeriodSeconds: 1
  automountServiceAccountToken: false
  securityContext: {{runAsNonRoot: true, runAsUser: 10009, runAsGroup: 10009, fsGroup: 10010}}
  containers:
    - name: main
      image: localhost/streamapp/kafka:{broker}
      command: [sh, -c, {command}]
      ports: [{{containerPort: 8080}}]
      readinessProbe: {{tcpSocket: {{port: 8080}}, periodSeconds: 1}}
      volumeMounts: [{{name: data, mountPath: /data}}]
  volumes: [{{name: data, {volume}}}]
"""
NO_VOLUME = "emptyDir: {}"
CLAIM = "persistentVolumeClaim: {claimName: state}"
# Each start leaves a line in the volume, which is what the server gives to its clients.
SERVE = "hostname >> /data/index.html && httpd -fvp 8080 -h /data"


def pod_spec(volume: str = NO_VOLUME, command: str = SERVE) -> str:
    return _CONTAINERS.format(volume=volume, command=json.dumps(command), broker=Versions.read().broker)


def start_pod(kubectl: Kubectl, namespace: str, name: str, spec: str) -> str:
    """Start a pod and give its address once it is ready."""
    manifest = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: {name}}}}}\nspec:\n{spec}"
    kubectl.run("apply", "--namespace", namespace, "--filename=-", stdin=manifest)
    kubectl.run("wait", "--namespace", namespace, f"pod/{name}", "--for=condition=Ready", "--timeout=60s")
    return str(kubectl.json("get", "pod", name, "--namespace", namespace)["status"]["podIP"])


def shell(kubectl: Kubectl, namespace: str, pod: str, command: str) -> str:
    return kubectl.run("exec", "--namespace", namespace, pod, "--", "sh", "-c", command).strip()
