"""What an operator's process asks the brokers about a streams group, and what it may have done there."""

from dataclasses import replace
from datetime import timedelta

from streamapp.controller.apps.kafka_group import REFUSED_FOR_SECONDS
from streamapp.controller.ports import KafkaStepError, Poll
from streamapp.core.facts.group import (
    Assignment,
    FollowUp,
    GroupDescription,
    GroupUnreadable,
    OffsetSum,
    StandbySetting,
    StandbySettingUnread,
    StreamsGroup,
    StreamsMembership,
    Subscription,
)
from streamapp.core.facts.group import Member as Shown
from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.topology import BrokerSubtopology, universe_of_broker
from streamapp.core.reasons import Reason
from tests.prove.broker import tasks_of
from tests.prove.calls import PortedGroup
from tests.prove.group import SESSION_TIMEOUT, Member
from tests.prove.streams import coordinator
from tests.prove.streams.broker_assignor import RELEASE
from tests.prove.streams.truth import MOST_STANDBYS, Share, StreamsTruth

UNDESCRIBED = GroupUnreadable(
    Reason.GroupProtocolUnsupported, "the brokers cannot describe it", is_of_streams_protocol=True
)

TOPICS_OF = "wordcount"
"""The application ID before the names of all changelogs, whatever the application's own one is."""


class PortedStreamsGroup(PortedGroup):
    """`controller.ports.ApplicationGroup`, as `apps.kafka_group` is for a streams group."""

    group: coordinator.StreamsGroup
    _refusal = ""
    _refused_until = 0.0

    async def describe(self) -> Poll:
        """Look at the group, then at its standbys."""

        async def look() -> GroupDescription | GroupUnreadable:
            self.group.advance()
            if self.group.is_undescribed:
                for tell in self.group.not_described_to:
                    tell(self._process)
                return UNDESCRIBED
            poll = Poll(described_streams(self.group.truth, StandbySettingUnread("it was not asked yet")))
            shown = self.group.shown(poll)
            if shown is poll:
                self._witness.looked(self._process, self.group)
            assert isinstance(shown.group, GroupDescription)
            return shown.group

        async def setting() -> StandbySetting:
            for tell in self.group.read_by_operator:
                tell(self._process)
            shown = self.group.truth.shown
            return StandbySetting(shown or 0, is_set=shown is not None)

        answer = await self._call(look)
        if isinstance(answer, str):
            return Poll(GroupUnreadable(Reason.BrokersUnreachable, answer))
        if isinstance(answer, GroupUnreadable):
            return Poll(answer)
        if self.group.time() < self._refused_until:
            return Poll(_with(answer, StandbySettingUnread(self._refusal)))
        told = await self._call(setting, site="config")
        return Poll(_with(answer, StandbySettingUnread(told) if isinstance(told, str) else told))

    async def task_set(self) -> TaskSet | TopologyUnknown:
        """Find out which tasks there are."""

        async def look() -> TaskSet | TopologyUnknown:
            return tasks_by_brokers(self.group)

        answer = await self._call(look)
        return TopologyUnknown(answer) if isinstance(answer, str) else answer

    async def trigger_rebalance(self, like_member: str) -> None:
        """Never called: nobody joins a streams group to find something out."""
        raise AssertionError(f"a rebalance of a streams group is triggered with a member like {like_member}")

    async def standbys(self) -> StandbySetting | StandbySettingUnread:
        """Never called: a description of a streams group has them."""
        raise AssertionError("the standbys of a streams group are read twice")

    async def set_standbys(self, replicas: int | None, instead_of: StandbySetting | None = None) -> None:  # noqa: ARG002 (the protocol's argument)
        """Set the group's standbys, or remove the value; refused above what the brokers allow.

        The brokers are not asked again before: the record must stand without that.
        """

        async def configure() -> bool:
            self._board.tell(f"process {self._process.number}: {replicas} standbys")
            if (replicas or 0) > MOST_STANDBYS:
                return False
            for tell in self.group.set_by_operator:
                tell(self._process, replicas)
            self.group.configure(replicas)
            return True

        answer = await self._call(configure, site="config-write")
        if answer is not True:
            self._refusal = answer if isinstance(answer, str) else "the brokers allow no such value"
            self._refused_until = self.group.time() + REFUSED_FOR_SECONDS
            raise KafkaStepError(f"set standbys to {replicas}: {self._refusal}")


def described_streams(truth: StreamsTruth, standbys: StandbySetting | StandbySettingUnread) -> GroupDescription:
    """StreamsGroupDescribe."""
    members = tuple(_shown(member, truth) for member in truth.members.values())
    streams = StreamsGroup(
        epoch=truth.generation, assignment_epoch=truth.assigned_epoch, broker_release=RELEASE, standbys=standbys
    )
    return GroupDescription(truth.state, members, streams)


def tasks_by_brokers(group: coordinator.StreamsGroup) -> TaskSet | TopologyUnknown:
    """Which tasks there are, by the topology that StreamsGroupDescribe shows and the topics that brokers list.

    The coordinator has the topology from the members and names each changelog, whatever topics its broker can see.
    """
    shown = tasks_of(group, with_hidden=True)
    sources = frozenset(one.topic for task in shown.tasks for one in task.source_partitions)
    listed = sources | tasks_of(group).topics
    topology = BrokerSubtopology(number=0, sources=sources, changelogs=shown.topics)
    partitions = dict.fromkeys(sorted(listed), len(shown.tasks))
    return universe_of_broker(TOPICS_OF, (topology,), partitions, by_text=None)


def _with(group: GroupDescription, standbys: StandbySetting | StandbySettingUnread) -> GroupDescription:
    assert group.streams is not None
    session = timedelta(seconds=SESSION_TIMEOUT) if isinstance(standbys, StandbySetting) else None
    streams = replace(group.streams, standbys=standbys, session_timeout=session)
    return GroupDescription(group.state, group.members, streams)


def _shown(member: Member, truth: StreamsTruth) -> Shown:
    placed = truth.placed[member.id]
    assert member.run is not None
    return Shown(
        id=member.id,
        client_id=f"{truth.application_id}-{member.run.ordinal}",
        client_host=member.host,
        subscription=Subscription(
            process_id=member.process_id, offsets=dict[TaskId, OffsetSum](), owned_partitions=frozenset()
        ),
        assignment=_assignment(placed.given),
        streams=StreamsMembership(epoch=placed.epoch, target=_assignment(truth.targets.get(member.id, Share()))),
    )


def _assignment(share: Share) -> Assignment:
    return Assignment(active=share.active, standby=share.standby, follow_up=FollowUp.NONE)
