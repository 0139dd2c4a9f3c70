"""What can be wrong with an application, the operator or the cluster: every finding of `kubectl streamapp doctor`.

Codes are API: names do not change, and the operator's answers, the command line and `docs/diagnoses.md` use these same
texts. The part that changes from case to case (which pod, which topic, which value) is the finding's `detail`. Found by
`examine` from a snapshot, and by the command line from what the API server shows.
"""

from dataclasses import dataclass
from enum import Enum

from streamapp.core.facts.ids import Ordinal
from streamapp.core.reasons import Reason


class Severity(Enum):
    """How much it matters."""

    ERROR = "error"
    """Scaling stands still, or users of the application notice it."""
    WARNING = "warning"
    """It works, and will cost something."""
    NOTE = "note"
    """Worth knowing."""


class FindingKind(Enum):
    """What is said about a diagnosis."""

    FOUND = "Found"
    UNCHECKED = "Unchecked"
    """It could not be checked, though it can be: something did not answer, or a right is missing."""
    UNSEEN = "Unseen"
    """It cannot be checked the way things are set up: nothing there tells it."""


class FindingSource(Enum):
    """Where the evidence comes from."""

    SPEC = "StreamApp"
    KUBERNETES = "Kubernetes"
    BROKERS = "brokers"
    AGENTS = "agents"
    OPERATOR = "operator"


class Diagnosis(Enum):
    """The name is the code; the value is (severity, title, why it matters, how to fix it), or (severity, reason).

    A diagnosis of a reason has the reason's texts, and its own for why it matters where the reason has none.
    """

    severity: Severity
    title: str
    """What is the case, for a person, without the particulars."""
    why: str
    """Why it matters."""
    fix: str
    """What a person can do."""
    reason: Reason | None
    """The reason of a condition that means this diagnosis."""

    def __init__(self, severity: Severity, title: str | Reason, why: str = "", fix: str = "") -> None:
        self.severity = severity
        if isinstance(title, Reason):
            self.reason = title
            self.title, self.why, self.fix = title.row.fact, why or title.row.consequence, title.next_step
        else:
            self.reason = None
            self.title, self.why, self.fix = title, why, fix

    @classmethod
    def of(cls, reason: Reason) -> "Diagnosis":
        """The diagnosis of a reason that has one."""
        return next(diagnosis for diagnosis in cls if diagnosis.reason is reason)

    # The resource.

    InvalidSpec = Severity.ERROR, Reason.InvalidSpec
    ApplicationIdTaken = Severity.ERROR, Reason.ApplicationIdTaken
    ForeignStatefulSet = Severity.ERROR, Reason.ForeignStatefulSet
    Stalled = (
        Severity.ERROR,
        "The StreamApp is stalled.",
        "The operator makes no progress until a user acts.",
        "Follow the output of `kubectl streamapp explain`.",
    )
    Unanswered = (
        Severity.ERROR,
        "The operator has not processed this StreamApp.",
        "Changes by users and autoscalers wait.",
        "Check that the operator runs and watches this namespace, and check its log.",
    )
    ScalingUnsound = (
        Severity.WARNING,
        "The setup of autoscaling has a conflict.",
        "Two writers of the replicas undo each other's changes. A client that scales the StatefulSet removes pods with "
        "their state.",
        "Let one HorizontalPodAutoscaler or one user set the StreamApp's replicas, and no client the StatefulSet's.",
    )

    ScalerSeesNoGroup = (
        Severity.WARNING,
        "A trigger of KEDA finds its topics by the group's members, and fails for a group of the streams protocol.",
        "KEDA has no lag from it: the replicas stay as they are, or become those of the ScaledObject's `fallback`.",
        "Name the topic in the trigger's metadata (`topic`), one trigger for each.",
    )

    # Copies of state.

    NoCopies = (
        Severity.ERROR,
        "Stateful tasks have no standby, and there are no learners on demand.",
        "No scale-down is ever covered, so each is held until a user overrides it. If a pod is lost, its tasks stop "
        "until they are restored.",
        "Set `num.standby.replicas` to 1 or more, or `agent.enabled: true` with `learners.source: OnDemand`. With the "
        "streams protocol, set `streams.num.standby.replicas` of the group instead of the first.",
    )
    StandbysWithoutEffect = (
        Severity.WARNING,
        "The application asks for more standbys than its group has, and with the streams protocol the group counts.",
        "Tasks have fewer copies than the application's settings say.",
        "Set `streams.num.standby.replicas` of the group with kafka-configs.sh, or remove `num.standby.replicas` "
        "(docs/streams-protocol.md).",
    )
    LagLimitsDisagree = Severity.WARNING, Reason.RecoveryLagUnclear
    LagLimitUnbounded = Severity.ERROR, Reason.RecoveryLagUnbounded
    LearnerLimitWithoutEffect = (
        Severity.WARNING,
        "The limit `learners.maxAtOnce` does not bound what the application restores at once.",
        "It counts learners on demand by whole pods, at least one pod.",
        "Raise it to the stateful tasks of one pod, or set `streamapp.assignor.leaving.learners` in the application. "
        "Where standbys are the copies, remove it.",
    )
    TopologyUnknown = Severity.ERROR, Reason.TopologyUnknown

    # State on disk, and process identity.

    StateDirElsewhere = (
        Severity.ERROR,
        "`state.dir` is not the folder that the StreamApp names.",
        "State off the volume is lost with the pod and restored at every start. The process has a new identity at "
        "each start.",
        "Set `state.dir` to the folder that `spec.state` names, or `spec.state` to the application's folder.",
    )
    StateWithoutVolume = (
        Severity.WARNING,
        "The application keeps state on disk, and `spec.state` is not set.",
        "The state is lost with the pod and restored at every start.",
        "Set `spec.state`; this needs a new StreamApp.",
    )
    TaskDirectoriesEmptied = (
        Severity.WARNING,
        "Task directories were removed before the application started.",
        "`KafkaStreams#cleanUp()` deletes the state on the volume: every start restores it from the changelogs.",
        "Call `cleanUp()` only if a user asks for it, never at every start.",
    )
    IdentityUnstable = (
        Severity.ERROR,
        "A pod does not run with the process ID of its volume.",
        "The owner of its copies is unknown, so scale-downs are held.",
        "Check that `state.dir` is on the volume and that no volume was copied or swapped.",
    )
    MaxIdleTimeTooLong = Severity.WARNING, Reason.MaxIdleTimeTooLong

    # Starting and stopping.

    VolumeFull = Severity.ERROR, Reason.VolumeFull
    PodFails = (
        Severity.ERROR,
        "A pod does not run its application.",
        "Its tasks move to the other pods, or wait; no scale-down can be covered while it restarts.",
        "Read the log with `kubectl logs --previous` and the Events with `kubectl describe pod`, and fix the cause.",
    )
    GracePeriodShort = (
        Severity.WARNING,
        "The termination grace period is short.",
        "A close that is cut off writes no checkpoint (from Kafka Streams 4.3 on, it flushes nothing), so the next "
        "start restores.",
        "Set `terminationGracePeriodSeconds` in the pod template to more than `KafkaStreams#close()` takes.",
    )
    KilledBeforeClosed = (
        Severity.ERROR,
        "A container was killed before it ended by itself.",
        "It wrote no checkpoint; with exactly-once the whole state is restored.",
        "Raise `terminationGracePeriodSeconds`, and check that SIGTERM reaches the JVM and leads to "
        "`KafkaStreams#close()`. If a liveness probe killed it, fix the probe.",
    )
    CloseWithoutLeave = (
        Severity.WARNING,
        "`KafkaStreams#close()` does not leave the group.",
        "The tasks of a stopped pod wait until the operator evicts its members or their session expires.",
        "Keep `leave` in `agent.defaults`, or close with `CloseOptions` that leave the group (Kafka Streams 4.2).",
    )
    HeartbeatSlow = (
        Severity.WARNING,
        "The heartbeat interval is 3 seconds or more.",
        "Members learn of a rebalance with their next heartbeat, so tasks that move stop for up to that long.",
        "Keep `heartbeat` in `agent.defaults`, or set `main.consumer.heartbeat.interval.ms` to 500. With the streams "
        "protocol only the first has an effect.",
    )
    AssignmentsDelayed = (
        Severity.NOTE,
        "Brokers leave time between two assignments of the group (`streams.assignment.interval.ms`).",
        "A pod with several threads joins and leaves in several steps, so tasks that move can stop for as long.",
        "Set it to 0 for the group with kafka-configs.sh, unless many members join at once (docs/streams-protocol.md).",
    )
    SessionTimeoutLong = (
        Severity.WARNING,
        "Members are static, and their session timeout is long.",
        "The operator does not evict static members on a restart. If a node is lost, their tasks stop for a whole "
        "session timeout.",
        "Set `session.timeout.ms` to the duration of a pod restart, or do not set `group.instance.id`.",
    )

    # Load and readiness.

    NoReadinessProbe = (
        Severity.WARNING,
        "Pods are ready as soon as their container runs.",
        "Their restore work counts as load, so an autoscaler on CPU adds pods because pods were added.",
        "Enable the agent, which brings a probe, or give the container a readiness probe that waits for RUNNING.",
    )
    OwnReadinessProbe = (
        Severity.NOTE,
        "The pod template has its own readiness probe, which the operator keeps.",
        "If the probe succeeds during a restore, restore work counts as load for an autoscaler on CPU.",
        "Remove it to use the agent's probe, or check that it waits for RUNNING.",
    )

    # Agents.

    AgentKeyMissing = (
        Severity.ERROR,
        "The operator has no key for agents.",
        "It cannot request reports from any agent, so there are no learners on demand.",
        Reason.AgentKeyMissing.next_step,
    )
    AgentSilent = Severity.WARNING, Reason.AgentSilent
    AgentUntrusted = Severity.WARNING, Reason.AgentUntrusted
    AssignorAside = (
        Severity.WARNING,
        "The learner task assignor is inactive in a pod.",
        "Learners on demand need it in all pods; without it the operator uses what the group shows.",
        "Follow the message; docs/agents.md lists the causes.",
    )

    # Kafka.

    BrokersUnreachable = Severity.ERROR, Reason.BrokersUnreachable
    KafkaRightMissing = (
        Severity.ERROR,
        "The operator lacks a right on the Kafka cluster.",
        "The facts of that request are unknown, so scale-downs that need them are held.",
        "Grant the right to the user that the operator authenticates as; docs/kafka-rights.md has the commands.",
    )
    EndOffsetsUnread = Severity.ERROR, Reason.EndOffsetsUnread
    GroupProtocolUnsupported = Severity.ERROR, Reason.GroupProtocolUnsupported
    BrokerAssignorUnknown = (
        Severity.ERROR,
        Reason.BrokerAssignorUnknown,
        "Scale-downs and restarts are held; scale-ups continue.",
    )
    PositionsNotReported = Severity.ERROR, Reason.PositionsNotReported
    GroupUndecodable = Severity.ERROR, Reason.GroupUndecodable

    # The operator and its cluster.

    DefinitionMissing = (
        Severity.ERROR,
        "The API server does not know the resource StreamApp.",
        "No StreamApp can exist, and the operator does not start.",
        "Install the CustomResourceDefinition of the operator's release.",
    )
    OperatorMissing = (
        Severity.ERROR,
        "No operator was found.",
        "No StreamApp is created or scaled.",
        "Install the operator, or name its namespace with --operator-namespace.",
    )
    OperatorNotReady = (
        Severity.ERROR,
        "No pod of the operator is ready.",
        "No StreamApp is created or scaled.",
        "Check the pod's events and log.",
    )
    OperatorNotRedundant = (
        Severity.NOTE,
        "Fewer than two pods of the operator are ready.",
        "Scaling waits while that pod restarts or its node is drained.",
        "Run two replicas; one of them is the leader.",
    )
    OperatorLeaderless = (
        Severity.ERROR,
        "No replica of the operator is the leader.",
        "No StreamApp is scaled until a replica acquires the Lease.",
        "Wait a few seconds; if it lasts, check the log of the operator's pods and their right to the Lease.",
    )
    OperatorUnreachable = (
        Severity.WARNING,
        "The operator did not answer the command line.",
        "Only the operator knows tasks, brokers and agents; the other findings come from the resources.",
        "Follow the message; docs/command-line.md lists the rights that the command needs.",
    )
    VersionsDiffer = (
        Severity.WARNING,
        "The operator and this command line have different versions.",
        "The older one does not know new reasons and findings of the newer one.",
        "Install the same version of both.",
    )
    OperatorRightMissing = (
        Severity.ERROR,
        "The operator lacks a right on the API server.",
        "Every reconcile that needs the right fails.",
        "Compare the operator's Role or ClusterRole, and the binding, with those of its release.",
    )
    PassFailed = (
        Severity.ERROR,
        "The operator's last reconcile of this StreamApp failed.",
        "The operator does not act on this StreamApp until a reconcile succeeds.",
        "Follow the message; the operator's log has more.",
    )
    FactsOld = (
        Severity.WARNING,
        "The operator last reconciled this StreamApp long ago.",
        "Its facts can be out of date.",
        "Check the operator: it is slow, short of CPU, or refused by the API server.",
    )
    AdmissionPoliciesAbsent = (
        Severity.NOTE,
        "No admission policy protects the objects that the operator manages.",
        "Every client with the right to scale a StatefulSet can remove pods with their state.",
        "Install the chart's policies; docs/operations.md says what each refuses.",
    )
    MetricsApiAbsent = (
        Severity.WARNING,
        "The resource metrics API does not answer.",
        "A HorizontalPodAutoscaler on CPU or memory cannot scale.",
        "Install metrics-server, or check why it is not available.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was found, or that could not be checked."""

    diagnosis: Diagnosis
    kind: FindingKind = FindingKind.FOUND
    detail: str = ""
    """The particulars; why it could not be checked, where it could not."""
    source: FindingSource
    ordinals: tuple[Ordinal, ...] = ()
    """The pods that it is about."""
    topic: str = ""
    """The topic that it is about."""
