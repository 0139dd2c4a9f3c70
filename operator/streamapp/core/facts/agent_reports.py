"""What the agents in the pods say, as far as a decision needs it; and what they are told.

Filled by the gatherer from `agents` and `wire`. An agent's word counts only while it is fresh, complete and agrees with
the broker's; a pod whose agent says nothing is `AgentSilent`, never an empty report.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Self

from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable
from streamapp.core.reasons import Reason


class Rebalance(Enum):
    """When a learning process takes over (`learners.rebalance`)."""

    CONSERVATIVE = "Conservative"
    """All its learners are ready: few rebalances."""
    EAGER = "Eager"
    """Each as it is ready: less double work."""


class AsideKind(Enum):
    """Why the assignor is inactive in a JVM: the value is the agent's word, and `reason` the reason for it."""

    reason: Reason

    def __new__(cls, word: str, reason: Reason) -> Self:
        """Take the word for the value."""
        member = object.__new__(cls)
        member._value_ = word
        member.reason = reason
        return member

    OLDER_STREAMS = "OlderStreams", Reason.OlderStreams
    OWN_ASSIGNOR = "OwnAssignor", Reason.OwnAssignor
    STREAMS_PROTOCOL = "StreamsProtocol", Reason.StreamsProtocol
    UNKNOWN_LOADER = "UnknownLoader", Reason.UnknownLoader
    SWITCHED_OFF = "SwitchedOff", Reason.AssignorSwitchedOff
    FAILED = "Failed", Reason.AgentFailed


@dataclass(frozen=True, slots=True)
class AssignorInactive:
    """Why the assignor steps aside in one JVM."""

    kind: AsideKind
    why: str


class TaskState(Enum):
    """Of an active task."""

    RUNNING = "running"
    RESTORING = "restoring"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTask:
    """One task in one JVM."""

    id: TaskId
    is_active: bool
    state: TaskState | None
    """Of an active; None where it is not known, and for standbys."""
    positions: Mapping[str, int] = field(default_factory=dict)
    """By store: the next offset that this copy applies. A store that is missing is unknown; a running active has none
    to apply."""
    state_bytes: int | None = None
    """What this copy takes on the volume, a part of the report's own `state_bytes`; None: the agent does not tell."""


MOST_LEAVING = 1_000
"""Processes that one announcement can name; an agent takes no more."""


class AnnouncementState(Enum):
    """What an agent takes to be the case."""

    UNKNOWN = "unknown"
    EMPTY = "empty"
    SET = "set"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncementAck:
    """The announcement as one agent has it."""

    state: AnnouncementState
    epoch: Epoch | None = None
    """The highest that it ever took; None before the first."""
    process_ids: frozenset[ProcessId] = frozenset()
    rebalance: Rebalance | None = None
    expires_in: timedelta | None = None
    """None where nothing is left to expire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorRun:
    """The last assignment that our assignor made in this JVM, as leader of the group."""

    made_at: datetime
    state: AnnouncementState
    """Of the announcement that it rested on."""
    epoch: Epoch | None
    moved: int
    learning: int
    follow_up_is_watch: bool
    """The follow-up it asked for only looks whether the announcement still stands; nothing is to move."""
    warm_at: datetime | None = None
    """When the first process that has just joined can take over its tasks; None: no move waits for that."""
    fell_back: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatCap:
    """The cap of the heartbeat interval in one JVM; both are None where none is in effect."""

    interval: timedelta | None = None
    expires_in: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerMemory:
    """The memory of the agent's container in bytes, as the kernel counts it."""

    used: int
    """Without what the kernel can take back."""
    heap: int
    """What the JVM has reserved for its heap."""
    limit: int | None = None
    """None: the container has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """What an instance runs with, as far as it bears on scaling; None: not known."""

    heartbeat: timedelta | None = None
    session_timeout: timedelta | None = None
    is_static: bool | None = None
    """Its consumers are static members."""
    leaves_on_close: bool | None = None
    """Its `close()` gives its place in the group up at once."""
    state_directory: str | None = None
    """`state.dir`."""
    cleaned_tasks: int | None = None
    """Task directories that `cleanUp()` removed before the instance started; None: none, or not known."""
    kafka_version: str | None = None
    """Of its Kafka Streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReport:
    """One answer of one agent about our application's one instance in its JVM."""

    ordinal: Ordinal
    pod_uid: str
    incarnation: str
    sequence: int
    as_of: datetime
    """When the look at the instance began, at the earliest: the request's time less the age that the report gives."""
    process_id: ProcessId | None
    tasks: tuple[LocalTask, ...] | None
    """None where the instance could not be asked."""
    heard: AnnouncementAck
    is_ours: bool = False
    """Our assignor assigns, if this member leads."""
    aside: AssignorInactive | None = None
    """Why it does not."""
    recovery_lag: int | None = None
    """`acceptable.recovery.lag`."""
    standby_replicas: int | None = None
    round: AssignorRun | None = None
    client_state: str = ""
    settings: ClientSettings = ClientSettings()
    state_bytes: int | None = None
    """What its state takes on its volume."""
    free_bytes: int | None = None
    """What is free on that volume."""
    memory: ContainerMemory | None = None
    """None: the agent does not report it."""
    heartbeat_cap: HeartbeatCap | None = None
    """None: the agent cannot cap the interval, or it is an older agent."""
    file_system: str | None = None
    """Names the disk that the volume lies on: volumes with the same name share their free bytes. None: not known."""
    task_times: tuple["TaskTimes", ...] = ()
    """Of active tasks, also of those that the instance has no more; empty if the agent does not report times."""
    heard_at: datetime | None = field(default=None, compare=False)
    """When the first answer with this look was in, so that no position is newer; None: `as_of` is exact."""
    parts: int = field(default=0, compare=False)
    """How much memory it takes: its tasks, positions, times and process IDs, and each hundred characters of text."""

    @property
    def known_by(self) -> datetime:
        """When the look was over, at the latest."""
        return self.heard_at or self.as_of


@dataclass(frozen=True, slots=True)
class TaskTimes:
    """When an active task last began to run in one process, and when it last stopped there; None: not known.

    By the operator's clock, earlier than the truth by at most the time that the request took to arrive.
    """

    id: TaskId
    started_at: datetime | None
    stopped_at: datetime | None


@dataclass(frozen=True, slots=True)
class AgentSilent:
    """No usable answer."""

    ordinal: Ordinal
    why: str
    is_untrusted: bool = False
    """Its pod has a certificate, and the operator cannot trust who answers there."""


AgentReply = AgentReport | AgentSilent


@dataclass(frozen=True, slots=True)
class EndsAfter:
    """One look at the ends of the changelogs: later than every position that was heard before it began."""

    began_at: datetime
    """When the first question was sent."""
    ends: EndOffsets | EndsUnreadable


@dataclass(frozen=True, slots=True)
class AgentsSeen:
    """What was heard of all agents of one application, newest first within each ordinal (`agent_views.remember`)."""

    words: Mapping[Ordinal, tuple[AgentReply, ...]] = field(default_factory=dict)
    """Of every pod that runs: what was heard in the last quarter of a minute, and at least the last two."""
    ends: tuple[EndsAfter, ...] = ()
    """As long ago; each round of questions to the agents has one after it, at least while anything is waited for."""
    no_key: str = ""
    """Why the operator has no key, so that it can ask no agent; empty where it has one."""

    def __post_init__(self) -> None:
        """Sort the ends, newest first."""
        object.__setattr__(self, "ends", tuple(sorted(self.ends, key=lambda one: one.began_at, reverse=True)))

    def latest(self, ordinal: Ordinal) -> AgentReply:
        """The newest word of one ordinal."""
        words = self.words.get(ordinal, ())
        return words[0] if words else AgentSilent(ordinal, "it was not asked yet")
