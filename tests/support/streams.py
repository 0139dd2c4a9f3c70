"""The example application on the streams protocol: the same pods and tasks, in a group that the broker assigns."""

from collections.abc import Iterable
from dataclasses import replace

from streamapp.core.facts.group import (
    GroupDescription,
    GroupReading,
    GroupState,
    Member,
    StreamsGroup,
    StreamsMembership,
)
from tests.support import example

EPOCH = 7


def streams_group(release: str | None = "4.2") -> StreamsGroup:
    """The group, settled."""
    return StreamsGroup(epoch=EPOCH, assignment_epoch=EPOCH, broker_release=release)


def streams_members(members: Iterable[Member]) -> tuple[Member, ...]:
    """The members as StreamsGroupDescribe shows them: without positions, each with its target assignment."""
    return tuple(map(_streams_member, members))


def streams_reading(members: Iterable[Member], ago: float, group: StreamsGroup | None = None) -> GroupReading:
    """A poll that ended so many seconds ago; there are no joins."""
    ended_at = example.NOW - ago * example.SECOND
    described = GroupDescription(GroupState.STABLE, streams_members(members), group or streams_group())
    return GroupReading(ended_at=ended_at, group=described, rebalance=None)


def _streams_member(member: Member) -> Member:
    if member.subscription is None or member.assignment is None:
        raise ValueError(f"member {member.id}: a member of the streams protocol shows both")
    return replace(
        member,
        subscription=replace(member.subscription, offsets={}, owned_partitions=frozenset()),
        streams=StreamsMembership(epoch=EPOCH, target=member.assignment),
    )
