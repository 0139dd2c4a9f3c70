"""Steps that are made beside every branch of the decision: evictions, left-over phantoms, process IDs, the budget.

Called by `decide`. None of them takes a pod away.
"""

from streamapp.core.actions.decision import CloseBudget, Evict, OpenBudget, RecordProcessId, Step
from streamapp.core.actions.open_step import StepProgress
from streamapp.core.evidence.eviction import evictable
from streamapp.core.evidence.membership import place_members, unrecorded
from streamapp.core.facts.containers import MemberKey, ObservedMembers
from streamapp.core.facts.group import GroupDescription, GroupState
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import Budget, StatefulSet
from streamapp.core.reasons import Reason


def evictions(
    observed: tuple[ObservedMembers, ...], snapshot: Snapshot, policy: ScalingPolicy, statefulset: StatefulSet
) -> tuple[Step, ...]:
    """Put out the members of containers that are known to have ended."""
    latest = snapshot.latest
    if latest is None or not isinstance(latest.group, GroupDescription):
        return ()
    may_go = evictable(
        observed,
        snapshot.container_ends,
        latest.group,
        policy.timing.eviction_margin,
        for_good=lambda ordinal: ordinal >= statefulset.replicas,
    )
    return tuple(Evict(members=one.members, end=one.end, reason=Reason.ContainerEnded) for one in may_go)


def probe_members(snapshot: Snapshot) -> tuple[Step, ...]:
    """Put out what an earlier nudge left behind."""
    latest = snapshot.latest
    if latest is None or not isinstance(latest.group, GroupDescription):
        return ()
    probes = place_members(latest.group, snapshot.workload).probe_members
    if not probes:
        return ()
    keys = tuple(MemberKey(probe.id, probe.instance_id) for probe in probes)
    return (Evict(members=keys, end=None, reason=Reason.NudgeLeftOver),)


def new_process_ids(snapshot: Snapshot) -> tuple[Step, ...]:
    """Record what a volume runs as, the first time it is seen."""
    latest = snapshot.latest
    if latest is None or not isinstance(latest.group, GroupDescription):
        return ()
    if latest.group.state is not GroupState.STABLE or not latest.group.is_decoded:
        return ()
    placement = place_members(latest.group, snapshot.workload)
    return tuple(
        RecordProcessId(ordinal=ordinal, process_id=process_id, reason=Reason.ProcessIdUnrecorded)
        for ordinal, process_id in unrecorded(placement, snapshot.workload).items()
        if process_id is not None and process_id not in placement.duplicated
    )


def budget(snapshot: Snapshot, step_progress: StepProgress | None, *, takes_pods: bool) -> tuple[Step, ...]:
    """Closed from just before a step until it is done, or slow; open at all other times."""
    now = snapshot.workload.budget
    is_open_step = step_progress is not None and step_progress.waits_for is not None and not step_progress.is_slow
    if now is Budget.OPEN and (takes_pods or is_open_step):
        return (CloseBudget(reason=Reason.StepOpen),)
    if now is Budget.CLOSED and not (takes_pods or is_open_step):
        return (OpenBudget(reason=_why_open(step_progress)),)
    return ()


def _why_open(step_progress: StepProgress | None) -> Reason:
    if step_progress is None:
        return Reason.HoldCancelled
    return Reason.StepClosed if step_progress.waits_for is None else Reason.StepSlow
