"""Why one StreamApp is as it is, in sentences: `explain(resource, now)`.

What was wanted, what is granted, what is waited for, since when, how long still, what would end it, what a person can
do. Pure; the words are those of `core.reasons` wherever there are any, and nothing is advised that does not exist.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from streamapp.api.v1alpha1.status import ConvergenceStatus, ScaleDownStatus
from streamapp.cli.model.agents_told import agents
from streamapp.cli.model.app_view import Never, State, View, view_of
from streamapp.cli.model.endings import what_ends_it
from streamapp.cli.model.phrases import are, counted
from streamapp.cli.model.remedies import what_you_can_do
from streamapp.cli.model.told import without_advice
from streamapp.cli.text import durations
from streamapp.core.actions.decision import Answer
from streamapp.core.reasons import Reason


class Question(Enum):
    """What is answered, in this order; the value is how it is called on a terminal and in JSON."""

    WANTED = "wanted"
    WHY = "why"
    SINCE = "since"
    WAITS_FOR = "waits for"
    HOW_LONG = "how long"
    ENDS = "ends"
    YOU_CAN = "you can"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answers to those questions that the state raises, each at least one sentence."""

    view: View
    answers: Mapping[Question, tuple[str, ...]]


def explain(resource: Mapping[str, Any], now: datetime) -> Explanation:
    """Explain a StreamApp.

    Args:
        resource: The whole object, as the API server gives it in JSON.
        now: The time, aware of its zone.

    Raises:
        pydantic.ValidationError: There is no metadata as every API server gives it.
    """
    view = view_of(resource, now)
    sentences = {
        Question.WANTED: tuple(_wanted(view)),
        Question.WHY: tuple(_why(view)),
        Question.SINCE: tuple(_since(view)),
        Question.WAITS_FOR: tuple(_waits_for(view)),
        Question.HOW_LONG: tuple(_how_long(view)),
        Question.ENDS: tuple(what_ends_it(view)),
        Question.YOU_CAN: tuple(what_you_can_do(view)),
    }
    return Explanation(view=view, answers={question: told for question, told in sentences.items() if told})


def _wanted(view: View) -> Iterator[str]:
    desired, status = view.found.replicas, view.status
    if view.state is State.DELETING:
        yield "The StreamApp is being deleted."
    if status.stateful_set_replicas is None:
        yield f"{are(desired)} wished for, and none is granted yet."
    elif status.stateful_set_replicas == desired:
        yield f"{are(desired)} wished for, and as many are granted."
    else:
        yield f"{are(desired)} wished for, and {status.stateful_set_replicas} granted."
    if view.is_answered:
        yield f"Of its pods {status.replicas} exist and {status.ready_replicas} are ready."
    if view.is_dry_run:
        yield "It is a dry run (`spec.dryRun`): everything is decided and nothing is done."


def _why(view: View) -> Iterator[str]:
    if view.doubt is not None:
        yield view.doubt.what
    if view.faults:
        yield f"{Reason.InvalidSpec.note} {'; '.join(view.faults)}. ({Reason.InvalidSpec.name})"
    told = view.told_by
    if told is not None:
        yield without_advice(told)
        yield from _beside(view, told.reason)
    yield from agents(view)


def _beside(view: View, reason: str) -> Iterator[str]:
    """What else is not as it should be."""
    seen = {reason}
    for condition in view.to_look_at:
        if condition.reason not in seen:
            seen.add(condition.reason)
            answer = "not known" if condition.status is Answer.UNKNOWN else condition.status.value.lower()
            yield f"Beside that, {condition.type} is {answer}: {without_advice(condition)}"


def _since(view: View) -> Iterator[str]:
    going, told = view.status.scale_down, view.told_by
    if going is not None and going.since is not None:
        passed = durations.short(view.now - going.since)
        yield f"The scale-down began {passed} ago, at {durations.clock(going.since)}."
    if going is not None and going.waiting_for and going.last_progress is not None:
        yield f"The lag that it waits for last became less {durations.ago(going.last_progress, view.now)}."
    if (going is None or going.since is None) and told is not None:
        since = told.last_transition_time
        yield f"It has been {view.state.value} for {durations.short(view.now - since)}, since {durations.clock(since)}."


def _waits_for(view: View) -> Iterator[str]:
    going, convergence = view.status.scale_down, view.status.convergence
    if view.state is State.SETTLED:
        return
    if going is not None and going.waiting_for:
        verb = "has" if going.waiting_for == 1 else "have"
        yield f"{counted(going.waiting_for, 'task')} {verb} no caught-up copy on a pod that stays."
    if convergence is None:
        return
    if convergence.tasks is not None and convergence.running != convergence.tasks:
        yield f"{convergence.running or 0:,} of {counted(convergence.tasks, 'task')} are known to run."
    if convergence.learners is not None and convergence.caught_up != convergence.learners:
        caught_up = convergence.caught_up or 0
        yield f"{caught_up:,} of {convergence.learners:,} copies are caught up."
    if convergence.remaining_lag:
        yield f"{counted(convergence.remaining_lag, 'record')} are still to be applied."
    for slow in convergence.slowest[:1]:
        lag = "" if slow.lag is None else f", which is {counted(slow.lag, 'record')} behind"
        copy = "no copy" if slow.ordinal is None else f"its best copy on pod {slow.ordinal}"
        yield f"Furthest behind is task {slow.task}: it has {copy}{lag}."


def _how_long(view: View) -> Iterator[str]:
    going, convergence = view.status.scale_down, view.status.convergence
    if view.state not in {State.HELD, State.CONVERGING, State.CHANGING, State.STALLED}:
        return
    if going is not None and going.waiting_for:
        yield _left(view, going, "Until the copies that the next pod waits for are caught up")
    elif convergence is not None and view.state is not State.HELD and view.answer("Converged") is Answer.FALSE:
        yield _left(view, convergence, "Until every copy is caught up")


def _left(view: View, part: ConvergenceStatus | ScaleDownStatus, until: str) -> str:
    match view.left(part):
        case None:
            return f"{until}: not known; it takes two looks at the lag to tell."
        case Never():
            return f"{until}: never at the present speed; the lag does not become less."
        case left if left:
            return f"{until}: about {durations.short(left)}."
        case _:
            return f"{until}: any moment."
