"""Which namespaces may use which application IDs: a list that the administrator gives.

Used by `reconcile.gather` for the StreamApp of a pass, and by `apps` for its rivals. The chart's policy asks the same
when a StreamApp is written; a policy judges no StreamApp that was there before it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Binding:
    """Application IDs of some namespaces."""

    pattern: str
    """An application ID; `*` stands for any characters."""
    namespaces: frozenset[str]

    @classmethod
    def read(cls, text: str) -> "Binding":
        """Read `pattern=namespace namespace`; ValueError for anything else."""
        pattern, separator, namespaces = text.partition("=")
        if not separator or not pattern.strip() or not namespaces.split() or set(pattern) & set("?["):
            raise ValueError(f"{text!r} must be an application ID, then =, then namespaces with spaces between them")
        return cls(pattern.strip(), frozenset(namespaces.split()))


@dataclass(frozen=True, slots=True)
class Bindings:
    """All of them; an application ID that no pattern has is free for every namespace."""

    all: tuple[Binding, ...] = ()

    @classmethod
    def read(cls, texts: Iterable[str]) -> "Bindings":
        """Read each."""
        return cls(tuple(map(Binding.read, texts)))

    def fault(self, namespace: str, application_id: str) -> str:
        """Why this namespace cannot use this application ID, as a sentence; empty if it can."""
        bound = [each for each in self.all if fnmatchcase(application_id, each.pattern)]
        if not bound or any(namespace in each.namespaces for each in bound):
            return ""
        names = ", ".join(sorted(frozenset().union(*(each.namespaces for each in bound))))
        return (
            f"spec.applicationId: {application_id} belongs to {names}; use another application ID, or ask the "
            "administrator (chart value applicationIds)"
        )


FREE = Bindings()
