"""kind, where Docker is: the same images and manifests in a cluster of containers.

The user's own kubeconfig is never read or written: every session has a file of its own.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab.build.plan import build_for_docker
from lab.clusters import broker
from lab.clusters.cluster import UP_ALREADY, Session, session_environment
from lab.clusters.kubectl import Kubectl
from lab.errors import LabError
from lab.settings import LAB, Settings
from lab.terminal import step

_CLUSTER = "streamapp-lab"


class KindCluster:
    """A kind cluster named `streamapp-lab`, made from `lab/kind.yaml`."""

    name = "kind"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def build(self) -> None:
        """Build the images with Docker, without starting anything; the programs come with kind's own node image."""
        check_docker(os.environ.get("PATH", ""))
        build_for_docker(self._settings)

    def up(self) -> None:
        """Create the cluster, load the images, deploy the broker."""
        check_docker(os.environ.get("PATH", ""))
        if self._exists():
            raise LabError(
                f"kind cluster {_CLUSTER}{UP_ALREADY}",
                "`kind get clusters` lists it",
                "use it, or remove it first: `CLUSTER=kind python -m lab down`",
            )
        with step("create the kind cluster"), _fresh_kubeconfig() as kubeconfig:
            _run(
                *("kind", "create", "cluster", "--config", str(LAB / "kind.yaml"), "--kubeconfig", str(kubeconfig)),
                *("--image", self._settings.versions.kind_node, "--wait", "120s"),
            )
        self._fill()

    def ensure_up(self) -> None:
        """Create the cluster unless it is there, and load the images either way."""
        check_docker(os.environ.get("PATH", ""))
        if self._exists():
            self._fill()
        else:
            self.up()

    def down(self) -> None:
        """Delete the cluster; none there is no error."""
        check_docker(os.environ.get("PATH", ""))
        with _fresh_kubeconfig() as kubeconfig:
            _run("kind", "delete", "cluster", "--name", _CLUSTER, "--kubeconfig", str(kubeconfig))

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Give a session with a kubeconfig of its own."""
        check_docker(os.environ.get("PATH", ""))
        if not self._exists():
            raise LabError(
                f"kind cluster {_CLUSTER}: not up", "`kind get clusters` does not list it", "CLUSTER=kind make lab-up"
            )
        with _fresh_kubeconfig() as kubeconfig:
            kubeconfig.write_text(_run("kind", "get", "kubeconfig", "--name", _CLUSTER))
            yield Session((), session_environment(os.environ, str(kubeconfig)))

    def skipped(self) -> Sequence[str]:
        """Say what this cluster lacks."""
        return ("CPU metrics: kind brings no metrics-server, so an HPA on CPU needs one installed",)

    def _exists(self) -> bool:
        return _CLUSTER in _run("kind", "get", "clusters").split()

    def _fill(self) -> None:
        tags = build_for_docker(self._settings)
        with step("load images into kind"):
            _run("kind", "load", "docker-image", "--name", _CLUSTER, *tags)
        with self.session() as session, step("broker ready"):
            broker.deploy(Kubectl(session))


@contextmanager
def _fresh_kubeconfig() -> Iterator[Path]:
    """Give an empty file that only this user may read, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="streamapp-kind-") as folder:
        kubeconfig = Path(folder, "kubeconfig")
        kubeconfig.touch(mode=0o600)
        yield kubeconfig


def check_docker(path: str) -> None:
    """Refuse where kind, kubectl or a Docker daemon is missing, naming which."""
    missing = [name for name in ("docker", "kind", "kubectl") if not shutil.which(name, path=path)]
    if missing:
        raise LabError(
            f"CLUSTER=kind: {', '.join(missing)} not found",
            "kind runs its nodes as Docker containers",
            "install what is missing, or use the embedded lab: CLUSTER=embedded",
        )
    # The rest of the environment says which daemon: DOCKER_HOST, DOCKER_CONTEXT, HOME.
    environment = {**os.environ, "PATH": path}
    answer = subprocess.run(("docker", "info"), capture_output=True, text=True, check=False, env=environment)
    if answer.returncode:
        raise LabError(
            "CLUSTER=kind: no Docker daemon answers",
            answer.stderr.strip(),
            "start Docker, or use the embedded lab: CLUSTER=embedded",
        )


def _run(*command: str) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise LabError(
            f"`{' '.join(command)}`: failed",
            ran.stderr.strip() or f"exit code {ran.returncode}",
            "look at `docker ps -a` and `kind export logs`",
        )
    return ran.stdout
