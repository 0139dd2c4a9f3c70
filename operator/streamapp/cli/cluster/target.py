"""The cluster and the namespace that the command line names. Imports nothing heavy."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Choice:
    """What the kubeconfig said at the first look of a command.

    Another terminal can switch context or namespace while a question waits for its answer, or a screen goes on. The
    command must not go on elsewhere.
    """

    context: str | None = None
    """None: it has none, as in a pod."""
    namespace: str = ""
    server: str = ""
    """Empty before the first look."""


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
    choice: Choice = field(default_factory=Choice, compare=False, repr=False)
    """Of this command; no option gives it."""
