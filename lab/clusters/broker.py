"""Deploys the broker, with the same manifest on every cluster."""

from lab.clusters.kubectl import Kubectl
from lab.clusters.ownership import require_own
from lab.settings import LAB

NAMESPACE = "kafka"
IN_CLUSTER_BOOTSTRAP = "kafka.kafka.svc.cluster.local:9092"


def deploy(kubectl: Kubectl, *, restart: bool = False) -> None:
    """Apply the broker's manifest and wait until it serves; `restart` puts a new image of the same name to use.

    LabError, and nothing written, if its namespace is not the lab's.
    """
    require_own(kubectl, NAMESPACE)
    kubectl.apply(LAB / "manifests" / "kafka.yaml")
    if restart and kubectl.run("get", "pod", "kafka-0", "--namespace", NAMESPACE, "--ignore-not-found"):
        kubectl.run("rollout", "restart", "--namespace", NAMESPACE, "statefulset/kafka")
    kubectl.wait_for_rollout(NAMESPACE, "statefulset/kafka")
