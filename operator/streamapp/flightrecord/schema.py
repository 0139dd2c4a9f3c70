"""The contract of the flight record: what the operator saw and did, one JSON object a line.

The operator's recorder writes it, `streamapp.analytics` reads it, and `docs/flight-record.schema.json` publishes it. A
line leaves out what is unknown. `recorder` and `seq` identify a line. Times are those of the recorder's clock, in UTC.
A version can gain kinds and fields; a field that changes its meaning makes a new version.
"""

from enum import Enum
from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from streamapp.flightrecord.contract import Count, Line, Offsets, Part, Seconds, Task, Time

MOST_BLOCKERS = 100
"""The most tasks that a decision names, the furthest behind first; `blockingCount` counts all of them."""

MOST_MOVED = 200
"""The most moves that a forecast names; `moves` counts all of them."""


class Role(Enum):
    """The purpose of a copy of a task."""

    ACTIVE = "ACTIVE"
    STANDBY = "STANDBY"
    """Standby or warm-up; the classic protocol does not distinguish them."""
    LEARNER = "LEARNER"
    """A copy made on demand, to take over the task."""


class TaskState(Enum):
    """Of an active copy."""

    RUNNING = "RUNNING"
    RESTORING = "RESTORING"


class SampleSource(Enum):
    """The source of a sample."""

    GROUP = "GROUP"
    """Offset sums that members sent at their last join; the operator read end offsets right after."""
    AGENT = "AGENT"
    """Positions from the JVM; the operator read end offsets after them."""


class SampledCopies(Part):
    """Copies in one process at one time that differ in task and offsets alone. Each list has an entry for each copy."""

    process_id: str
    ordinal: Count
    at: Time
    """Time of the report or reading."""
    role: Role
    state: TaskState | None = None
    """Absent for standbys, and if unknown."""
    source: SampleSource
    interval_seconds: Seconds
    """Time to the next sample of these copies, if nothing changes."""
    tasks: Annotated[tuple[Task, ...], Field(min_length=1)]
    offsets: tuple[Offsets | None, ...] | None = None
    """The next offset that each copy applies, null if unknown; absent if all are, as for running actives."""
    end_offsets: tuple[Offsets | None, ...] | None = None

    @model_validator(mode="after")
    def _has_an_entry_for_each_copy(self) -> Self:
        if any(given is not None and len(given) != len(self.tasks) for given in (self.offsets, self.end_offsets)):
            raise ValueError("offsets and endOffsets need an entry for each task")
        return self


class SamplesLine(Line):
    """The copies of an application that one pass sampled; `ts` is the latest `at`."""

    kind: Literal["samples"] = "samples"
    epoch: Count
    """The epoch of the assignment that the samples belong to, see `group`."""
    copies: Annotated[tuple[SampledCopies, ...], Field(min_length=1)]


class SampleLine(Line):
    """One copy of one task at one time, as operators wrote it at first; `samples` took its place."""

    kind: Literal["sample"] = "sample"
    task: Task
    role: Role
    state: TaskState | None = None
    """Absent for standbys, and if unknown."""
    ordinal: Count
    process_id: str
    offset: Offsets | None = None
    """The next offset that the copy applies; absent for a running active, and if unknown."""
    end_offset: Offsets | None = None
    source: SampleSource
    interval_seconds: Seconds
    """Time to the next sample of this copy, if nothing changes."""
    epoch: Count
    """The epoch of the assignment that the sample belongs to, see `group`."""


class Actor(Enum):
    """Who changed the desired replicas."""

    HPA = "HPA"
    KEDA = "KEDA"
    USER = "USER"
    UNKNOWN = "UNKNOWN"


class ScaleLine(Line):
    """The desired replicas changed."""

    kind: Literal["scale"] = "scale"
    old_replicas: Count | None = None
    """Absent in the first line that a recorder writes of an application."""
    new_replicas: Count
    actor: Actor
    manager: str = ""
    """The field manager that wrote the number; empty if unknown."""
    generation: Count


class Blocker(Part):
    """A task that blocks a scale-down."""

    task: Task
    ordinal: Count | None = None
    """The pod with the best copy; absent without a copy."""
    lag: Offsets | None = None


class EtaKind(Enum):
    """What two measurements of the lag say of the end of a hold."""

    KNOWN = "KNOWN"
    NEVER = "NEVER"
    """The copies come no nearer."""
    NOT_MEASURED = "NOT_MEASURED"
    """There are no two measurements to compare."""


class DecisionLine(Line):
    """A decision of the operator: one line for each change, and one for each pass during a hold."""

    kind: Literal["decision"] = "decision"
    verdict: str
    reason: str
    detail: str = ""
    desired: Count
    granted: Count
    actual: Count
    ready: Count
    hold_id: str = ""
    """Empty without a hold."""
    hold_since: Time | None = None
    target: Count | None = None
    """Replicas at the end of the held scale-down."""
    blocking: Annotated[tuple[Blocker, ...], Field(max_length=MOST_BLOCKERS)] = ()
    blocking_count: Count = 0
    eta_seconds: Seconds | None = None
    """By two measurements of the lag."""
    eta_kind: EtaKind | None = None
    """Whether there is an estimate, and if not, why; absent without a hold."""
    converged: bool | None = None
    """Absent if unknown."""
    converging_reason: str = ""
    """Why the application has not converged; empty if it has."""


class StepOutcome(Enum):
    """The result of a step."""

    DONE = "DONE"
    FAILED = "FAILED"


class StepLine(Line):
    """One write or call of a decision's plan."""

    kind: Literal["step"] = "step"
    step: str
    """For example `GrantReplicas`, `RestartPod`, `TriggerRebalance`, `Evict`, `Announce`."""
    outcome: StepOutcome
    reason: str
    hold_id: str = ""
    from_replicas: Count | None = None
    to_replicas: Count | None = None
    ordinal: Count | None = None


class StepClosedLine(Line):
    """A completed removal: the pods are gone and every task runs."""

    kind: Literal["stepClosed"] = "stepClosed"
    hold_id: str
    from_replicas: Count
    to_replicas: Count
    granted_at: Time
    took_seconds: Seconds
    held_seconds: Seconds | None = None
    worst_gap_seconds: Seconds | None = None
    """The longest observed time without a running copy of a task, at most."""
    gap_error_seconds: Seconds | None = None
    forced_by: str = ""


class MovedTask(Part):
    """A stateful task that ends on another pod."""

    task: Task
    source: Count
    """Ordinal of the pod that has it before."""
    target: Count


class ForecastLine(Line):
    """What the operator predicted of a change of the desired replicas, before anything of the change was seen."""

    kind: Literal["forecast"] = "forecast"
    opened_at: Time
    """When the desired replicas changed: `ts` of the `scale` line."""
    from_replicas: Count
    to_replicas: Count
    assignor: str
    """`stock`, `learner`, or `sticky` where brokers assign."""
    moves: Count
    moved: Annotated[tuple[MovedTask, ...], Field(max_length=MOST_MOVED)] = ()
    """The first of the moves."""
    learners: Count
    """Copies that are made on the way."""
    rebalances: Count
    worst_share: Count
    """The most stateful tasks that one pod runs on the way."""
    cold: Count
    """Tasks that start without a caught-up copy."""
    p10_seconds: Seconds | None = None
    """In a tenth of the cases the change is over before; absent if sizes of changelogs are not known."""
    p50_seconds: Seconds | None = None
    p90_seconds: Seconds | None = None
    fewest_moves: Count | None = None
    """Where brokers assign: in the way of the fewest moves; `moves` is one way. Absent for a classic group."""
    most_moves: Count | None = None
    uncertain_tasks: Count | None = None
    """Where brokers assign: tasks that can end on one of several pods, since ties fall by IDs of members."""


class ForecastResult(Enum):
    """How a forecast ended."""

    WITHIN = "WITHIN"
    """The time was within the range."""
    OUTSIDE = "OUTSIDE"
    NO_TIME = "NO_TIME"
    """The forecast had no time."""
    SUPERSEDED = "SUPERSEDED"
    """The desired replicas changed again before the change was over."""


class ForecastClosedLine(Line):
    """A predicted change is over: what was seen, beside the prediction."""

    kind: Literal["forecastClosed"] = "forecastClosed"
    opened_at: Time
    """As in the `forecast` line."""
    from_replicas: Count
    to_replicas: Count
    result: ForecastResult
    moves: Count
    """Predicted."""
    p10_seconds: Seconds | None = None
    p50_seconds: Seconds | None = None
    p90_seconds: Seconds | None = None
    fewest_moves: Count | None = None
    most_moves: Count | None = None
    uncertain_tasks: Count | None = None
    seen_moves: Count | None = None
    """Absent if the change was superseded, as are the next two."""
    wrong_moves: Count | None = None
    """Stateful tasks that ended on a pod that was predicted in no way."""
    seen_seconds: Seconds | None = None
    """From the change of the desired replicas until members and tasks were as they stayed."""
    error_ratio: Seconds | None = None
    """`seenSeconds` as a multiple of `p50Seconds`; absent if one of them is."""


class GapLine(Line):
    """A task runs again, on another process or after it had stopped; `ts` is the first time it was seen running."""

    kind: Literal["gap"] = "gap"
    task: Task
    ordinal: Count
    """The pod that runs the task now."""
    process_id: str
    last_ran_at: Time
    """The last time before `ts` that the task was seen running: the gap is at most the time between the two."""
    stood_seconds: Seconds
    """Time that the task was seen restoring in between: the gap is at least as long."""
    stopped_at: Time | None = None
    """When the process before stopped the task, after its commit; only agents report it."""
    started_at: Time | None = None
    """When this process began to run the task; with `stopped_at` the gap is a figure and no range."""
    began_before: bool = False
    """The task did not run when this recorder looked first, at `lastRanAt`: only a recorder before can know since when.
    """
    source: SampleSource


class ChangelogsLine(Line):
    """What all changelogs have taken so far; `ts` is when their ends were read. The growth is the throughput."""

    kind: Literal["changelogs"] = "changelogs"
    slots: Count
    """Ends of the changelogs of all stateful tasks, summed."""
    tasks: Count
    """How many tasks that are."""


class PodLine(Line):
    """A pod appeared, changed or is gone."""

    kind: Literal["pod"] = "pod"
    ordinal: Count
    pod_uid: str
    is_gone: bool = False
    node: str = ""
    revision: str = ""
    """Of the pod template."""
    is_scheduled: bool = False
    is_running: bool = False
    is_ready: bool = False
    is_terminating: bool = False
    container_id: str = ""
    process_id: str = ""
    """From its volume, or from its members."""
    volume: str = ""
    """Name of its claim; empty if it has none."""
    state_bytes: Count | None = None
    """What the state takes on the volume, by the agent. A change by a hundredth of the volume makes a line."""
    free_bytes: Count | None = None
    """What is free on the volume, by the agent."""
    requested_bytes: Count | None = None
    """What the claim of the volume asks for."""
    ended_at: Time | None = None
    """When the last container that ended in this pod did, by the node's clock; absent if none was seen to end."""
    end_reason: str = ""
    """How it ended, in the words of Kubernetes, for example `OOMKilled`."""
    exit_code: Count | None = None


class Holder(Part):
    """The tasks of one process."""

    process_id: str
    ordinal: Count | None = None
    active: tuple[Task, ...] = ()
    standby: tuple[Task, ...] = ()
    threads: Count = 0
    """Number of members with this process ID."""


class GroupLine(Line):
    """The consumer group's state or assignment changed."""

    kind: Literal["group"] = "group"
    epoch: Count
    """Rises with each new assignment, across recorders too: milliseconds since 1970 of its first reading."""
    state: str
    """Kafka's name of the state, or the reason why the group could not be read."""
    protocol: str = "classic"
    holders: tuple[Holder, ...] = ()
    follow_up: bool | None = None
    """Whether a follow-up rebalance is scheduled; absent if unknown."""


class AutoscalerLine(Line):
    """The state of an autoscaler of the application."""

    kind: Literal["autoscaler"] = "autoscaler"
    name: str
    aims_at: str
    """Kind of its target."""
    min_replicas: Count | None = None
    max_replicas: Count | None = None
    current_replicas: Count | None = None
    desired_replicas: Count | None = None
    is_active: bool | None = None
    cannot_act: str = ""
    """Why it does not scale: the reason word of its condition, for example `FailedGetResourceMetric`; empty if it does.
    """
    limited_by: str = ""
    """The reason word of its condition `ScalingLimited`, for example `TooFewReplicas`: it wants fewer than
    `minReplicas`. Empty if it is not limited."""
    up_window_seconds: Seconds | None = None
    """`behavior.scaleUp.stabilizationWindowSeconds`; absent if the spec leaves it to Kubernetes, as is the next."""
    down_window_seconds: Seconds | None = None


class ConfigLine(Line):
    """The settings of the application and the operator: once at the start, then at each change."""

    kind: Literal["config"] = "config"
    generation: Count
    application_id: str
    image: str = ""
    tasks: Count | None = None
    stateful_tasks: tuple[Task, ...] = ()
    threads: Count | None = None
    """Sum over all pods."""
    acceptable_recovery_lag: Count
    """Of the StreamApp."""
    application_recovery_lag: Count | None = None
    """The application's own `acceptable.recovery.lag`, by its agents; the smaller of the two is in force."""
    learner_source: str = ""
    """`Standbys`, `OnDemand`, `None`; empty if unknown."""
    standby_replicas: Count | None = None
    stabilization_seconds: Seconds
    timeout_seconds: Seconds
    scale_down_policy: str
    heartbeat_seconds: Seconds | None = None
    """The consumers' `heartbeat.interval.ms`, by the agents, as are the next four. Where pods differ: the longest."""
    session_timeout_seconds: Seconds | None = None
    """The consumers' `session.timeout.ms`: so long a process that died keeps its tasks."""
    leaves_on_close: bool | None = None
    """Whether every process gives up its tasks when it closes."""
    is_static: bool | None = None
    """Whether a consumer is a static member."""
    streams_versions: tuple[str, ...] = ()
    """Versions of Kafka Streams in the pods, in order."""
    availability: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = None
    """Percentage of the task-seconds in which tasks must run: `spec.objective.availability`."""
    paused: bool = False
    dry_run: bool = False


class Mark(Enum):
    """The event of a recorder."""

    STARTED = "STARTED"
    DROPPED = "DROPPED"
    """The recorder lost lines since its last such line."""
    STOPPED = "STOPPED"


class RecorderLine(Line):
    """An event of the recorder itself."""

    kind: Literal["recorder"] = "recorder"
    mark: Mark
    dropped: Count = 0
    """Number of lost lines; this line has the number (`seq`) of the last of them."""
    term: Count | None = None
    """How often the Lease had changed hands when this process began to lead; absent without a Lease."""
    operator_version: str = ""


Record = Annotated[
    SamplesLine
    | SampleLine
    | ScaleLine
    | DecisionLine
    | StepLine
    | StepClosedLine
    | ForecastLine
    | ForecastClosedLine
    | GapLine
    | ChangelogsLine
    | PodLine
    | GroupLine
    | AutoscalerLine
    | ConfigLine
    | RecorderLine,
    Field(discriminator="kind"),
]

RECORD: TypeAdapter[Record] = TypeAdapter(Record)
"""Reads and writes lines of any kind."""


def to_line(record: Record) -> bytes:
    """The record as one line of JSON, with its newline; fields without a value are left out."""
    return RECORD.dump_json(record, by_alias=True, exclude_none=True) + b"\n"


def schema() -> dict[str, object]:
    """JSON Schema of a line."""
    return RECORD.json_schema(by_alias=True, mode="validation")
