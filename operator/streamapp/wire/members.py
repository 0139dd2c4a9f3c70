"""Members of a classic Kafka Streams group, from the bytes that DescribeGroups gives.

Called by `streamapp.kafka`, which owns the reading. One member is one stream thread; several may belong to one process.
"""

import ipaddress
from dataclasses import dataclass

from streamapp.wire.assignment import DecodedAssignment, decode_assignment
from streamapp.wire.errors import UndecodableError
from streamapp.wire.subscription import DecodedSubscription, decode_subscription


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
class DecodedMember:
    """A member, decoded."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    """The address the broker saw, without Java's slash: the pod's IP unless something translates addresses."""
    subscription: DecodedSubscription | None
    """None where the broker gave no metadata."""
    assignment: DecodedAssignment | None
    """None where the broker gave no assignment."""


def decode_member(raw: RawMember) -> DecodedMember:
    """Decode both structures of a member; an UndecodableError names the member."""
    try:
        subscription = decode_subscription(raw.metadata) if raw.metadata else None
        assignment = decode_assignment(raw.assignment) if raw.assignment else None
    except UndecodableError as error:
        what = f"member {raw.member_id}: {error.what}"
        raise UndecodableError(what, error.where, error.version, error.why) from error
    return DecodedMember(
        raw.member_id, raw.instance_id, raw.client_id, host_of(raw.client_host), subscription, assignment
    )


def host_of(client_host: str) -> str:
    """Give the address in what a broker says of a member's host."""
    # Java prints `name/address` with either part possibly empty, and IPv6 addresses in full.
    address = client_host.rpartition("/")[2]
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address
