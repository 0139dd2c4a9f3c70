"""Where learners come from: on demand where our assignor is at work in *all* pods, else what the group shows.

A mixed group would change its layout with every leader, so one pod that says otherwise, or nothing, is enough to fall
back, and the reason is told. Called by `evaluate`, `scale_down`, `rollout`, `announcement` and `conditions`.
"""

from dataclasses import dataclass, replace

from streamapp.core.evidence.agent_views import fresh, silence
from streamapp.core.evidence.learners import LearnersUnknown, detect
from streamapp.core.evidence.membership import place_members
from streamapp.core.evidence.refusal import Refusal, first_few
from streamapp.core.facts.agent_reports import AgentReport, AsideKind, AssignorInactive
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.reasons import Reason

UNBOUNDED = 2**62
"""Records; an `acceptable.recovery.lag` from here on stands for "any": `Long.MAX_VALUE` is what people write."""


@dataclass(frozen=True, slots=True)
class LearnerSourceStatus:
    """Which source is in force."""

    source: LearnerSource | LearnersUnknown
    not_on_demand: Refusal | None = None
    """Why it is not on demand, where an agent could make it so; None: it is, or nobody asked for it."""

    @property
    def is_on_demand(self) -> bool:
        """Tell whether pods are drained before they go."""
        return self.source is LearnerSource.ON_DEMAND


def seen(snapshot: Snapshot, policy: ScalingPolicy) -> LearnerSourceStatus:
    """The source in force now."""
    if policy.source in {LearnerSource.STANDBYS, LearnerSource.NONE}:
        return LearnerSourceStatus(_shown_by_the_group(snapshot))
    missing = why_not_on_demand(snapshot, policy)
    if missing is None:
        return LearnerSourceStatus(LearnerSource.ON_DEMAND)
    is_asked_for = policy.agent or policy.source is LearnerSource.ON_DEMAND
    return LearnerSourceStatus(_shown_by_the_group(snapshot), missing if is_asked_for else None)


def is_on_demand(snapshot: Snapshot, policy: ScalingPolicy) -> bool:
    """Tell whether pods are drained before they go."""
    chosen = policy.source not in {LearnerSource.STANDBYS, LearnerSource.NONE}
    return chosen and why_not_on_demand(snapshot, policy) is None


def why_not_on_demand(snapshot: Snapshot, policy: ScalingPolicy) -> Refusal | None:
    """Why learners cannot come on demand; None: every pod that runs has our assignor, and says so."""
    if not policy.agent:
        return Refusal(Reason.AgentDisabled)
    quiet = silence(snapshot, policy.timing)
    if quiet is not None:
        return Refusal(quiet.reason, quiet.detail, needs_rebalance=False)
    reports = tuple(fresh(snapshot, policy.timing).values())
    return _assigned_otherwise(reports) or limit_in_doubt(snapshot, policy) or _somebody_else(snapshot, reports)


def is_heard_but_not_ours(snapshot: Snapshot, policy: ScalingPolicy) -> bool:
    """Tell whether an agent says that another assignor is at work there: then nobody is to be told who leaves."""
    return any(not report.is_ours for report in fresh(snapshot, policy.timing).values())


def limit_in_doubt(snapshot: Snapshot, policy: ScalingPolicy) -> Refusal | None:
    """Whether the application's own limit is known, one for all pods of one template, and a limit.

    Between templates it may differ: whatever changes it would else make its own rollout one without learners. The
    smallest counts then (`within_the_applications_limit`).
    """
    limits = {ordinal: report.recovery_lag for ordinal, report in fresh(snapshot, policy.timing).items()}
    endless = sorted(ordinal for ordinal, limit in limits.items() if limit is not None and limit >= UNBOUNDED)
    if endless:
        return Refusal(Reason.RecoveryLagUnbounded, f"ordinal {first_few(endless)}", needs_rebalance=False)
    revisions = {pod.ordinal: pod.revision for pod in snapshot.workload.pods}
    by_template = {(revisions.get(ordinal), limit) for ordinal, limit in limits.items()}
    if None in limits.values() or not limits or len(by_template) != len({revision for revision, _ in by_template}):
        told = ", ".join(f"ordinal {ordinal}: {limit}" for ordinal, limit in sorted(limits.items())[:5])
        return Refusal(Reason.RecoveryLagUnclear, told, needs_rebalance=False)
    return None


def within_the_applications_limit(snapshot: Snapshot, policy: ScalingPolicy) -> ScalingPolicy:
    """The policy with the smaller of its own and the application's `acceptable.recovery.lag`, where agents tell it."""
    if not policy.agent:
        return policy
    told = [report.recovery_lag for report in fresh(snapshot, policy.timing).values()]
    limits = [limit for limit in told if limit is not None and limit >= 0]
    return replace(policy, acceptable_recovery_lag=min([policy.acceptable_recovery_lag, *limits]))


def another_assignor(snapshot: Snapshot, policy: ScalingPolicy) -> Refusal | None:
    """An agent that says the application assigns with something else than it declares."""
    for report in fresh(snapshot, policy.timing).values():
        if report.aside is not None and report.aside.kind is AsideKind.OWN_ASSIGNOR:
            return Refusal(Reason.OwnAssignor, _told(report, report.aside), needs_rebalance=False)
    return None


def _assigned_otherwise(reports: tuple[AgentReport, ...]) -> Refusal | None:
    others = [report for report in reports if not report.is_ours]
    if not others:
        return None
    named = next((report for report in others if report.aside is not None), others[0])
    aside = named.aside or AssignorInactive(AsideKind.FAILED, "it does not say why")
    reason = _STEPS_ASIDE[aside.kind]
    if len(others) < len(reports):
        return Refusal(Reason.AssignorMixed, f"{reason.name}: {_told(named, aside)}", needs_rebalance=False)
    return Refusal(reason, _told(named, aside), needs_rebalance=False)


def _somebody_else(snapshot: Snapshot, reports: tuple[AgentReport, ...]) -> Refusal | None:
    """Whether each agent, its members and its volume go by one process ID."""
    latest = snapshot.latest
    group = None if latest is None else latest.group
    placement = place_members(group, snapshot.workload) if isinstance(group, GroupDescription) else None
    for report in reports:
        volume = snapshot.workload.volume(report.ordinal)
        members = () if placement is None else placement.members(report.ordinal)
        others = {None if volume is None else volume.process_id, *(member.process_id for member in members)}
        wrong = sorted(others - {None, report.process_id}, key=str)
        if wrong:
            detail = f"the agent of ordinal {report.ordinal} says {report.process_id}, others say {wrong[0]}"
            return Refusal(Reason.ProcessIdMismatch, detail, needs_rebalance=False)
    return None


def _shown_by_the_group(snapshot: Snapshot) -> LearnerSource | LearnersUnknown:
    latest, task_set = snapshot.latest, snapshot.task_set
    if latest is None or not isinstance(latest.group, GroupDescription):
        return LearnersUnknown("the group could not be read")
    return detect(latest.group, task_set) if isinstance(task_set, TaskSet) else LearnersUnknown(task_set.reason)


def _told(report: AgentReport, aside: AssignorInactive) -> str:
    return f"ordinal {report.ordinal}: {aside.why}"


_STEPS_ASIDE = {
    AsideKind.OLDER_STREAMS: Reason.OlderStreams,
    AsideKind.OWN_ASSIGNOR: Reason.OwnAssignor,
    AsideKind.STREAMS_PROTOCOL: Reason.StreamsProtocol,
    AsideKind.UNKNOWN_LOADER: Reason.UnknownLoader,
    AsideKind.SWITCHED_OFF: Reason.AssignorSwitchedOff,
    AsideKind.FAILED: Reason.AgentFailed,
}
