"""The answers for programs: plain values for JSON and YAML. Their keys are API."""

from typing import Any

from streamapp.api.v1alpha1.status import ConvergenceState
from streamapp.cli.model.app_view import AppState, AppView
from streamapp.cli.model.doctor_report import DoctorReport, ReportPart
from streamapp.cli.model.explain import Explanation, Question

Json = dict[str, Any]


def of_status(view: AppView) -> Json:
    """One StreamApp: the fields of the overview, and its whole status."""
    status, metadata, main = view.status, view.streamapp.metadata, view.main_condition
    answered = view.is_answered
    eta = status.convergence.estimated_completion_time if status.convergence else None
    document = {
        "namespace": metadata.namespace,
        "name": metadata.name,
        "state": view.state.value,
        "reason": None if main is None else main.reason,
        "message": None if main is None else main.message,
        "doubt": None if view.doubt is None else {"what": view.doubt.what, "nextStep": view.doubt.next_step},
        "desired": view.streamapp.replicas,
        "statefulSetReplicas": status.stateful_set_replicas,
        "actual": status.replicas if answered else None,
        "readyReplicas": status.ready_replicas if answered else None,
        "converged": _converged(view),
        "held": view.state is AppState.HELD,
        "estimatedCompletionTime": None if eta is None else eta.isoformat(),
        "lagFalling": status.convergence.lag_falling if status.convergence else None,
        "createdAt": metadata.creation_timestamp.isoformat(),
        "statusWrittenAt": None if view.status_written_at is None else view.status_written_at.isoformat(),
        "status": status.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
    return {name: value for name, value in document.items() if value is not None}


def of_explanation(explanation: Explanation) -> Json:
    """The explanation: a list of sentences for every question, empty if a question does not apply."""
    view = explanation.view
    names = {question: _camel(question.value) for question in Question}
    return {
        "namespace": view.streamapp.metadata.namespace,
        "name": view.streamapp.metadata.name,
        "state": view.state.value,
        **({} if view.main_condition is None else {"reason": view.main_condition.reason}),
        **{names[question]: list(explanation.answers.get(question, ())) for question in Question},
    }


def of_report(report: DoctorReport) -> Json:
    """The findings about the cluster and each StreamApp, and their numbers."""
    return {
        "cluster": _of_part(report.cluster),
        "apps": [{"streamApp": part.title, **_of_part(part)} for part in report.apps],
        "counts": report.counts(),
    }


def _of_part(part: ReportPart) -> Json:
    findings = [finding.model_dump(mode="json", by_alias=True, exclude_none=True) for finding in part.findings]
    conditions = [
        {"type": condition.type, "status": condition.status, "reason": condition.reason, "message": condition.message}
        for condition in part.last_conditions
    ]
    document = {"facts": dict(part.facts), "findings": findings, "fine": list(part.fine)}
    return document | ({"lastConditions": conditions} if conditions else {})


def _converged(view: AppView) -> bool | None:
    convergence = view.status.convergence
    if convergence is None or convergence.state is ConvergenceState.UNKNOWN:
        return None
    return convergence.state is ConvergenceState.CONVERGED


def _camel(words: str) -> str:
    first, *rest = words.split()
    return first + "".join(word.capitalize() for word in rest)
