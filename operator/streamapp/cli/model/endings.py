"""What would end the state that a StreamApp is in, in sentences. Part of `explaining`."""

from collections.abc import Iterator
from datetime import timedelta

from streamapp.api.v1alpha1.durations import format_duration
from streamapp.api.validation.parse import StreamApp
from streamapp.cli.model.app_view import State, View
from streamapp.cli.model.told import is_overridable, reason_of
from streamapp.cli.text import durations
from streamapp.core.facts.policy import OnTimeout
from streamapp.core.reasons import Reason

_OF_A_STEP = "It ends by itself, when the pod is gone, its members have left the group, and every task runs again."


def what_ends_it(view: View) -> Iterator[str]:
    """Give the sentences; none where nothing goes on."""
    told = view.told_by
    reason = None if told is None else reason_of(told.reason)
    if view.status.scale_down is not None and view.state in {State.HELD, State.STALLED}:
        yield from _of_the_hold(view, reason)
    elif view.state is State.CHANGING:
        yield _of_the_change(view, reason)
    elif view.state is State.CONVERGING:
        yield "It ends when the group is stable, every task runs, every copy is caught up and every pod is ready."


def _of_the_change(view: View, reason: Reason | None) -> str:
    if reason is not None and reason.row.change_ends:
        return reason.row.change_ends
    if view.status.scale_down is not None:
        return _OF_A_STEP
    return "It ends by itself, when every pod that stays has the newest template and is ready."


def _of_the_hold(view: View, reason: Reason | None) -> Iterator[str]:
    going, granted = view.status.scale_down, view.status.stateful_set_replicas
    if going is None:
        return
    pod = "the next pod" if going.next_ordinal is None else f"pod {going.next_ordinal}"
    if reason is not None and reason.row.hold_ends:
        yield reason.row.hold_ends
    elif reason is Reason.Stabilizing and isinstance(view.found, StreamApp):
        least = format_duration(view.found.spec.scale_down.stabilization_window)
        yield f"It goes on when the wish has been lower for {least} (`scaleDown.stabilizationWindow`)."
    elif is_overridable(reason):
        yield (
            "It goes on when every stateful task runs on, or has a caught-up copy on, a pod that remains without "
            f"{pod}, in two readings in a row; then {pod} goes, and the one below it is judged afresh."
        )
    else:
        yield f"It goes on when that is no longer so and every stateful task is covered without {pod}."
    if granted is not None and reason is not Reason.GaveUp:
        yield f"Raising the replicas to {granted} or more calls it off at once."
    if going.hold_id is not None and is_overridable(reason) and reason is not Reason.GaveUp:
        yield from _of_the_timeout(view)


def _of_the_timeout(view: View) -> Iterator[str]:
    if not isinstance(view.found, StreamApp) or view.status.scale_down is None:
        return
    chosen, last = view.found.spec.scale_down, view.status.scale_down.last_progress
    then = {
        OnTimeout.WAIT: "it goes on waiting and says so (Stalled)",
        OnTimeout.GIVE_UP: "it is given up until the spec changes",
        OnTimeout.PROCEED: f"pods go without caught-up copies, one at a time (reason given: {chosen.reason})",
    }[chosen.on_timeout]
    left = None if last is None else chosen.timeout - (view.now - last)
    when = "" if left is None or left <= timedelta(0) else f", so not before {durations.short(left)} from now"
    timeout = format_duration(chosen.timeout)
    yield f"Without progress for {timeout}{when}, {then} (`onTimeout: {chosen.on_timeout.value}`)."
