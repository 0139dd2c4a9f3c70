"""What the commands and scenarios may ask of a cluster, whichever it is."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

EXTERNAL_BOOTSTRAP = "localhost:19094"
"""Where a broker outside of the embedded lab is reached: its listener EXTERNAL is advertised there."""


@dataclass(frozen=True)
class Session:
    """How to run a command so that kubectl and the broker's clients reach the cluster."""

    prefix: tuple[str, ...]
    """Words before the command; empty where no namespaces are entered."""
    environment: dict[str, str]
    """Whole environment, with `KUBECONFIG` and `KAFKA_BOOTSTRAP`."""


class Cluster(Protocol):
    """A Kubernetes that can be brought up with a broker in it."""

    @property
    def name(self) -> str:
        """The word by which `CLUSTER` chooses it."""

    def up(self) -> None:
        """Build what is missing, start the cluster, deploy the broker; LabError if it is up already."""

    def ensure_up(self) -> None:
        """Do what `up` does, unless it is up; images are brought up to date either way."""

    def down(self) -> None:
        """Remove it, or what the lab put into it; nothing to do is no error."""

    def session(self) -> AbstractContextManager[Session]:
        """Give the way in, valid inside the `with`; LabError if the cluster is not up."""

    def skipped(self) -> Sequence[str]:
        """Say what cannot be exercised on this cluster, as sentences."""
