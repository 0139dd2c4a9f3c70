"""A cluster of the user's own: the current context of `KUBECONFIG`, only if the user put its name on the allow-list.

The lab deletes and scales things. A context is therefore used only when `STREAMAPP_LAB_CONTEXTS` names it, and only
the namespaces of the lab (`kafka`, `demo`) are written to.
Images: with `STREAMAPP_LAB_REGISTRY` they are built and pushed by Docker; without it the cluster must have them.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from lab.clusters import broker
from lab.clusters.cluster import EXTERNAL_BOOTSTRAP, Session
from lab.clusters.kubectl import Kubectl
from lab.errors import LabError
from lab.settings import Settings
from lab.terminal import step

ALLOWED = "STREAMAPP_LAB_CONTEXTS"
_FORWARD_DEADLINE_SECONDS = 20.0
_NAMESPACES = ("demo", broker.NAMESPACE)


class ContextCluster:
    """Whatever `kubectl config current-context` names, after the allow-list was asked."""

    name = "context"

    def __init__(self, settings: Settings, environment: Mapping[str, str] = os.environ) -> None:
        self._settings = settings
        self._environment = environment

    def up(self) -> None:
        """Deploy the broker; the cluster itself is the user's."""
        kubectl = Kubectl(self._allowed())
        with step("broker ready"):
            broker.deploy(kubectl)

    def ensure_up(self) -> None:
        """Do the same as `up`: applying a manifest twice changes nothing."""
        self.up()

    def down(self) -> None:
        """Delete the lab's own namespaces."""
        kubectl = Kubectl(self._allowed())
        with step(f"delete namespaces {', '.join(_NAMESPACES)}"):
            kubectl.run("delete", "namespace", "--ignore-not-found", *_NAMESPACES, timeout_seconds=300)

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Forward the broker's outside listener to this machine for as long as the session lasts."""
        session = self._allowed()
        with _forwarded(session):
            yield session

    def skipped(self) -> Sequence[str]:
        """Say what is not the lab's to offer here."""
        return ("node parts: they are the cluster's own, `status` and `logs` do not show them",)

    def _allowed(self) -> Session:
        environment = {**self._environment, "KAFKA_BOOTSTRAP": EXTERNAL_BOOTSTRAP}
        session = Session((), environment)
        context = Kubectl(session).run("config", "current-context").strip()
        check_allowed(context, self._environment.get(ALLOWED, ""))
        return session


def check_allowed(context: str, allowed: str) -> None:
    """Refuse a context that the user did not name: a forgotten `KUBECONFIG` must not reach a real cluster."""
    if context not in [name.strip() for name in allowed.split(",")]:
        raise LabError(
            f"context {context}: not on the allow-list",
            f"{ALLOWED} is {allowed!r}; the lab scales and deletes, so it touches only contexts that are named there",
            f"if this cluster is meant for it: export {ALLOWED}={context}",
        )


@contextmanager
def _forwarded(session: Session) -> Iterator[None]:
    host, port = EXTERNAL_BOOTSTRAP.split(":")
    kubectl = shutil.which("kubectl", path=session.environment.get("PATH", "")) or "kubectl"
    command = (kubectl, "port-forward", "--namespace", broker.NAMESPACE, "service/kafka-external", f"{port}:9094")
    forward = subprocess.Popen(
        command, env=session.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + _FORWARD_DEADLINE_SECONDS
        while not _answers(host, int(port)):
            if forward.poll() is not None or time.monotonic() > deadline:
                forward.kill()
                raise LabError(
                    "broker: not reachable from here",
                    forward.communicate()[1].strip() or "the forwarded port does not answer",
                    "bring it up first: `CLUSTER=context python -m lab up`",
                )
            time.sleep(0.1)
        yield
    finally:
        forward.terminate()
        forward.communicate()


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False
