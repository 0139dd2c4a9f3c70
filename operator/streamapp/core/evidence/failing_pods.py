"""Pods that do not run their application: those that fail, and those whose state became too old while they waited.

No gate reads a fault: that a pod is not ready, or not in the group, holds whatever the cause is. The conditions, the
status and `doctor` name it. State is judged by the seeder, and only once: init containers do not run again while the
application's container waits for its image, a ConfigMap or a Secret, whether or not it ran before. So `actions.plan`
replaces such a pod.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from streamapp.core.evidence.refusal import Refusal, first_few
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import Pod, PodFault, StateSeen, Volume, Workload
from streamapp.core.reasons import Reason

UNREPORTED_LIMIT = timedelta(hours=1)
"""So long a pod can wait whose seeder did not report the age of the state."""
TEMPLATE_FIRST = timedelta(minutes=1)
"""So long a pod whose state became too old waits for a template that is not written yet."""
_PROVES_ITSELF = timedelta(seconds=60)
"""A container that was restarted repeatedly, or whose last run was shorter than this, is believed to run after this
long: without a readiness probe, Kubernetes calls it ready as soon as it starts."""
_REPEATEDLY = 2
_NO_SPACE = ("no space left on device", "disk quota exceeded")
"""How the kernel's ENOSPC and EDQUOT read in the words of the C library, which RocksDB and the JVM repeat."""
_NEVER_RAN = {"StartError", "ContainerCannotRun"}
"""Why a container ended that the runtime could not start: the words are the runtime's, about its node."""
_MEBIBYTE = 1024 * 1024


def faults(workload: Workload) -> Mapping[Ordinal, PodFault]:
    """The pods that do not run, or that crash again and again, with the cause. A pod that is being deleted has none."""
    counted = ((pod.ordinal, _counted(pod, workload)) for pod in workload.pods)
    return {ordinal: fault for ordinal, fault in counted if fault is not None}


def fault_of(ordinal: Ordinal, workload: Workload) -> str | None:
    """What `faults` has of one pod, for a user; None if it has nothing."""
    pod = workload.pod(ordinal)
    fault = None if pod is None else _counted(pod, workload)
    return None if fault is None else describe(ordinal, fault, workload.volume(ordinal))


def found_no_space(fault: PodFault) -> bool:
    """Whether the application ended because a file system was full, as its last words say.

    What the kubelet says of a container that did not start is of the node: of an image that has no room there, say.
    """
    if fault.exit_code is None or fault.reason in _NEVER_RAN:
        return False
    words = fault.last_words.lower()
    return any(each in words for each in _NO_SPACE)


def describe(ordinal: Ordinal, fault: PodFault, volume: Volume | None) -> str:
    """The fault of one pod, for a user; with the size of its volume where that may be full."""
    words = f": {fault.last_words}" if fault.last_words else ""
    if found_no_space(fault) and volume is not None and volume.requested is not None:
        words += f"; its claim asks for {volume.requested / _MEBIBYTE:,.0f} MiB"
    if not fault.container:
        return f"pod {ordinal} is on no node ({fault.reason}){words}"
    subject = f"container {fault.container} of pod {ordinal}"
    if fault.exit_code is None:
        return f"{subject} does not start ({fault.reason}){words}"
    restarts = f", {fault.restarts} {'restart' if fault.restarts == 1 else 'restarts'}" if fault.restarts else ""
    return f"{subject} ended with exit code {fault.exit_code} ({fault.reason}{restarts}){words}"


def first_fault(workload: Workload) -> str:
    """The fault of the pod with the lowest ordinal, and how many more pods have one; empty if none has."""
    counted = faults(workload)
    return _first_of(counted, workload) if counted else ""


def without_run(workload: Workload, below: int) -> Refusal | None:
    """Why pods do not run their application; a full volume comes first, since its next step is known.

    Args:
        workload: The pods and their volumes.
        below: Only pods with a lower ordinal count.
    """
    counted = {ordinal: fault for ordinal, fault in faults(workload).items() if ordinal < below}
    full = {ordinal: fault for ordinal, fault in counted.items() if found_no_space(fault)}
    if full:
        return Refusal(Reason.VolumeFull, _first_of(full, workload))
    return Refusal(Reason.PodFails, _first_of(counted, workload)) if counted else None


def _first_of(counted: Mapping[Ordinal, PodFault], workload: Workload) -> str:
    first = min(counted)
    others = len(counted) - 1
    more = f"; so it is with {others} more" if others else ""
    return describe(first, counted[first], workload.volume(first)) + more


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
    return Refusal(Reason.PodsUnschedulable, describe(first, nowhere[first], None) + more)


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
    """The pods whose application waits to start, and whose state is older than `state.maxIdleTime` now.

    Such a pod has no running container, so deleting it takes nothing away. The seeder of the next one removes the
    state.
    """
    limit, statefulset = snapshot.app.max_idle_time, snapshot.workload.statefulset
    if limit is None or statefulset is None or not statefulset.is_ours:
        return ()
    return tuple(pod for pod in snapshot.workload.pods if _is_expired(pod, limit, snapshot.now))


def overdue_pods(snapshot: Snapshot) -> tuple[Pod, ...]:
    """Those of them whose state has been too old for a while, although their seeder found it young enough.

    The written template has the age that counts, so a template that is not written yet comes first. But the API server
    can refuse it for days, and such a pod would start on its old state as soon as it can. A seeder that found the state
    too old, and left it, has a longer limit of an older template: the next pod would have that, too.
    """
    limit, now = snapshot.app.max_idle_time, snapshot.now
    pods = ((pod, pod.last_use) for pod in expired_pods(snapshot))
    return tuple(
        pod
        for pod, use in pods
        if limit is not None
        and use is not None
        and isinstance(use.idle, timedelta)
        and use.idle < limit <= use.idle + (now - use.ended_at) - TEMPLATE_FIRST
    )


def _is_expired(pod: Pod, limit: timedelta, now: datetime) -> bool:
    run = pod.last_use
    if run is None or pod.terminating or pod.container.running_since is not None or run.idle is StateSeen.NONE:
        return False
    left = min(UNREPORTED_LIMIT, limit) if isinstance(run.idle, StateSeen) else limit - run.idle
    return now - run.ended_at >= left
