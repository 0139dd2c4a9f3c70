"""The flight record: what the operator saw and did, one JSON object a line, for whoever asks later what a step cost.

The contract between the operator's recorder and `streamapp.analytics`; its schema lies in
`docs/flight-record.schema.json`. What is not known is left out of a line and never a number. A line is told apart from
every other by `recorder` and `seq`. Times are those of the recorder's clock, in UTC. Fields may be added within a
version; a field that changes its meaning makes a new one.
"""

from datetime import datetime
from enum import Enum
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer, TypeAdapter
from pydantic.alias_generators import to_camel

VERSION: Final = 1
MOST_BLOCKERS = 100
"""Tasks that one decision names at most, the furthest behind first; `blockingCount` has them all."""

Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Task = Annotated[str, Field(pattern=r"^[0-9]+_[0-9]+$")]
Offsets = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""Slots of the changelogs of a task, all of them summed; not records: markers and compacted ones count."""


def _in_micros(time: datetime) -> str:
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


Time = Annotated[AwareDatetime, PlainSerializer(_in_micros, return_type=str)]
"""In UTC."""


class Part(BaseModel):
    """Some fields of a line: camel case outside, closed, unchangeable."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )


class Line(Part):
    """What every line has."""

    v: Literal[1] = VERSION
    """Version of this contract."""
    cluster: str
    """Name of the Kubernetes cluster, as the operator's settings give it; may be empty."""
    namespace: str
    app: str
    """Name of the StreamApp; empty on lines about the recorder itself."""
    uid: str
    """Of the StreamApp: another one under the same name is another application."""
    ts: Time
    """When it was the case."""
    recorder: str
    """The process that wrote the line: its pod and something made up at its start."""
    seq: Count
    """Rises by one with each line of that process, the dropped ones included."""


class Role(Enum):
    """What a copy of a task is there for."""

    ACTIVE = "ACTIVE"
    STANDBY = "STANDBY"
    """Standby or warm-up; the classic protocol does not tell them apart."""
    LEARNER = "LEARNER"
    """A copy on its way to take over, made on demand."""


class TaskState(Enum):
    """Of an active copy."""

    RUNNING = "RUNNING"
    RESTORING = "RESTORING"


class SampleSource(Enum):
    """Whose word a sample is."""

    GROUP = "GROUP"
    """Offset sums that members gave when they last joined, with ends read right after."""
    AGENT = "AGENT"
    """Positions from the JVM, with ends read after them."""


class Sample(Line):
    """One copy of one task at one look."""

    kind: Literal["sample"] = "sample"
    task: Task
    role: Role
    state: TaskState | None = None
    """Absent of standbys, and where it is not known."""
    ordinal: Count
    process_id: str
    offset: Offsets | None = None
    """The next slot that the copy applies; absent of a running active and where it is not known."""
    end_offset: Offsets | None = None
    source: SampleSource
    interval_seconds: Seconds
    """When the next sample of this copy was to be expected, if nothing changed."""
    epoch: Count
    """The layout of members and tasks it belongs to, see `group`."""


class Actor(Enum):
    """Who changed what is wished for."""

    HPA = "HPA"
    KEDA = "KEDA"
    USER = "USER"
    UNKNOWN = "UNKNOWN"


class Scale(Line):
    """Another number of replicas is wished for."""

    kind: Literal["scale"] = "scale"
    old_replicas: Count | None = None
    """Absent in the first line that a recorder writes of an application."""
    new_replicas: Count
    actor: Actor
    manager: str = ""
    """The field manager that wrote it, where that is on record."""
    generation: Count


class Blocker(Part):
    """A task that a hold waits for."""

    task: Task
    ordinal: Count | None = None
    """The pod with the best copy; absent where there is none."""
    lag: Offsets | None = None


class Decision(Line):
    """What the operator decided: one line for each change, and one for each look while it holds."""

    kind: Literal["decision"] = "decision"
    verdict: str
    reason: str
    detail: str = ""
    desired: Count
    granted: Count
    actual: Count
    ready: Count
    hold_id: str = ""
    """Empty while nothing is held."""
    hold_since: Time | None = None
    target: Count | None = None
    """What the hold goes down to."""
    blocking: Annotated[tuple[Blocker, ...], Field(max_length=MOST_BLOCKERS)] = ()
    blocking_count: Count = 0
    eta_seconds: Seconds | None = None
    converged: bool | None = None
    """Absent where it cannot be told."""
    converging_reason: str = ""
    """What convergence waits for; empty where it is converged."""


class StepOutcome(Enum):
    """What became of a step."""

    DONE = "DONE"
    FAILED = "FAILED"


class Step(Line):
    """One write or call that a decision asked for."""

    kind: Literal["step"] = "step"
    step: str
    """As in `GrantReplicas`, `RestartPod`, `Nudge`, `Evict`, `Announce`."""
    outcome: StepOutcome
    reason: str
    hold_id: str = ""
    from_replicas: Count | None = None
    to_replicas: Count | None = None
    ordinal: Count | None = None


class StepClosed(Line):
    """A removal is finished: the pods are gone and every task runs."""

    kind: Literal["stepClosed"] = "stepClosed"
    hold_id: str
    from_replicas: Count
    to_replicas: Count
    granted_at: Time
    took_seconds: Seconds
    held_seconds: Seconds | None = None
    worst_gap_seconds: Seconds | None = None
    """The longest time without a running copy of a task, as far as it was seen."""
    gap_error_seconds: Seconds | None = None
    forced_by: str = ""


class TaskGap(Line):
    """A task was seen running again, on another process or after it had stopped; `ts` is the first time that it was."""

    kind: Literal["gap"] = "gap"
    task: Task
    ordinal: Count
    """The pod that runs it now."""
    process_id: str
    last_ran_at: Time
    """The last time before that it was seen running: the gap is no longer than from then to `ts`."""
    stood_seconds: Seconds
    """So long it was seen restoring in between: the gap is no shorter."""
    source: SampleSource


class Pod(Line):
    """A pod came, changed or went."""

    kind: Literal["pod"] = "pod"
    ordinal: Count
    pod_uid: str
    is_gone: bool = False
    node: str = ""
    revision: str = ""
    """Of its template."""
    is_scheduled: bool = False
    is_running: bool = False
    is_ready: bool = False
    is_terminating: bool = False
    container_id: str = ""
    process_id: str = ""
    """As its volume has it, or its member shows."""
    volume: str = ""
    """Name of its claim; empty where it keeps no state."""
    state_bytes: Count | None = None
    free_bytes: Count | None = None


class Holder(Part):
    """What one process holds."""

    process_id: str
    ordinal: Count | None = None
    active: tuple[Task, ...] = ()
    standby: tuple[Task, ...] = ()
    threads: Count = 0
    """Members that show this process ID."""


class Group(Line):
    """The consumer group is in another state, or its members hold other tasks."""

    kind: Literal["group"] = "group"
    epoch: Count
    """Rises with each layout, from one recorder to the next too: milliseconds since 1970 when it was first seen."""
    state: str
    """As Kafka calls it, or the reason why it could not be read."""
    protocol: str = "classic"
    holders: tuple[Holder, ...] = ()
    follow_up: bool | None = None
    """Another rebalance is scheduled; absent where that is not known."""


class Autoscaler(Line):
    """What an autoscaler of the application says."""

    kind: Literal["autoscaler"] = "autoscaler"
    name: str
    aims_at: str
    """Kind of its target."""
    min_replicas: Count | None = None
    max_replicas: Count | None = None
    current_replicas: Count | None = None
    desired_replicas: Count | None = None
    is_active: bool | None = None


class Config(Line):
    """What the application and the operator go by, once at the beginning and then at each change."""

    kind: Literal["config"] = "config"
    generation: Count
    application_id: str
    image: str = ""
    tasks: Count | None = None
    stateful_tasks: tuple[Task, ...] = ()
    threads: Count | None = None
    """Of all pods together."""
    acceptable_recovery_lag: Count
    learner_source: str = ""
    """`Standbys`, `OnDemand`, `None`; empty where it is not known."""
    standby_replicas: Count | None = None
    stabilization_seconds: Seconds
    timeout_seconds: Seconds
    scale_down_policy: str
    settle_seconds: Seconds | None = None
    paused: bool = False
    dry_run: bool = False


class Mark(Enum):
    """What a line about the recorder says."""

    STARTED = "STARTED"
    DROPPED = "DROPPED"
    """So many lines were lost since the last such line."""
    STOPPED = "STOPPED"


class Recorder(Line):
    """A word of the recorder about itself."""

    kind: Literal["recorder"] = "recorder"
    mark: Mark
    dropped: Count = 0
    """Lines that were lost; the line that tells so bears the number of the last of them."""
    operator_version: str = ""


Record = Annotated[
    Sample | Scale | Decision | Step | StepClosed | TaskGap | Pod | Group | Autoscaler | Config | Recorder,
    Field(discriminator="kind"),
]

RECORD: TypeAdapter[Record] = TypeAdapter(Record)
"""Reads and writes any of them."""


def to_line(record: Record) -> bytes:
    """The record as one line of JSON, its newline included; what is not known is left out."""
    return RECORD.dump_json(record, by_alias=True, exclude_none=True) + b"\n"


def schema() -> dict[str, object]:
    """JSON Schema of a line."""
    return RECORD.json_schema(by_alias=True, mode="validation")
