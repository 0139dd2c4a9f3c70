"""One object for what is equal in several readings: a minute of polls differs in little, and all of it is kept.

Called by the controller's group poller for everything that it keeps. Sharing changes no value: what is returned equals
what was given, and is made of parts of the readings before.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar, cast

from streamapp.core.facts.group import (
    Assignment,
    GroupDescription,
    GroupReading,
    GroupUnreadable,
    Member,
    Subscription,
)
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable

Key = TypeVar("Key")
Value = TypeVar("Value")


def shared_group(
    group: GroupDescription | GroupUnreadable, history: Sequence[GroupReading]
) -> GroupDescription | GroupUnreadable:
    """The description, made of the parts that the history has too; the earlier object itself if one is equal.

    Args:
        group: What the newest poll saw.
        history: Readings before it, newest first. While a group rebalances it shows hardly anything, so the parts come
            from the newest reading that was decoded.
    """
    described = [one.group for one in history if isinstance(one.group, GroupDescription)]
    decoded = next((one for one in described if one.members and one.is_decoded), None)
    equal = next((one for one in (*described[:1], decoded) if one is not None and one == group), None)
    if equal is not None:
        return equal
    if decoded is None or not isinstance(group, GroupDescription):
        return group
    parts = _Parts(decoded.members)
    return replace(group, members=tuple(parts.member(member) for member in group.members))


def shared_ends(ends: EndOffsets | EndsUnreadable, history: Sequence[GroupReading]) -> EndOffsets | EndsUnreadable:
    """The ends, made of the partitions and the pairs of offsets that the newest ends in the history have too."""
    known = (one.rebalance.ends for one in history if one.rebalance is not None)
    earlier = next((one for one in known if isinstance(one, EndOffsets)), None)
    if earlier is None or not isinstance(ends, EndOffsets):
        return ends
    partitions = _shared_mapping(ends.partitions, earlier.partitions)
    return replace(ends, partitions=partitions, committed=_shared_mapping(ends.committed, earlier.committed))


def _shared_mapping(new: Mapping[Key, Value], earlier: Mapping[Key, Value]) -> Mapping[Key, Value]:
    if new == earlier:
        return earlier
    keys = {key: key for key in earlier}
    return {keys.get(key, key): _same(value, earlier.get(key)) for key, value in new.items()}


def _same(new: Value, earlier: Value | None) -> Value:
    """The earlier object if it is equal."""
    return earlier if earlier is not None and earlier == new else new


class _Parts:
    """The parts of earlier members."""

    def __init__(self, earlier: Sequence[Member]) -> None:
        self._members = {member.id: member for member in earlier}
        self._known: dict[object, object] = {}
        for member in earlier:
            if member.subscription is not None:
                self._remember(member.subscription.offsets)
                self._remember(member.subscription.owned_partitions)
            if member.assignment is not None:
                self._remember(member.assignment.active)
                self._remember(member.assignment.standby)

    def member(self, member: Member) -> Member:
        """The member, made of known parts."""
        before = self._members.get(member.id)
        if before is not None and before == member:
            return before
        said, given = (None, None) if before is None else (before.subscription, before.assignment)
        return replace(
            member,
            id=member.id if before is None else before.id,
            subscription=None if member.subscription is None else self._subscription(member.subscription, said),
            assignment=None if member.assignment is None else self._assignment(member.assignment, given),
        )

    def _remember(self, things: Iterable[object]) -> None:
        for thing in things:
            self._known.setdefault(thing, thing)

    def _one(self, thing: Key) -> Key:
        return cast("Key", self._known.get(thing, thing))

    def _set(self, things: frozenset[Key], before: frozenset[Key] | None) -> frozenset[Key]:
        return before if before == things and before is not None else frozenset(map(self._one, things))

    def _subscription(self, new: Subscription, before: Subscription | None) -> Subscription:
        said = new.offsets if before is None else before.offsets
        offsets = {self._one(task): _same(offset, said.get(task)) for task, offset in new.offsets.items()}
        shared = replace(
            new,
            process_id=new.process_id if before is None else _same(new.process_id, before.process_id),
            offsets=said if before is not None and said == offsets else MappingProxyType(offsets),
            owned_partitions=self._set(new.owned_partitions, None if before is None else before.owned_partitions),
        )
        if before is not None and before.running == shared.running:
            # It follows from the offsets, so the value is what it was.
            object.__setattr__(shared, "running", before.running)
        return shared

    def _assignment(self, new: Assignment, before: Assignment | None) -> Assignment:
        if before == new and before is not None:
            return before
        active, standby = (None, None) if before is None else (before.active, before.standby)
        return replace(new, active=self._set(new.active, active), standby=self._set(new.standby, standby))
