"""A cluster of the user's own: the current context of `KUBECONFIG`, only if the user put its name on the allow-list.

The lab deletes and scales things. A context is therefore used only when `STREAMAPP_LAB_CONTEXTS` names it; what was
checked is copied into a kubeconfig of the session's own, so that nobody who switches contexts meanwhile leads the lab
elsewhere; and only the namespaces that the lab made itself (`kafka`, `demo`) are written to.
The images must be where the cluster's nodes find them; nothing is built or pushed here.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab.clusters import broker
from lab.clusters.cluster import EXTERNAL_BOOTSTRAP, UP_ALREADY, Session, is_session, session_environment
from lab.clusters.kubectl import Kubectl
from lab.clusters.ownership import exists, require_own
from lab.errors import LabError
from lab.terminal import progress, step

ALLOWED = "STREAMAPP_LAB_CONTEXTS"
_FORWARD_DEADLINE_SECONDS = 20.0
_NAMESPACES = ("demo", broker.NAMESPACE)


class ContextCluster:
    """Whatever `kubectl config current-context` names, after the allow-list was asked."""

    name = "context"

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment

    def build(self) -> None:
        """Build nothing: a cluster of the user's own gets its images from where its nodes pull them."""
        progress.print("CLUSTER=context: nothing to build; its nodes need the images that the manifests name.")

    def up(self) -> None:
        """Deploy the broker; the cluster itself is the user's."""
        with self._pinned() as session:
            kubectl = Kubectl(session)
            require_own(kubectl, *_NAMESPACES)
            if exists(kubectl, broker.NAMESPACE):
                raise LabError(
                    f"broker of the lab{UP_ALREADY}",
                    f"there is a namespace {broker.NAMESPACE} of an earlier `up`",
                    "use it (`CLUSTER=context python -m lab up --reuse`), "
                    "or remove it first (`CLUSTER=context python -m lab down`)",
                )
            self._deploy(kubectl)

    def ensure_up(self) -> None:
        """Deploy the broker, or bring one that is there up to date."""
        with self._pinned() as session:
            kubectl = Kubectl(session)
            require_own(kubectl, *_NAMESPACES)
            self._deploy(kubectl)

    def down(self) -> None:
        """Delete the lab's own namespaces; LabError, and nothing deleted, if one of them is not the lab's."""
        with self._pinned() as session:
            kubectl = Kubectl(session)
            require_own(kubectl, *_NAMESPACES)
            with step(f"delete namespaces {', '.join(_NAMESPACES)}"):
                kubectl.run("delete", "namespace", "--ignore-not-found", *_NAMESPACES, timeout_seconds=300)

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Forward the broker's outside listener to this machine for as long as the session lasts.

        A session inside of another uses the port that the outer one forwards.
        """
        with self._pinned() as session:
            if is_session(self._environment):
                yield session
                return
            with _forwarded(session):
                yield session

    def skipped(self) -> Sequence[str]:
        """Say what is not the lab's to offer here."""
        return ("node parts: they are the cluster's own, `status` and `logs` do not show them",)

    @staticmethod
    def _deploy(kubectl: Kubectl) -> None:
        with step("broker ready"):
            broker.deploy(kubectl)

    @contextmanager
    def _pinned(self) -> Iterator[Session]:
        """Ask the allow-list, then hold on to the context that was checked: a kubeconfig with it and nothing else."""
        kubectl = Kubectl(Session((), dict(self._environment)))
        context = kubectl.run("config", "current-context").strip()
        check_allowed(context, self._environment.get(ALLOWED, ""))
        content = kubectl.run("config", "view", "--minify", "--flatten", "--raw", f"--context={context}")
        with tempfile.TemporaryDirectory(prefix="streamapp-context-") as folder:
            kubeconfig = Path(folder, "kubeconfig")
            kubeconfig.touch(mode=0o600)
            kubeconfig.write_text(content)
            yield Session((), session_environment(self._environment, str(kubeconfig)))


def check_allowed(context: str, allowed: str) -> None:
    """Refuse a context that the user did not name: a forgotten `KUBECONFIG` must not reach a real cluster."""
    if context not in [name.strip() for name in allowed.split(",") if name.strip()]:
        raise LabError(
            f"context {context}: not on the allow-list",
            f"{ALLOWED} is {allowed!r}; the lab scales and deletes, so it touches only contexts that are named there",
            f"if this cluster is meant for it: export {ALLOWED}={context}",
        )


@contextmanager
def _forwarded(session: Session) -> Iterator[None]:
    """Run `kubectl port-forward` to the broker's outside listener, on the port that it advertises."""
    port = int(EXTERNAL_BOOTSTRAP.rpartition(":")[2])
    require_free(port)
    kubectl = shutil.which("kubectl", path=session.environment.get("PATH", "")) or "kubectl"
    command = (kubectl, "port-forward", "--namespace", broker.NAMESPACE, "service/kafka-external", f"{port}:9094")
    with tempfile.TemporaryDirectory(prefix="streamapp-forward-") as folder:
        said, errors = Path(folder, "said"), Path(folder, "errors")
        with said.open("wb") as out, errors.open("wb") as error:
            forward = subprocess.Popen(command, env=session.environment, stdout=out, stderr=error)
        try:
            _wait_for_forward(forward, said, errors, port)
            yield
        finally:
            forward.terminate()
            forward.wait()


def require_free(port: int) -> None:
    """Refuse a port of this machine that somebody listens on: clients would talk to them and not to the broker."""
    if taken := [address for address in ("127.0.0.1", "::1") if _answers(address, port)]:
        raise LabError(
            f"port {port} of this machine: in use",
            f"something listens on {' and '.join(taken)}, perhaps another session of the lab or its kind cluster; "
            f"the broker is advertised at {EXTERNAL_BOOTSTRAP}, so only kubectl may listen there",
            f"end it; `ss -ltnp 'sport = :{port}'` names it",
        )


def _wait_for_forward(forward: "subprocess.Popen[bytes]", said: Path, errors: Path, port: int) -> None:
    deadline = time.monotonic() + _FORWARD_DEADLINE_SECONDS
    while forward.poll() is None and time.monotonic() < deadline:
        announced = f"Forwarding from 127.0.0.1:{port}" in said.read_text()
        # Asked last: whoever answered, it was this kubectl only if it still runs.
        if announced and _answers("127.0.0.1", port) and forward.poll() is None:
            return
        time.sleep(0.1)
    raise LabError(
        "broker: not reachable from here",
        errors.read_text().strip() or f"kubectl forwards nothing within {_FORWARD_DEADLINE_SECONDS:.0f} s",
        "bring it up first: `CLUSTER=context python -m lab up`",
    )


def _answers(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=1):
            return True
    except OSError:
        return False
