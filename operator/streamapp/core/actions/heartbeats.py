"""The cap of the heartbeat interval that agents are asked for while tasks of a streams group are on their way.

A member of such a group learns of a new task from the answer to its next heartbeat, five seconds later or more. While
pods come or go, the agents shorten that interval. No gate asks whether they have: a cap makes a step faster, and never
safe. Nothing is remembered of what was sent; an agent reports the cap that it has, and lets it expire.
Called by `plan`. An agent that does not report that it can cap is never asked.
"""

from datetime import timedelta

from streamapp.core.actions.decision import CapHeartbeats
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import streams_group
from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.policy import Timing
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import Pod
from streamapp.core.reasons import Reason

_NO_TIME = timedelta(0)


def cap_heartbeats(evidence: Evidence, reason: Reason, *, is_open: bool, is_settled: bool) -> CapHeartbeats | None:
    """Return what agents must be asked now; None if each has what it should have.

    Args:
        evidence: Of this pass.
        reason: Of the decision.
        is_open: Whether tasks are on their way, or will be after this plan.
        is_settled: Whether none is. While neither is known, a cap is neither renewed nor ended, and expires.
    """
    timing = evidence.policy.timing
    if not evidence.policy.agent:
        return None
    is_wanted = is_open and streams_group(evidence) is not None
    left = {
        ordinal: _left(report, evidence)
        for ordinal, report in evidence.fresh_reports.items()
        if report.heartbeat_cap is not None
    }
    lasts = timing.heartbeat_cap_lasts
    if is_wanted:
        to = [ordinal for ordinal, time in left.items() if time < lasts / 2]
    elif not is_settled:
        return None
    else:
        to = [ordinal for ordinal, time in left.items() if time > _NO_TIME]
    if not to:
        return None
    return CapHeartbeats(
        to=tuple(sorted(to)), cap=timing.heartbeat_cap, ttl=lasts if is_wanted else _NO_TIME, reason=reason
    )


def has_pods_on_their_way(evidence: Evidence, *, is_settled: bool) -> bool:
    """Tell whether a pod has begun to run or was made so lately that its tasks may still move.

    A pod that never becomes ready must not cost the brokers heartbeats for ever.
    """
    snapshot, timing = evidence.snapshot, evidence.policy.timing
    return not is_settled and any(_is_new(pod, snapshot, timing) for pod in snapshot.workload.pods)


def _is_new(pod: Pod, snapshot: Snapshot, timing: Timing) -> bool:
    since = pod.container.running_since or pod.created_at
    return since is not None and snapshot.now - since < timing.heartbeat_cap_lasts


def _left(report: AgentReport, evidence: Evidence) -> timedelta:
    """How long the agent's cap still holds; zero if it has none, or another one."""
    cap, now = report.heartbeat_cap, evidence.snapshot.now
    if cap is None or cap.expires_in is None or cap.interval is None:
        return _NO_TIME
    return max(_NO_TIME, report.as_of + cap.expires_in - now)
