"""Containers and the group members that ran in them: who was seen where, and which container is known to have ended.

Plain values. `eviction` decides with them; `hold_record` keeps those of an open step, the gatherer keeps the others.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from streamapp.core.facts.ids import Ordinal


@dataclass(frozen=True, slots=True, order=True)
class MemberKey:
    """What LeaveGroup needs to name one member."""

    id: str
    instance_id: str | None = None
    """Set for a static member, which must be named by both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedMembers:
    """Members seen in the group while one container ran."""

    ordinal: Ordinal
    pod_uid: str
    container_id: str
    seen_at: datetime
    """When the earliest reading that shows these members ended."""
    members: tuple[MemberKey, ...]
    is_confirmed: bool = True
    """False after the first of two reads of the pods that must show the container: one read alone can be stale."""

    def __post_init__(self) -> None:
        """Sort, so that two captures of the same members are equal."""
        object.__setattr__(self, "members", tuple(sorted(self.members, key=lambda member: member.id)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEnd:
    """`state.terminated` or `lastState.terminated` of one container: live, watched, or as last seen on deletion."""

    pod_uid: str
    container_id: str
    finished_at: datetime
    """By the node's clock."""
    reason: str
    exit_code: int | None = None
    """None where it is not known."""
    started_at: datetime | None = None
    """By the node's clock; None where it is not known."""
    clock_doubt: timedelta = timedelta(0)
    """By so much, unknown to us, the node's clock can be ahead: nobody saw the container begin."""
    is_followed: bool = False
    """Another container has begun in the same pod: its members could be taken for those of this one."""

    @property
    def is_trusted(self) -> bool:
        """False where the kubelet only lost sight of the container; it may still be running."""
        return self.reason != "ContainerStatusUnknown"
