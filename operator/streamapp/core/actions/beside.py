"""Steps that are made beside every branch of the decision: evictions, left-over probe members, process IDs, volumes.

Called by `decide`. None of them takes a pod away.
"""

from streamapp.core.actions.decision import Evict, ExpandVolume, RecordProcessId, Step
from streamapp.core.evidence.eviction import evictable
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.membership import unrecorded
from streamapp.core.facts.containers import MemberKey, ObservedMembers
from streamapp.core.facts.group import GroupState
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import StatefulSet, Volume
from streamapp.core.reasons import Reason


def evictions(observed: tuple[ObservedMembers, ...], evidence: Evidence, statefulset: StatefulSet) -> tuple[Step, ...]:
    """Put out the members of containers that are known to have ended."""
    latest = evidence.latest
    if latest is None:
        return ()
    snapshot = evidence.snapshot
    pods = {pod.uid for pod in snapshot.workload.pods}
    without_volume = {request.pod_uid for request in snapshot.app.restarts if request.new_volume} - pods
    may_go = evictable(
        observed,
        snapshot.container_ends,
        latest.group,
        evidence.policy.timing.eviction_margin,
        for_good=lambda seen: seen.ordinal >= statefulset.replicas or seen.pod_uid in without_volume,
        staying_pods=snapshot.workload.staying_pods,
    )
    return tuple(Evict(members=one.members, end=one.end, reason=Reason.ContainerEnded) for one in may_go)


def probe_members(evidence: Evidence) -> tuple[Step, ...]:
    """Evict the probe member that an earlier triggered rebalance left behind."""
    latest = evidence.latest
    if latest is None or not latest.placement.probe_members:
        return ()
    keys = tuple(MemberKey(probe.id, probe.instance_id) for probe in latest.placement.probe_members)
    return (Evict(members=keys, end=None, reason=Reason.ProbeMemberLeft),)


def new_process_ids(evidence: Evidence) -> tuple[Step, ...]:
    """Record what a volume runs as, the first time it is seen: in a container that runs, and by its own members.

    What is on record is never replaced. A pod can have the address of one that is gone, on the network of its node
    above all; the members that are still listed there would give their process ID to a new volume.
    """
    latest, snapshot = evidence.latest, evidence.snapshot
    if latest is None or latest.group.state is not GroupState.STABLE or not latest.group.is_decoded:
        return ()
    placement, workload = latest.placement, snapshot.workload
    running = {pod.ordinal: pod.container.id for pod in workload.pods if pod.is_running}
    seen_in = {key.id: seen.container_id for seen in snapshot.observed for key in seen.members}
    return tuple(
        RecordProcessId(ordinal=ordinal, process_id=process_id, reason=Reason.ProcessIdUnrecorded)
        for ordinal, process_id in unrecorded(placement, workload).items()
        if process_id is not None
        and process_id not in placement.duplicated
        and ordinal in running
        and all(seen_in.get(one.id, running[ordinal]) == running[ordinal] for one in placement.members(ordinal))
    )


def larger_volumes(snapshot: Snapshot) -> tuple[Step, ...]:
    """Have claims that ask for less than the StreamApp says ask for that much.

    The claim templates of a StatefulSet are immutable, so a claim of a new ordinal begins with the former size.
    """
    return tuple(
        ExpandVolume(ordinal=volume.ordinal, to_bytes=size, reason=Reason.VolumeTooSmall)
        for volume, size in too_small(snapshot)
        if not volume.not_expandable
    )


def too_small(snapshot: Snapshot) -> list[tuple[Volume, int]]:
    """Volumes whose claim asks for less than the StreamApp says, each with what it says, in bytes."""
    size = snapshot.app.volume_size
    if size is None:
        return []
    return [
        (volume, size)
        for volume in snapshot.workload.volumes
        if volume.requested is not None and volume.requested < size and not volume.deleting
    ]
