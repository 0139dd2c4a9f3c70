"""What `doctor` has found, and what it counts: shown by `doctor_screen`, written by `documents`. Pure values."""

from dataclasses import dataclass, field

from streamapp.api.http.messages import FindingTold
from streamapp.cli.errors import Exit
from streamapp.core.doctor.diagnoses import Kind, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What was found about one thing."""

    title: str
    facts: dict[str, str] = field(default_factory=dict)
    findings: tuple[FindingTold, ...]
    fine: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything."""

    cluster: Part
    apps: tuple[Part, ...]

    @property
    def findings(self) -> tuple[FindingTold, ...]:
        """Of all parts."""
        return tuple(finding for part in (self.cluster, *self.apps) for finding in part.findings)

    def counts(self) -> dict[str, int]:
        """How many there are of each sort."""
        found = [one.severity for one in self.findings if one.kind == Kind.FOUND.value]
        return {
            "errors": found.count(Severity.ERROR.value),
            "warnings": found.count(Severity.WARNING.value),
            "notes": found.count(Severity.NOTE.value),
            "unchecked": sum(1 for one in self.findings if one.kind == Kind.UNCHECKED.value),
            "unseen": sum(1 for one in self.findings if one.kind == Kind.UNSEEN.value),
            "fine": sum(len(part.fine) for part in (self.cluster, *self.apps)),
        }

    @property
    def code(self) -> Exit:
        """The exit code that says how it is; what nothing there could tell counts as fine, and is counted."""
        counts = self.counts()
        if counts["errors"]:
            return Exit.NEEDS_SOMEBODY
        return Exit.GOES_ON if counts["warnings"] or counts["unchecked"] else Exit.FINE
