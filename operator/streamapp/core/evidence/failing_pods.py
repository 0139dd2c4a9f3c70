"""Pods that do not run their application: those that fail, and those whose state became too old while they waited.

No gate reads a fault: that a pod is not ready, or not in the group, holds whatever the cause is. The conditions, the
status and `doctor` name it. State is judged by the seeder, and only once: init containers do not run again while the
application's container waits for its image, a ConfigMap or a Secret. So `actions.plan` replaces such a pod.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from streamapp.core.evidence.refusal import Refusal, first_few
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import Pod, PodFault, StateSeen, Workload
from streamapp.core.reasons import Reason

UNREPORTED_LIMIT = timedelta(hours=1)
"""So long a pod can wait whose seeder did not report the age of the state."""
_PROVES_ITSELF = timedelta(seconds=60)
"""A container that was restarted repeatedly, or whose last run was shorter than this, is believed to run after this
long: without a readiness probe, Kubernetes calls it ready as soon as it starts."""
_REPEATEDLY = 2


def faults(workload: Workload) -> Mapping[Ordinal, PodFault]:
    """The pods that do not run, or that crash again and again, with the cause. A pod that is being deleted has none."""
    counted = ((pod.ordinal, _counted(pod, workload)) for pod in workload.pods)
    return {ordinal: fault for ordinal, fault in counted if fault is not None}


def fault_of(ordinal: Ordinal, workload: Workload) -> str | None:
    """What `faults` has of one pod, for a user; None if it has nothing."""
    pod = workload.pod(ordinal)
    fault = None if pod is None else _counted(pod, workload)
    return None if fault is None else describe(ordinal, fault)


def describe(ordinal: Ordinal, fault: PodFault) -> str:
    """The fault of one pod, for a user."""
    words = f": {fault.last_words}" if fault.last_words else ""
    if not fault.container:
        return f"pod {ordinal} is on no node ({fault.reason}){words}"
    subject = f"container {fault.container} of pod {ordinal}"
    if fault.exit_code is None:
        return f"{subject} does not start ({fault.reason}){words}"
    restarts = f", {fault.restarts} {'restart' if fault.restarts == 1 else 'restarts'}" if fault.restarts else ""
    return f"{subject} ended with exit code {fault.exit_code} ({fault.reason}{restarts}){words}"


def first_fault(workload: Workload, below: int | None = None) -> str:
    """The fault of the pod with the lowest ordinal, and how many more pods have one; empty if none has.

    Args:
        workload: The pods.
        below: Only pods with a lower ordinal count.
    """
    counted = {ordinal: fault for ordinal, fault in faults(workload).items() if below is None or ordinal < below}
    if not counted:
        return ""
    first = min(counted)
    others = len(counted) - 1
    more = f"; so it is with {others} more" if others else ""
    return describe(first, counted[first]) + more


def without_room(workload: Workload, below: int) -> Refusal | None:
    """Why the cluster has no place for a pod, if that is what is missing: a quota, or no node that takes it.

    A pod whose container fails says more, so this is asked where none does.

    Args:
        workload: The pods, and the quotas if a pod is missing.
        below: Only pods with a lower ordinal count.
    """
    missing = workload.first_missing
    if missing is not None and missing < below and workload.quota_limits:
        return Refusal(Reason.QuotaExceeded, f"pod {missing}; {first_few(workload.quota_limits)}")
    nowhere = {one: fault for one, fault in faults(workload).items() if one < below and not fault.container}
    if not nowhere:
        return None
    first = min(nowhere)
    more = f"; so it is with {len(nowhere) - 1} more" if len(nowhere) > 1 else ""
    return Refusal(Reason.PodsUnschedulable, describe(first, nowhere[first]) + more)


def _counted(pod: Pod, workload: Workload) -> PodFault | None:
    """The fault of a pod, if it counts now."""
    fault, started = pod.fault, pod.container.running_since
    if fault is None or pod.terminating:
        return None
    if started is None or not pod.ready:
        return fault
    ended_early = fault.ran_for is not None and fault.ran_for < _PROVES_ITSELF
    must_prove_itself = ended_early or fault.restarts >= _REPEATEDLY
    return fault if must_prove_itself and workload.read_at - started < _PROVES_ITSELF else None


def expired_pods(snapshot: Snapshot) -> tuple[Pod, ...]:
    """The pods that have not started since their seeder ended, and whose state is older than `state.maxIdleTime` now.

    Such a pod has no running container, so deleting it takes nothing away. The seeder of the next one removes the
    state.
    """
    limit, statefulset = snapshot.app.max_idle_time, snapshot.workload.statefulset
    if limit is None or statefulset is None or not statefulset.is_ours:
        return ()
    return tuple(pod for pod in snapshot.workload.pods if _is_expired(pod, limit, snapshot.now))


def _is_expired(pod: Pod, limit: timedelta, now: datetime) -> bool:
    run = pod.waits_since_seeding
    if run is None or pod.terminating or pod.container.running_since is not None or run.idle is StateSeen.NONE:
        return False
    left = min(UNREPORTED_LIMIT, limit) if isinstance(run.idle, StateSeen) else limit - run.idle
    return now - run.ended_at >= left
