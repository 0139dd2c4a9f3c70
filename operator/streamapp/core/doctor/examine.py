"""The examination of one application: everything that is checked, in the order in which a person reads it.

Pure: snapshot, policy and what the template says go in, findings come out. It decides nothing and holds nothing up; the
operator answers `kubectl streamapp doctor` with it. What cannot be checked is a finding of its own kind, never silence.
"""

from collections.abc import Callable
from dataclasses import dataclass

from streamapp.core.doctor import agent_checks, kafka_checks, resource_checks, streams_checks
from streamapp.core.doctor.diagnoses import Diagnosis, Finding
from streamapp.core.doctor.subject import Found, Subject
from streamapp.core.reasons import Reason

Check = Callable[[Subject], Found]

CHECKS: tuple[tuple[Diagnosis, Check], ...] = (
    (Diagnosis.PassFailed, resource_checks.last_pass_succeeded),
    (Diagnosis.OperatorRightMissing, resource_checks.api_server_refuses_nothing),
    (Diagnosis.InvalidSpec, resource_checks.spec_is_valid),
    (Diagnosis.ApplicationIdTaken, resource_checks.application_id_is_free),
    (Diagnosis.ForeignStatefulSet, resource_checks.statefulset_is_ours),
    (Diagnosis.BrokersUnreachable, kafka_checks.brokers_answer),
    (Diagnosis.KafkaRightMissing, kafka_checks.no_right_is_missing),
    (Diagnosis.GroupProtocolUnsupported, kafka_checks.by_gate(Reason.GroupProtocolUnsupported)),
    (Diagnosis.GroupUndecodable, kafka_checks.by_gate(Reason.GroupUndecodable)),
    (Diagnosis.TopologyUnknown, kafka_checks.tasks_are_known),
    (Diagnosis.EndOffsetsUnread, kafka_checks.ends_are_read),
    (Diagnosis.BrokerAssignorUnknown, streams_checks.brokers_assignor_is_known),
    (Diagnosis.PositionsNotReported, streams_checks.positions_are_reported),
    (Diagnosis.NoCopies, kafka_checks.tasks_have_copies),
    (Diagnosis.StandbysWithoutEffect, streams_checks.standbys_are_the_groups),
    (Diagnosis.IdentityUnstable, kafka_checks.identity_is_stable),
    (Diagnosis.MaxIdleTimeTooLong, kafka_checks.state_is_young_enough),
    (Diagnosis.AgentKeyMissing, agent_checks.there_is_a_key),
    (Diagnosis.AgentSilent, agent_checks.agents_answer),
    (Diagnosis.AgentUntrusted, agent_checks.agents_are_trusted),
    (Diagnosis.AssignorAside, agent_checks.assignor_is_at_work),
    (Diagnosis.LagLimitUnbounded, agent_checks.lag_limit_is_a_limit),
    (Diagnosis.LagLimitsDisagree, agent_checks.lag_limits_agree),
    (Diagnosis.LearnerLimitWithoutEffect, agent_checks.learner_limit_bounds),
    (Diagnosis.StateDirElsewhere, agent_checks.state_is_on_the_volume),
    (Diagnosis.StateWithoutVolume, agent_checks.state_has_a_volume),
    (Diagnosis.TaskDirectoriesEmptied, agent_checks.task_directories_were_kept),
    (Diagnosis.CloseWithoutLeave, agent_checks.close_leaves),
    (Diagnosis.HeartbeatSlow, agent_checks.heartbeats_are_quick),
    (Diagnosis.AssignmentsDelayed, streams_checks.assignments_follow_at_once),
    (Diagnosis.SessionTimeoutLong, agent_checks.static_sessions_are_short),
    (Diagnosis.VolumeFull, resource_checks.volumes_have_room),
    (Diagnosis.PodFails, resource_checks.pods_run),
    (Diagnosis.KilledBeforeClosed, resource_checks.containers_end_by_themselves),
    (Diagnosis.GracePeriodShort, resource_checks.grace_period_is_long_enough),
    (Diagnosis.NoReadinessProbe, resource_checks.readiness_is_probed),
    (Diagnosis.OwnReadinessProbe, resource_checks.readiness_is_the_agents),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What came of it."""

    findings: tuple[Finding, ...]
    fine: tuple[Diagnosis, ...]
    """What was checked and is in order; what does not apply is neither here nor there."""


def examine(subject: Subject) -> Examination:
    """Check everything; a check that does not apply is left out."""
    findings: list[Finding] = []
    fine: list[Diagnosis] = []
    for diagnosis, check in CHECKS:
        found = check(subject)
        if found is None:
            continue
        findings.extend(found)
        if not found:
            fine.append(diagnosis)
    return Examination(findings=tuple(findings), fine=tuple(fine))
