"""What can be wrong with an application, the operator or the cluster: every finding of `kubectl streamapp doctor`.

Codes are API: names do not change, and the operator's answers, the command line and `docs/diagnoses.md` use these same
texts. The part that changes from case to case (which pod, which topic, which value) is the finding's `detail`. Found by
`examine` from a snapshot, and by the command line from what the API server shows.
"""

from dataclasses import dataclass
from enum import Enum

from streamapp.core.facts.ids import Ordinal


class Severity(Enum):
    """How much it matters."""

    ERROR = "error"
    """Scaling stands still, or users of the application notice it."""
    WARNING = "warning"
    """It works, and will cost something."""
    NOTE = "note"
    """Worth knowing."""


class Kind(Enum):
    """What is said about a diagnosis."""

    FOUND = "Found"
    UNCHECKED = "Unchecked"
    """It could not be checked, though it can be: something did not answer, or a right is missing."""
    UNSEEN = "Unseen"
    """It cannot be checked the way things are set up: nothing there tells it."""


class Source(Enum):
    """Where the evidence comes from."""

    SPEC = "StreamApp"
    KUBERNETES = "Kubernetes"
    BROKERS = "brokers"
    AGENTS = "agents"
    OPERATOR = "operator"


class Diagnosis(Enum):
    """The name is the code; the value is (severity, title, why it matters, how it is mended)."""

    severity: Severity
    title: str
    """What is the case, for a person, without the particulars."""
    why: str
    """Why it matters."""
    fix: str
    """What a person can do."""

    def __init__(self, severity: Severity, title: str, why: str, fix: str) -> None:
        self.severity = severity
        self.title = title
        self.why = why
        self.fix = fix

    # The resource.

    InvalidSpec = (
        Severity.ERROR,
        "The StreamApp's spec is not valid.",
        "Nothing is changed until it is.",
        "Correct the field that is named.",
    )
    ApplicationIdTaken = (
        Severity.ERROR,
        "An older StreamApp has the same application ID on the same Kafka cluster.",
        "Only the older one is worked on.",
        "Give one of them another application ID, or delete it.",
    )
    ForeignStatefulSet = (
        Severity.ERROR,
        "A StatefulSet of this name belongs to somebody else.",
        "It is left alone, so that nothing is scaled.",
        "Give the StreamApp another name, or remove that StatefulSet.",
    )
    Stalled = (
        Severity.ERROR,
        "The StreamApp is stalled.",
        "Nothing goes on until somebody does something.",
        "Follow what `kubectl streamapp explain` says about it.",
    )
    Unanswered = (
        Severity.ERROR,
        "The operator has not answered this StreamApp.",
        "Wishes of users and autoscalers wait.",
        "See that the operator runs and watches this namespace, and look at its log.",
    )
    ScalingUnsound = (
        Severity.WARNING,
        "What drives the replicas is not in order.",
        "Two that write one number undo each other's work, and who goes around the operator removes pods with their "
        "state.",
        "Let one HorizontalPodAutoscaler, or one person, write the StreamApp's replicas, and nobody the StatefulSet's.",
    )

    # Copies of state.

    NoCopies = (
        Severity.ERROR,
        "Stateful tasks have no standby, and no learners come on demand.",
        "No scale-down is ever covered: every one is held until somebody releases it, and a pod that is lost takes its "
        "tasks out until they are restored.",
        "Set `num.standby.replicas` to 1 or more, or `agent.enabled: true` with `learners.source: OnDemand`.",
    )
    LagLimitsDisagree = (
        Severity.WARNING,
        "`acceptable.recovery.lag` is not the same everywhere.",
        "The smallest counts, and on demand no pod is drained while pods of one template disagree.",
        "Run all pods with one value, and put the same into `learners.acceptableRecoveryLag`.",
    )
    LagLimitUnbounded = (
        Severity.ERROR,
        "`acceptable.recovery.lag` has no bound.",
        "Every copy passes for caught up, however far behind it is, and a task that moves to one is silent for long.",
        "Set it to what may be restored in seconds; 10,000 is Kafka's default.",
    )
    TopologyUnknown = (
        Severity.ERROR,
        "It is not known which tasks the application has.",
        "A task that nobody holds would not be missed, so that no pod is removed.",
        "Put the text of `Topology#describe()` into `spec.topology`, or enable the agent, which tells it.",
    )

    # State on disk, and who is who.

    StateDirElsewhere = (
        Severity.ERROR,
        "`state.dir` is not where the StreamApp says.",
        "State off the volume is lost with the pod and restored at every start, and the process has another identity "
        "each time.",
        "Set `state.dir` to the folder that `spec.state` names, or `spec.state` to the application's folder.",
    )
    StateWithoutVolume = (
        Severity.WARNING,
        "There is state on disk, and `spec.state` is not set.",
        "It is lost with the pod and restored at every start.",
        "Set `spec.state`; that takes a new StreamApp.",
    )
    TaskDirectoriesEmptied = (
        Severity.WARNING,
        "Task directories were removed before the application started.",
        "`KafkaStreams#cleanUp()` throws away what the volume kept: every start restores it from the changelogs.",
        "Call `cleanUp()` only when somebody asks for it, never at every start.",
    )
    IdentityUnstable = (
        Severity.ERROR,
        "A pod does not run as the process whose state its volume holds.",
        "Every scale-down is held: whose copies those are cannot be told.",
        "See that `state.dir` is on the volume and that no volume was copied or swapped.",
    )
    MaxIdleTimeTooLong = (
        Severity.WARNING,
        "State may lie unused for longer than the changelog keeps deletions.",
        "A pod that comes back later serves keys that were deleted.",
        "Make `state.maxIdleTime` shorter than the topic's setting, or the topic's setting longer.",
    )

    # Starting and stopping.

    GracePeriodShort = (
        Severity.WARNING,
        "The termination grace period is short.",
        "A close that is cut off leaves no checkpoint (from Kafka Streams 4.3 on, nothing flushed), so that the next "
        "start restores.",
        "Set `terminationGracePeriodSeconds` in the pod template to what `KafkaStreams#close()` takes, and some more.",
    )
    KilledBeforeClosed = (
        Severity.ERROR,
        "A container was killed before it ended by itself.",
        "Its state was not checkpointed, and with exactly-once it is restored as a whole.",
        "Raise `terminationGracePeriodSeconds`, and see that SIGTERM reaches the JVM and leads to "
        "`KafkaStreams#close()`; or mend the liveness probe that killed it.",
    )
    CloseWithoutLeave = (
        Severity.WARNING,
        "`KafkaStreams#close()` does not leave the group.",
        "Until its members are put out, or their session times out, nobody has the tasks of a pod that stopped.",
        "Leave `leave` in `agent.defaults`, or close with `CloseOptions` that leave the group (Kafka Streams 4.2).",
    )
    HeartbeatSlow = (
        Severity.WARNING,
        "Heartbeats are three seconds or more apart.",
        "Members hear of a rebalance with their next heartbeat, and tasks that move are silent for that long.",
        "Leave `heartbeat` in `agent.defaults`, or set `main.consumer.heartbeat.interval.ms` to 500.",
    )
    SessionTimeoutLong = (
        Severity.WARNING,
        "Members are static and their session times out late.",
        "Static members are not put out on a restart: when a node is lost, their tasks are silent for a whole session.",
        "Set `session.timeout.ms` to what a restart of a pod takes, or leave `group.instance.id` out.",
    )

    # Load and readiness.

    NoReadinessProbe = (
        Severity.WARNING,
        "Pods pass for ready as soon as their container runs.",
        "Their restore work counts as load, and an autoscaler on CPU adds pods because pods were added.",
        "Enable the agent, which brings a probe, or give the container a readiness probe that waits for RUNNING.",
    )
    OwnReadinessProbe = (
        Severity.NOTE,
        "The pod template has a readiness probe of its own, which stays.",
        "Where it is content while tasks are restored, restore work counts as load for an autoscaler on CPU.",
        "Take it out, so that the agent's is used, or see that it waits for RUNNING.",
    )

    # Agents.

    AgentKeyMissing = (
        Severity.ERROR,
        "The operator has no key for agents.",
        "It can ask none of them, so that nothing is known of what they would tell and nothing is done on demand.",
        "Make the Secret as docs/agents.md says, and mount it into the operator.",
    )
    AgentSilent = (
        Severity.WARNING,
        "An agent does not answer.",
        "Learners on demand need every agent; until then the operator falls back to what the group shows.",
        "Do what the message says; see that the pod runs the agent and that a network policy lets the operator in.",
    )
    AssignorAside = (
        Severity.WARNING,
        "The assignor that learns on demand is not at work in a pod.",
        "One pod without it is enough to fall back to what the group shows.",
        "Do what the message asks for; docs/agents.md lists the causes.",
    )

    # Kafka.

    BrokersUnreachable = (
        Severity.ERROR,
        "The brokers do not answer the operator.",
        "Every scale-down is held; growing goes on.",
        "Check `kafka.bootstrapServers`, the client properties and the network policy.",
    )
    KafkaRightMissing = (
        Severity.ERROR,
        "A right on the Kafka cluster is missing.",
        "What rests on that request is not known, and scale-downs that need it are held.",
        "Grant what is named to the user that the operator authenticates as; docs/kafka-rights.md has the commands.",
    )
    EndOffsetsUnread = (
        Severity.ERROR,
        "The ends of the changelogs could not be read.",
        "How far copies are behind is not known, so that every scale-down is held.",
        "Do what the message says.",
    )
    GroupProtocolUnsupported = (
        Severity.ERROR,
        "The group is not one of the classic protocol.",
        "Growing works; no pod is ever removed.",
        "Keep `group.protocol=classic`.",
    )
    GroupUndecodable = (
        Severity.ERROR,
        "A member of the group could not be understood.",
        "What it holds is not known, so that every scale-down is held.",
        "If the application's version is new, upgrade the operator.",
    )

    # The operator and its cluster.

    DefinitionMissing = (
        Severity.ERROR,
        "The API server does not know StreamApps.",
        "There can be none, and the operator does not start.",
        "Install the CustomResourceDefinition of the operator's release.",
    )
    OperatorMissing = (
        Severity.ERROR,
        "No operator was found.",
        "Nobody answers wishes: nothing is created, grown or shrunk.",
        "Install it, or name its namespace with --operator-namespace.",
    )
    OperatorNotReady = (
        Severity.ERROR,
        "No pod of the operator is ready.",
        "Nobody answers wishes: nothing is created, grown or shrunk.",
        "Look at the pod's events and log.",
    )
    OperatorNotRedundant = (
        Severity.NOTE,
        "Fewer than two pods of the operator are ready.",
        "While it is restarted or its node is drained, wishes wait.",
        "Run two replicas; one of them leads.",
    )
    OperatorLeaderless = (
        Severity.ERROR,
        "No replica of the operator leads.",
        "Nobody answers wishes until one takes the Lease.",
        "It takes seconds; if it lasts, look at the log of its pods and at their right to the Lease.",
    )
    OperatorUnreachable = (
        Severity.WARNING,
        "The operator could not be asked.",
        "Tasks, brokers and agents are known to it alone; what follows rests on the resources.",
        "Do what the message says; docs/command-line.md lists the rights that it takes.",
    )
    VersionsDiffer = (
        Severity.WARNING,
        "The operator and this command line are of different versions.",
        "Reasons and findings of the newer one may not be known to the other.",
        "Bring both to one version.",
    )
    OperatorRightMissing = (
        Severity.ERROR,
        "The operator lacks a right on the API server.",
        "Every pass that needs it fails.",
        "Compare its Role or ClusterRole, and the binding, with those of its release.",
    )
    PassFailed = (
        Severity.ERROR,
        "The operator's last pass over this StreamApp failed.",
        "What it does about it waits until a pass succeeds.",
        "Do what the message says; the operator's log has more.",
    )
    FactsOld = (
        Severity.WARNING,
        "The operator looked at this StreamApp long ago.",
        "What it knows may not be so any more.",
        "Look at the operator: it is slow, short of CPU, or refused by the API server.",
    )
    AdmissionPoliciesAbsent = (
        Severity.NOTE,
        "No admission policy guards what the operator manages.",
        "Anybody with the right to scale a StatefulSet can remove pods with their state behind the operator's back.",
        "Install the chart's policies; docs/operations.md says what each refuses.",
    )
    MetricsApiAbsent = (
        Severity.WARNING,
        "The resource metrics API does not answer.",
        "A HorizontalPodAutoscaler on CPU or memory does not know what to do.",
        "Install metrics-server, or see why it is not available.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was found, or that could not be checked."""

    diagnosis: Diagnosis
    kind: Kind = Kind.FOUND
    detail: str = ""
    """The particulars; why it could not be checked, where it could not."""
    source: Source
    ordinals: tuple[Ordinal, ...] = ()
    """The pods that it is about."""
    topic: str = ""
    """The topic that it is about."""
