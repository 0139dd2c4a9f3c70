"""Where learners come from: on demand where our assignor is at work in *all* pods, else what the group shows.

A mixed group would change its layout with every leader, so one pod that says otherwise, or nothing, is enough to fall
back, and the reason is told. Called by `evaluate`, `scale_down`, `rollout`, `announcement` and `conditions`.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.refusal import Refusal, first_few
from streamapp.core.facts.agent_reports import AgentReport, AnnouncementState, AsideKind, AssignorInactive
from streamapp.core.facts.group import FollowUp, GroupDescription, GroupState, StandbySetting, StreamsGroup
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.reasons import Reason

UNBOUNDED = 2**62
"""Records; an `acceptable.recovery.lag` from here on stands for "any": `Long.MAX_VALUE` is what people write."""


@dataclass(frozen=True, slots=True)
class LearnersUnknown:
    """It cannot be told at present."""

    why: str


@dataclass(frozen=True, slots=True)
class LearnerSourceStatus:
    """Which source is in force."""

    source: LearnerSource | LearnersUnknown
    not_on_demand: Refusal | None = None
    """Why it is not on demand, where an agent could make it so; None: it is, or nobody asked for it."""
    raises_standbys: bool = False
    """Standbys of a group of the streams protocol are raised when they are needed; `source` is what it has at rest."""

    @property
    def told(self) -> LearnerSource | LearnersUnknown:
        """What a person is told."""
        return LearnerSource.ON_DEMAND if self.raises_standbys else self.source

    @property
    def is_on_demand(self) -> bool:
        """Tell whether pods are drained before they go."""
        return self.source is LearnerSource.ON_DEMAND


def source_in_force(evidence: Evidence) -> LearnerSourceStatus:
    """Where learners come from now."""
    return evidence.once(_source_in_force)


def _source_in_force(evidence: Evidence) -> LearnerSourceStatus:
    policy = evidence.policy
    if policy.source in {LearnerSource.STANDBYS, LearnerSource.NONE}:
        return LearnerSourceStatus(_shown_by_the_group(evidence))
    missing = why_not_on_demand(evidence)
    if missing is None:
        return LearnerSourceStatus(LearnerSource.ON_DEMAND)
    streams = streams_group(evidence)
    if streams is not None and policy.source is LearnerSource.ON_DEMAND:
        instead = standbys_unread(streams) or _why_not_judged(evidence)
        return LearnerSourceStatus(_shown_by_the_group(evidence), instead, raises_standbys=instead is None)
    is_asked_for = policy.agent or policy.source is LearnerSource.ON_DEMAND
    return LearnerSourceStatus(_shown_by_the_group(evidence), missing if is_asked_for else None)


def streams_group(evidence: Evidence) -> StreamsGroup | None:
    """The group, as far as the streams protocol alone shows it; None for any other group."""
    return None if evidence.latest is None else evidence.latest.group.streams


def standbys_unread(streams: StreamsGroup) -> Refusal | None:
    """What the brokers say where they do not tell the group's standbys, or refused to raise them."""
    if isinstance(streams.standbys, StandbySetting):
        return None
    return Refusal(Reason.StandbysNotRaisable, streams.standbys.detail, needs_rebalance=False)


def _why_not_judged(evidence: Evidence) -> Refusal | None:
    """Why nobody can tell how far standbys are that would be raised; None: every pod that runs has an agent."""
    if not evidence.policy.agent:
        return Refusal(Reason.AgentDisabled)
    quiet = evidence.agents_unavailable
    return None if quiet is None else Refusal(quiet.reason, quiet.detail, needs_rebalance=False)


def is_on_demand(evidence: Evidence) -> bool:
    """Tell whether pods are drained before they go."""
    chosen = evidence.policy.source not in {LearnerSource.STANDBYS, LearnerSource.NONE}
    return chosen and why_not_on_demand(evidence) is None


def why_not_on_demand(evidence: Evidence) -> Refusal | None:
    """Why learners cannot come on demand; None: every pod that runs has our assignor, and says so."""
    return evidence.once(_why_not_on_demand)


def _why_not_on_demand(evidence: Evidence) -> Refusal | None:
    quiet = _why_not_judged(evidence)
    if quiet is not None:
        return quiet
    reports = tuple(evidence.fresh_reports.values())
    return _assigned_otherwise(reports) or limit_in_doubt(evidence) or _another_process(evidence, reports)


def is_another_assignor_at_work(evidence: Evidence) -> bool:
    """Tell whether an agent reports another assignor: then no agent is told which processes leave."""
    return any(not report.is_ours for report in evidence.fresh_reports.values())


def is_set(report: AgentReport, now: datetime) -> bool:
    """Tell whether an agent has an announcement that names a process and has not expired by now."""
    heard = report.heard
    if heard.state is not AnnouncementState.SET or heard.expires_in is None:
        return False
    return report.as_of + heard.expires_in > now


def announced_pods(evidence: Evidence) -> frozenset[Ordinal]:
    """The pods that an agent knows to leave, by what they report of themselves, or by their volume."""
    return evidence.once(_announced_pods)


def _announced_pods(evidence: Evidence) -> frozenset[Ordinal]:
    now, reports = evidence.snapshot.now, evidence.fresh_reports
    told = frozenset[ProcessId]().union(*(one.heard.process_ids for one in reports.values() if is_set(one, now)))
    by_agents = {ordinal for ordinal, one in reports.items() if one.process_id in told}
    volumes = evidence.snapshot.workload.volumes
    by_volume = {one.ordinal for one in volumes if one.ordinal not in reports and one.process_id in told}
    return frozenset(by_agents | by_volume)


def limit_in_doubt(evidence: Evidence) -> Refusal | None:
    """Whether the application's own limit is known, one for all pods of one template, and a limit.

    Between templates it may differ: whatever changes it would else make its own rollout one without learners. The
    smallest counts then (`within_the_applications_limit`).
    """
    limits = {ordinal: report.recovery_lag for ordinal, report in evidence.fresh_reports.items()}
    endless = sorted(ordinal for ordinal, limit in limits.items() if limit is not None and limit >= UNBOUNDED)
    if endless:
        return Refusal(Reason.RecoveryLagUnbounded, f"ordinal {first_few(endless)}", needs_rebalance=False)
    revisions = {pod.ordinal: pod.revision for pod in evidence.snapshot.workload.pods}
    by_template = {(revisions.get(ordinal), limit) for ordinal, limit in limits.items()}
    if None in limits.values() or not limits or len(by_template) != len({revision for revision, _ in by_template}):
        told = ", ".join(f"ordinal {ordinal}: {limit}" for ordinal, limit in sorted(limits.items())[:5])
        return Refusal(Reason.RecoveryLagUnclear, told, needs_rebalance=False)
    return None


def limited_evidence(snapshot: Snapshot, policy: ScalingPolicy) -> Evidence:
    """The evidence under the policy within the application's own limit: what every judgement rests on."""
    evidence = Evidence(snapshot, policy)
    return evidence.under(within_the_applications_limit(evidence))


def within_the_applications_limit(evidence: Evidence) -> ScalingPolicy:
    """The policy with the smaller of its own and the application's `acceptable.recovery.lag`, where agents tell it."""
    policy = evidence.policy
    if not policy.agent:
        return policy
    told = [report.recovery_lag for report in evidence.fresh_reports.values()]
    limits = [limit for limit in told if limit is not None and limit >= 0]
    return replace(policy, acceptable_recovery_lag=min([policy.acceptable_recovery_lag, *limits]))


def another_assignor(evidence: Evidence) -> Refusal | None:
    """An agent that says the application assigns with something else than it declares."""
    for report in evidence.fresh_reports.values():
        if report.aside is not None and report.aside.kind is AsideKind.OWN_ASSIGNOR:
            return Refusal(Reason.OwnAssignor, _told(report, report.aside), needs_rebalance=False)
    return None


def _assigned_otherwise(reports: tuple[AgentReport, ...]) -> Refusal | None:
    others = [report for report in reports if not report.is_ours]
    if not others:
        return None
    named = next((report for report in others if report.aside is not None), others[0])
    aside = named.aside or AssignorInactive(AsideKind.FAILED, "it does not say why")
    reason = aside.kind.reason
    if len(others) < len(reports):
        return Refusal(Reason.AssignorMixed, f"{reason.name}: {_told(named, aside)}", needs_rebalance=False)
    return Refusal(reason, _told(named, aside), needs_rebalance=False)


def _another_process(evidence: Evidence, reports: tuple[AgentReport, ...]) -> Refusal | None:
    """Whether each agent, its members and its volume show one process ID."""
    for report in reports:
        volume = evidence.snapshot.workload.volume(report.ordinal)
        members = () if evidence.latest is None else evidence.latest.placement.members(report.ordinal)
        others = {None if volume is None else volume.process_id, *(member.process_id for member in members)}
        wrong = sorted(others - {None, report.process_id}, key=str)
        if wrong:
            detail = f"the agent of ordinal {report.ordinal} says {report.process_id}, others say {wrong[0]}"
            return Refusal(Reason.ProcessIdMismatch, detail, needs_rebalance=False)
    return None


def _shown_by_the_group(evidence: Evidence) -> LearnerSource | LearnersUnknown:
    latest, task_set = evidence.latest, evidence.snapshot.task_set
    if latest is None:
        return LearnersUnknown("the group could not be read")
    return detect(latest.group, task_set) if isinstance(task_set, TaskSet) else LearnersUnknown(task_set.reason)


def _told(report: AgentReport, aside: AssignorInactive) -> str:
    return f"ordinal {report.ordinal}: {aside.why}"


def detect(group: GroupDescription, task_set: TaskSet) -> LearnerSource | LearnersUnknown:
    """Tell the source from a settled group.

    While tasks are still to move, warm-ups look like standbys on the wire; a single process has nowhere to put one.
    """
    if not task_set.stateful_ids:
        return LearnersUnknown("no task has state")
    if group.state is not GroupState.STABLE or not group.is_decoded:
        return LearnersUnknown("the group is not stable")
    if len({member.process_id for member in group.members}) < 2:
        return LearnersUnknown("a single process has no place for a standby")
    assignments = [member.assignment for member in group.members if member.assignment is not None]
    if any(assignment.follow_up is not FollowUp.NONE for assignment in assignments):
        return LearnersUnknown("tasks are still to move, and their warm-ups look like standbys")
    has_standby = not all(assignment.standby.isdisjoint(task_set.stateful_ids) for assignment in assignments)
    return LearnerSource.STANDBYS if has_standby else LearnerSource.NONE
