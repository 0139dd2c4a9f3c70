"""What a change of the wish would come to: which pods go with which tasks, and what is said of it beforehand.

Pure; `scale_command` reads, writes and shows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from streamapp.api.v1alpha1.spec import MOST_REPLICAS
from streamapp.api.validation.parse import StreamApp
from streamapp.cli.errors import CliError
from streamapp.cli.model.amounts import Amount, Share
from streamapp.cli.model.app_view import State, View
from streamapp.cli.model.autoscalers import Autoscaler, Unlisted, overwriting
from streamapp.cli.model.phrases import counted
from streamapp.core.facts.policy import LearnerSource, ScaleDownPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """A pod that goes, with what it holds."""

    ordinal: int
    active: int | None
    """Tasks that it runs; None where the status does not say."""
    copies: int | None
    tasks: tuple[str, ...] = ()
    """Their names, where somebody has told them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One change of `spec.replicas`."""

    view: View
    asked: str
    """As it stands on the command line: `--to 80%`."""
    amount: Amount
    autoscalers: tuple[Autoscaler, ...] | Unlisted = ()
    tasks: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """The names of the tasks of pods, by ordinal, as far as they are known."""

    @property
    def desired(self) -> int:
        """What is wished for now."""
        return self.view.found.replicas

    @property
    def to(self) -> int:
        """What would be wished for."""
        return self.amount.of(self.desired)

    @property
    def granted(self) -> int:
        """What is granted now; where the operator has not said, what is wished for."""
        granted = self.view.status.stateful_set_replicas
        return self.desired if granted is None else granted

    @property
    def leaving(self) -> tuple[Leaving, ...]:
        """The pods that go, in the order in which they do."""
        told = {member.ordinal: member for member in self.view.status.members}
        pods = []
        for ordinal in reversed(range(self.to, self.granted)):
            member = told.get(ordinal)
            active, copies = (None, None) if member is None else (member.active, member.learners)
            tasks = tuple(self.tasks.get(ordinal, ()))
            pods.append(Leaving(ordinal=ordinal, active=active, copies=copies, tasks=tasks))
        return tuple(pods)

    @property
    def records_to_go(self) -> tuple[Autoscaler, ...]:
        """The autoscalers that would overwrite it."""
        return () if isinstance(self.autoscalers, Unlisted) else overwriting(self.autoscalers, self.to)


def require_sound(plan: Plan) -> None:
    """Raise CliError where the API server would refuse the number, or where it makes no sense."""
    what = f"StreamApp {plan.view.name}"
    if plan.to < 0:
        step = f"ask for fewer: there are {plan.desired} to take away from"
        raise CliError(what, f"{plan.asked} of {plan.desired} replicas is less than none", step)
    if plan.to > MOST_REPLICAS:
        raise CliError(
            what, f"{plan.to:,} replicas are more than the {MOST_REPLICAS:,} that are allowed", "ask for fewer"
        )
    found = plan.view.found
    if plan.to == 0 and plan.desired > 0 and isinstance(found, StreamApp) and not found.spec.scale_down.allow_zero:
        raise CliError(
            what,
            "zero replicas stop the application, and its spec does not allow them (`scaleDown.allowZero`)",
            "ask for at least 1, or allow it first: "
            f"`kubectl patch streamapp {found.metadata.name} --namespace {found.metadata.namespace} --type=merge "
            """-p '{"spec":{"scaleDown":{"allowZero":true}}}'`""",
        )


def sentences(plan: Plan) -> tuple[str, ...]:
    """Say what comes of it, before anything is written; at least one sentence."""
    return (*_about_the_amount(plan), *_about_pods(plan))


def warnings(plan: Plan) -> tuple[str, ...]:
    """Say what may keep it from having that effect."""
    return tuple(_about_doubts(plan))


def _about_the_amount(plan: Plan) -> Iterator[str]:
    if isinstance(plan.amount, Share):
        exactly = plan.amount.exactly(plan.desired)
        rounded = "" if exactly == plan.to else f"; {_decimal(exactly)} is rounded up, so that no pod too many goes"
        yield f"{_decimal(plan.amount.share * 100)} % of the {plan.desired} that are wished for is {plan.to}{rounded}."
    if plan.to == plan.desired:
        yield f"{counted(plan.desired, 'replica')} {_is(plan.desired)} wished for already: nothing is to be written."


def _about_pods(plan: Plan) -> Iterator[str]:
    leaving, granted = plan.leaving, plan.granted
    if plan.view.status.stateful_set_replicas is None:
        yield "The operator has not said how many are granted."
    if leaving:
        yield from _about_leaving(plan, leaving)
    elif plan.to > granted:
        added = _pods(granted, plan.to - 1)
        yield f"{counted(plan.to - granted, 'pod')} more {_is(plan.to - granted)} made at once: {added}."
    elif plan.to == granted > plan.desired:
        verb = "stays" if granted - plan.desired == 1 else "stay"
        yield f"The scale-down that goes on is called off: {_pods(plan.desired, granted - 1)} {verb}."
    if plan.to > granted > plan.desired:
        yield "The scale-down that goes on is called off."


def _about_leaving(plan: Plan, leaving: Sequence[Leaving]) -> Iterator[str]:
    first, last = leaving[-1].ordinal, leaving[0].ordinal
    order = "" if first == last else ", the highest first"
    yield f"{counted(len(leaving), 'pod')} {'goes' if first == last else 'go'}{order}: {_pods(first, last)}."
    going = max(0, plan.granted - plan.desired)
    if going and plan.to < plan.desired:
        yield f"{going} of them {'was' if going == 1 else 'were'} to go before already."
    elif going and plan.to > plan.desired:
        yield f"{_pods(plan.desired, plan.to - 1)} no longer {'goes' if plan.to - plan.desired == 1 else 'go'}."
    yield _how_they_go(plan)


def _how_they_go(plan: Plan) -> str:
    found, source = plan.view.found, plan.view.status.learner_source
    alone = len(plan.leaving) == 1
    go = "It goes" if alone else "They go one at a time"
    if plan.to == 0:
        last = "" if alone else ", the last one"
        return (
            f"{go}{last} with all its tasks, since no pod stays that could hold a copy: the application stops, and "
            "its users wait until pods are back."
        )
    if isinstance(found, StreamApp) and found.spec.scale_down.policy is ScaleDownPolicy.IMMEDIATE:
        return f"{go}, without waiting for copies of tasks (`scaleDown.policy: Immediate`)."
    if source is LearnerSource.ON_DEMAND:
        several = "." if alone else "; several may go at once."
        return (
            f"{'It' if alone else 'Each'} is held until other pods have caught up with its tasks and run them{several}"
        )
    held = "It is held" if alone else f"{go}, and each is held"
    why = f"{held} until all its tasks have caught-up copies on pods that stay."
    none = " The application makes no copies (`LearnersAvailable`), so that is not before a release."
    return f"{why}{none if source is LearnerSource.NONE else ''}"


def _about_doubts(plan: Plan) -> Iterator[str]:
    view = plan.view
    if view.doubt is not None:
        yield f"{view.doubt.what} {view.doubt.next_step}"
    if view.state is State.DELETING:
        yield "The StreamApp is being deleted, so nothing comes of it."
    yield from _about_what_stands_still(plan)
    if isinstance(plan.autoscalers, Unlisted):
        yield f"Whether an autoscaler overwrites it cannot be told: {plan.autoscalers.why}."
    for one in plan.records_to_go:
        yield f"HorizontalPodAutoscaler {one} sets the replicas too, and overwrites this."


def _about_what_stands_still(plan: Plan) -> Iterator[str]:
    view, name = plan.view, plan.view.found.metadata.name
    found = view.found
    if isinstance(found, StreamApp) and found.spec.paused:
        yield f"It is paused: nothing comes of it before `kubectl streamapp resume {name}`."
    if view.is_dry_run:
        yield "It is a dry run (`spec.dryRun`): everything is decided and nothing is done."
    held = view.user_hold
    if held is not None and plan.leaving:
        yield f"Scale-downs are held by somebody ({held}): no pod goes before `kubectl streamapp release {name}`."


def of_plan(plan: Plan, *, written: bool, dry_run: bool) -> dict[str, Any]:
    """The same for programs."""
    metadata, autoscalers = plan.view.found.metadata, plan.autoscalers
    document = {
        "namespace": metadata.namespace,
        "name": metadata.name,
        "asked": plan.asked,
        "from": plan.desired,
        "to": plan.to,
        "statefulSetReplicas": plan.view.status.stateful_set_replicas,
        "dryRun": dry_run,
        "written": written,
        "leaving": [_of_leaving(pod) for pod in plan.leaving],
        "autoscalers": None if isinstance(autoscalers, Unlisted) else [one.name for one in autoscalers],
        "notes": list(sentences(plan)),
        "warnings": list(warnings(plan)),
    }
    return {name: value for name, value in document.items() if value is not None}


def _of_leaving(pod: Leaving) -> dict[str, Any]:
    said = {"ordinal": pod.ordinal, "active": pod.active, "copies": pod.copies, "tasks": list(pod.tasks) or None}
    return {name: value for name, value in said.items() if value is not None}


def _pods(first: int, last: int) -> str:
    return f"pod {first}" if first == last else f"pods {first} {'and' if last == first + 1 else 'to'} {last}"


def _decimal(number: Fraction) -> str:
    return f"{float(number):.2f}".rstrip("0").rstrip(".")


def _is(number: int) -> str:
    return "is" if number == 1 else "are"
