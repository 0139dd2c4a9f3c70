"""What a StreamApp itself shows to be wrong: its conditions, its template, its pods; for `doctor`.

Pure. Two things only the resource tells (`of_resource`); where the operator could not be asked, its last written status
stands in for what it would have answered (`instead_of_operator`), and what a status does not tell is not checked.
"""

from collections.abc import Iterator
from dataclasses import replace

from streamapp.api.http.build import template_facts
from streamapp.api.v1alpha1.status import AgentState, ConditionStatus
from streamapp.api.validation.parse import InvalidStreamApp
from streamapp.cli.model.app_view import State, View
from streamapp.core.actions.decision import Answer
from streamapp.core.doctor import resource_checks
from streamapp.core.doctor.diagnoses import Diagnosis, Finding, Kind, Source
from streamapp.core.doctor.examine import CHECKS, Examination
from streamapp.core.doctor.kafka_checks import RIGHT
from streamapp.core.facts.ids import Ordinal
from streamapp.core.reasons import Reason

AUTOSCALING_HEALTHY = "AutoscalingHealthy"


def of_resource(view: View) -> Examination:
    """What is told by the resource alone, whatever the operator answers."""
    findings: list[Finding] = []
    fine: list[Diagnosis] = []
    if view.is_forgotten and view.doubt is not None:
        findings.append(_kubernetes(Diagnosis.Unanswered, view.doubt.what))
    else:
        fine.append(Diagnosis.Unanswered)
    if view.state is State.STALLED and view.told_by is not None:
        findings.append(_kubernetes(Diagnosis.Stalled, _said(view.told_by)))
    else:
        fine.append(Diagnosis.Stalled)
    sound = view.condition(AUTOSCALING_HEALTHY)
    if sound is None:
        why = f"the operator has not written the condition {AUTOSCALING_HEALTHY}"
        findings.append(_kubernetes(Diagnosis.ScalingUnsound, why, Kind.UNCHECKED))
    elif sound.status is Answer.TRUE:
        fine.append(Diagnosis.ScalingUnsound)
    else:
        kind = Kind.FOUND if sound.status is Answer.FALSE else Kind.UNCHECKED
        findings.append(_kubernetes(Diagnosis.ScalingUnsound, _said(sound), kind))
    return Examination(findings=tuple(findings), fine=tuple(fine))


def instead_of_operator(view: View) -> Examination:
    """What the status last said, for an operator that could not be asked; the rest of its checks are not made."""
    findings = [*_of_spec(view), *_of_agents(view)]
    fine: set[Diagnosis] = set()
    for condition in view.status.conditions:
        found = _of_condition(condition)
        if found is not None:
            findings.append(found)
        fine |= _in_order(condition)
    known = {finding.diagnosis for finding in findings} | fine | _judged(view)
    unchecked = (
        _kubernetes(diagnosis, "the operator could not be asked", Kind.UNCHECKED)
        for diagnosis, _ in CHECKS
        if diagnosis not in known and not _needs_agent(view, diagnosis)
    )
    found_here = {finding.diagnosis for finding in findings}
    order = [diagnosis for diagnosis, _ in CHECKS]
    return Examination(
        findings=(*_each_once(findings), *unchecked),
        fine=tuple(sorted((fine | _judged(view)) - found_here, key=order.index)),
    )


def _of_spec(view: View) -> Iterator[Finding]:
    template = template_facts(view.found)
    if template is None or isinstance(view.found, InvalidStreamApp):
        faults = "; ".join(map(str, view.found.faults)) if isinstance(view.found, InvalidStreamApp) else ""
        yield Finding(diagnosis=Diagnosis.InvalidSpec, detail=faults, source=Source.SPEC)
        return
    has_agent = view.found.spec.agent.enabled
    yield from resource_checks.grace_period(template, ())
    yield from resource_checks.missing_probe(template, has_agent=has_agent) or ()
    yield from resource_checks.own_probe(template, has_agent=has_agent) or ()


def _judged(view: View) -> set[Diagnosis]:
    """What the spec alone decides, one way or the other."""
    if isinstance(view.found, InvalidStreamApp):
        return {Diagnosis.InvalidSpec}
    probe = Diagnosis.OwnReadinessProbe if view.found.spec.agent.enabled else Diagnosis.NoReadinessProbe
    return {Diagnosis.InvalidSpec, Diagnosis.GracePeriodShort, probe}


def _of_agents(view: View) -> Iterator[Finding]:
    by_state = {
        AgentState.UNREACHABLE: (Diagnosis.AgentSilent, "did not answer when the status was written"),
        AgentState.INACTIVE: (Diagnosis.AssignorAside, "its assignor was aside when the status was written"),
    }
    for state, (diagnosis, what) in by_state.items():
        ordinals = tuple(Ordinal(one.ordinal) for one in view.status.members if one.agent is state)
        if ordinals:
            named = ", ".join(map(str, ordinals[:5])) + (f" and {len(ordinals) - 5} more" if len(ordinals) > 5 else "")
            yield replace(_kubernetes(diagnosis, f"pod {named}: {what}"), ordinals=ordinals)


def _diagnosis_of(reason: str) -> Diagnosis | None:
    """What the reason of a condition means, whichever condition has it."""
    return next((one for one in Diagnosis if one.reason is not None and one.reason.name == reason), None)


def _of_condition(condition: ConditionStatus) -> Finding | None:
    if condition.type not in {"KafkaReachable", "ProcessIdentityStable", "LearnersAvailable", "Stalled"}:
        return None
    if condition.type == "Stalled" and condition.status is not Answer.TRUE:
        return None
    is_good = condition.status is Answer.TRUE and condition.type != "Stalled"
    diagnosis = _diagnosis_of(condition.reason)
    if is_good and diagnosis is not Diagnosis.MaxIdleTimeTooLong:
        return None
    if RIGHT.search(condition.message):
        diagnosis = Diagnosis.KafkaRightMissing
    if diagnosis is not None:
        return _kubernetes(diagnosis, condition.message)
    usual = {"ProcessIdentityStable": Diagnosis.IdentityUnstable, "LearnersAvailable": Diagnosis.NoCopies}
    fallback = usual.get(condition.type)
    if fallback is None:
        return None
    kind = Kind.FOUND if condition.status is Answer.FALSE else Kind.UNCHECKED
    return _kubernetes(fallback, _said(condition), kind)


def _in_order(condition: ConditionStatus) -> set[Diagnosis]:
    """What a condition that is True says to be fine."""
    if condition.status is not Answer.TRUE:
        return set()
    match condition.type:
        case "KafkaReachable":
            reached = {Diagnosis.BrokersUnreachable, Diagnosis.GroupProtocolUnsupported, Diagnosis.GroupUndecodable}
            return reached if condition.reason == Reason.KafkaAnswers.name else {Diagnosis.BrokersUnreachable}
        case "ProcessIdentityStable":
            return {Diagnosis.IdentityUnstable}
        case "LearnersAvailable":
            return {Diagnosis.NoCopies, Diagnosis.TopologyUnknown}
    return set()


def _needs_agent(view: View, diagnosis: Diagnosis) -> bool:
    """Whether a check does not apply without an agent."""
    about_agents = {Diagnosis.AgentKeyMissing, Diagnosis.AgentSilent, Diagnosis.AssignorAside}
    probes = {Diagnosis.NoReadinessProbe, Diagnosis.OwnReadinessProbe}
    has_agent = not isinstance(view.found, InvalidStreamApp) and view.found.spec.agent.enabled
    return diagnosis in probes or (diagnosis in about_agents and not has_agent)


def _each_once(findings: list[Finding]) -> Iterator[Finding]:
    """The same may be said by two conditions; the longest of it stays."""
    for diagnosis in dict.fromkeys(finding.diagnosis for finding in findings):
        alike = [finding for finding in findings if finding.diagnosis is diagnosis]
        yield max(alike, key=lambda one: (one.kind is Kind.FOUND, len(one.ordinals), len(one.detail)))


def _said(condition: ConditionStatus) -> str:
    return f"{condition.reason}: {condition.message}"


def _kubernetes(diagnosis: Diagnosis, detail: str, kind: Kind = Kind.FOUND) -> Finding:
    return Finding(diagnosis=diagnosis, kind=kind, detail=detail, source=Source.KUBERNETES)
