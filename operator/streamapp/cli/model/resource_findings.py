"""The findings of `doctor` that the resource alone shows, whatever the operator answers. Pure."""

from streamapp.api.v1alpha1.status import ConditionStatus
from streamapp.cli.model.app_view import AppState, AppView
from streamapp.cli.model.doctor_report import LastCondition
from streamapp.core.actions.decision import Answer
from streamapp.core.doctor.diagnoses import Diagnosis, Finding, FindingKind, FindingSource
from streamapp.core.doctor.examine import Examination

AUTOSCALING_HEALTHY = "AutoscalingHealthy"


def of_resource(view: AppView) -> Examination:
    """Whether the operator answers this StreamApp, whether it is stalled, and its autoscaling."""
    findings: list[Finding] = []
    fine: list[Diagnosis] = []
    if view.is_overdue and view.doubt is not None:
        findings.append(_finding(Diagnosis.Unanswered, view.doubt.what))
    else:
        fine.append(Diagnosis.Unanswered)
    if view.state is AppState.STALLED and view.main_condition is not None:
        findings.append(_finding(Diagnosis.Stalled, _reason_and_message(view.main_condition)))
    else:
        fine.append(Diagnosis.Stalled)
    autoscaling = view.condition(AUTOSCALING_HEALTHY)
    if autoscaling is None:
        why = f"the operator has not written the condition {AUTOSCALING_HEALTHY}"
        findings.append(_finding(Diagnosis.ScalingUnsound, why, FindingKind.UNCHECKED))
    elif autoscaling.status is Answer.TRUE:
        fine.append(Diagnosis.ScalingUnsound)
    else:
        kind = FindingKind.FOUND if autoscaling.status is Answer.FALSE else FindingKind.UNCHECKED
        findings.append(_finding(Diagnosis.ScalingUnsound, _reason_and_message(autoscaling), kind))
    return Examination(findings=tuple(findings), fine=tuple(fine))


def last_conditions_of(view: AppView) -> tuple[LastCondition, ...]:
    """The condition behind the state, and those that need attention, as the operator last wrote them."""
    main = view.main_condition
    return tuple(
        LastCondition(
            type=condition.type,
            status=condition.status.value,
            reason=condition.reason,
            message=condition.message,
        )
        for condition in (*(() if main is None else (main,)), *view.problem_conditions)
    )


def _reason_and_message(condition: ConditionStatus) -> str:
    return f"{condition.reason}: {condition.message}"


def _finding(diagnosis: Diagnosis, detail: str, kind: FindingKind = FindingKind.FOUND) -> Finding:
    return Finding(diagnosis=diagnosis, kind=kind, detail=detail, source=FindingSource.KUBERNETES)
