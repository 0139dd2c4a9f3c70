"""What `unhold` and `override` would end, and the tasks whose users would wait. Pure.

A user's hold is the annotation `streamapp.dev/hold`; `unhold` removes it. The operator's hold waits for caught-up
copies; `override` lets its pods leave without them. Each refuses the other's case. `commands.override` asks and writes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import HOLD, OVERRIDE
from streamapp.cli.errors import CliError
from streamapp.cli.model.app_view import AppView
from streamapp.cli.model.explain import is_overridable, reason_of
from streamapp.cli.model.phrases import counted
from streamapp.core.reasons import Reason

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class UserHold:
    """The hold of a user."""

    reason: str
    overridden_hold: str | None = None
    """The operator's hold that is already overridden: its pods leave without copies once the user's hold ends."""

    @property
    def patch(self) -> Json:
        """The merge patch that ends the hold."""
        return {"metadata": {"annotations": {HOLD: None}}}


@dataclass(frozen=True, slots=True)
class OperatorHold:
    """The operator's hold, and the reason to override it."""

    hold_id: str
    reason: str

    @property
    def patch(self) -> Json:
        """The merge patch by which the hold no longer waits for coverage."""
        return {"metadata": {"annotations": {OVERRIDE: f"{self.hold_id} {self.reason}"}}}


@dataclass(frozen=True, slots=True)
class NothingHeld:
    """There is nothing to write."""

    why: str


def hold_to_lift(view: AppView) -> UserHold | NothingHeld:
    """The user's hold; CliError if only the operator holds the scale-down."""
    if view.user_hold is not None:
        present = _present_hold(view)
        return UserHold(view.user_hold, present if present is not None and present == view.overridden_hold else None)
    if _present_hold(view) is None:
        return NothingHeld("no user holds it")
    going = view.status.scale_down
    reason = "" if going is None else f" ({going.reason})"
    raise CliError(
        _title(view),
        f"no user holds it: the operator holds the scale-down until the tasks are covered{reason}",
        "to let its pods leave without caught-up copies: "
        f"`kubectl streamapp override {_arguments(view)} --reason '<why>'`",
    )


def hold_to_override(view: AppView, hold_id: str | None, reason: str) -> OperatorHold | NothingHeld:
    """The operator's hold; CliError if it is another one, or if a user's hold stands before it.

    Args:
        view: The StreamApp.
        hold_id: The hold of the command line; None: the present one.
        reason: Why, in the user's words.
    """
    present = _present_hold(view)
    if hold_id is None and view.user_hold is not None:
        own = "" if present is None else f"; add `--hold-id {present}` to override the operator's hold beside it"
        raise CliError(
            _title(view),
            f"a user holds it ({view.user_hold}), and an override does not end that hold",
            f"to end the user's hold: `kubectl streamapp unhold {_arguments(view)}`{own}",
        )
    if hold_id is not None and hold_id != present:
        there = "there is none" if present is None else f"the present hold is {present}"
        step = "no action needed" if present is None else f"see `kubectl streamapp explain {_arguments(view)}`"
        raise CliError(_title(view), f"it has no hold {hold_id}: {there}", step)
    if present is None:
        return NothingHeld("no scale-down is held" if view.status.scale_down is None else _why_no_hold_yet(view))
    if view.overridden_hold == present:
        return NothingHeld(f"hold {present} is already overridden")
    return OperatorHold(present, reason)


def _present_hold(view: AppView) -> str | None:
    return None if view.status.scale_down is None else view.status.scale_down.hold_id


def _why_no_hold_yet(view: AppView) -> str:
    going = view.status.scale_down
    if going is None or reason_of(going.reason) is not Reason.Stabilizing:
        return "the hold has just begun and has no ID yet; try again in a few seconds"
    detail = "" if view.main_condition is None else f" {view.main_condition.message}"
    return f"only the stabilization window holds it.{detail} See `spec.scaleDown.stabilizationWindow`."


def takes_no_more(shown: AppView, present: AppView) -> bool:
    """Whether no more pods leave than were shown: a hold keeps its ID if the desired replicas fall further."""
    before, now = shown.status.scale_down, present.status.scale_down
    is_as_far = before is None or now is None or now.target >= before.target
    return is_as_far and present.streamapp.replicas >= shown.streamapp.replicas


def costs_of_override(view: AppView, *, is_last_hold: bool = False) -> tuple[str, ...]:
    """The pods that leave, the tasks whose users wait, and what still holds; at least one sentence.

    Args:
        view: The StreamApp.
        is_last_hold: The hold is already overridden, and the user's hold is the last one.
    """
    return (*_costs(view), *(() if is_last_hold else _remaining_holds(view)))


def _costs(view: AppView) -> Iterator[str]:
    going, current = view.status.scale_down, view.status.stateful_set_replicas
    if going is None:
        return
    if current is not None and current > going.target:
        first, last = current - 1, going.target
        is_one = first == last
        pods = f"pod {first}" if is_one else f"pods {first} to {last}"
        leave = "the pod leaves" if is_one else "the pods leave one at a time,"
        yield f"Hold {going.hold_id} keeps {pods}. With an override, {leave} without caught-up copies of the tasks."
    waiting = going.waiting_for
    if waiting:
        verb, whose = ("has", "its") if waiting == 1 else ("have", "their")
        yield (
            f"{counted(waiting, 'task')} {verb} no caught-up copy on a remaining pod: {whose} users wait until the "
            "state is restored from the changelog."
        )
    convergence = view.status.convergence
    for slow in () if convergence is None else convergence.slowest:
        copy = "has no copy" if slow.ordinal is None else f"has its best copy on pod {slow.ordinal}"
        behind = "" if slow.ordinal is None or slow.lag is None else f", {counted(slow.lag, 'record')} behind"
        yield f"Task {slow.task} {copy}{behind}."
    if not waiting:
        yield "The status names no task without a caught-up copy."


def _remaining_holds(view: AppView) -> Iterator[str]:
    going = view.status.scale_down
    reason = None if going is None else reason_of(going.reason)
    if view.user_hold is not None:
        yield f"The scale-down still waits while a user holds it ({view.user_hold})."
    if going is not None and not is_overridable(reason):
        yield f"An override does not skip the present reason ({going.reason}): the scale-down still waits for it."
    if view.doubt is not None:
        yield f"{view.doubt.what} {view.doubt.next_step}"


def _title(view: AppView) -> str:
    return f"StreamApp {view.name}"


def _arguments(view: AppView) -> str:
    return f"{view.streamapp.metadata.name} --namespace {view.streamapp.metadata.namespace}"
