"""What a release would end, and what would be lost by it, in sentences. Pure; `release_command` asks and writes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import HOLD, OVERRIDE
from streamapp.cli.errors import CliError
from streamapp.cli.model.app_view import View
from streamapp.cli.model.phrases import counted
from streamapp.cli.model.told import is_overridable, reason_of
from streamapp.core.reasons import Reason

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OfTheUser:
    """Somebody's own hold is lifted; pods go again when their tasks are covered."""

    reason: str
    lets_go: str | None = None
    """The operator's hold that was released before: its pods go without copies as soon as nobody holds them."""

    @property
    def patch(self) -> Json:
        """What is written."""
        return {"metadata": {"annotations": {HOLD: None}}}


@dataclass(frozen=True, slots=True)
class OfTheOperator:
    """One hold no longer waits for coverage."""

    hold_id: str
    reason: str

    @property
    def patch(self) -> Json:
        """What is written."""
        return {"metadata": {"annotations": {OVERRIDE: f"{self.hold_id} {self.reason}"}}}


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is nothing to release."""

    why: str


Released = OfTheUser | OfTheOperator | Nothing


def what_to_release(view: View, hold_id: str | None, reason: str | None) -> Released:
    """Choose what is meant; CliError where that hold is not there, or no reason is given for what needs one.

    Args:
        view: The StreamApp.
        hold_id: The hold that is meant; None: somebody's own, else the one that there is.
        reason: Why, in the user's words.
    """
    what, going = f"StreamApp {view.name}", view.status.scale_down
    present = None if going is None else going.hold_id
    if hold_id is None and view.user_hold is not None:
        return OfTheUser(view.user_hold, present if present is not None and present == view.user_release else None)
    if hold_id is not None and hold_id != present:
        there = "there is none" if present is None else f"the hold that there is now is {present}"
        step = (
            "nothing is to be done" if present is None else f"look at it with `kubectl streamapp explain {_name(view)}`"
        )
        raise CliError(what, f"it has no hold {hold_id}: {there}", step)
    if present is None:
        return Nothing("no scale-down is held" if going is None else _why_no_hold_yet(view))
    if view.user_release == present:
        return Nothing(f"hold {present} is released already")
    if not reason:
        step = "say why with --reason: it is kept on record with every step that goes without caught-up copies"
        raise CliError(what, f"hold {present} is not released without a reason", step)
    return OfTheOperator(present, reason)


def _why_no_hold_yet(view: View) -> str:
    going = view.status.scale_down
    if going is None or reason_of(going.reason) is not Reason.Stabilizing:
        return "the hold has no ID yet, since it has just begun: try again in a few seconds"
    detail = "" if view.told_by is None else f" {view.told_by.message}"
    return f"the wish is too young yet, and that is all.{detail} See `spec.scaleDown.stabilizationWindow`."


def takes_no_more(shown: View, present: View) -> bool:
    """Tell whether no pod goes by it that was not shown: a hold keeps its ID where the wish falls further."""
    before, now = shown.status.scale_down, present.status.scale_down
    is_as_far = before is None or now is None or now.target >= before.target
    return is_as_far and present.found.replicas >= shown.found.replicas


def what_is_lost(view: View, *, lifts_all: bool = False) -> tuple[str, ...]:
    """Say what a release of the operator's present hold means; at least one sentence.

    With `lifts_all` it was released before, and a person's own is what held it yet.
    """
    return tuple(_lost(view)) + (() if lifts_all else tuple(_what_still_holds(view)))


def _lost(view: View) -> Iterator[str]:
    going, granted = view.status.scale_down, view.status.stateful_set_replicas
    if going is None:
        return
    if granted is not None and granted > going.target:
        first, last = granted - 1, going.target
        alone = first == last
        pods = f"pod {first}" if alone else f"pods {first} to {last}"
        go, whose = ("it goes", "its") if alone else ("they go one at a time", "their")
        yield f"Hold {going.hold_id} keeps {pods}. Released, {go} without caught-up copies of {whose} tasks."
    waiting = going.waiting_for
    if waiting:
        verb, whose = ("has", "its") if waiting == 1 else ("have", "their")
        yield (
            f"{counted(waiting, 'task')} {verb} no caught-up copy on a pod that stays: {whose} users wait until the "
            f"state is restored from the changelog."
        )
    convergence = view.status.convergence
    for slow in () if convergence is None else convergence.slowest:
        copy = "has no copy" if slow.ordinal is None else f"has its best copy on pod {slow.ordinal}"
        behind = "" if slow.ordinal is None or slow.lag is None else f", {counted(slow.lag, 'record')} behind"
        yield f"Task {slow.task} {copy}{behind}."
    if not waiting:
        yield "The status names no task that would be without a caught-up copy."


def _what_still_holds(view: View) -> Iterator[str]:
    going = view.status.scale_down
    reason = None if going is None else reason_of(going.reason)
    if view.user_hold is not None:
        yield f"The scale-down waits all the same while somebody holds it ({view.user_hold})."
    if going is not None and not is_overridable(reason):
        yield f"What it waits for now ({going.reason}) is not overridden by a release: it goes on waiting for that."
    if view.doubt is not None:
        yield f"{view.doubt.what} {view.doubt.next_step}"


def _name(view: View) -> str:
    return f"{view.found.metadata.name} --namespace {view.found.metadata.namespace}"
