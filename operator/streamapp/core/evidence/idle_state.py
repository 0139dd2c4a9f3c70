"""Pods whose state became too old while they waited to start: the seeder judged its age, and judges only once.

Init containers do not run again while the application's container waits for its image, a ConfigMap or a Secret. Called
by `actions.plan`, which replaces such a pod, and by `status.conditions`.
"""

from datetime import datetime, timedelta

from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import Pod, StateSeen

UNREPORTED_LIMIT = timedelta(hours=1)
"""So long a pod can wait whose seeder did not report the age of the state."""


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
