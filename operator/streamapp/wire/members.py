"""Members of a classic Kafka Streams group, from the bytes that DescribeGroups gives, and their fingerprint.

Called by `streamapp.kafka`, which owns the reading. One member is one stream thread; several may belong to one process.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from streamapp.core.identity import ProcessId, TaskId
from streamapp.wire.assignment import Assignment, decode_assignment
from streamapp.wire.errors import UndecodableError
from streamapp.wire.subscription import Subscription, decode_subscription


@dataclass(frozen=True, slots=True)
class RawMember:
    """A member as the broker describes it."""

    member_id: str
    instance_id: str | None
    """`group.instance.id` of a static member."""
    client_id: str
    client_host: str
    """As Java prints an address: `/10.1.2.3`."""
    metadata: bytes
    """Empty unless the group is Stable."""
    assignment: bytes
    """Empty before the member's first assignment."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member, decoded."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    """The address the broker saw, without Java's slash: the pod's IP unless something translates addresses."""
    subscription: Subscription | None
    """None where the broker gave no metadata."""
    assignment: Assignment | None
    """None where the broker gave no assignment."""


@dataclass(frozen=True, slots=True)
class MemberFingerprint:
    """What two readings of one member must agree on to be of the same group.

    Left out on purpose, since every join changes them: generation, `uniqueField`, offset sums, times.
    """

    member_id: str
    instance_id: str | None
    host: str
    process_id: ProcessId | None
    active: frozenset[TaskId]
    standby: frozenset[TaskId]


Fingerprint = frozenset[MemberFingerprint]


def decode_member(raw: RawMember) -> Member:
    """Decode both structures of a member; an UndecodableError names the member."""
    try:
        subscription = decode_subscription(raw.metadata) if raw.metadata else None
        assignment = decode_assignment(raw.assignment) if raw.assignment else None
    except UndecodableError as error:
        what = f"member {raw.member_id}: {error.what}"
        raise UndecodableError(what, error.where, error.version, error.why) from error
    return Member(raw.member_id, raw.instance_id, raw.client_id, _host(raw.client_host), subscription, assignment)


def fingerprint(members: Iterable[Member]) -> Fingerprint:
    """Give the fingerprint of a reading, in no order."""
    return frozenset(_fingerprint(member) for member in members)


def _fingerprint(member: Member) -> MemberFingerprint:
    assignment = member.assignment
    return MemberFingerprint(
        member_id=member.member_id,
        instance_id=member.instance_id,
        host=member.host,
        process_id=member.subscription.info.process_id if member.subscription else None,
        active=frozenset(assignment.active) if assignment else frozenset(),
        standby=frozenset(assignment.standby) if assignment else frozenset(),
    )


def _host(client_host: str) -> str:
    # Java prints `name/address` with either part possibly empty, and IPv6 addresses in full.
    address = client_host.rpartition("/")[2]
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address
