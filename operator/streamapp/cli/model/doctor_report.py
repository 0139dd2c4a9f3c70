"""The result of `doctor`, with its counts and its exit code. Pure values."""

from dataclasses import dataclass, field

from streamapp.api.http.messages import FindingTold
from streamapp.cli.errors import Exit
from streamapp.core.doctor.diagnoses import FindingKind, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCondition:
    """A condition of the last status, for a StreamApp that the operator gives no findings of."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPart:
    """The findings about the cluster, or about one StreamApp."""

    title: str
    facts: dict[str, str] = field(default_factory=dict)
    findings: tuple[FindingTold, ...]
    fine: tuple[str, ...]
    last_conditions: tuple[LastCondition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """The findings about the cluster and all StreamApps."""

    cluster: ReportPart
    apps: tuple[ReportPart, ...]

    @property
    def findings(self) -> tuple[FindingTold, ...]:
        """The findings of all parts."""
        return tuple(finding for part in (self.cluster, *self.apps) for finding in part.findings)

    def counts(self) -> dict[str, int]:
        """The number of findings of each severity or kind."""
        severities = [finding.severity for finding in self.findings if finding.kind == FindingKind.FOUND.value]
        return {
            "errors": severities.count(Severity.ERROR.value),
            "warnings": severities.count(Severity.WARNING.value),
            "notes": severities.count(Severity.NOTE.value),
            "unchecked": sum(1 for finding in self.findings if finding.kind == FindingKind.UNCHECKED.value),
            "unseen": sum(1 for finding in self.findings if finding.kind == FindingKind.UNSEEN.value),
            "fine": sum(len(part.fine) for part in (self.cluster, *self.apps)),
        }

    @property
    def code(self) -> Exit:
        """The exit code; what the operator can never see counts as fine, what it could not check does not."""
        counts = self.counts()
        if counts["errors"]:
            return Exit.NEEDS_ACTION
        return Exit.IN_PROGRESS if counts["warnings"] or counts["unchecked"] else Exit.FINE
