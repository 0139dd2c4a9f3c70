"""The interfaces to Kafka and to agents, as Protocols: tests implement them without brokers and pods.

The implementations are `apps.kafka_group` and `streamapp.agents.client`. Every call has a deadline of its own. A broker
or agent that fails never raises: an unreadable fact is a value.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from streamapp.agents.answers import AgentAddress, AgentReading, AnnouncementResult
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import (
    GroupDescription,
    GroupUnreadable,
    StandbySetting,
    StandbySettingUnread,
    StreamsSupport,
)
from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable, PartitionEnd, Unknown
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.topic_configs import ConfigUnread, TopicConfig


class KafkaStepError(Exception):
    """A rebalance trigger or an eviction failed; names the group, the cause and the next step."""


class ToleratedError(Exception):
    """A step failed that nothing else waits for: the plan goes on."""


@dataclass(frozen=True, slots=True)
class Poll:
    """One reading of a group."""

    group: GroupDescription | GroupUnreadable
    joins: Mapping[str, Hashable] = field(default_factory=dict)
    """By member ID, something that changes with every join of that member; members that show none are left out."""
    support: StreamsSupport | None = None
    """Of a classic group, whether the brokers could serve it with the streams protocol; None if that is not known."""
    coordinator: Hashable | None = None
    """Which broker showed a classic group, or which one of two; None where that is not known."""


class ApplicationGroup(Protocol):
    """The Kafka side of one application."""

    async def describe(self) -> Poll:
        """Read the group."""

    async def task_set(self) -> TaskSet | TopologyUnknown:
        """Find out which tasks there are, from the text in the spec or from the last look."""

    async def ends(self, task_set: TaskSet) -> EndOffsets | EndsUnreadable:
        """Read the ends of all changelogs."""

    async def tails(self, ends: Mapping[TopicPartition, PartitionEnd]) -> Mapping[TopicPartition, int | Unknown]:
        """Find the last applied record before each end, or say why it is unknown."""

    async def configs(self, topics: Iterable[str]) -> Mapping[str, TopicConfig | ConfigUnread]:
        """Read how long these topics keep records and tombstones, or why that is not known."""

    async def standbys(self) -> StandbySetting | StandbySettingUnread:
        """Read `streams.num.standby.replicas` of the group, whatever its protocol is."""

    async def trigger_rebalance(self, like_member: str) -> None:
        """Trigger a rebalance with a probe member that copies this member; KafkaStepError if it failed."""

    async def set_standbys(self, replicas: int | None, instead_of: StandbySetting | None = None) -> None:
        """Set `streams.num.standby.replicas` of the group, or remove it; KafkaStepError if the brokers refuse.

        Args:
            replicas: The value; None removes it.
            instead_of: What it is now, as far as known; KafkaStepError, and nothing written, if it is another value.
        """

    async def evict(self, members: Sequence[MemberKey], reason: str) -> None:
        """Evict exactly these members from the group; KafkaStepError if it is unknown whether all are out."""

    def close(self) -> None:
        """Drop every connection; waits for nothing."""


class AgentAccess(Protocol):
    """The agents in all pods."""

    async def read(self, addresses: Iterable[AgentAddress], application_id: str, token: str) -> list[AgentReading]:
        """Read the reports of all of these at the same time; one reading for each, in their order."""

    async def announce(
        self, addresses: Iterable[AgentAddress], announcement: bytes, token: str
    ) -> list[AnnouncementResult]:
        """Send the announcement to all of these at the same time; one result for each, in their order."""

    async def cap_heartbeats(
        self, addresses: Iterable[AgentAddress], cap: bytes, token: str
    ) -> list[AnnouncementResult]:
        """Send the cap of the heartbeat interval to all of these, likewise."""

    async def close(self) -> None:
        """Drop every connection."""
