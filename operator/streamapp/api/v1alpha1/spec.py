"""`spec` of a StreamApp.

Every object whose children have defaults has the default `{}`, so that the API server fills them in. Every field has a
maximum, so that the CEL rules have a bounded cost. `null` is never used.
"""

from datetime import timedelta
from enum import Enum
from typing import Annotated, Any

from pydantic import Field, StrictBool, StrictInt

from streamapp.api.objective import budget_share
from streamapp.api.v1alpha1.cel_rules import ApiModel, Rule, RuledModel, unchangeable
from streamapp.api.v1alpha1.durations import DurationText
from streamapp.api.v1alpha1.field_types import (
    INT32,
    INT64,
    ApplicationId,
    Brokers,
    ContainerName,
    Folder,
    MemorySize,
    ObjectName,
    OptionalFolder,
    Percentage,
    Quantity,
    RequiredName,
    TopologyText,
    VolumeName,
    Why,
)
from streamapp.api.v1alpha1.pod_template import PodTemplate, has_container
from streamapp.api.v1alpha1.quantities import parse_quantity
from streamapp.core.facts.agent_reports import Rebalance
from streamapp.core.facts.policy import Assignor, DisruptionPolicy, OnTimeout, RolloutPolicy, ScaleDownPolicy

MOST_REPLICAS = 1000
MOST_RECORDS = 10**12
MOST_LEARNERS = 100_000
MOST_COPIES = 100
MOST_ZONES = 10
FIXED_CLAIM = "the volume claim templates of a StatefulSet are immutable"

StabilizationWindow = Annotated[timedelta, DurationText(least=timedelta(0), most=timedelta(hours=24))]
Timeout = Annotated[timedelta, DurationText(least=timedelta(minutes=1), most=timedelta(hours=720))]
LongestDowntime = Annotated[timedelta, DurationText(least=timedelta(0), most=timedelta(hours=24))]
MaxIdleTime = Annotated[timedelta, DurationText(least=timedelta(minutes=1), most=timedelta(hours=8760))]


class SecretRef(ApiModel):
    """A Secret in the namespace of the StreamApp."""

    name: RequiredName
    """Name of the Secret."""


class SecurityProtocol(Enum):
    """Kafka's `security.protocol`."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class SaslMechanism(Enum):
    """Kafka's `sasl.mechanism`."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"


class Kafka(ApiModel):
    """How the operator connects to the Kafka cluster of the application."""

    bootstrap_servers: Brokers
    """Bootstrap brokers: a comma-separated list of `host:port`. The operator reads the consumer group and end offsets
    there."""
    security_protocol: SecurityProtocol | None = None
    """Kafka's `security.protocol`, if no Secret has it."""
    sasl_mechanism: SaslMechanism | None = None
    """Kafka's `sasl.mechanism`, if no Secret has it."""
    config_secret_refs: Annotated[tuple[SecretRef, ...], Field(max_length=5)] = Field(
        default=(), json_schema_extra={"x-kubernetes-list-type": "atomic"}
    )
    """Secrets with the operator's client properties, one key each, under their Java names (`security.protocol`,
    `sasl.jaas.config`, …), or as Strimzi and cert-manager write them (`ca.crt`, `user.crt`, `user.key`).
    The operator needs the right to read these Secrets only. Empty: no encryption and no authentication."""


class AccessMode(Enum):
    """How a volume can be mounted."""

    READ_WRITE_ONCE = "ReadWriteOnce"
    READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class Requests(ApiModel):
    """Requests of a volume claim."""

    storage: Quantity
    """Size of each volume, for example 20Gi. If you raise it, the operator has every claim ask for that much, and the
    storage driver enlarges the volumes. The storage class must allow expansion. A lower size changes no volume."""


class Resources(ApiModel):
    """Resources of a volume claim."""

    requests: Requests
    """Requests of the claim."""


class VolumeClaimTemplate(ApiModel):
    """Template of the volume claim of each ordinal."""

    storage_class_name: ObjectName | None = None
    """Storage class. Absent: the cluster's default. Volumes that are there keep theirs; docs/operations.md says how
    ordinals get volumes of another one."""
    access_modes: Annotated[tuple[AccessMode, ...], Field(min_length=1, max_length=1)] = Field(
        default=(AccessMode.READ_WRITE_ONCE,),
        json_schema_extra=unchangeable(FIXED_CLAIM, **{"x-kubernetes-list-type": "atomic"}),
    )
    """One access mode. Use ReadWriteOncePod if the storage driver supports it: a state directory has one user.
    It cannot be changed."""
    resources: Resources
    """Resources of the claim."""


class RetentionPolicy(Enum):
    """What happens to a volume claim."""

    RETAIN = "Retain"
    DELETE = "Delete"


class Retention(ApiModel):
    """What happens to volume claims that no pod uses any more."""

    when_scaled: RetentionPolicy = RetentionPolicy.RETAIN
    """After a scale-down. Retain: an ordinal that comes back is the same Kafka Streams process, with its state."""
    when_deleted: RetentionPolicy = RetentionPolicy.RETAIN
    """After the StreamApp is deleted."""


class State(RuledModel):
    """A volume per ordinal for the state of its Kafka Streams process."""

    rules = (
        Rule(
            cel="self.stateDir == '' || self.stateDir == self.mountPath || "
            "self.stateDir.startsWith(self.mountPath + '/')",
            message="must be mountPath or a folder below it, or the state is not on the volume",
            field="stateDir",
            holds=lambda state: f"{state.state_dir or state.mount_path}/".startswith(f"{state.mount_path}/"),
        ),
    )

    mount_path: Folder
    """Mount path of the volume in the application's container."""
    state_dir: OptionalFolder = ""
    """The application's `state.dir`: `mountPath` or a folder below it. Empty: `mountPath`."""
    claim_name: VolumeName = Field(default="state", json_schema_extra=unchangeable(FIXED_CLAIM))
    """Name of the volume. Claims are named `<claimName>-<name>-<ordinal>`. It cannot be changed."""
    volume_claim_template: VolumeClaimTemplate
    """Template of the volume claim of each ordinal."""
    retention: Retention = Retention()
    """What happens to volume claims that no pod uses any more."""
    max_idle_time: MaxIdleTime = timedelta(hours=20)
    """State that was unused for longer is deleted before the application starts, and restored from the changelogs.
    Must be shorter than `delete.retention.ms` of the changelog topics (24 hours by default). Older state can hold keys
    whose deletion the topic no longer contains."""

    @property
    def directory(self) -> str:
        """Return the application's `state.dir`."""
        return self.state_dir or self.mount_path

    @property
    def volume_bytes(self) -> int:
        """Return the size of each volume in bytes."""
        return int(parse_quantity(self.volume_claim_template.resources.requests.storage))


class RequestedSource(Enum):
    """Where copies of tasks come from."""

    STANDBYS = "Standbys"
    ON_DEMAND = "OnDemand"


class Learners(ApiModel):
    """Learners: the standby and warm-up copies from which a task continues when its pod leaves."""

    source: RequestedSource | None = None
    """Where copies come from. Absent: the operator detects the source. Standbys: `num.standby.replicas` is at least 1.
    OnDemand: the agent's task assignor makes copies before a pod leaves; with the streams group protocol, the operator
    raises the group's standbys. It needs `agent.enabled`."""
    rebalance: Rebalance = Rebalance.CONSERVATIVE
    """With source OnDemand: when tasks move to their new pod. Conservative: all at once, when all copies of the pod are
    caught up. Eager: each task as soon as its copy is caught up."""
    acceptable_recovery_lag: Annotated[StrictInt, Field(ge=0, le=MOST_RECORDS, json_schema_extra=INT64)] = 10_000
    """The application's `acceptable.recovery.lag`, in records. A copy with at most this lag is caught up."""
    max_at_once: Annotated[StrictInt, Field(ge=1, le=MOST_LEARNERS, json_schema_extra=INT32)] | None = None
    """With source OnDemand: the most learners that a scale-down asks for at once. Absent: no limit. Pods are drained in
    groups whose stateful tasks are no more than this, one pod at least."""
    memory_per_task: MemorySize | None = None
    """The most memory outside of the heap that a copy of a stateful task takes, for example 64Mi: what RocksDB's limits
    allow. A pod stays while its tasks would not fit into the memory limits of remaining pods. It needs `agent.enabled`.
    Absent: the operator only warns."""
    assignor: Assignor = Assignor.HIGH_AVAILABILITY
    """The application's task assignor. HighAvailability: the default assignor, which moves a task to a caught-up copy.
    Unknown: any other assignor; copies then never let a pod go."""
    trigger_rebalance: StrictBool = True
    """Whether the operator can trigger a rebalance: a member joins the group and leaves it at once. Without it, the
    next rebalance can be ten minutes away. If false, the positions of copies are never fresh and scale-downs are
    held."""

    @property
    def memory_per_task_bytes(self) -> int | None:
        """Return `memory_per_task` in bytes."""
        return None if self.memory_per_task is None else int(parse_quantity(self.memory_per_task))


class InjectVia(Enum):
    """The environment variable that passes the agent to the JVM."""

    JDK_JAVA_OPTIONS = "JDK_JAVA_OPTIONS"
    JAVA_TOOL_OPTIONS = "JAVA_TOOL_OPTIONS"


class AgentDefault(Enum):
    """A setting whose default the agent can change."""

    ASSIGNOR = "assignor"
    HEARTBEAT = "heartbeat"
    LEAVE = "leave"


class AgentTls(ApiModel):
    """The certificate with which agents serve HTTPS."""

    secret_ref: SecretRef
    """Secret of type kubernetes.io/tls, as cert-manager writes it: pods mount `tls.crt` and `tls.key`, and the operator
    trusts `ca.crt`. The certificate must be valid for `<pod>.<name>.<namespace>.svc` of every pod, for example by
    `*.<name>.<namespace>.svc`. The operator needs the right to read this Secret only."""


class Agent(RuledModel):
    """An agent in the application's JVM: it reports the state of tasks and helps to move them."""

    rules = (
        Rule(
            cel="!has(self.defaults) || self.defaults.all(d, self.defaults.exists_one(e, e == d))",
            message="must not contain duplicates",
            field="defaults",
            holds=lambda agent: len(set(agent.defaults)) == len(agent.defaults),
        ),
    )

    enabled: StrictBool = False
    """Whether every pod runs the agent. Pods get it at their next restart; see `rollout.policy`."""
    inject_via: InjectVia = InjectVia.JDK_JAVA_OPTIONS
    """Environment variable of the application's container that gets `-javaagent`. JDK_JAVA_OPTIONS: only the `java`
    launcher reads it, since Java 9. JAVA_TOOL_OPTIONS: every JVM in the container reads it, including `jcmd` and
    `keytool`."""
    port: Annotated[StrictInt, Field(ge=1, le=65535, json_schema_extra=INT32)] = 7711
    """Port of the pod on which the agent serves the operator."""
    tls: AgentTls | None = None
    """TLS between operator and agents. Absent: agents serve plain HTTP. Pods change at their next restart; see
    `rollout.policy`. The operator asks each pod in the way that the pod was made for."""
    defaults: Annotated[tuple[AgentDefault, ...], Field(max_length=3)] = Field(
        default=tuple(AgentDefault), json_schema_extra={"x-kubernetes-list-type": "atomic"}
    )
    """Kafka Streams settings that get another default if the application does not set them. assignor: the task assignor
    that makes copies on demand. heartbeat: 500 ms for the main consumer; with exactly-once, fetches of the restore
    consumer wait for 100 ms at most. leave: a leaving pod leaves the group at once."""


class ScaleDown(RuledModel):
    """When the operator can remove pods."""

    # The API server tries the rules on the default `{}` too, before it fills in the children's own.
    rules = (
        Rule(
            cel="!has(self.policy) || self.policy != 'Immediate' || self.reason.trim() != ''",
            message="must give a reason: policy Immediate removes pods without caught-up copies",
            field="reason",
            holds=lambda chosen: chosen.policy is not ScaleDownPolicy.IMMEDIATE or bool(chosen.reason.strip()),
        ),
        Rule(
            cel="!has(self.onTimeout) || self.onTimeout != 'Proceed' || self.reason.trim() != ''",
            message="must give a reason: onTimeout Proceed removes pods without caught-up copies",
            field="reason",
            holds=lambda chosen: chosen.on_timeout is not OnTimeout.PROCEED or bool(chosen.reason.strip()),
        ),
    )

    policy: ScaleDownPolicy = ScaleDownPolicy.HOLD
    """Hold: keep a pod until every stateful task runs, or has a caught-up copy, on a remaining pod. Immediate: do not
    wait for copies; all other checks apply, unless brokers cannot show the group."""
    reason: Why = ""
    """Why copies can be ignored. Required for policy Immediate and for onTimeout Proceed; kept on record."""
    stabilization_window: StabilizationWindow = timedelta(seconds=30)
    """How long `replicas` must be lower before a scale-down starts."""
    timeout: Timeout = timedelta(hours=1)
    """How long the next pod can be waited for before `onTimeout` applies. It counts from the beginning of the hold, and
    anew when a pod has left. Progress of copies and a restart of the operator do not move it."""
    on_timeout: OnTimeout = OnTimeout.WAIT
    """Wait: keep waiting, with condition Stalled if copies came no nearer for as long. GiveUp: cancel the scale-down
    until the spec changes. Proceed: continue without caught-up copies, one pod at a time."""
    max_step: Annotated[StrictInt, Field(ge=1, le=MOST_REPLICAS, json_schema_extra=INT32)] | None = None
    """The most pods that leave with one step, or are drained at once. Absent: no limit. With a limit, tasks can move to
    a pod that leaves with a later step, and move again."""
    min_copies: Annotated[StrictInt, Field(ge=1, le=MOST_COPIES, json_schema_extra=INT32)] | None = None
    """The fewest copies of each stateful task that a removal leaves on remaining pods; the running task is one of them.
    Absent: 1. Zero replicas are not affected."""
    min_zones: Annotated[StrictInt, Field(ge=1, le=MOST_ZONES, json_schema_extra=INT32)] | None = None
    """The fewest zones that these copies lie in after a removal. Absent: zones do not matter. A zone that is unknown
    holds the scale-down."""
    allow_zero: StrictBool = False
    """Whether zero replicas are allowed. Copies remain then only on volumes that `state.retention` keeps."""


class Rollout(ApiModel):
    """How a changed template reaches the pods."""

    policy: RolloutPolicy = RolloutPolicy.WHEN_CAUGHT_UP
    """WhenCaughtUp: restart one pod at a time, when every stateful task has a caught-up copy on another pod. Without
    standbys: when every task runs. Paused: restart no pod. Immediate: restart one pod at a time without waiting for
    copies."""


class Disruption(ApiModel):
    """When the Eviction API can take a pod, as `kubectl drain` and cluster autoscalers do."""

    policy: DisruptionPolicy = DisruptionPolicy.ONE_AT_A_TIME
    """OneAtATime: one pod at a time, whatever its tasks. WhenCaughtUp: only a pod whose stateful tasks all have a
    caught-up copy on another pod; a cordoned node starts the draining of its pods."""


class Objective(ApiModel):
    """How much downtime of tasks is acceptable. The operator counts downtime against it, and decides nothing by it."""

    availability: Percentage = "99.9"
    """Percentage of the task-seconds of a month in which tasks must run, as text."""
    longest_downtime: LongestDowntime | None = None
    """The longest acceptable downtime of a task. A longer one counts in a metric. Absent: none is too long."""

    @property
    def budget(self) -> float:
        """The share of task-seconds that can be lost."""
        return budget_share(self.availability)


class StreamAppSpec(RuledModel):
    """The desired state."""

    rules = (
        Rule(
            cel="self.replicas > 0 || self.scaleDown.allowZero",
            message="must be at least 1 unless scaleDown.allowZero is true",
            field="replicas",
            holds=lambda spec: spec.replicas > 0 or spec.scale_down.allow_zero,
        ),
        Rule(
            cel="self.container == '' || self.template.spec.containers.exists(c, c.name == self.container)",
            message="must be the name of a container in template.spec.containers",
            field="container",
            holds=lambda spec: not spec.container or has_container(spec.template, spec.container),
        ),
        Rule(
            cel="self.container != '' || self.template.spec.containers.size() < 2",
            message="must name the container that runs the application: the template has several",
            field="container",
            holds=lambda spec: bool(spec.container) or len(spec.template["spec"]["containers"]) < 2,
        ),
        Rule(
            cel="!has(self.learners.source) || self.learners.source != 'OnDemand' || self.agent.enabled",
            message="can be OnDemand only if agent.enabled is true: the agent provides the assignor",
            field="learners.source",
            holds=lambda spec: spec.learners.source is not RequestedSource.ON_DEMAND or spec.agent.enabled,
        ),
        Rule(
            cel="!has(self.learners.memoryPerTask) || self.agent.enabled",
            message="can be set only if agent.enabled is true: the agent reports the memory of its container",
            field="learners.memoryPerTask",
            holds=lambda spec: spec.learners.memory_per_task is None or spec.agent.enabled,
        ),
        Rule(
            cel="has(self.state) == has(oldSelf.state)",
            message=f"cannot be added or removed: {FIXED_CLAIM}; create another StreamApp",
            field="state",
        ),
    )

    replicas: Annotated[StrictInt, Field(ge=0, le=MOST_REPLICAS, json_schema_extra=INT32)] = 1
    """Desired replicas. The operator scales up at once, and removes pods when copies allow. It never writes
    this field. Leave the field out of Git if an autoscaler sets it."""
    application_id: ApplicationId = Field(
        json_schema_extra=unchangeable("it names the consumer group, the internal topics and the state directories")
    )
    """The application's `application.id`. It cannot be changed."""
    topology: TopologyText = ""
    """Output of `Topology#describe()`. Required if the operator cannot derive the tasks: several sub-topologies have
    stores, a source topic is a changelog, or a store has no changelog."""
    kafka: Kafka
    """How the operator connects to the Kafka cluster of the application."""
    template: PodTemplate
    """Pod template, as in a StatefulSet. The operator adds a label, the volume of `state` and its mount, an init
    container, and what `agent` needs."""
    container: ContainerName = ""
    """Container that runs the application. Required if the template has several."""
    state: State | None = None
    """A volume per ordinal. Absent: the application has no persistent store. It cannot be added or removed later."""
    learners: Learners = Learners()
    """Learners: the standby and warm-up copies of tasks."""
    agent: Agent = Agent()
    """An agent in the application's JVM."""
    scale_down: ScaleDown = ScaleDown()
    """When the operator can remove pods."""
    rollout: Rollout = Rollout()
    """How a changed template reaches the pods."""
    disruption: Disruption = Disruption()
    """When pods can be evicted."""
    objective: Objective = Objective()
    """How much downtime is acceptable."""
    paused: StrictBool = False
    """Whether the operator stops scaling, restarting and preparing. It still completes an open step."""
    dry_run: StrictBool = False
    """Whether the operator only decides and reports."""

    @property
    def application_container(self) -> dict[str, Any]:
        """Return the container that runs the application, from the template."""
        containers: list[dict[str, Any]] = self.template["spec"]["containers"]
        return next((one for one in containers if one["name"] == self.container), containers[0])
