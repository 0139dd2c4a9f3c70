"""Which members may be put out of the group: exactly those of a container that is known to have ended.

A live member that is put out loses its tasks without a commit, and whoever takes over counts twice: so a member is put
out only if two reads of the pods placed it in its container, and the first of them was a margin before that container
ended. Whoever was seen later may belong to the
container that came after, with the same name, address and process ID.

Serves open steps (captures from the hold record) and everything else (captures in memory) by the same rule.
"""

from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from streamapp.core.evidence.membership import MemberPlacement, place_members
from streamapp.core.facts.containers import ContainerEnd, MemberKey, ObservedMembers
from streamapp.core.facts.group import GroupDescription, GroupReading
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.workload import Workload

LONG_OVER = timedelta(minutes=10)
"""So much later than a session can end: a node's clock can be behind, and coordinators can change more than once."""


def observe_members(
    group: GroupDescription,
    workload: Workload,
    ordinals: Collection[Ordinal],
    seen_at: datetime,
    placement: MemberPlacement | None = None,
) -> tuple[ObservedMembers, ...]:
    """The members that a reading shows for some ordinals, by the container each pod has.

    Args:
        group: The reading.
        workload: The pods as they were then.
        ordinals: Whose members are wanted.
        seen_at: When the earliest reading ended that shows these same members.
        placement: Which member runs in which pod, if that is known already.

    A process ID alone tells the volume and not the container: a pod that was deleted by force may live on, on a node
    that nobody hears of, beside the one that has taken its place. So where the broker sees the pods' own addresses,
    whoever comes from another one is in no container that is known.
    """
    placement = placement or place_members(group, workload)
    is_translated = _is_translated(group, workload)
    found = []
    for pod in workload.pods:
        inside = [one for one in placement.members(pod.ordinal) if is_translated or one.client_host in pod.ips]
        if pod.ordinal in ordinals and pod.container.id is not None and inside:
            keys = tuple(MemberKey(one.id, one.instance_id) for one in inside)
            found.append(
                ObservedMembers(
                    ordinal=pod.ordinal,
                    pod_uid=pod.uid,
                    container_id=pod.container.id,
                    seen_at=seen_at,
                    members=keys,
                )
            )
    return tuple(found)


def _is_translated(group: GroupDescription, workload: Workload) -> bool:
    """Whether the brokers see other addresses than those of the pods."""
    known = {address for pod in workload.pods for address in pod.ips}
    return not any(member.client_host in known for member in group.members)


def of_former_runs(
    group: GroupDescription,
    workload: Workload,
    placement: MemberPlacement,
    captures: Iterable[ObservedMembers],
) -> frozenset[str]:
    """Members that have a pod's process ID, and are known not to be of the container that runs in it now.

    They are listed until the group drops them, and what they said of their tasks is not so any more.

    Args:
        group: A reading.
        workload: The pods as they are now.
        placement: Which member runs in which pod.
        captures: Who was seen in which container, by this process and by the record of an open step.
    """
    is_translated = _is_translated(group, workload)
    containers = {key.id: one.container_id for one in captures if one.is_confirmed for key in one.members}
    return frozenset(
        member.id
        for pod in workload.pods
        for member in placement.members(pod.ordinal)
        if containers.get(member.id, pod.container.id) != pod.container.id
        or not (is_translated or member.client_host in pod.ips)
    )


def perhaps_of_former_runs(
    group: GroupDescription, workload: Workload, placement: MemberPlacement, ends: Iterable[ContainerEnd]
) -> frozenset[str]:
    """Members of containers that began of late, if a member of the container before would look the same.

    In the same pod it has the same address, and so has it in the next pod where brokers see other addresses. A process
    that did not see the earlier container run has no capture that tells the two apart. The group drops dead members in
    the end, so an older container raises no doubt.

    Args:
        group: A reading.
        workload: The pods as they are now.
        placement: Which member runs in which pod.
        ends: The containers known to have ended.
    """
    is_translated = _is_translated(group, workload)
    followed = {(end.pod_uid, end.container_id) for end in ends}
    return frozenset(
        member.id
        for pod in workload.pods
        if pod.container.running_since is not None and workload.read_at - pod.container.running_since <= LONG_OVER
        if is_translated or any(uid == pod.uid and container != pod.container.id for uid, container in followed)
        for member in placement.members(pod.ordinal)
    )


def remember(
    observed: Sequence[ObservedMembers], reading: GroupReading, workload: Workload
) -> tuple[ObservedMembers, ...]:
    """The captures in memory after one more reading: new members added, those that have left forgotten.

    A capture is confirmed by the next reading, with a read of the pods of its own, that places the members in the same
    container; otherwise it is forgotten. One stale read of the pods would place a new member in the container before
    its own, and the end of that one, by a node's clock that is ahead, can lie after the member was seen.

    A reading that failed changes nothing, and neither does one without members: a new coordinator can show the group
    as it was before they joined, and no other member ever has the ID of one that has left.

    Where two processes have the address of one container's pod, none is known to end with it (`_shared`).
    """
    if not isinstance(reading.group, GroupDescription) or not reading.group.members:
        return tuple(observed)
    listed = reading.group.member_ids
    found = observe_members(reading.group, workload, {pod.ordinal for pod in workload.pods}, reading.seen_at)
    in_their_own = _in_their_own(found, observed)
    shared = _shared(in_their_own, reading.group)
    seen = [one for one in in_their_own if one.container_id not in shared]
    kept = [
        _among(one, {key for key in one.members if key.id in listed}) if one.is_confirmed else _confirm(one, seen)
        for one in observed
        if one.container_id not in shared
    ]
    added = [replace(_among(one, set(one.members) - _known(one, kept)), is_confirmed=False) for one in seen]
    return tuple(one for one in (*kept, *added) if one.members)


def _confirm(one: ObservedMembers, seen: Sequence[ObservedMembers]) -> ObservedMembers:
    """Keep of a capture the members that are placed in the same container once more."""
    return replace(_among(one, _known(one, seen)), is_confirmed=True)


def _in_their_own(seen: Sequence[ObservedMembers], remembered: Sequence[ObservedMembers]) -> list[ObservedMembers]:
    """The captures without members that memory has in another container: a member ends with the container it began in.

    Where brokers see other addresses than the pods', a member that lives on after its pod was deleted by force looks
    like one of the next pod, which has its process ID.
    """
    places = {key.id: one.container_id for one in remembered if one.is_confirmed for key in one.members}
    return [
        _among(one, {key for key in one.members if places.get(key.id, one.container_id) == one.container_id})
        for one in seen
    ]


def _shared(seen: Sequence[ObservedMembers], group: GroupDescription) -> frozenset[str]:
    """The containers with members of several processes: another container of their pod can run one of them.

    All containers of a pod have its address. Whoever runs in another one lives on when the application's has ended.
    """
    process_of = {member.id: member.process_id for member in group.members if member.process_id is not None}
    found = ((one, {process_of[key.id] for key in one.members if key.id in process_of}) for one in seen)
    return frozenset(one.container_id for one, processes in found if len(processes) > 1)


def since_first_seen(
    observed: Sequence[ObservedMembers], remembered: Sequence[ObservedMembers], group: GroupDescription
) -> tuple[ObservedMembers, ...]:
    """The same captures, each member with the earliest time at which memory has it in the same container.

    Whoever memory has in another one is left out, and so are the members of containers with several processes.

    Args:
        observed: Of one reading.
        remembered: What memory has.
        group: That reading.
    """
    found, in_their_own = [], _in_their_own(observed, remembered)
    shared = _shared(in_their_own, group)
    for one in (each for each in in_their_own if each.container_id not in shared):
        older = [seen for seen in remembered if seen.container_id == one.container_id and seen.seen_at < one.seen_at]
        found += [replace(_among(seen, one.members), is_confirmed=True) for seen in older]
        found.append(_among(one, set(one.members) - _known(one, older)))
    return tuple(one for one in found if one.members)


@dataclass(frozen=True, slots=True)
class Evictable:
    """Members that may be put out, and the end of the container that makes it harmless."""

    members: tuple[MemberKey, ...]
    end: ContainerEnd


def evictable(
    observed: Sequence[ObservedMembers],
    ends: Sequence[ContainerEnd],
    group: GroupDescription,
    margin: timedelta,
    *,
    for_good: Callable[[ObservedMembers], bool],
    staying_pods: Collection[str],
) -> tuple[Evictable, ...]:
    """Everybody who may be put out now, per container.

    Args:
        observed: Who was seen where, and when.
        ends: The containers known to have ended.
        group: Whoever is not listed any more needs nothing.
        margin: How long before the end a member must have been seen.
        for_good: Whether the container's state does not come back: its ordinal is scaled away, or its volume goes.
            Static members of a classic group are put out only then: after another restart they come back without a
            rebalance, to the tasks that they had.
        staying_pods: UIDs of the pods in which another container can follow, whose members could be taken for those of
            the one that ended.
    """
    is_blocked = _blocks_its_successor(group)
    found = []
    for seen in observed:
        end, is_gone = _end_of(seen, ends), for_good(seen)
        if end is None or not seen.is_confirmed:
            continue
        # The next pod begins only when the kubelet has reported the end of the last one: no clock is asked then.
        is_doubted = end.is_followed or seen.pod_uid in staying_pods
        doubt = end.clock_doubt if is_doubted else timedelta(0)
        if seen.seen_at > end.finished_at - margin - doubt:
            continue
        away = is_blocked or is_gone
        members = tuple(key for key in seen.members if key.id in group.member_ids and (away or key.instance_id is None))
        if members:
            found.append(Evictable(members, end))
    return tuple(found)


def has_outlived(seen: ObservedMembers, ends: Sequence[ContainerEnd], reading: GroupReading) -> bool:
    """Tell whether members that are still listed cannot be of the container in which they were seen.

    The kubelet tells of a container that follows a little later. Until then two reads can place a member of that one in
    the container before. The group drops the members of the one that ended when their sessions are over.

    Args:
        seen: Members, and the container in which two reads placed them.
        ends: The containers known to have ended.
        reading: Of a group that lists them. A classic group, or brokers that do not tell the timeout, let nothing
            follow.
    """
    streams = reading.group.streams if isinstance(reading.group, GroupDescription) else None
    session = None if streams is None else streams.session_timeout
    end = _end_of(seen, ends)
    if end is None or session is None:
        return False
    over_for = reading.as_of - end.finished_at
    return over_for > LONG_OVER + 2 * session  # a coordinator that takes over begins sessions anew


def _blocks_its_successor(group: GroupDescription) -> bool:
    """Tell whether a static member of an ended container stands in the way of its successor.

    In a group of the streams protocol (Kafka 4.4) the coordinator refuses an instance id that was not released
    (`UNRELEASED_INSTANCE_ID`), and the client takes that for fatal.
    """
    return group.streams is not None


def _end_of(seen: ObservedMembers, ends: Sequence[ContainerEnd]) -> ContainerEnd | None:
    """The end of exactly that container. Of two reports the earlier one counts: it asks for more."""
    own = [
        end for end in ends if end.is_trusted and (end.pod_uid, end.container_id) == (seen.pod_uid, seen.container_id)
    ]
    return min(own, key=lambda end: end.finished_at, default=None)


def _among(seen: ObservedMembers, keys: Container[MemberKey]) -> ObservedMembers:
    members = tuple(key for key in seen.members if key in keys)
    return seen if len(members) == len(seen.members) else replace(seen, members=members)


def _known(one: ObservedMembers, observed: Iterable[ObservedMembers]) -> set[MemberKey]:
    """Members that are captured already in the container of `one`."""
    return {key for seen in observed if seen.container_id == one.container_id for key in seen.members}
