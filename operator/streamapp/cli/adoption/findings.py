"""What `adopt` and `disown` can find: each with its severity, what it means and what to do. Codes are API."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum

from streamapp.core.doctor.diagnoses import Severity


class Check(Enum):
    """The name is the code; the value is (severity, title, fix). An error stands in the way."""

    severity: Severity
    title: str
    fix: str

    def __init__(self, severity: Severity, title: str, fix: str) -> None:
        self.severity, self.title, self.fix = severity, title, fix

    # The StatefulSet and its pods.

    OwnerIsController = (
        Severity.ERROR,
        "Another controller owns the object.",
        "Remove it there; that controller would write the object again.",
    )
    ManagedElsewhere = (
        Severity.ERROR,
        "Helm or a GitOps tool manages the object.",
        "Take it out of there without deleting it (docs/how-to/adopt.md), or add --despite-owner.",
    )
    NoPods = (Severity.ERROR, "The StatefulSet has no replicas.", "Delete it, and create a StreamApp.")
    PodsUnwell = (
        Severity.ERROR,
        "Pods are missing, not ready, or belong to another owner.",
        "Wait until every pod is ready, or fix it.",
    )
    RolloutUnfinished = (
        Severity.ERROR,
        "A rollout has not reached all pods.",
        "Wait for its end: kubectl rollout status. Remove a partition.",
    )
    OrdinalsShifted = (
        Severity.ERROR,
        "The StatefulSet does not count its pods from 0.",
        "The operator cannot run it; create a StreamApp of another name.",
    )
    OldTemplateInPods = (
        Severity.WARNING,
        "Pods have an older template than the StatefulSet.",
        "No action needed: the StreamApp gets the newest one, and pods their restart by spec.rollout.",
    )

    # Volumes.

    SeveralClaims = (
        Severity.ERROR,
        "The StatefulSet has several volume claim templates.",
        "A StreamApp has one volume; create another StreamApp and let its state be restored.",
    )
    ClaimUnsupported = (
        Severity.ERROR,
        "The volume claim template has what a StreamApp cannot say.",
        "A new pod would get another volume; create another StreamApp and let its state be restored.",
    )
    ClaimNotMounted = (
        Severity.ERROR,
        "The application's container does not mount the volume once, whole and writable.",
        "Name the application's container with --container.",
    )
    VolumesDiffer = (
        Severity.ERROR,
        "A pod does not use the volume claim of its ordinal.",
        "Restart that pod with the StatefulSet's present template.",
    )
    ClaimsOwned = (
        Severity.ERROR,
        "Volume claims are deleted with the StatefulSet or by a scale-down.",
        "Set spec.persistentVolumeClaimRetentionPolicy to Retain in both fields (disown: spec.state.retention).",
    )
    NoVolume = (
        Severity.WARNING,
        "The StatefulSet has no volume claim.",
        "State is restored at every restart, and a pod has a new process ID then.",
    )
    StateDirAssumed = (
        Severity.NOTE,
        "The template does not name state.dir.",
        "The mount path is taken; name another folder with --state-dir.",
    )

    # The application.

    ApplicationIdUnknown = (
        Severity.ERROR,
        "The template does not say the application ID.",
        "Name it: --application-id ID.",
    )
    BrokersUnknown = (
        Severity.ERROR,
        "The template does not say the brokers.",
        "Name them: --bootstrap-servers HOST:PORT.",
    )
    CredentialsUnknown = (
        Severity.ERROR,
        "The application encrypts or authenticates, and the operator has no credentials.",
        "Name Secrets with the operator's own client properties: --kafka-config-secret NAME.",
    )
    StandbysUnknown = (
        Severity.WARNING,
        "The template does not ask for standbys.",
        "Set num.standby.replicas to 1, or enable the agent afterwards; until then scale-downs are held.",
    )

    # The StreamApp.

    ManifestInvalid = (
        Severity.ERROR,
        "The StreamApp would not be valid.",
        "Correct the StatefulSet, or write the StreamApp yourself and run the command again.",
    )
    StreamAppDiffers = (
        Severity.ERROR,
        "The StreamApp of this name does not fit the StatefulSet.",
        "Correct the StreamApp, or delete it and let the command make it.",
    )

    # What stands around it.

    ServiceInTheWay = (
        Severity.ERROR,
        "A Service has the name of the operator's headless Service.",
        "Make it anew under another name, and delete this one.",
    )
    ServiceNameDiffers = (
        Severity.WARNING,
        "The pods have their DNS names by another Service.",
        "Keep that Service. A pod that restarts has its DNS name by the Service of the StreamApp's name: change "
        "application.server first.",
    )
    BudgetInTheWay = (
        Severity.ERROR,
        "A PodDisruptionBudget selects the pods, or has the name of the operator's.",
        "Delete it right before: with two budgets for a pod every eviction fails. The operator makes its own.",
    )
    AutoscalerAims = (
        Severity.ERROR,
        "An autoscaler is aimed at the StatefulSet.",
        "Aim it at the StreamApp.",
    )
    AutoscalerWaits = (
        Severity.ERROR,
        "An autoscaler is aimed at the StreamApp.",
        "Delete it, or aim it at the StatefulSet: that removes pods without any check.",
    )
    VerticalAutoscalerEvicts = (
        Severity.ERROR,
        "A VerticalPodAutoscaler evicts the pods.",
        "Set its updateMode to Initial or Off.",
    )
    AutoscalersUnread = (
        Severity.ERROR,
        "It is unknown which autoscalers there are.",
        "Ask for the right to list them in this namespace, or add --despite-autoscaler if you know them.",
    )
    RightMissing = (
        Severity.ERROR,
        "You lack a right that the command needs.",
        "Ask for it; nothing was written.",
    )

    # What becomes of it.

    UpdateStrategyChanges = (
        Severity.NOTE,
        "The update strategy becomes OnDelete.",
        "No action needed: only the operator restarts pods then, by spec.rollout.",
    )
    PodManagementChanges = (
        Severity.NOTE,
        "The pod management policy becomes Parallel.",
        "No action needed: new pods start side by side.",
    )
    FieldsDropped = (
        Severity.NOTE,
        "The new StatefulSet does not have these fields and labels.",
        "No action needed, unless a monitor or another tool reads them.",
    )
    RestartsLater = (
        Severity.NOTE,
        "Pods keep their present template until you allow restarts.",
        "To have pods restart one by one when copies allow: spec.rollout.policy: WhenCaughtUp.",
    )

    # The way back.

    NotAdopted = (
        Severity.NOTE,
        "The StatefulSet does not belong to the StreamApp.",
        "No action needed: only what the adoption wrote is taken back.",
    )
    StepOpen = (
        Severity.ERROR,
        "The operator has a hold or a step open.",
        "Set the desired replicas to the current ones, and wait until it is closed.",
    )
    ReplicasDiffer = (
        Severity.ERROR,
        "Desired and current replicas differ.",
        "Set the desired replicas to the current ones.",
    )
    RestartsUnchecked = (
        Severity.NOTE,
        "The StatefulSet keeps OnDelete: no pod restarts by itself.",
        "Another update strategy restarts all pods, without any check of copies.",
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """One check that found something."""

    check: Check
    detail: str
    """Which object, and what of it."""
    command: str = ""
    """The command that fixes it."""

    @property
    def fix(self) -> str:
        """What to do."""
        return f"{self.check.fix} {self.command}".strip()

    @property
    def document(self) -> dict[str, str]:
        """For programs."""
        return {
            "code": self.check.name,
            "severity": self.check.severity.value,
            "title": self.check.title,
            "detail": self.detail,
            "fix": self.fix,
        }


def obstacles(findings: Iterable[Finding], despite: AbstractSet[Check]) -> tuple[Finding, ...]:
    """Those that stand in the way.

    Args:
        findings: All of them.
        despite: The checks that the user overrides: `ManagedElsewhere`, `AutoscalersUnread`.
    """
    return tuple(one for one in findings if one.check.severity is Severity.ERROR and one.check not in despite)
