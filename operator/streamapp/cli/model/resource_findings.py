"""The findings of `doctor` that the resources alone show, whatever the operator answers. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from streamapp.api.v1alpha1.status import ConditionStatus
from streamapp.cli.model.app_view import AppState, AppView
from streamapp.cli.model.autoscalers import aimed_at
from streamapp.cli.model.doctor_report import LastCondition
from streamapp.core.actions.decision import Answer
from streamapp.core.doctor.diagnoses import Diagnosis, Finding, FindingKind, FindingSource
from streamapp.core.doctor.examine import Examination

AUTOSCALING_HEALTHY = "AutoscalingHealthy"
_BY_MEMBERS = "apache-kafka"
"""The trigger that finds topics by the group's members; `kafka` finds them by the committed offsets."""


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


def of_scaled_objects(view: AppView, objects: Iterable[Mapping[str, Any]] | str) -> Examination:
    """Whether triggers of KEDA see a group of the streams protocol.

    The trigger `apache-kafka` asks for the group's members if no topic is named, and fails if there are none. That
    request does not know groups of the streams protocol. Source: KEDA's `apache_kafka_scaler.go`.

    Args:
        view: The StreamApp.
        objects: The ScaledObjects of its namespace; or why they cannot be listed.
    """
    if isinstance(objects, str):
        unknown = _finding(Diagnosis.ScalerSeesNoGroup, objects, FindingKind.UNCHECKED)
        return Examination(findings=(unknown,), fine=())
    aimed = aimed_at(view.streamapp.metadata.name, objects)
    blind = [
        f"ScaledObject {body['metadata']['name']}, trigger {number}"
        for body in aimed
        for number, trigger in enumerate(body["spec"].get("triggers") or (), start=1)
        if trigger.get("type") == _BY_MEMBERS and not (trigger.get("metadata") or {}).get("topic")
    ]
    findings = tuple(_finding(Diagnosis.ScalerSeesNoGroup, one) for one in blind)
    return Examination(findings=findings, fine=(Diagnosis.ScalerSeesNoGroup,) if aimed and not findings else ())


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
