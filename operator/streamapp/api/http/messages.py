"""What the operator answers over HTTP, read only: which tasks there are, what is wrong, and who answers.

The contract between the operator and `kubectl streamapp tasks`, `doctor`, `history` and `migrate`:
`GET /v1/apps/{namespace}/{name}/tasks`, `…/findings`, `…/group`, `…/history` and `/v1/operator`. Version 1: fields are
added, never renamed or taken away, and whoever reads leaves unknown ones out of account. What is not known is absent.
Nothing in it is a secret.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

PORT = 8080
"""Of probes and metrics."""
API_PORT = 8081
"""Of everything here, on the loopback address of the operator's pod."""
OPERATOR_PATH = "/v1/operator"


def tasks_path(namespace: str, name: str) -> str:
    """Where the tasks of a StreamApp are."""
    return f"/v1/apps/{namespace}/{name}/tasks"


def findings_path(namespace: str, name: str) -> str:
    """Where the findings about a StreamApp are."""
    return f"/v1/apps/{namespace}/{name}/findings"


def group_path(namespace: str, name: str) -> str:
    """Where the consumer group of a StreamApp is."""
    return f"/v1/apps/{namespace}/{name}/group"


def history_path(namespace: str, name: str, since: datetime | None) -> str:
    """Where the flight record tells of a StreamApp, from a time on."""
    path = f"/v1/apps/{namespace}/{name}/history"
    return path if since is None else f"{path}?since={since.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


NO_RECORD = "no flight record is kept"
"""In the answer of an operator that keeps none."""


class Answered(BaseModel):
    """A part of an answer: camel case outside, unchangeable, open for what newer operators add."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
    )

    def as_json(self) -> bytes:
        """The bytes, without what is not known."""
        return self.model_dump_json(by_alias=True, exclude_none=True).encode()


class TaskOwner(Answered):
    """Who has a task as active."""

    ordinal: int | None = None
    """The pod; absent where it is not known."""
    member: str
    """Its member ID in the consumer group."""


class TaskCopy(Answered):
    """One copy of a stateful task."""

    ordinal: int
    role: str
    """`active`, `standby` or `learner`."""
    lag: int | None = None
    """Records that it is behind, at most; absent where that is not known."""
    caught_up: bool


class Task(Answered):
    """One task."""

    task: str
    """As Kafka Streams prints it: `0_31`."""
    stateful: bool
    owner: TaskOwner | None = None
    """Absent where nobody has it."""
    state: str | None = None
    """`running`, `restoring`, `unassigned` or `twice`; absent where whether it runs is not known."""
    copies: tuple[TaskCopy, ...] = ()
    """By ordinal, the active one among them; empty for a task without state."""
    covered_on: tuple[int, ...] | None = None
    """Pods other than the highest that could take over at once; absent where that is not known, or without state."""
    records: int | None = None
    """What a pod without state would read from its changelogs, at most; absent where not known, or without state."""


class Process(Answered):
    """A process of the group, for predictions."""

    ordinal: int
    process_id: str
    threads: int
    lags: Mapping[str, int] = {}
    """By task, the records by which its state is behind; of tasks that it has state of and does not run."""
    newest_version: int | None = None
    """The newest version of Kafka Streams' part of a subscription that it knows."""
    kafka_version: str | None = None
    """Of its Kafka Streams; absent without an agent, as are the next two."""
    standby_replicas: int | None = None
    state_bytes: int | None = None
    tagged: bool = False
    """Whether it has client tags or a rack."""


class Volume(Answered):
    """A volume whose pod was removed, for predictions."""

    ordinal: int
    process_id: str
    kept_at: datetime
    """When its pod was removed."""
    lags: Mapping[str, int] = {}
    """By task that it has state of, the records by which that is behind."""


class SpeedsTold(Answered):
    """What was seen lately, for predictions; the newest last."""

    restore: tuple[float, ...] = ()
    """Records a second of one process that restores."""
    pauses_up: tuple[float, ...] = ()
    """Seconds that a change to more replicas took beside its rebalances."""
    pauses_down: tuple[float, ...] = ()


class StreamsMember(Answered):
    """A member of a group of the streams protocol, for predictions."""

    member: str
    ordinal: int | None = None
    """Absent where its pod is not known."""
    active: tuple[str, ...] = ()
    """Of its target assignment, as is the next."""
    standby: tuple[str, ...] = ()
    offsets: Mapping[str, int] = {}
    """Sums of offsets that it reported, by task."""


class StreamsStandbys(Answered):
    """`streams.num.standby.replicas` of a group, for predictions."""

    now: int
    at_rest: int
    """What the operator puts back."""
    most: int
    """What the operator raises it to if it must."""


class StreamsTold(Answered):
    """What only a group of the streams protocol shows, for predictions."""

    broker_release: str | None = None
    """Kafka's release of the coordinator, such as `4.2`; absent for one that is not known."""
    assignor: str | None = None
    """As brokers from 4.4 on name it."""
    standbys: StreamsStandbys | None = None
    """Absent where it was not read."""
    assignment_interval_millis: int | None = None
    """The least time between two assignments; brokers from 4.3 on have one."""
    heartbeat_millis: int
    """The heartbeat interval while tasks move."""
    members: tuple[StreamsMember, ...] = ()


class Tasks(Answered):
    """All tasks of one StreamApp."""

    version: int = 1
    namespace: str
    name: str
    as_of: datetime
    """When the operator's last pass gathered its facts."""
    group_read_at: datetime | None = None
    """When the consumer group was last read."""
    positions_as_of: datetime | None = None
    """How old the positions are at most."""
    told_at: datetime | None = None
    """When this was answered, by the operator's clock."""
    highest: int | None = None
    """Ordinal of the pod that would go first."""
    limit: int | None = None
    """Records; a copy no further behind is caught up."""
    doubt: str = ""
    """What is not known and why; empty where all is."""
    processes: tuple[Process, ...] = ()
    volumes: tuple[Volume, ...] = ()
    speeds: SpeedsTold = SpeedsTold()
    streams: StreamsTold | None = None
    """Absent for a group of the classic protocol."""
    tasks: tuple[Task, ...] = ()

    def as_json(self) -> bytes:
        """The bytes, one task after the other: all at once, thousands would let nobody else run meanwhile."""
        head = self.model_dump_json(by_alias=True, exclude_none=True, exclude={"tasks"}).encode()
        return head.removesuffix(b"}") + b',"tasks":[' + b",".join(task.as_json() for task in self.tasks) + b"]}"


class FindingTold(Answered):
    """One finding."""

    code: str
    """Name of a `core.diagnoses.Diagnosis`."""
    kind: str
    """`Found`, `Unchecked` or `Unseen`."""
    severity: str
    """`error`, `warning` or `note`."""
    title: str
    detail: str = ""
    why: str = ""
    fix: str = ""
    source: str = ""
    """Where the evidence comes from."""
    ordinals: tuple[int, ...] = ()
    topic: str | None = None


class Findings(Answered):
    """Everything that was found about one StreamApp."""

    version: int = 1
    namespace: str
    name: str
    as_of: datetime
    """When the operator's last pass gathered its facts."""
    told_at: datetime | None = None
    findings: tuple[FindingTold, ...] = ()
    fine: tuple[str, ...] = ()
    """Codes that were checked and are in order."""


class GroupTold(Answered):
    """The consumer group of one StreamApp, as the brokers described it last."""

    version: int = 1
    namespace: str
    name: str
    as_of: datetime
    """When the brokers had answered."""
    told_at: datetime | None = None
    """When this was answered, by the operator's clock."""
    protocol: str | None = None
    """`classic` or `streams`; absent where the brokers know no group, or it cannot be read."""
    state: str | None = None
    """As Kafka names it; absent where the group cannot be read."""
    members: int = 0
    static_members: int = 0
    """Of them, those with a `group.instance.id`."""
    settled: bool = False
    """Stable, with members, and each member has its target assignment."""
    streams_supported: bool | None = None
    """Whether the brokers would serve the streams protocol; absent where that is not known."""
    broker_release: str | None = None
    """Kafka's release of the coordinator, such as `4.2`; absent for one that is not known."""
    standbys: int | None = None
    """`streams.num.standby.replicas` of the group; absent where it was not read."""
    doubt: str = ""
    """Why the group cannot be read."""


class Recorded(Answered):
    """A line of the flight record about desired replicas, decisions, steps or forecasts, as the record describes it.

    Open for kinds and words that are not known yet; what a line does not have is None or empty.
    """

    v: Literal[1]
    kind: str
    uid: str = ""
    ts: AwareDatetime
    recorder: str = ""
    seq: int = 0
    old_replicas: int | None = None
    new_replicas: int | None = None
    actor: str = ""
    manager: str = ""
    verdict: str = ""
    reason: str = ""
    detail: str = ""
    desired: int | None = None
    granted: int | None = None
    actual: int | None = None
    ready: int | None = None
    hold_id: str = ""
    hold_since: AwareDatetime | None = None
    target: int | None = None
    eta_seconds: float | None = None
    step: str = ""
    outcome: str = ""
    from_replicas: int | None = None
    to_replicas: int | None = None
    ordinal: int | None = None
    granted_at: AwareDatetime | None = None
    took_seconds: float | None = None
    held_seconds: float | None = None
    worst_gap_seconds: float | None = None
    gap_error_seconds: float | None = None
    forced_by: str = ""
    opened_at: AwareDatetime | None = None
    result: str = ""
    moves: int | None = None
    p10_seconds: float | None = None
    p90_seconds: float | None = None
    wrong_moves: int | None = None
    seen_seconds: float | None = None
    fewest_moves: int | None = None
    most_moves: int | None = None
    uncertain_tasks: int | None = None


class History(Answered):
    """What the flight record tells of a StreamApp."""

    v: Literal[1]
    is_whole: bool
    """Whether those are all lines that it has."""
    begins_at: datetime | None = None
    """The oldest line of any application; absent where there is none yet."""
    lines: tuple[Recorded, ...]


class OperatorTold(Answered):
    """Who answers."""

    version: int = 1
    release: str
    """Version of the operator."""
    instance: str
    namespaces: tuple[str, ...] = ()
    """That it watches; empty: all."""
    leads: bool
    agent_key: bool
    """Whether it has a key for agents."""


def with_time(body: bytes, told_at: datetime) -> bytes:
    """Say in an answer when it is given; it may have been made some seconds before."""
    return b'{"toldAt":"' + told_at.isoformat().encode() + b'",' + body.removeprefix(b"{")


class NotAnswerableError(Exception):
    """Something answered that is not an operator of this contract; says why."""


Answer = TypeVar("Answer", bound=Answered)


def read(model: type[Answer], body: bytes) -> Answer:
    """Read an answer; NotAnswerableError where it is none."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the answer"
        raise NotAnswerableError(f"{where}: {first['msg']}") from error
