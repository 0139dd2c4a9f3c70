"""Why one StreamApp is in its state, in sentences: `explain(resource, now)`.

The desired and current replicas, the reason, what the operator waits for, since when, how long, what ends it, and what
the user can do. Pure. The words are those of `core.reasons` if a reason has any, and the advice names only fields and
commands that exist. A command stands at the end of its sentence, in backticks.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from streamapp.api.v1alpha1.durations import format_duration
from streamapp.api.v1alpha1.status import (
    AgentState,
    ConditionStatus,
    ConvergenceStatus,
    EstimateSource,
    ScaleDownStatus,
)
from streamapp.api.validation.parse import StreamApp
from streamapp.cli.model.app_view import AppState, AppView, Never, view_of
from streamapp.cli.model.migration_record import sentence_of
from streamapp.cli.model.phrases import counted
from streamapp.cli.text import durations
from streamapp.core.actions.decision import Answer
from streamapp.core.facts.policy import LearnerSource, OnTimeout
from streamapp.core.reason_row import NO_ACTION
from streamapp.core.reasons import Reason
from streamapp.core.status.conditions import DRAIN_OF_NODE

_MOST_NAMED = 5
_OF_A_STEP = "The change ends once the pod is gone, its members have left the group, and every task runs again."


class Question(Enum):
    """A question of the explanation, in this order; the value is its label on a terminal and in JSON."""

    WANTED = "wanted"
    WHY = "why"
    SINCE = "since"
    WAITS_FOR = "waits for"
    HOW_LONG = "how long"
    ENDS = "ends"
    YOU_CAN = "you can"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The answers to the questions that apply, each at least one sentence."""

    view: AppView
    answers: Mapping[Question, tuple[str, ...]]


def explain(resource: Mapping[str, Any], now: datetime) -> Explanation:
    """Explain a StreamApp.

    Args:
        resource: The whole object, as the API server gives it in JSON.
        now: The time, aware of its zone.

    Raises:
        pydantic.ValidationError: The object lacks the metadata that every API server sets.
    """
    view = view_of(resource, now)
    sentences = {
        Question.WANTED: tuple(_wanted(view)),
        Question.WHY: tuple(_why(view)),
        Question.SINCE: tuple(_since(view)),
        Question.WAITS_FOR: tuple(_waits_for(view)),
        Question.HOW_LONG: tuple(_how_long(view)),
        Question.ENDS: tuple(_ends(view)),
        Question.YOU_CAN: tuple(_you_can(view)),
    }
    return Explanation(view=view, answers={question: answer for question, answer in sentences.items() if answer})


def reason_of(name: str) -> Reason | None:
    """The reason of this name; None if it comes from a newer operator."""
    return Reason.__members__.get(name)


def is_overridable(reason: Reason | None) -> bool:
    """Whether a user can override a hold that waits for this reason; False if the reason is unknown."""
    return reason is not None and reason.row.is_overridable


def without_advice(condition: ConditionStatus) -> str:
    """The message of a condition without its advice, and with the name of its reason."""
    reason = reason_of(condition.reason)
    message = condition.message if reason is None else condition.message.removesuffix(reason.next_step).rstrip()
    return f"{message} ({condition.reason})"


def advice_of(condition: ConditionStatus) -> str | None:
    """What the user can do; None if there is nothing to do or the reason is unknown."""
    reason = reason_of(condition.reason)
    return reason.next_step if reason is not None and reason.needs_action else None


def _wanted(view: AppView) -> Iterator[str]:
    desired, status = view.streamapp.replicas, view.status
    if view.state is AppState.DELETING:
        yield "The StreamApp is being deleted."
    current = "none yet" if status.stateful_set_replicas is None else str(status.stateful_set_replicas)
    pods = f" ({status.replicas} running, {status.ready_replicas} ready)" if view.is_answered else ""
    yield f"Desired {desired}, current {current}{pods}."
    if view.is_dry_run:
        yield "This is a dry run (`spec.dryRun`): the operator decides everything and changes nothing."


def _why(view: AppView) -> Iterator[str]:
    if view.migration is not None:
        yield sentence_of(view.migration, view.streamapp.metadata.name)[0]
    if view.doubt is not None:
        yield view.doubt.what
    if view.faults:
        yield f"{Reason.InvalidSpec.note} {'; '.join(view.faults)}. ({Reason.InvalidSpec.name})"
    main, cause = view.main_condition, view.root_cause
    if main is not None:
        if cause is not None and cause.reason != main.reason:
            yield without_advice(cause)
        yield without_advice(main)
        yield from _other_conditions(view, {main.reason, *(() if cause is None else (cause.reason,))})
    yield from _agents(view)


def _other_conditions(view: AppView, shown: set[str]) -> Iterator[str]:
    """The other conditions that need attention, each reason once, but for those that are shown."""
    for condition in view.problem_conditions:
        if condition.reason not in shown:
            shown.add(condition.reason)
            answer = "unknown" if condition.status is Answer.UNKNOWN else condition.status.value.lower()
            yield f"Also, {condition.type} is {answer}: {without_advice(condition)}"


_ON_DEMAND = "Copies are made on demand: the tasks of a pod move before the pod leaves."
_ON_DEMAND_STREAMS = (
    "Copies are made on demand: the group gets standbys when a pod must leave, and its tasks move when it leaves."
)


def _agents(view: AppView) -> Iterator[str]:
    """Which agents do not take part; a condition has the reason."""
    if view.status.learner_source is LearnerSource.ON_DEMAND:
        yield _ON_DEMAND_STREAMS if view.is_of_streams_protocol else _ON_DEMAND
    silent, inactive = _agents_in(view, AgentState.UNREACHABLE), _agents_in(view, AgentState.INACTIVE)
    if silent:
        yield f"{silent} not reachable."
    if inactive:
        yield f"{inactive} reachable, but the assignor for copies on demand is not active there."


def _agents_in(view: AppView, state: AgentState) -> str:
    ordinals = [str(member.ordinal) for member in view.status.members if member.agent is state]
    if not ordinals:
        return ""
    if len(ordinals) == 1:
        return f"The agent in pod {ordinals[0]} is"
    if len(ordinals) > _MOST_NAMED:
        return f"The agents in {len(ordinals)} pods are"
    return f"The agents in pods {', '.join(ordinals[:-1])} and {ordinals[-1]} are"


def _since(view: AppView) -> Iterator[str]:
    going, condition = view.status.scale_down, view.main_condition
    if going is not None and going.since is not None:
        passed = durations.short(view.now - going.since)
        yield f"The scale-down began {passed} ago, at {durations.clock(going.since)}."
    if going is not None and going.waiting_for and going.last_progress is not None:
        yield f"The lag last decreased {durations.ago(going.last_progress, view.now)}."
    if (going is None or going.since is None) and condition is not None:
        since = condition.last_transition_time
        passed = durations.short(view.now - since)
        yield f"The state has been {view.state.value} for {passed}, since {durations.clock(since)}."


def _waits_for(view: AppView) -> Iterator[str]:
    going, convergence = view.status.scale_down, view.status.convergence
    if view.state is AppState.SETTLED:
        return
    if going is not None and going.waiting_for:
        verb = "has" if going.waiting_for == 1 else "have"
        yield f"{counted(going.waiting_for, 'task')} {verb} no caught-up copy on a remaining pod."
    if convergence is None:
        return
    if convergence.tasks is not None and convergence.running != convergence.tasks:
        verb = "is" if convergence.tasks == 1 else "are"
        yield f"{convergence.running or 0:,} of {counted(convergence.tasks, 'task')} {verb} running."
    if convergence.learners is not None and convergence.caught_up != convergence.learners:
        yield f"{convergence.caught_up or 0:,} of {convergence.learners:,} copies are caught up."
    if convergence.remaining_lag:
        yield f"The remaining lag is {counted(convergence.remaining_lag, 'record')}."
    for slow in convergence.slowest[:1]:
        lag = "" if slow.lag is None else f", {counted(slow.lag, 'record')} behind"
        copy = "it has no copy" if slow.ordinal is None else f"its best copy is on pod {slow.ordinal}"
        yield f"Task {slow.task} is furthest behind: {copy}{lag}."


def _how_long(view: AppView) -> Iterator[str]:
    going, convergence = view.status.scale_down, view.status.convergence
    if view.state not in {AppState.HELD, AppState.CONVERGING, AppState.CHANGING, AppState.STALLED}:
        return
    if going is not None and going.waiting_for:
        yield _left(view, going, "Until the copies for the next pod are caught up")
    elif convergence is not None and view.state is not AppState.HELD and view.answer("Converged") is Answer.FALSE:
        yield _left(view, convergence, "Until every copy is caught up")


def _left(view: AppView, part: ConvergenceStatus | ScaleDownStatus, until: str) -> str:
    match view.left(part):
        case None:
            return f"{until}: unknown. An estimate needs two measurements of the lag."
        case Never():
            return f"{until}: never at the present rate. The lag does not decrease."
        case left if left:
            is_learned = isinstance(part, ScaleDownStatus) and part.estimate_source is EstimateSource.LEARNED
            source = " The estimate is by restore rates of earlier days." if is_learned else ""
            return f"{until}: about {durations.short(left)}.{source}"
        case _:
            return f"{until}: any moment."


def _ends(view: AppView) -> Iterator[str]:
    """What ends the state; nothing if no change is in progress."""
    condition = view.main_condition
    reason = None if condition is None else reason_of(condition.reason)
    if view.status.scale_down is not None and view.state in {AppState.HELD, AppState.STALLED}:
        yield from _end_of_the_hold(view, reason)
    elif view.state is AppState.CHANGING:
        yield _end_of_the_change(view, reason)
    elif view.state is AppState.CONVERGING:
        yield (
            "The state ends once the group is stable, every task runs, every copy is caught up and every pod is ready."
        )


def _end_of_the_change(view: AppView, reason: Reason | None) -> str:
    condition = view.main_condition
    if condition is not None and DRAIN_OF_NODE in condition.message:
        return "It ends when the pods have left the node, or the node is uncordoned."
    if reason is not None and reason.row.change_ends:
        return reason.row.change_ends
    if view.status.scale_down is not None:
        return _OF_A_STEP
    return "It ends once every remaining pod has the newest template, and pods that are to restart are back and ready."


def _end_of_the_hold(view: AppView, reason: Reason | None) -> Iterator[str]:
    going, current = view.status.scale_down, view.status.stateful_set_replicas
    if going is None:
        return
    pod = "The next pod" if going.next_ordinal is None else f"Pod {going.next_ordinal}"
    if reason is not None and reason.row.hold_ends:
        yield reason.row.hold_ends
    elif reason is Reason.Stabilizing and isinstance(view.streamapp, StreamApp):
        least = format_duration(view.streamapp.spec.scale_down.stabilization_window)
        yield (
            f"The scale-down continues once the desired replicas have been lower for {least} "
            "(`scaleDown.stabilizationWindow`)."
        )
    elif is_overridable(reason):
        yield (
            f"{pod} is removed once two consecutive checks find every stateful task running or caught up on a "
            "remaining pod."
        )
        if view.is_of_streams_protocol:
            yield "The checks also play the brokers' assignor: each of these tasks must go to a caught-up copy."
        if going.next_ordinal is not None and going.next_ordinal > going.target:
            yield f"Pod {going.next_ordinal - 1} is then checked in the same way."
    else:
        yield f"{pod} is removed once this reason is gone and every stateful task is covered by the remaining pods."
    if current is not None and reason is not Reason.GaveUp:
        yield f"Setting the replicas to {current} or more cancels the scale-down at once."
    if going.hold_id is not None and is_overridable(reason) and reason is not Reason.GaveUp:
        yield from _timeout(view)


def _timeout(view: AppView) -> Iterator[str]:
    if not isinstance(view.streamapp, StreamApp) or view.status.scale_down is None:
        return
    policy, going = view.streamapp.spec.scale_down, view.status.scale_down
    if policy.on_timeout is OnTimeout.WAIT:
        since, what = going.last_progress, "without progress"
    else:
        since, what = going.since, "of waiting for one pod"
    then = {
        OnTimeout.WAIT: "the scale-down keeps waiting and is reported as Stalled",
        OnTimeout.GIVE_UP: "the operator gives the scale-down up until the spec changes",
        OnTimeout.PROCEED: f"pods leave without caught-up copies, one at a time (reason: {policy.reason})",
    }[policy.on_timeout]
    left = None if since is None else policy.timeout - (view.now - since)
    when = "" if left is None or left <= timedelta(0) else f" (in {durations.short(left)} at the earliest)"
    timeout = format_duration(policy.timeout)
    yield f"After {timeout} {what}{when}, {then} (`onTimeout: {policy.on_timeout.value}`)."


def _you_can(view: AppView) -> Iterator[str]:
    """At least one sentence."""
    if view.state is AppState.DELETING:
        yield Reason.BeingDeleted.next_step
        return
    needed = [*_advice_about_doubts(view), *_advice_about_conditions(view)]
    yield from dict.fromkeys(needed or [NO_ACTION])
    yield from _commands_for_a_hold(view)


def _advice_about_doubts(view: AppView) -> Iterator[str]:
    if view.migration is not None:
        yield sentence_of(view.migration, view.streamapp.metadata.name)[1]
    if view.faults:
        yield Reason.InvalidSpec.next_step.replace("the message names", "is named above")
    if view.doubt is not None:
        yield view.doubt.next_step


def _advice_about_conditions(view: AppView) -> Iterator[str]:
    first = (view.root_cause, view.main_condition)
    for condition in (*(one for one in first if one is not None), *view.problem_conditions):
        advice = advice_of(condition)
        if advice is not None:
            own = view.streamapp.metadata
            yield advice.replace("streamapp NAME ", f"streamapp {own.name} --namespace {own.namespace} ")


def _commands_for_a_hold(view: AppView) -> Iterator[str]:
    going, condition, current = view.status.scale_down, view.main_condition, view.status.stateful_set_replicas
    if going is None or condition is None or view.state not in {AppState.HELD, AppState.STALLED}:
        return
    target = f"{view.streamapp.metadata.name} --namespace {view.streamapp.metadata.namespace}"
    reason = reason_of(condition.reason)
    if reason is Reason.HeldByUser:
        yield f"To end the user's hold: `kubectl streamapp unhold {target}`"
    if current is not None and current > view.streamapp.replicas:
        yield (
            "To cancel the scale-down, unless an autoscaler sets its number again: "
            f"`kubectl streamapp scale {target} {current}`"
        )
    if going.hold_id is not None and going.forced is None and is_overridable(reason):
        yield (
            "To let the pods of this scale-down leave without caught-up copies (all other checks stay; tasks without "
            "a copy are restored from their changelogs, and their users wait): "
            f"`kubectl streamapp override {target} --hold-id {shlex.quote(going.hold_id)} --reason '<why>'`"
        )
