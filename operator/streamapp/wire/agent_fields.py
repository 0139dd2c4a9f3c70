"""The fields of an agent's report, as its schema (`agent/protocol/report.schema.json`) has them.

Read by `agent_report` only. What is not known is left out of a report, so that `null` is an error like any other wrong
type, and fields that are not named here are those of a newer agent and mean nothing.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from streamapp.core.facts.agent_reports import AnnouncementState, AsideKind, Rebalance, TaskState

MOST_TASKS = 5_000
"""Of one report. A report is refused before its tasks are made where it has more."""
_MOST_PARTS = 1_000
"""Of any other list in a report."""
_LONGEST_TOPOLOGY = 256 * 1024
"""An agent leaves a longer one out."""
MOST_MILLIS = 366 * 24 * 3600 * 1000
"""Of an age or a time to come; whatever is longer was not measured."""

Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Positive = Annotated[int, Field(ge=1, le=2**63 - 1)]
Millis = Annotated[int, Field(ge=0, le=MOST_MILLIS)]
PositiveMillis = Annotated[int, Field(ge=1, le=2**31 - 1)]
"""Of a client's setting, which Kafka keeps as an int."""


class _NeverNull:
    """Marks a field that is optional, and never `null`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Take the schema of what it is where it is there."""
        nullable = handler(source)
        if nullable["type"] != "nullable":
            raise TypeError(f"{source} is no alternative with None")
        inner: CoreSchema = nullable["schema"]
        return inner


_T = TypeVar("_T")
Maybe = Annotated[_T | None, _NeverNull()]
Bounded = Annotated[list[_T], Field(max_length=_MOST_PARTS)]


def _no_truth_value(value: Any) -> Any:
    """Refuse `true`, which Python takes for 1."""
    if isinstance(value, bool):
        raise ValueError("it should be a number")  # noqa: TRY004 (pydantic tells of this one)
    return value


class _Fields(BaseModel):
    """A part of a report."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=False,
        extra="ignore",
        frozen=True,
        strict=True,
        protected_namespaces=(),
    )


class What(Enum):
    """A function of the agent that can be inactive."""

    ASSIGNOR = "assignor"
    HEARTBEAT = "heartbeat"
    LEAVE = "leave"
    TASKS = "tasks"
    POSITIONS = "positions"
    TOPOLOGY = "topology"
    PROCESS_ID = "processId"
    CONFIGURATION = "configuration"
    OTHER = "other"
    """One that a newer agent has."""


def _known(words: Iterable[str], otherwise: str | None) -> BeforeValidator:
    """Read a word of a newer agent, or of a newer Kafka Streams, as `otherwise`: it must not make the agent silent."""
    known = frozenset(words)

    def read(word: object) -> object:
        if word is None:
            raise ValueError("it should be a word")
        return word if not isinstance(word, str) or word in known else otherwise

    return BeforeValidator(read)


def _values(words: type[Enum]) -> Iterable[str]:
    return (one.value for one in words)


KnownWhat = Annotated[What, _known(_values(What), What.OTHER.value)]
KnownKind = Annotated[AsideKind, _known(_values(AsideKind), AsideKind.FAILED.value)]
KnownState = Annotated[AnnouncementState, _known(_values(AnnouncementState), AnnouncementState.UNKNOWN.value)]
KnownTaskState = Annotated[TaskState | None, _known(_values(TaskState), None)]
Protocol = Annotated[Literal["classic", "streams"] | None, _known(("classic", "streams"), None)]
Purpose = Annotated[Literal["learning", "unknown", "expiry"] | None, _known(("learning", "unknown", "expiry"), None)]


class EpochFields(_Fields):
    """`epoch`."""

    lease: Count
    counter: Count


class AsideFields(_Fields):
    """`aside`."""

    what: KnownWhat
    why: str
    kind: Maybe[KnownKind] = None


class AgentFields(_Fields):
    """`agent`."""

    version: str
    java: str
    pod_uid: Maybe[str] = None
    incarnation: str
    sequence: Positive
    age_millis: Millis


class AnnouncementFields(_Fields):
    """`announcement`."""

    state: KnownState
    epoch: Maybe[EpochFields] = None
    process_ids: Maybe[Bounded[str]] = None
    rebalance: Maybe[Rebalance] = None
    expires_in_millis: Maybe[Millis] = None


class MemoryFields(_Fields):
    """`memory`."""

    used_bytes: Count
    heap_bytes: Count
    limit_bytes: Maybe[Count] = None


class HeartbeatFields(_Fields):
    """`heartbeat`."""

    cap_millis: Maybe[PositiveMillis] = None
    expires_in_millis: Maybe[Millis] = None


class RoundFields(_Fields):
    """`round`."""

    age_millis: Millis
    announcement: KnownState
    epoch: Maybe[EpochFields] = None
    moved: Count
    learning: Count
    ready: Maybe[Count] = None
    follow_up_millis: Maybe[Count] = None
    follow_up_for: Purpose = None
    warm_in_millis: Maybe[Millis] = None
    fell_back: str


class StoreFields(_Fields):
    """One of `stores`."""

    store: str
    partition: Count
    position: Count


class TaskFields(_Fields):
    """One of `tasks`."""

    id: str
    role: Literal["active", "standby"]
    state: KnownTaskState = None
    state_bytes: Maybe[Count] = None
    stores: Maybe[Bounded[StoreFields]] = None


class TaskTimesFields(_Fields):
    """One of `taskTimes`."""

    id: str
    started_ago_millis: Maybe[Millis] = None
    stopped_ago_millis: Maybe[Millis] = None


class ThreadFields(_Fields):
    """One of `threads`."""

    name: str
    state: str


class DefaultFields(_Fields):
    """One of `defaultsGiven`."""

    name: str
    value: str


class AssignorFields(_Fields):
    """`assignor`."""

    class_: str = Field(alias="class")
    is_ours: bool
    last_round: Maybe[RoundFields] = None


class InstanceFields(_Fields):
    """`instance`."""

    application_id: str
    process_id: Maybe[str] = None
    client_id: Maybe[str] = None
    kafka_version: Maybe[str] = None
    client_state: str
    threads: Maybe[Bounded[ThreadFields]] = None
    protocol: Protocol = None
    assignor: Maybe[AssignorFields] = None
    acceptable_recovery_lag: Maybe[Count] = None
    standby_replicas: Maybe[Count] = None
    heartbeat_millis: Maybe[PositiveMillis] = None
    leaves_on_close: Maybe[bool] = None
    session_timeout_millis: Maybe[PositiveMillis] = None
    is_static: Maybe[bool] = None
    state_directory: Maybe[str] = None
    cleaned_tasks: Maybe[Positive] = None
    defaults_given: Maybe[Bounded[DefaultFields]] = None
    state_bytes: Maybe[Count] = None
    free_bytes: Maybe[Count] = None
    file_system: Maybe[str] = None
    topology: Maybe[Annotated[str, Field(max_length=_LONGEST_TOPOLOGY)]] = None
    tasks: Maybe[Annotated[list[TaskFields], Field(max_length=MOST_TASKS)]] = None
    task_times: Maybe[Annotated[list[TaskTimesFields], Field(max_length=MOST_TASKS)]] = None
    asides: Bounded[AsideFields]


class ReportFields(_Fields):
    """The whole."""

    version: Annotated[Literal[1], BeforeValidator(_no_truth_value)]
    agent: AgentFields
    announcement: AnnouncementFields
    heartbeat: Maybe[HeartbeatFields] = None
    memory: Maybe[MemoryFields] = None
    instances: Bounded[InstanceFields]
    asides: Bounded[AsideFields]
