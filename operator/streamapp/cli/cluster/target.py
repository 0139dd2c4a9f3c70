"""What the command line says about the cluster and the namespace. Imports nothing heavy."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Each is None where it was not said."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
