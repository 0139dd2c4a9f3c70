"""`status` of a StreamApp: the operator writes it, users and tools read it.

An unknown value is absent, never a number. Lists that only the operator writes are atomic; conditions are a map by
type.
"""

from datetime import datetime, timedelta
from enum import Enum
from typing import Annotated, Any

from pydantic import Field

from streamapp.api.v1alpha1.cel_rules import ApiModel
from streamapp.api.v1alpha1.durations import DurationText
from streamapp.api.v1alpha1.field_types import INT32, INT64
from streamapp.core.actions.decision import Answer
from streamapp.core.facts.hold_record import RaiseState
from streamapp.core.facts.policy import LearnerSource

MOST_MEMBERS = 200
MOST_STEPS = 10
MOST_CAUSES = 6
MOST_SLOWEST = 10
MOST_CONDITIONS = 32
MOST_MESSAGE = 4096
MOST_LINE = 1024

Span = Annotated[timedelta, DurationText()]
Count = Annotated[int, Field(ge=0, le=2**31 - 1, json_schema_extra=INT32)]
Records = Annotated[int, Field(ge=0, json_schema_extra=INT64)]
Line = Annotated[str, Field(max_length=MOST_LINE)]
TaskName = Annotated[str, Field(max_length=32)]
ReasonName = Annotated[str, Field(min_length=1, max_length=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]

_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}
_BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}


class GroupProtocol(Enum):
    """The protocol of the consumer group."""

    CLASSIC = "classic"
    STREAMS = "streams"


class ConvergenceState(Enum):
    """Whether the application is converged."""

    CONVERGED = "Converged"
    CONVERGING = "Converging"
    UNKNOWN = "Unknown"


class AgentState(Enum):
    """The state of the agent in a pod."""

    ACTIVE = "Active"
    INACTIVE = "Inactive"
    UNREACHABLE = "Unreachable"


class ForcedBy(Enum):
    """What overrides coverage."""

    POLICY = "Policy"
    OVERRIDE = "Override"
    TIMEOUT = "Timeout"


class EstimateSource(Enum):
    """What an estimated completion time rests on."""

    LIVE = "Live"
    LEARNED = "Learned"


class SlowTask(ApiModel):
    """A task without a caught-up copy."""

    task: TaskName
    """Task ID, as Kafka Streams prints it: `0_31`."""
    ordinal: Count | None = None
    """Pod with the best copy. Absent: no copy exists."""
    lag: Records | None = None
    """Lag of that copy, in records. Absent: unknown."""


class ConvergenceStatus(ApiModel):
    """How far the application is from converged: stable group, all tasks running, all copies caught up."""

    state: ConvergenceState
    """Converged, Converging, or Unknown."""
    progress: Annotated[int, Field(ge=0, le=100, json_schema_extra=INT32)] | None = None
    """Percentage of the initial lag that is applied, the best so far."""
    tasks: Count | None = None
    """Tasks of the topology."""
    running: Count | None = None
    """Tasks that are known to run."""
    learners: Count | None = None
    """Learners: standby and warm-up copies."""
    caught_up: Count | None = None
    """Learners within `acceptableRecoveryLag`."""
    remaining_lag: Records | None = None
    """Records that learners and restoring tasks must apply before they are caught up. Absent: unknown."""
    estimated_completion_time: datetime | None = None
    """When every learner will be caught up, rounded up. Absent: unknown, or the lag is not decreasing."""
    lag_falling: bool | None = None
    """Whether the lag decreases. False also if the learners would need more than a year. Absent: unknown."""
    slowest: Annotated[tuple[SlowTask, ...], Field(max_length=MOST_SLOWEST, json_schema_extra=_ATOMIC)] = ()
    """The tasks with the highest lag."""


class ForcedStatus(ApiModel):
    """An override of coverage."""

    by: ForcedBy
    """Policy: policy Immediate. Override: annotation `streamapp.dev/override`. Timeout: onTimeout Proceed."""
    reason: Line
    """The user's reason."""


class DesiredStatus(ApiModel):
    """Lower desired replicas, as the operator saw them without a break."""

    replicas: Count
    """The number."""
    since: datetime
    """When an operator first saw it, or when it was written, if the API server dates that."""
    generation: Annotated[int, Field(ge=0, json_schema_extra=INT64)]
    """Generation of the StreamApp that still had this number."""


class ScaleDownStatus(ApiModel):
    """The current scale-down."""

    hold_id: Annotated[str, Field(max_length=64)] | None = None
    """ID of this hold, for the annotation `streamapp.dev/override`. Absent: the hold is not recorded yet."""
    target: Count
    """Replicas at the end of the scale-down."""
    desired: DesiredStatus | None = None
    """For the next leader, which counts `stabilizationWindow` from there. Absent: desired replicas are not lower."""
    since: datetime | None = None
    """When the hold started."""
    last_progress: datetime | None = None
    """When the awaited lag last decreased."""
    next_ordinal: Count | None = None
    """Ordinal of the next pod to remove."""
    waiting_for: Count = 0
    """Tasks without a caught-up copy on a remaining pod."""
    estimated_completion_time: datetime | None = None
    """When the awaited copies will be caught up, rounded up. Absent: unknown, or their lag is not decreasing."""
    earliest_completion_time: datetime | None = None
    """Start of the range in which 9 of 10 earlier scale-downs of this kind continued, rounded up. Absent: unknown."""
    latest_completion_time: datetime | None = None
    """End of that range, rounded up. Absent: unknown."""
    estimate_source: EstimateSource | None = None
    """Live: from two measurements of the lag. Learned: from restore rates of earlier days, while two measurements are
    missing. Absent: there is no estimate."""
    lag_falling: bool | None = None
    """Whether the awaited lag decreases. False also if the copies would need more than a year. Absent: unknown."""
    reason: ReasonName
    """Reason of the last decision about the next pod."""
    forced: ForcedStatus | None = None
    """Set if coverage is overridden."""


class MemberStatus(ApiModel):
    """One pod and its Kafka Streams process."""

    ordinal: Count
    """Ordinal of the pod."""
    process_id: Annotated[str, Field(max_length=36)] | None = None
    """Process ID that the group members report, or else the ID recorded on the volume claim."""
    volume: Annotated[str, Field(max_length=253)] | None = None
    """Name of the volume claim."""
    active: Count | None = None
    """Assigned active tasks. Absent: the group cannot be read."""
    learners: Count | None = None
    """Assigned learners: standby and warm-up copies. Absent: the group cannot be read."""
    agent: AgentState | None = None
    """Active: the agent answers and its task assignor is in use. Inactive: the agent answers, but its task assignor is
    not in use. Unreachable: the agent does not answer. Absent: the application has no agent."""
    zone: Annotated[str, Field(max_length=63)] | None = None
    """Zone of the pod's node. Absent: unknown."""
    fault: Line | None = None
    """Why the pod does not run its application: exit code, restarts and the end of the termination message. Absent: it
    runs, or starts for the first time."""


class LastStep(ApiModel):
    """A completed step of a scale-down."""

    from_: Count = Field(validation_alias="from", serialization_alias="from")
    """Replicas before."""
    to: Count
    """Replicas after."""
    at: datetime
    """When the operator lowered the replicas of the StatefulSet."""
    held_duration: Span | None = None
    """How long the scale-down was held before this step. Absent: unknown."""
    duration: Span
    """Time until the pod was gone, its members had left the group, and every task ran."""
    downtime_max: Span | None = None
    """Upper bound of the longest downtime of a task. Absent: the operator did not observe it."""
    downtime_uncertainty: Span | None = None
    """How much shorter the downtime can have been: the operator only samples the group."""
    forced: ForcedStatus | None = None
    """Set if coverage was overridden."""


class CauseStatus(ApiModel):
    """The downtime of one cause."""

    cause: Annotated[str, Field(max_length=32)]
    """`crash`, `rollout`, `scale`, `eviction`, `rebalance` or `unknown`."""
    at_most: Span
    """Downtime of all tasks together, at most."""


class DowntimeStatus(ApiModel):
    """Times in which tasks did not run, of one month; the times of several tasks add up."""

    month: Annotated[str, Field(max_length=7, pattern="^[0-9]{4}-[0-9]{2}$")]
    """The calendar month in UTC. The first downtime of the next month begins a new count."""
    count: Count
    """How often a task did not run. A time counts when it has ended."""
    at_least: Span
    """Sum of the times that the operator saw."""
    at_most: Span
    """Sum of the times from the last look before to the first look after."""
    longest: Span
    """The longest time, at most."""
    longest_task: TaskName
    """Its task."""
    budget_used: Annotated[str, Field(max_length=16)] | None = None
    """`atMost` as a percentage of the month's budget: `spec.objective.availability` of all task-seconds. Absent: the
    tasks are unknown."""
    by_cause: Annotated[tuple[CauseStatus, ...], Field(max_length=MOST_CAUSES, json_schema_extra=_ATOMIC)] = ()
    """The most expensive cause first."""


class RaisedStandbysStatus(ApiModel):
    """`streams.num.standby.replicas` that the operator raised: a copy of what the hold record says."""

    before: Count | None = None
    """What was set for the group before. Absent: nothing, the brokers' default applied."""
    instead_of: Count
    """What applied before the last raise."""
    is_second: bool = False
    """Whether the operator had set that value, too."""
    to: Count
    """What the operator raised it to."""
    at: datetime
    """When this last changed."""
    state: RaiseState
    """How far the raise is: wanted, seen, foreign (another user's value stays), returning or returned."""
    lease: Count | None = None
    """Transitions of the operator's Lease at the first raise."""
    cluster: Annotated[str, Field(max_length=255)] | None = None
    """ID of the Kafka cluster where the operator raised it."""


class ConditionStatus(ApiModel):
    """One condition, as Kubernetes defines them."""

    type: Annotated[str, Field(max_length=316)]
    """Type of the condition."""
    status: Answer
    """True, False or Unknown."""
    observed_generation: Annotated[int, Field(ge=0, json_schema_extra=INT64)]
    """Generation of the StreamApp that the condition is about."""
    last_transition_time: datetime
    """When `status` last changed."""
    reason: ReasonName
    """Reason in PascalCase; docs/reasons.md explains each."""
    message: Annotated[str, Field(max_length=MOST_MESSAGE)]
    """The reason in sentences, with details."""


class StreamAppStatus(ApiModel):
    """The observed state."""

    observed_generation: Annotated[int, Field(ge=0, json_schema_extra=INT64)] | None = None
    """Generation of the StreamApp that the operator last reconciled."""
    replicas: Count = 0
    """Existing pods, including those that are terminating. Autoscalers divide by this number."""
    selector: Annotated[str, Field(max_length=253)] | None = None
    """Label selector of all pods, for autoscalers."""
    stateful_set_replicas: Count | None = None
    """Replicas of the StatefulSet, or its last replicas if it is gone."""
    ready_replicas: Count = 0
    """Ready pods."""
    learner_source: LearnerSource | None = None
    """Where learners come from, as last detected: OnDemand, Standbys, or None if the application makes none."""
    group_protocol: GroupProtocol | None = None
    """Protocol of the consumer group. Absent: not read yet."""
    convergence: ConvergenceStatus | None = None
    """How far the application is from converged."""
    scale_down: ScaleDownStatus | None = None
    """The current scale-down. Absent: there is none."""
    members: Annotated[tuple[MemberStatus, ...], Field(max_length=MOST_MEMBERS, json_schema_extra=_ATOMIC)] = ()
    """One entry per pod, up to 200 of the lowest ordinals."""
    last_steps: Annotated[tuple[LastStep, ...], Field(max_length=MOST_STEPS, json_schema_extra=_ATOMIC)] = ()
    """The last ten completed steps of scale-downs, newest first."""
    downtime: DowntimeStatus | None = None
    """Downtime of tasks in a month. Absent: the operator saw none yet."""
    raised_standbys: RaisedStandbysStatus | None = None
    """The setting of the group that the operator must put back. Absent: it must put back none."""
    conditions: Annotated[
        tuple[ConditionStatus, ...], Field(max_length=MOST_CONDITIONS, json_schema_extra=_BY_TYPE)
    ] = ()
    """Ready, Reconciling, Stalled, Converged, ScaleDownHeld, ProcessIdentityStable, KafkaReachable, LearnersAvailable,
    DisruptionAllowed,     AutoscalingHealthy."""
