"""The same answers for programs: plain values for JSON and YAML. Their names are API and do not change."""

from typing import Any

from streamapp.api.v1alpha1.status import ConvergenceState
from streamapp.cli.model.app_view import State, View
from streamapp.cli.model.doctor_report import Part, Report
from streamapp.cli.model.explain import Explanation, Question

Json = dict[str, Any]


def of_status(view: View) -> Json:
    """One StreamApp: what the line of the overview says, and its whole status."""
    status, metadata, told = view.status, view.found.metadata, view.told_by
    answered = view.is_answered
    eta = status.convergence.estimated_completion_time if status.convergence else None
    document = {
        "namespace": metadata.namespace,
        "name": metadata.name,
        "state": view.state.value,
        "reason": None if told is None else told.reason,
        "message": None if told is None else told.message,
        "doubt": None if view.doubt is None else {"what": view.doubt.what, "nextStep": view.doubt.next_step},
        "desired": view.found.replicas,
        "statefulSetReplicas": status.stateful_set_replicas,
        "actual": status.replicas if answered else None,
        "readyReplicas": status.ready_replicas if answered else None,
        "converged": _converged(view),
        "held": view.state is State.HELD,
        "estimatedCompletionTime": None if eta is None else eta.isoformat(),
        "lagFalling": status.convergence.lag_falling if status.convergence else None,
        "createdAt": metadata.creation_timestamp.isoformat(),
        "toldAt": None if view.told_at is None else view.told_at.isoformat(),
        "status": status.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
    return {name: value for name, value in document.items() if value is not None}


def of_explanation(explanation: Explanation) -> Json:
    """Why it is as it is: lists of sentences by question, all of them."""
    view = explanation.view
    names = {question: _camel(question.value) for question in Question}
    return {
        "namespace": view.found.metadata.namespace,
        "name": view.found.metadata.name,
        "state": view.state.value,
        **({} if view.told_by is None else {"reason": view.told_by.reason}),
        **{names[question]: list(explanation.answers.get(question, ())) for question in Question},
    }


def of_report(report: Report) -> Json:
    """What is wrong: the cluster, each StreamApp, and how many there are of each sort."""
    return {
        "cluster": _of_part(report.cluster),
        "apps": [{"streamApp": part.title, **_of_part(part)} for part in report.apps],
        "counts": report.counts(),
    }


def _of_part(part: Part) -> Json:
    findings = [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in part.findings]
    return {"facts": dict(part.facts), "findings": findings, "fine": list(part.fine)}


def _converged(view: View) -> bool | None:
    told = view.status.convergence
    if told is None or told.state is ConvergenceState.UNKNOWN:
        return None
    return told.state is ConvergenceState.CONVERGED


def _camel(words: str) -> str:
    first, *rest = words.split()
    return first + "".join(word.capitalize() for word in rest)
