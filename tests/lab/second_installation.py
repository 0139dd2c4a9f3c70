"""A second installation of the operator on the cluster, with another value of `installation` and namespaces of its own.

One replica, so that the process that leads after a restart has never listed anything before. All that it has in the
cluster bears its own name; the definition stays the first installation's.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lab.clusters.helm import Helm
from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios.operator_deployment import CHART, lab_values
from streamapp.api.names import OPERATOR_LABEL

NAME = "second"
"""Of the installation and of its Helm release."""
NAMESPACE = "t-second-operator"
_FULL_NAME = f"{NAME}-streamapp-operator"
_DEPLOYMENT = f"deployment/{_FULL_NAME}"
_OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields")


@dataclass(frozen=True)
class SecondInstallation:
    """The one that runs."""

    kubectl: Kubectl

    def restart(self) -> None:
        """Replace its process; return when another one leads."""
        before = self._holder()
        self.kubectl.run("rollout", "restart", "--namespace", NAMESPACE, _DEPLOYMENT)
        self.kubectl.wait_for_rollout(NAMESPACE, _DEPLOYMENT)
        wait_until("another process of the second installation leads", lambda: self._holder() not in {"", before}, 60)

    @contextmanager
    def without_rights_in(self, namespace: str) -> Iterator[None]:
        """Take its rights in a namespace away, and give them back when the block is left."""
        target = (f"rolebinding/{_FULL_NAME}", "--namespace", namespace)
        binding: dict[str, Any] = self.kubectl.json("get", *target)
        for field in _OF_THE_SERVER:
            binding["metadata"].pop(field, None)
        self.kubectl.run("delete", *target)
        try:
            yield
        finally:
            self.kubectl.run("create", "--filename=-", stdin=json.dumps(binding))

    def _holder(self) -> str:
        lease = ("lease", _FULL_NAME, "--namespace", NAMESPACE, "--ignore-not-found")
        return self.kubectl.run("get", *lease, "--output=jsonpath={.spec.holderIdentity}")


@contextmanager
def second_installation(kubectl: Kubectl, *namespaces: str) -> Iterator[SecondInstallation]:
    """Run it for StreamApps of these namespaces, which must be there, until the block is left."""
    helm = Helm(kubectl.session)
    _delete_namespace(kubectl)
    kubectl.run("create", "namespace", NAMESPACE)
    own = {"installation": NAME, "replicas": 1, "crds": {"enabled": False}, "uninstall": {"prepare": False}}
    try:
        helm.install(NAME, CHART, NAMESPACE, {**lab_values(namespaces), **own})
        kubectl.wait_for_rollout(NAMESPACE, _DEPLOYMENT)
        yield SecondInstallation(kubectl)
    finally:
        helm.run("uninstall", NAME, f"--namespace={NAMESPACE}", "--ignore-not-found", "--wait", "--timeout=180s")
        _delete_namespace(kubectl)


def labelled(resource: dict[str, Any]) -> dict[str, Any]:
    """A StreamApp that names this installation as the one that it belongs to."""
    return {**resource, "metadata": {**resource["metadata"], "labels": {OPERATOR_LABEL: NAME}}}


def _delete_namespace(kubectl: Kubectl) -> None:
    kubectl.run("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout_seconds=180)
