"""`status` of a StreamApp: what the operator answers. Machine-written; users and tools read it.

What is not known is absent, never a number. Lists that only the operator writes are atomic; conditions are a map by
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
from streamapp.core.facts.policy import LearnerSource

MOST_MEMBERS = 200
MOST_STEPS = 10
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
    """How the consumer group is led."""

    CLASSIC = "classic"


class ConvergenceState(Enum):
    """Whether anything still moves."""

    CONVERGED = "Converged"
    CONVERGING = "Converging"
    UNKNOWN = "Unknown"


class AgentState(Enum):
    """What the agent in a pod does."""

    ACTIVE = "Active"
    INACTIVE = "Inactive"
    UNREACHABLE = "Unreachable"


class ForcedBy(Enum):
    """Where a user's word against coverage was given."""

    POLICY = "Policy"
    OVERRIDE = "Override"
    TIMEOUT = "Timeout"


class SlowTask(ApiModel):
    """A task that is behind."""

    task: TaskName
    """The task, as Kafka Streams prints it: `0_31`."""
    ordinal: Count | None = None
    """The pod with the copy that is behind; absent where there is no copy."""
    lag: Records | None = None
    """Records it is behind; absent where that is unknown."""


class ConvergenceStatus(ApiModel):
    """How far the application is from the state in which nothing moves any more."""

    state: ConvergenceState
    """Converged, Converging, or Unknown."""
    progress: Annotated[int, Field(ge=0, le=100, json_schema_extra=INT32)] | None = None
    """Percentage of the lag at the beginning that is worked off, the best so far."""
    tasks: Count | None = None
    """Tasks of the topology."""
    running: Count | None = None
    """Of these, known to run."""
    learners: Count | None = None
    """Copies on other pods: standbys and warm-ups."""
    caught_up: Count | None = None
    """Of these, within `acceptableRecoveryLag`."""
    remaining_lag: Records | None = None
    """Records that copies and restoring tasks still have to apply before they are caught up."""
    estimated_completion_time: datetime | None = None
    """When every copy will be caught up, rounded up; absent if unknown, or if the lag is not decreasing."""
    lag_falling: bool | None = None
    """Whether the lag decreases. False also if more than a year would be left. Absent if unknown."""
    slowest: Annotated[tuple[SlowTask, ...], Field(max_length=MOST_SLOWEST, json_schema_extra=_ATOMIC)] = ()
    """The tasks that are furthest behind."""


class ForcedStatus(ApiModel):
    """A user's word against coverage."""

    by: ForcedBy
    """Policy: policy Immediate. Override: an annotation that names this hold. Timeout: onTimeout Proceed."""
    reason: Line
    """Why, in the user's words."""


class ScaleDownStatus(ApiModel):
    """The scale-down that goes on."""

    hold_id: Annotated[str, Field(max_length=64)] | None = None
    """Names this hold, for `streamapp.dev/override`; absent before it is on record."""
    target: Count
    """Replicas at its end."""
    since: datetime | None = None
    """When it began."""
    last_progress: datetime | None = None
    """When the lag that it waits for was last seen to become less."""
    next_ordinal: Count | None = None
    """The pod that goes next."""
    waiting_for: Count = 0
    """Tasks without a caught-up copy on a pod that stays."""
    estimated_completion_time: datetime | None = None
    """When the awaited copies will be caught up, rounded up; absent if unknown, or if their lag is not decreasing."""
    lag_falling: bool | None = None
    """Whether their lag decreases. False also if more than a year would be left. Absent if unknown."""
    reason: ReasonName
    """Why the next pod does not go yet, or that it goes."""
    forced: ForcedStatus | None = None
    """Set where coverage is overridden."""


class MemberStatus(ApiModel):
    """One pod and its Kafka Streams process."""

    ordinal: Count
    """Of the pod."""
    process_id: Annotated[str, Field(max_length=36)] | None = None
    """Of the process, as its members show it, else as recorded on the volume."""
    volume: Annotated[str, Field(max_length=253)] | None = None
    """The volume claim."""
    active: Count | None = None
    """Tasks assigned to it as active; absent where the group is not readable."""
    learners: Count | None = None
    """Copies assigned to it: standbys and warm-ups; absent where the group is not readable."""
    agent: AgentState | None = None
    """Active: its agent answers, and the assignor that learns on demand is at work there. Inactive: its agent answers,
    and that assignor is not at work. Unreachable: its agent does not answer. Absent if the application has no agent."""


class LastStep(ApiModel):
    """A step of a scale-down that is finished."""

    from_: Count = Field(validation_alias="from", serialization_alias="from")
    """Replicas before."""
    to: Count
    """Replicas after."""
    at: datetime
    """When it was granted."""
    held_duration: Span | None = None
    """How long the scale-down had been held then."""
    duration: Span
    """From the grant until the pod was gone, its place in the group was free, and every task ran."""
    downtime_max: Span | None = None
    """The longest time in which no member had a task running, at most; absent where it was not seen."""
    downtime_uncertainty: Span | None = None
    """How much shorter it may have been: the operator sees the group only now and then."""
    forced: ForcedStatus | None = None
    """Set where coverage was overridden."""


class ConditionStatus(ApiModel):
    """One condition, as Kubernetes defines them."""

    type: Annotated[str, Field(max_length=316)]
    """Which."""
    status: Answer
    """True, False or Unknown."""
    observed_generation: Annotated[int, Field(ge=0, json_schema_extra=INT64)]
    """The generation of the StreamApp that it speaks of."""
    last_transition_time: datetime
    """When the status last changed."""
    reason: ReasonName
    """Why, in one word; docs/reasons.md explains each."""
    message: Annotated[str, Field(max_length=MOST_MESSAGE)]
    """Why, in sentences."""


class StreamAppStatus(ApiModel):
    """What the operator answers."""

    observed_generation: Annotated[int, Field(ge=0, json_schema_extra=INT64)] | None = None
    """The generation of the StreamApp that was last decided about."""
    replicas: Count = 0
    """Pods that exist, those that are about to go included: what an autoscaler's average is divided by."""
    selector: Annotated[str, Field(max_length=253)] | None = None
    """Selects all pods, as text, for autoscalers."""
    stateful_set_replicas: Count | None = None
    """Replicas of the StatefulSet, or, where it is gone, those it last had."""
    ready_replicas: Count = 0
    """Pods that are ready."""
    learner_source: LearnerSource | None = None
    """Where copies of tasks come from, as last seen: OnDemand, Standbys, or None where the application makes none."""
    group_protocol: GroupProtocol | None = None
    """How the consumer group is led; absent until it was read."""
    convergence: ConvergenceStatus | None = None
    """How far the application is from the state in which nothing moves any more."""
    scale_down: ScaleDownStatus | None = None
    """The scale-down that goes on; absent while there is none."""
    members: Annotated[tuple[MemberStatus, ...], Field(max_length=MOST_MEMBERS, json_schema_extra=_ATOMIC)] = ()
    """One entry per pod, the lowest 200 ordinals."""
    last_steps: Annotated[tuple[LastStep, ...], Field(max_length=MOST_STEPS, json_schema_extra=_ATOMIC)] = ()
    """The last ten finished steps of scale-downs, newest first."""
    conditions: Annotated[
        tuple[ConditionStatus, ...], Field(max_length=MOST_CONDITIONS, json_schema_extra=_BY_TYPE)
    ] = ()
    """Ready, Reconciling, Stalled, Converged, ScaleDownHeld, ProcessIdentityStable, KafkaReachable, LearnersAvailable,
    AutoscalingHealthy."""
