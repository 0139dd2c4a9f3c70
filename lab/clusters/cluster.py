"""What the commands and scenarios may ask of a cluster, whichever it is."""

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

EXTERNAL_BOOTSTRAP = "localhost:19094"
"""Where a broker outside of the embedded lab is reached: its listener EXTERNAL is advertised there."""
UP_ALREADY = ": up already"
"""How the error of a second `up` ends."""
SESSION = "STREAMAPP_LAB_SESSION"
"""Set inside a session to that session's `KUBECONFIG`: whoever changes the one and not the other has left it.

The embedded lab has `lab.node.namespaces.INSIDE` instead: no packet leaves its network, whatever KUBECONFIG says.
"""


@dataclass(frozen=True)
class Session:
    """How to run a command so that kubectl and the broker's clients reach the cluster."""

    prefix: tuple[str, ...]
    """Words before the command; empty where no namespaces are entered."""
    environment: dict[str, str]
    """Whole environment, with `KUBECONFIG` and `KAFKA_BOOTSTRAP`."""

    def run(self, *command: str, stdin: str | None, timeout_seconds: float) -> subprocess.CompletedProcess[str]:
        """Run a command in it to its end, whatever its exit code; raises what `subprocess.run` does."""
        return subprocess.run(
            (*self.prefix, *command),
            input=stdin,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_seconds,
        )


def session_environment(environment: Mapping[str, str], kubeconfig: str) -> dict[str, str]:
    """Give the environment of a session outside of the embedded lab, over that of the caller."""
    return {**environment, "KUBECONFIG": kubeconfig, "KAFKA_BOOTSTRAP": EXTERNAL_BOOTSTRAP, SESSION: kubeconfig}


def is_session(environment: Mapping[str, str]) -> bool:
    """Say whether this is the environment of such a session, with the KUBECONFIG that it was made for."""
    return SESSION in environment and environment.get("KUBECONFIG") == environment[SESSION]


class Cluster(Protocol):
    """A Kubernetes that can be brought up with a broker in it."""

    @property
    def name(self) -> str:
        """The word by which `CLUSTER` chooses it."""

    def build(self) -> None:
        """Build what `up` needs without starting anything; where there is nothing to build, say so."""

    def up(self) -> None:
        """Build what is missing, start the cluster, deploy the broker.

        If it is up already: LabError whose `what` ends with `UP_ALREADY`.
        """

    def ensure_up(self) -> None:
        """Do what `up` does, unless it is up; images are brought up to date either way."""

    def down(self) -> None:
        """Remove it, or what the lab put into it; nothing to do is no error."""

    def session(self) -> AbstractContextManager[Session]:
        """Give the way in, valid inside the `with`; LabError if the cluster is not up."""

    def skipped(self) -> Sequence[str]:
        """Say what cannot be exercised on this cluster, as sentences."""
