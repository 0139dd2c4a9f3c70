"""The examination of one application: everything that is checked, in the order in which a person reads it.

Pure: snapshot, policy and what the template says go in, findings come out. It decides nothing and holds nothing up; the
operator answers `kubectl streamapp doctor` with it. What cannot be checked is a finding of its own kind, never silence.
"""

from collections.abc import Callable
from dataclasses import dataclass

from streamapp.core import checks_by_agents, checks_of_kafka, checks_of_resource
from streamapp.core.diagnoses import Diagnosis, Finding
from streamapp.core.patients import Found, Patient

Check = Callable[[Patient], Found]

CHECKS: tuple[tuple[Diagnosis, Check], ...] = (
    (Diagnosis.PassFailed, checks_of_resource.last_pass_succeeded),
    (Diagnosis.OperatorRightMissing, checks_of_resource.api_server_refuses_nothing),
    (Diagnosis.InvalidSpec, checks_of_resource.spec_is_valid),
    (Diagnosis.ApplicationIdTaken, checks_of_resource.application_id_is_free),
    (Diagnosis.ForeignStatefulSet, checks_of_resource.statefulset_is_ours),
    (Diagnosis.BrokersUnreachable, checks_of_kafka.brokers_answer),
    (Diagnosis.KafkaRightMissing, checks_of_kafka.no_right_is_missing),
    (Diagnosis.GroupProtocolUnsupported, checks_of_kafka.group_is_classic),
    (Diagnosis.GroupUndecodable, checks_of_kafka.group_is_understood),
    (Diagnosis.TopologyUnknown, checks_of_kafka.tasks_are_known),
    (Diagnosis.EndOffsetsUnread, checks_of_kafka.ends_are_read),
    (Diagnosis.NoCopies, checks_of_kafka.tasks_have_copies),
    (Diagnosis.IdentityUnstable, checks_of_kafka.identity_is_stable),
    (Diagnosis.StateMaxAgeTooLong, checks_of_kafka.state_is_young_enough),
    (Diagnosis.AgentKeyMissing, checks_by_agents.there_is_a_key),
    (Diagnosis.AgentSilent, checks_by_agents.agents_answer),
    (Diagnosis.AssignorAside, checks_by_agents.assignor_is_at_work),
    (Diagnosis.LagLimitUnbounded, checks_by_agents.lag_limit_is_a_limit),
    (Diagnosis.LagLimitsDisagree, checks_by_agents.lag_limits_agree),
    (Diagnosis.StateDirElsewhere, checks_by_agents.state_is_on_the_volume),
    (Diagnosis.StateWithoutVolume, checks_by_agents.state_has_a_volume),
    (Diagnosis.TaskDirectoriesEmptied, checks_by_agents.task_directories_were_kept),
    (Diagnosis.CloseWithoutLeave, checks_by_agents.close_leaves),
    (Diagnosis.HeartbeatSlow, checks_by_agents.heartbeats_are_quick),
    (Diagnosis.SessionTimeoutLong, checks_by_agents.static_sessions_are_short),
    (Diagnosis.KilledBeforeClosed, checks_of_resource.containers_end_by_themselves),
    (Diagnosis.GracePeriodShort, checks_of_resource.grace_period_is_long_enough),
    (Diagnosis.NoReadinessProbe, checks_of_resource.readiness_is_probed),
    (Diagnosis.OwnReadinessProbe, checks_of_resource.readiness_is_the_agents),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What came of it."""

    findings: tuple[Finding, ...]
    fine: tuple[Diagnosis, ...]
    """What was checked and is in order; what does not apply is neither here nor there."""


def examine(patient: Patient) -> Examination:
    """Check everything; a check that does not apply is left out."""
    findings: list[Finding] = []
    fine: list[Diagnosis] = []
    for diagnosis, check in CHECKS:
        found = check(patient)
        if found is None:
            continue
        findings.extend(found)
        if not found:
            fine.append(diagnosis)
    return Examination(findings=tuple(findings), fine=tuple(fine))
