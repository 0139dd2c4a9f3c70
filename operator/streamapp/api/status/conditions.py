"""Conditions on the resource: the core's answers in sentences, with the times that Kubernetes wants on them.

Called by `translate`; `said` also by whoever writes Events, so that all say the same.
"""

from collections.abc import Iterable
from datetime import datetime

from streamapp.api.v1alpha1.status import MOST_MESSAGE, ConditionStatus
from streamapp.core.actions.decision import Answer, Condition
from streamapp.core.reasons import Reason

_SOUND = {
    "Ready": Answer.TRUE,
    "Reconciling": None,
    "Stalled": Answer.FALSE,
    "Converged": Answer.TRUE,
    "ScaleDownHeld": Answer.FALSE,
    "ProcessIdentityStable": Answer.TRUE,
    "KafkaReachable": Answer.TRUE,
    "LearnersAvailable": Answer.TRUE,
    "DisruptionAllowed": None,
    "AutoscalingHealthy": Answer.TRUE,
}
"""The answer of each condition that asks nothing of anybody; None where none does."""


def said(reason: Reason, detail: str, *, with_next_step: bool = False) -> str:
    """A reason with its particulars and, if asked for, what a person can do about it."""
    sentences = [reason.note]
    if detail:
        sentences.append(detail if detail.endswith(".") else f"{detail}.")
    if with_next_step and reason.needs_action:
        sentences.append(reason.next_step)
    return _clipped(" ".join(sentences))


def is_sound(kind: str, answer: Answer, reason: str) -> bool:
    """Tell whether a condition with this answer asks nothing of anybody, as far as this version knows the condition."""
    sound = _SOUND.get(kind)
    known = Reason.__members__.get(reason)
    always_asks = known is not None and known.row.always_needs_action
    return not always_asks and (sound is None or answer is sound)


def with_times(
    conditions: Iterable[Condition], previous: Iterable[ConditionStatus], generation: int, now: datetime
) -> tuple[ConditionStatus, ...]:
    """The conditions with the time of their last transition: it moves only when the status does.

    Args:
        conditions: What a decision says.
        previous: The conditions as they were last written.
        generation: Of the StreamApp that the conditions are about.
        now: The time of a transition.
    """
    before = {condition.type: condition for condition in previous}
    return tuple(_with_times(condition, before.get(condition.type), generation, now) for condition in conditions)


def _with_times(
    condition: Condition, before: ConditionStatus | None, generation: int, now: datetime
) -> ConditionStatus:
    same = before is not None and before.status is condition.status
    name = condition.reason.name
    message = said(
        condition.reason, condition.detail, with_next_step=not is_sound(condition.type, condition.status, name)
    )
    if before and same and (before.reason, before.message, before.observed_generation) == (name, message, generation):
        return before
    return ConditionStatus(
        type=condition.type,
        status=condition.status,
        observed_generation=generation,
        last_transition_time=before.last_transition_time if before and same else now.replace(microsecond=0),
        reason=name,
        message=message,
    )


def _clipped(text: str) -> str:
    return text if len(text) <= MOST_MESSAGE else f"{text[: MOST_MESSAGE - 1]}…"
