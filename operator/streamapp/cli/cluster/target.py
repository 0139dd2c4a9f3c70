"""The cluster and the namespace that the command line names. Imports nothing heavy."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A cluster and a namespace; a field is None if the command line does not name it."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    act_as: str = ""
    """User to act as; empty: as the kubeconfig says."""
    act_as_groups: tuple[str, ...] = ()
    act_as_uid: str = ""
