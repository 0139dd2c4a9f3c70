"""What every status must be, whatever it says: Kubernetes' API conventions, kstatus, and the project's own laws.

Used by every test that makes a status; `violations` names each breach in a sentence. The idea of a checker like this is
fluxcd's.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from streamapp.api.v1alpha1.status import StreamAppStatus
from streamapp.core.reasons import Reason

CONDITIONS = (
    "Ready",
    "Reconciling",
    "Stalled",
    "Converged",
    "ScaleDownHeld",
    "ProcessIdentityStable",
    "KafkaReachable",
    "LearnersAvailable",
    "DisruptionAllowed",
    "AutoscalingHealthy",
)

Json = Mapping[str, Any]


def violations(status: Json, *, generation: int, now: datetime, previous: Json | None = None) -> list[str]:
    """Everything that is wrong with a status.

    Args:
        status: As JSON, the way it is written.
        generation: Of the resource.
        now: When the status was made.
        previous: The status before it.
    """
    conditions = status.get("conditions", [])
    return [
        *_shape(status),
        *_generations(status, generation),
        *_of_all(conditions),
        *(breach for condition in conditions for breach in _of_one(condition, now)),
        *_between(status),
        *(_transitions(conditions, previous.get("conditions", []), now) if previous is not None else ()),
    ]


def kstatus(status: Json, generation: int) -> str:
    """What `helm --wait`, Flux and kubectl's status library make of the resource."""
    answers = _answers(status)
    if status.get("observedGeneration") != generation:
        return "InProgress"
    if answers.get("Reconciling") == "True":
        return "InProgress"
    if answers.get("Stalled") == "True":
        return "Failed"
    return "Current" if answers.get("Ready") == "True" else "InProgress"


def _shape(status: Json) -> Iterator[str]:
    """The API server prunes what the schema does not know, and refuses what does not fit it."""
    read = StreamAppStatus.model_validate(status)
    if read.model_dump(mode="json", by_alias=True, exclude_none=True) != status:
        yield "it does not stay the same when it is read and written"
    if any(value is None for value in _values(status)):
        yield "something in it is null"


def _values(part: Any) -> Iterator[Any]:
    if isinstance(part, Mapping):
        for value in part.values():
            yield from _values(value)
    elif isinstance(part, list):
        for value in part:
            yield from _values(value)
    else:
        yield part


def _generations(status: Json, generation: int) -> Iterator[str]:
    observed = status.get("observedGeneration")
    if observed is None or observed > generation:
        yield f"observedGeneration is {observed}, of {generation}"
    for condition in status.get("conditions", []):
        if condition.get("observedGeneration") != observed:
            yield f"{condition['type']}: observedGeneration is {condition.get('observedGeneration')}, not {observed}"


def _of_all(conditions: list[Json]) -> Iterator[str]:
    types = [condition["type"] for condition in conditions]
    if tuple(types) != CONDITIONS:
        yield f"the conditions are {types}"


def _of_one(condition: Json, now: datetime) -> Iterator[str]:
    kind = condition["type"]
    if condition["status"] not in {"True", "False", "Unknown"}:
        yield f"{kind}: status {condition['status']}"
    if condition["reason"] not in Reason.__members__:
        yield f"{kind}: {condition['reason']} is no documented reason"
    if not re.fullmatch(r"[A-Z].*[.!?]", condition["message"], re.DOTALL):
        yield f"{kind}: the message is no sentence: {condition['message']!r}"
    moved = condition["lastTransitionTime"]
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", moved):
        yield f"{kind}: {moved} is no time as Kubernetes writes it"
    elif datetime.strptime(moved, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) > now:
        yield f"{kind}: it moved in the future, at {moved}"


def _between(status: Json) -> Iterator[str]:
    """Laws between the parts."""
    answers = _answers(status)
    reasons = {condition["type"]: condition["reason"] for condition in status.get("conditions", [])}
    if answers.get("Reconciling") == "True" == answers.get("Stalled"):
        yield "it is Reconciling and Stalled at once"
    held = answers.get("ScaleDownHeld") == "True"
    if held and answers.get("Reconciling") == "True" and reasons["Reconciling"] == reasons["ScaleDownHeld"]:
        yield "a hold makes it Reconciling, so that tools would wait for its end"
    if held and "scaleDown" not in status:
        yield "a scale-down is held, but not described"
    state = status.get("convergence", {}).get("state")
    if {"True": "Converged", "False": "Converging", "Unknown": "Unknown"}.get(answers.get("Converged", "")) != state:
        yield f"Converged is {answers.get('Converged')}, convergence.state is {state}"
    if status["readyReplicas"] > status["replicas"]:
        yield "more pods are ready than exist"


def _transitions(conditions: list[Json], previous: list[Json], now: datetime) -> Iterator[str]:
    before = {condition["type"]: condition for condition in previous}
    for condition in conditions:
        last = before.get(condition["type"])
        if last is None:
            continue
        same = condition["status"] == last["status"]
        want = last["lastTransitionTime"] if same else now.strftime("%Y-%m-%dT%H:%M:%SZ")
        if condition["lastTransitionTime"] != want:
            yield f"{condition['type']}: lastTransitionTime is {condition['lastTransitionTime']}, not {want}"


def _answers(status: Json) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in status.get("conditions", [])}
