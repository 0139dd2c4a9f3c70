"""The effect of new desired replicas: the pods that leave with their tasks, and the sentences about it.

Pure; `commands.scale` reads, writes and shows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from streamapp.api.v1alpha1.spec import MOST_REPLICAS
from streamapp.api.validation.parse import StreamApp
from streamapp.cli.errors import CliError
from streamapp.cli.model.amounts import Amount, Share
from streamapp.cli.model.app_view import AppState, AppView
from streamapp.cli.model.autoscalers import AutoscalersUnknown, TargetingAutoscaler, overwriting
from streamapp.cli.model.floors import about_pods
from streamapp.cli.model.phrases import counted
from streamapp.core.facts.policy import LearnerSource, ScaleDownPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingPod:
    """A pod that leaves, with its tasks."""

    ordinal: int
    active: int | None
    """How many tasks it runs; None if the status does not say."""
    copies: int | None
    tasks: tuple[str, ...] = ()
    """The names of its tasks, if they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalePlan:
    """One change of `spec.replicas`."""

    view: AppView
    asked: str
    """The words of the command line: `--to 80%`."""
    amount: Amount
    autoscalers: tuple[TargetingAutoscaler, ...] | AutoscalersUnknown = ()
    tasks: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """The names of tasks by ordinal, as far as they are known."""

    @property
    def desired(self) -> int:
        """The present desired replicas."""
        return self.view.streamapp.replicas

    @property
    def to(self) -> int:
        """The new desired replicas."""
        return self.amount.of(self.desired)

    @property
    def current(self) -> int:
        """The replicas of the StatefulSet; the desired ones if the status does not say."""
        current = self.view.status.stateful_set_replicas
        return self.desired if current is None else current

    @property
    def leaving(self) -> tuple[LeavingPod, ...]:
        """The pods that leave, in their order."""
        members = {member.ordinal: member for member in self.view.status.members}
        pods = []
        for ordinal in reversed(range(self.to, self.current)):
            member = members.get(ordinal)
            active, copies = (None, None) if member is None else (member.active, member.learners)
            tasks = tuple(self.tasks.get(ordinal, ()))
            pods.append(LeavingPod(ordinal=ordinal, active=active, copies=copies, tasks=tasks))
        return tuple(pods)

    @property
    def overwriting(self) -> tuple[TargetingAutoscaler, ...]:
        """The autoscalers that would overwrite the new number."""
        return () if isinstance(self.autoscalers, AutoscalersUnknown) else overwriting(self.autoscalers, self.to)


def require_sound(plan: ScalePlan) -> None:
    """Raise CliError if the API server would refuse the number, or if the number is below zero."""
    what = f"StreamApp {plan.view.name}"
    if plan.to < 0:
        step = f"remove fewer: the desired replicas are {plan.desired}"
        raise CliError(what, f"{plan.asked} of {plan.desired} replicas is less than zero", step)
    if plan.to > MOST_REPLICAS:
        raise CliError(what, f"{plan.to:,} replicas exceed the limit of {MOST_REPLICAS:,}", "ask for fewer")
    app = plan.view.streamapp
    if plan.to == 0 and plan.desired > 0 and isinstance(app, StreamApp) and not app.spec.scale_down.allow_zero:
        raise CliError(
            what,
            "zero replicas stop the application, and its spec does not allow them (`scaleDown.allowZero`)",
            "ask for at least 1, or allow zero first: "
            f"`kubectl patch streamapp {app.metadata.name} --namespace {app.metadata.namespace} --type=merge "
            """-p '{"spec":{"scaleDown":{"allowZero":true}}}'`""",
        )


def sentences(plan: ScalePlan) -> tuple[str, ...]:
    """The effect of the plan; at least one sentence."""
    return (*_about_the_amount(plan), *_about_pods(plan))


def warnings(plan: ScalePlan) -> tuple[str, ...]:
    """What may prevent that effect."""
    return tuple(_about_doubts(plan))


def _about_the_amount(plan: ScalePlan) -> Iterator[str]:
    if isinstance(plan.amount, Share):
        exactly = plan.amount.exactly(plan.desired)
        rounded = "" if exactly == plan.to else f" ({_decimal(exactly)}, rounded up)"
        yield f"{_decimal(plan.amount.share * 100)} % of {plan.desired} desired replicas is {plan.to}{rounded}."
    if plan.to == plan.desired:
        yield f"Desired is already {plan.desired}: there is nothing to write."


def _about_pods(plan: ScalePlan) -> Iterator[str]:
    leaving, current = plan.leaving, plan.current
    if plan.view.status.stateful_set_replicas is None:
        yield "The status does not show the current replicas yet."
    if leaving:
        yield from _about_leaving(plan, leaving)
    elif plan.to > current:
        yield f"{counted(plan.to - current, 'pod')} will be added at once: {_pods(current, plan.to - 1)}."
        if plan.view.is_of_streams_protocol:
            yield (
                "Brokers give new pods stateful tasks at once, without a copy: users of these tasks wait until their "
                "state is restored (`kubectl streamapp plan` has the number)."
            )
    elif plan.to == current > plan.desired:
        verb = "stays" if current - plan.desired == 1 else "stay"
        yield f"This cancels the present scale-down: {_pods(plan.desired, current - 1)} {verb}."
    if plan.to > current > plan.desired:
        yield "This cancels the present scale-down."


def _about_leaving(plan: ScalePlan, leaving: Sequence[LeavingPod]) -> Iterator[str]:
    first, last = leaving[-1].ordinal, leaving[0].ordinal
    order = "" if first == last else ", the highest first"
    yield f"{counted(len(leaving), 'pod')} will leave{order}: {_pods(first, last)}."
    earlier = max(0, plan.current - plan.desired)
    if earlier and plan.to < plan.desired:
        yield f"The present scale-down already removes {earlier} of them."
    elif earlier and plan.to > plan.desired:
        verb = "stays" if plan.to - plan.desired == 1 else "stay"
        yield f"{_pods(plan.desired, plan.to - 1).capitalize()} {verb} now."
    yield _how_they_leave(plan)


def _how_they_leave(plan: ScalePlan) -> str:
    app, source = plan.view.streamapp, plan.view.status.learner_source
    is_one = len(plan.leaving) == 1
    leave = "It leaves" if is_one else "They leave one at a time"
    if plan.to == 0:
        last = leave if is_one else f"{leave}. The last pod leaves"
        return (
            f"{last} with all its tasks, since no pod remains for a copy. The application stops, and its users wait "
            "until pods are back."
        )
    if isinstance(app, StreamApp) and app.spec.scale_down.policy is ScaleDownPolicy.IMMEDIATE:
        return f"{leave}, without waiting for copies of tasks (`scaleDown.policy: Immediate`)."
    if source is LearnerSource.ON_DEMAND and not plan.view.is_of_streams_protocol:
        several = "" if is_one else " Several pods can leave at once."
        pod = "It" if is_one else "Each pod"
        return f"{pod} waits until other pods have caught up with its tasks and run them.{several}"
    waits = "It waits" if is_one else f"{leave}. Each waits"
    if source is LearnerSource.NONE:
        return (
            f"{waits} until all its tasks have caught-up copies on remaining pods. The application makes no copies "
            "(`LearnersAvailable`), so this needs an override."
        )
    raised = " The operator raises the standbys of the group for it." if source is LearnerSource.ON_DEMAND else ""
    return f"{waits} until all its tasks have caught-up copies on remaining pods.{raised}"


def _about_doubts(plan: ScalePlan) -> Iterator[str]:
    view = plan.view
    if view.doubt is not None:
        yield f"{view.doubt.what} {view.doubt.next_step}"
    if view.state is AppState.DELETING:
        yield "The StreamApp is being deleted: the new number has no effect."
    yield from _about_switches(plan)
    yield from about_pods(view, plan.current, plan.to)
    if isinstance(plan.autoscalers, AutoscalersUnknown):
        yield f"An autoscaler may overwrite the number; autoscalers cannot be listed: {plan.autoscalers.why}."
    for autoscaler in plan.overwriting:
        yield f"HorizontalPodAutoscaler {autoscaler} also sets the replicas, and overwrites this number."


def _about_switches(plan: ScalePlan) -> Iterator[str]:
    view, name, app = plan.view, plan.view.streamapp.metadata.name, plan.view.streamapp
    if isinstance(app, StreamApp) and app.spec.paused:
        yield f"It is paused: the new number has no effect before `kubectl streamapp resume {name}`."
    if view.is_dry_run:
        yield "It is a dry run (`spec.dryRun`): the operator decides everything and changes nothing."
    if view.user_hold is not None and plan.leaving:
        yield f"A user holds scale-downs ({view.user_hold}): no pod leaves before `kubectl streamapp unhold {name}`."


def document_of(plan: ScalePlan, *, written: bool, dry_run: bool) -> dict[str, Any]:
    """The plan for programs."""
    metadata, autoscalers = plan.view.streamapp.metadata, plan.autoscalers
    names = None if isinstance(autoscalers, AutoscalersUnknown) else [autoscaler.name for autoscaler in autoscalers]
    document = {
        "namespace": metadata.namespace,
        "name": metadata.name,
        "asked": plan.asked,
        "from": plan.desired,
        "to": plan.to,
        "statefulSetReplicas": plan.view.status.stateful_set_replicas,
        "dryRun": dry_run,
        "written": written,
        "leaving": [_leaving_document(pod) for pod in plan.leaving],
        "autoscalers": names,
        "notes": list(sentences(plan)),
        "warnings": list(warnings(plan)),
    }
    return {name: value for name, value in document.items() if value is not None}


def _leaving_document(pod: LeavingPod) -> dict[str, Any]:
    fields = {"ordinal": pod.ordinal, "active": pod.active, "copies": pod.copies, "tasks": list(pod.tasks) or None}
    return {name: value for name, value in fields.items() if value is not None}


def _pods(first: int, last: int) -> str:
    return f"pod {first}" if first == last else f"pods {first} {'and' if last == first + 1 else 'to'} {last}"


def _decimal(number: Fraction) -> str:
    return f"{float(number):.2f}".rstrip("0").rstrip(".")
