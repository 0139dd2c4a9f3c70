"""Which member runs in which pod: observed at decision time, by address and by process ID, never by a list kept.

Used by the gates, by coverage, by eviction and by triggered rebalances. What cannot be attributed is named, not
dropped: a foreign member, a contradiction, a process ID used twice.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from streamapp.core.facts.group import GroupDescription, Member
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import Workload

PROBE_CLIENT_ID = "streamapp-operator-probe"
"""The client ID of our own triggered rebalances; the next pass knows a probe member that could not leave by it.

Only the whole of it: Kafka Streams makes the client ID of each member from that of its application and of the thread.
"""


def is_probe(member: Member) -> bool:
    """Tell whether it is a member of ours, with which a rebalance was triggered."""
    return member.client_id == PROBE_CLIENT_ID


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A member whose address and process ID point to different ordinals."""

    member: Member
    by_host: Ordinal
    by_process: Ordinal | None
    """None: no volume has this process ID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPlacement:
    """Every member of the group, each in exactly one place."""

    by_ordinal: Mapping[Ordinal, tuple[Member, ...]]
    contradictions: tuple[Contradiction, ...]
    foreign: tuple[Member, ...]
    probe_members: tuple[Member, ...]
    duplicated: frozenset[ProcessId]
    """Process IDs that two volumes have, or that two pods run with."""

    def members(self, ordinal: Ordinal) -> tuple[Member, ...]:
        """The members of one ordinal."""
        return self.by_ordinal.get(ordinal, ())

    def is_present(self, ordinal: Ordinal) -> bool:
        """Tell whether somebody in the group has this ordinal's pod, under whatever process ID."""
        return bool(self.members(ordinal)) or any(clash.by_host == ordinal for clash in self.contradictions)

    def may_be_of(self, ordinal: Ordinal) -> bool:
        """Tell whether anybody in the group belongs to this ordinal, or could for all that is known."""
        contested = any(ordinal in (clash.by_host, clash.by_process) for clash in self.contradictions)
        return bool(self.members(ordinal)) or contested or bool(self.foreign)


def place_members(group: GroupDescription, workload: Workload) -> MemberPlacement:
    """Place every member.

    By the pod that has its address, by the volume that has its process ID; if both are known they must agree. A member
    whose address no pod has (any more) is placed by its process ID alone, and the other way round.
    """
    hosts, processes = _hosts(workload), _processes(workload)
    recorded = {volume.ordinal: volume.process_id for volume in workload.volumes}
    by_ordinal: dict[Ordinal, list[Member]] = defaultdict(list)
    contradictions, foreign, probe_members = [], [], []
    for member in group.members:
        place = _place(member, hosts, processes, recorded)
        if is_probe(member):
            probe_members.append(member)
        elif isinstance(place, Contradiction):
            contradictions.append(place)
        elif place is None:
            foreign.append(member)
        else:
            by_ordinal[place].append(member)
    return MemberPlacement(
        by_ordinal={ordinal: tuple(members) for ordinal, members in by_ordinal.items()},
        contradictions=tuple(contradictions),
        foreign=tuple(foreign),
        probe_members=tuple(probe_members),
        duplicated=_doubled(group, workload, hosts),
    )


def members_of_running_pods(placement: MemberPlacement, workload: Workload) -> Mapping[str, Ordinal]:
    """The members whose pod runs, by ID, each with its ordinal.

    A member stays listed after its pod has gone, until the group drops it: what it said then runs nowhere any more.
    """
    alive = {pod.ordinal for pod in workload.pods if pod.is_running}
    return {
        member.id: ordinal
        for ordinal, members in placement.by_ordinal.items()
        if ordinal in alive
        for member in members
    }


def unrecorded(placement: MemberPlacement, workload: Workload) -> Mapping[Ordinal, ProcessId | None]:
    """Ordinals that run, but whose volume has no process ID yet, with the one their members show.

    None where they show several or none: then nothing can be recorded.
    """
    found: dict[Ordinal, ProcessId | None] = {}
    for volume in workload.volumes:
        members = placement.members(volume.ordinal)
        if volume.process_id is None and members:
            shown = {member.process_id for member in members}
            found[volume.ordinal] = shown.pop() if len(shown) == 1 else None
    return found


def pods_without_volume(snapshot: Snapshot) -> tuple[Ordinal, ...]:
    """The ordinals whose pod exists and must have a volume, but whose claim is missing, is being deleted or is `Lost`.

    Their process ID and their state are unknown or about to be lost, so nothing must rest on them.
    """
    statefulset = snapshot.workload.statefulset
    if not snapshot.app.keeps_state or (statefulset is not None and not statefulset.is_ours):
        return ()
    with_volume = {volume.ordinal for volume in snapshot.workload.volumes if not volume.deleting}
    return tuple(pod.ordinal for pod in snapshot.workload.pods if pod.ordinal not in with_volume)


def _place(
    member: Member,
    hosts: Mapping[str, Ordinal],
    processes: Mapping[ProcessId, Ordinal],
    recorded: Mapping[Ordinal, ProcessId | None],
) -> Ordinal | Contradiction | None:
    by_host = hosts.get(member.client_host)
    by_process = None if member.process_id is None else processes.get(member.process_id)
    if by_host is None:
        return by_process
    expected = recorded.get(by_host)
    if by_process not in (None, by_host):
        return Contradiction(member, by_host, by_process)
    if expected is not None and member.process_id not in (None, expected):
        return Contradiction(member, by_host, by_process)
    return by_host


def _hosts(workload: Workload) -> Mapping[str, Ordinal]:
    """Addresses that exactly one pod has; pods on the host's network share theirs, which then tells nothing."""
    owners: dict[str, Ordinal] = {}
    shared = {ip for pod in workload.pods for ip in pod.ips if owners.setdefault(ip, pod.ordinal) != pod.ordinal}
    return {ip: ordinal for ip, ordinal in owners.items() if ip not in shared}


def _processes(workload: Workload) -> Mapping[ProcessId, Ordinal]:
    """Recorded process IDs that exactly one volume has."""
    doubled = _doubled_on_volumes(workload)
    return {
        volume.process_id: volume.ordinal
        for volume in workload.volumes
        if volume.process_id is not None and volume.process_id not in doubled
    }


def _doubled_on_volumes(workload: Workload) -> set[ProcessId]:
    """Recorded process IDs that several volumes have."""
    recorded = [volume.process_id for volume in workload.volumes if volume.process_id is not None]
    if len(set(recorded)) == len(recorded):
        return set()
    return {process for process, count in Counter(recorded).items() if count > 1}


def _doubled(group: GroupDescription, workload: Workload, hosts: Mapping[str, Ordinal]) -> frozenset[ProcessId]:
    seen_on: dict[ProcessId, set[Ordinal]] = defaultdict(set)
    for member in group.members:
        if member.process_id is not None and member.client_host in hosts:
            seen_on[member.process_id].add(hosts[member.client_host])
    on_pods = {process for process, ordinals in seen_on.items() if len(ordinals) > 1}
    return frozenset(_doubled_on_volumes(workload) | on_pods)
