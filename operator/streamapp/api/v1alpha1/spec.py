"""`spec` of a StreamApp: what its user wants.

Every object whose children have defaults has the default `{}`, so that the API server fills them in; everything has a
maximum, so that its rules have a bounded cost; `null` is never used.
"""

from datetime import timedelta
from enum import Enum
from typing import Annotated, Any

from pydantic import Field, StrictBool, StrictInt

from streamapp.api.v1alpha1.cel_rules import ApiModel, Rule, unchangeable
from streamapp.api.v1alpha1.durations import DurationText
from streamapp.api.v1alpha1.field_types import (
    INT32,
    INT64,
    ApplicationId,
    Brokers,
    ContainerName,
    Folder,
    ObjectName,
    OptionalFolder,
    Quantity,
    RequiredName,
    TopologyText,
    VolumeName,
    Why,
)
from streamapp.api.v1alpha1.pod_template import PodTemplate, has_container
from streamapp.core.facts.agent_reports import Rebalance
from streamapp.core.facts.policy import Assignor, OnTimeout, RolloutPolicy, ScaleDownPolicy

MOST_REPLICAS = 1000
MOST_RECORDS = 10**12
FIXED_CLAIM = "a StatefulSet's volume claim templates are fixed"

StabilizationWindow = Annotated[timedelta, DurationText(least=timedelta(0), most=timedelta(hours=24))]
Timeout = Annotated[timedelta, DurationText(least=timedelta(minutes=1), most=timedelta(hours=720))]
MaxIdleTime = Annotated[timedelta, DurationText(least=timedelta(minutes=1), most=timedelta(hours=8760))]


class SecretRef(ApiModel):
    """A Secret in the namespace of the StreamApp."""

    name: RequiredName
    """Its name."""


class Kafka(ApiModel):
    """How the operator reaches the Kafka cluster of the application."""

    bootstrap_servers: Brokers
    """Brokers to begin with, `host:port`, with commas between them. The operator reads the consumer group and the ends
    of topics there."""
    config_secret_ref: SecretRef | None = None
    """Secret with client properties under their Java names (`security.protocol`, `sasl.jaas.config`, …) for the
    operator's own reads. The operator needs the right to read just this Secret. Absent: plain text, no
    authentication."""


class AccessMode(Enum):
    """How a volume may be mounted."""

    READ_WRITE_ONCE = "ReadWriteOnce"
    READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class Requests(ApiModel):
    """What is asked of the storage."""

    storage: Quantity = Field(
        json_schema_extra=unchangeable(
            FIXED_CLAIM, cel="quantity(string(self)).compareTo(quantity(string(oldSelf))) == 0"
        )
    )
    """Size of each volume, for example 20Gi. It cannot be changed."""


class Resources(ApiModel):
    """Resources of a volume claim."""

    requests: Requests
    """What is asked of the storage."""


class VolumeClaimTemplate(ApiModel):
    """The claim from which each ordinal gets its volume."""

    rules = (
        Rule(
            cel="has(self.storageClassName) == has(oldSelf.storageClassName)",
            message=f"cannot be added or taken away: {FIXED_CLAIM}",
            field="storageClassName",
        ),
    )

    storage_class_name: ObjectName | None = Field(default=None, json_schema_extra=unchangeable(FIXED_CLAIM))
    """Storage class; absent means the cluster's default. It cannot be changed."""
    access_modes: Annotated[tuple[AccessMode, ...], Field(min_length=1, max_length=1)] = Field(
        default=(AccessMode.READ_WRITE_ONCE,),
        json_schema_extra=unchangeable(FIXED_CLAIM, **{"x-kubernetes-list-type": "atomic"}),
    )
    """One mode; ReadWriteOncePod where the storage driver can, since a state directory has one user. It cannot be
    changed."""
    resources: Resources
    """What is asked of the storage."""


class RetentionPolicy(Enum):
    """What becomes of a volume claim."""

    RETAIN = "Retain"
    DELETE = "Delete"


class Retention(ApiModel):
    """What becomes of the volume claims when their pods go for good."""

    when_scaled: RetentionPolicy = RetentionPolicy.RETAIN
    """When the application is scaled down. Retain: an ordinal that comes back is the same Kafka Streams process with
    its state."""
    when_deleted: RetentionPolicy = RetentionPolicy.RETAIN
    """When the StreamApp is deleted."""


class State(ApiModel):
    """A volume for each ordinal, with the state of its Kafka Streams process."""

    rules = (
        Rule(
            cel="self.stateDir == '' || self.stateDir == self.mountPath || "
            "self.stateDir.startsWith(self.mountPath + '/')",
            message="must be the mountPath or lie below it: otherwise the state is not on the volume",
            field="stateDir",
            holds=lambda state: f"{state.state_dir or state.mount_path}/".startswith(f"{state.mount_path}/"),
        ),
    )

    mount_path: Folder
    """Where the volume is mounted in the application's container."""
    state_dir: OptionalFolder = ""
    """The application's `state.dir`, equal to `mountPath` or below it. Empty: `mountPath`."""
    claim_name: VolumeName = Field(default="state", json_schema_extra=unchangeable(FIXED_CLAIM))
    """Name of the volume; claims are called `<claimName>-<name>-<ordinal>`. It cannot be changed."""
    volume_claim_template: VolumeClaimTemplate
    """The claim from which each ordinal gets its volume."""
    retention: Retention = Retention()
    """What becomes of the volume claims when their pods go for good."""
    max_idle_time: MaxIdleTime = timedelta(hours=20)
    """State that lay unused for longer is removed before the application starts, and restored from the changelogs. It
    must be shorter than `delete.retention.ms` of the changelog topics (24 hours by default): after that a deletion is
    gone from the topic while the key is still in the state, and would come back to life."""

    @property
    def directory(self) -> str:
        """The application's `state.dir`."""
        return self.state_dir or self.mount_path


class Source(Enum):
    """Where copies of tasks are to come from."""

    STANDBYS = "Standbys"
    ON_DEMAND = "OnDemand"


class Learners(ApiModel):
    """What is known of the copies of tasks on other pods, from which a task goes on when its pod leaves."""

    source: Source | None = None
    """Where copies come from. Absent: the operator detects the source. Standbys: `num.standby.replicas` is at least 1.
    OnDemand: the agent's task assignor makes copies before a pod leaves. It needs `agent.enabled`."""
    rebalance: Rebalance = Rebalance.CONSERVATIVE
    """With source OnDemand, when tasks move to a pod that learns them. Conservative: all at once, when all its copies
    are caught up. Eager: each as soon as its copy is caught up."""
    acceptable_recovery_lag: Annotated[StrictInt, Field(ge=0, le=MOST_RECORDS, json_schema_extra=INT64)] = 10_000
    """The application's own `acceptable.recovery.lag`, in records: a copy no further behind is caught up."""
    assignor: Assignor = Assignor.HIGH_AVAILABILITY
    """What assigns the application's tasks. HighAvailability: the default assignor, which gives a task to a caught-up
    copy. Unknown: any other; then no pod is removed on the word of a copy."""
    trigger_rebalance: StrictBool = True
    """Let the operator start a rebalance, by a member that joins the group and leaves it at once, where it would
    otherwise wait up to ten minutes for one. Without it, positions of copies are never fresh and scale-downs are
    held."""


class InjectVia(Enum):
    """The environment variable by which a JVM learns of the agent."""

    JDK_JAVA_OPTIONS = "JDK_JAVA_OPTIONS"
    JAVA_TOOL_OPTIONS = "JAVA_TOOL_OPTIONS"


class AgentDefault(Enum):
    """A setting that the agent may give another default."""

    ASSIGNOR = "assignor"
    HEARTBEAT = "heartbeat"
    LEAVE = "leave"


class Agent(ApiModel):
    """An agent in the application's JVM, which tells what its tasks do and takes part in moving them."""

    rules = (
        Rule(
            cel="!has(self.defaults) || self.defaults.all(d, self.defaults.exists_one(e, e == d))",
            message="must name nothing twice",
            field="defaults",
            holds=lambda agent: len(set(agent.defaults)) == len(agent.defaults),
        ),
    )

    enabled: StrictBool = False
    """Put the agent into every pod. Pods get it at their next restart, which `rollout.policy` decides about."""
    inject_via: InjectVia = InjectVia.JDK_JAVA_OPTIONS
    """Variable of the application's container to which `-javaagent` is added. JDK_JAVA_OPTIONS: read by the `java`
    launcher alone, from Java 9 on. JAVA_TOOL_OPTIONS: read by every JVM in the container, `jcmd` and `keytool`
    included."""
    port: Annotated[StrictInt, Field(ge=1, le=65535, json_schema_extra=INT32)] = 7711
    """Port of the pod at which the agent answers the operator."""
    defaults: Annotated[tuple[AgentDefault, ...], Field(max_length=3)] = Field(
        default=tuple(AgentDefault), json_schema_extra={"x-kubernetes-list-type": "atomic"}
    )
    """Settings of Kafka Streams that get another default where the application leaves them unset. assignor: the task
    assignor that learns on demand. heartbeat: 500 ms for the main consumer. leave: a pod that leaves gives its place in
    the group up at once."""


class ScaleDown(ApiModel):
    """When pods may go."""

    # The API server tries the rules on the default `{}` too, before it fills in the children's own.
    rules = (
        Rule(
            cel="!has(self.policy) || self.policy != 'Immediate' || self.reason.trim() != ''",
            message="must say why, since policy Immediate removes pods without caught-up copies",
            field="reason",
            holds=lambda chosen: chosen.policy is not ScaleDownPolicy.IMMEDIATE or bool(chosen.reason.strip()),
        ),
        Rule(
            cel="!has(self.onTimeout) || self.onTimeout != 'Proceed' || self.reason.trim() != ''",
            message="must say why, since onTimeout Proceed removes pods without caught-up copies",
            field="reason",
            holds=lambda chosen: chosen.on_timeout is not OnTimeout.PROCEED or bool(chosen.reason.strip()),
        ),
    )

    policy: ScaleDownPolicy = ScaleDownPolicy.HOLD
    """Hold: keep a pod until every stateful task runs on, or has a caught-up copy on, a pod that stays. Immediate: do
    not wait for copies; every other check stays."""
    reason: Why = ""
    """Why copies may be ignored; needed for policy Immediate and for onTimeout Proceed, kept on record."""
    stabilization_window: StabilizationWindow = timedelta(seconds=30)
    """The replicas must have been lower for so long before anything is prepared."""
    timeout: Timeout = timedelta(hours=1)
    """How long a hold may last without progress before `onTimeout` applies."""
    on_timeout: OnTimeout = OnTimeout.WAIT
    """Wait: go on waiting and say so (condition Stalled). GiveUp: call the scale-down off until the spec changes.
    Proceed: go on without caught-up copies, one pod at a time."""
    allow_zero: StrictBool = False
    """Allow zero replicas. No copy can remain then; the volumes do."""


class Rollout(ApiModel):
    """How pods get a changed template."""

    policy: RolloutPolicy = RolloutPolicy.WHEN_CAUGHT_UP
    """WhenCaughtUp: one pod at a time, each when every stateful task has a caught-up copy elsewhere. Paused: none.
    Immediate: one at a time, without asking for copies."""


class StreamAppSpec(ApiModel):
    """What the user wants."""

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
            cel="!has(self.learners.source) || self.learners.source != 'OnDemand' || self.agent.enabled",
            message="must not be OnDemand unless agent.enabled is true: the agent brings the assignor",
            field="learners.source",
            holds=lambda spec: spec.learners.source is not Source.ON_DEMAND or spec.agent.enabled,
        ),
        Rule(
            cel="has(self.state) == has(oldSelf.state)",
            message=f"cannot be added or taken away: {FIXED_CLAIM}; create another StreamApp",
            field="state",
        ),
    )

    replicas: Annotated[StrictInt, Field(ge=0, le=MOST_REPLICAS, json_schema_extra=INT32)] = 1
    """Pods that are wished for. Raised at once; lowered one pod at a time, when copies allow it. The operator never
    writes it; leave it out of Git where an autoscaler drives it."""
    application_id: ApplicationId = Field(
        json_schema_extra=unchangeable("it names the consumer group, its topics and the state on the volumes")
    )
    """The application's `application.id`. It cannot be changed."""
    topology: TopologyText = ""
    """What `Topology#describe()` prints. Needed where the operator cannot tell the tasks by itself: more than one
    sub-topology has stores, a source topic serves as changelog, or a store is not logged."""
    kafka: Kafka
    """How the operator reaches the Kafka cluster of the application."""
    template: PodTemplate
    """The pods, as in a StatefulSet. The operator adds its label, the volume of `state` with its mount, an init
    container, and what `agent` needs."""
    container: ContainerName = ""
    """The container that runs the application. Empty: the first."""
    state: State | None = None
    """A volume for each ordinal. Absent: the application has no persistent store. It cannot be added or taken away
    later."""
    learners: Learners = Learners()
    """What is known of the copies of tasks on other pods."""
    agent: Agent = Agent()
    """An agent in the application's JVM."""
    scale_down: ScaleDown = ScaleDown()
    """When pods may go."""
    rollout: Rollout = Rollout()
    """How pods get a changed template."""
    paused: StrictBool = False
    """Scale, restart and prepare nothing; a pod that is already going is seen to its end."""
    dry_run: StrictBool = False
    """Decide and report everything, do nothing."""

    @property
    def application_container(self) -> dict[str, Any]:
        """The container that runs the application, as it stands in the template."""
        containers: list[dict[str, Any]] = self.template["spec"]["containers"]
        return next((one for one in containers if one["name"] == self.container), containers[0])
