"""The fields of an agent's report, as its schema (`agent/protocol/report.schema.json`) has them.

Read by `agent_report` only. What is not known is left out of a report, so that `null` is an error like any other wrong
type, and fields that are not named here are those of a newer agent and mean nothing.
"""

from enum import Enum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from streamapp.core.agents import AnnouncementState, AsideKind, Rebalance, TaskState

MOST_MILLIS = 366 * 24 * 3600 * 1000
"""Of an age or a time to come; whatever is longer was not measured."""

Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Positive = Annotated[int, Field(ge=1, le=2**63 - 1)]
Millis = Annotated[int, Field(ge=0, le=MOST_MILLIS)]


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

    @model_validator(mode="before")
    @classmethod
    def _nothing_stands_for_unknown(cls, value: Any) -> Any:
        if isinstance(value, dict):
            for name, field in cls.model_fields.items():
                alias = field.alias or name
                if alias in value and value[alias] is None:
                    raise PydanticCustomError("null", "{name} is null; what is not known is left out", {"name": alias})
        return value


class What(Enum):
    """What an agent may not do somewhere."""

    ASSIGNOR = "assignor"
    HEARTBEAT = "heartbeat"
    LEAVE = "leave"
    TASKS = "tasks"
    POSITIONS = "positions"
    TOPOLOGY = "topology"
    PROCESS_ID = "processId"
    CONFIGURATION = "configuration"


ClientState = Literal["CREATED", "REBALANCING", "RUNNING", "PENDING_SHUTDOWN", "NOT_RUNNING", "PENDING_ERROR", "ERROR"]


class EpochFields(_Fields):
    """`epoch`."""

    lease: Count
    counter: Count


class AsideFields(_Fields):
    """`aside`."""

    what: What
    why: str
    kind: AsideKind | None = None


class AgentFields(_Fields):
    """`agent`."""

    version: str
    java: str
    pod_uid: str | None = None
    incarnation: str
    sequence: Positive
    age_millis: Millis


class AnnouncementFields(_Fields):
    """`announcement`."""

    state: AnnouncementState
    epoch: EpochFields | None = None
    process_ids: list[str] | None = None
    rebalance: Rebalance | None = None
    expires_in_millis: Millis | None = None


class RoundFields(_Fields):
    """`round`."""

    age_millis: Millis
    announcement: AnnouncementState
    epoch: EpochFields | None = None
    moved: Count
    learning: Count
    ready: Count | None = None
    follow_up_millis: Count | None = None
    follow_up_for: Literal["learning", "unknown", "expiry"] | None = None
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
    state: TaskState | None = None
    stores: list[StoreFields] | None = None


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
    last_round: RoundFields | None = None


class InstanceFields(_Fields):
    """`instance`."""

    application_id: str
    process_id: str | None = None
    client_id: str | None = None
    kafka_version: str | None = None
    client_state: ClientState
    threads: list[ThreadFields] | None = None
    protocol: Literal["classic", "streams"] | None = None
    assignor: AssignorFields | None = None
    acceptable_recovery_lag: Count | None = None
    standby_replicas: Count | None = None
    heartbeat_millis: Positive | None = None
    leaves_on_close: bool | None = None
    defaults_given: list[DefaultFields] | None = None
    topology: str | None = None
    tasks: list[TaskFields] | None = None
    asides: list[AsideFields]


class ReportFields(_Fields):
    """The whole."""

    version: Literal[1]
    agent: AgentFields
    announcement: AnnouncementFields
    instances: list[InstanceFields]
    asides: list[AsideFields]
