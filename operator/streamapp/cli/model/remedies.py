"""What a person can do about the state that a StreamApp is in, in sentences and commands. Part of `explaining`.

Only what v1alpha1 has: fields of the spec, and the commands of this command line. A command stands at the end of its
sentence, in backticks.
"""

import shlex
from collections.abc import Iterator

from streamapp.cli.model.app_view import State, View
from streamapp.cli.model.told import advice_of, is_overridable, reason_of
from streamapp.core.reason_row import NO_ACTION
from streamapp.core.reasons import Reason


def what_you_can_do(view: View) -> Iterator[str]:
    """Give the sentences, at least one."""
    if view.state is State.DELETING:
        yield Reason.BeingDeleted.next_step
        return
    needed = [*_about_doubts(view), *_about_conditions(view)]
    yield from dict.fromkeys(needed or [NO_ACTION])
    yield from _about_a_hold(view)


def _about_doubts(view: View) -> Iterator[str]:
    if view.faults:
        yield Reason.InvalidSpec.next_step.replace("the message names", "is named above")
    if view.doubt is not None:
        yield view.doubt.next_step


def _about_conditions(view: View) -> Iterator[str]:
    told = view.told_by
    for condition in (*(() if told is None else (told,)), *view.to_look_at):
        advice = advice_of(condition)
        if advice is not None:
            yield advice


def _about_a_hold(view: View) -> Iterator[str]:
    going, told, granted = view.status.scale_down, view.told_by, view.status.stateful_set_replicas
    if going is None or told is None or view.state not in {State.HELD, State.STALLED}:
        return
    target = f"{view.found.metadata.name} --namespace {view.found.metadata.namespace}"
    reason = reason_of(told.reason)
    if reason is Reason.HeldByUser:
        yield f"To have pods go again: `kubectl streamapp release {target}`"
    if granted is not None and granted > view.found.replicas:
        yield (
            "To call it off, unless an autoscaler sets its own number again: "
            f"`kubectl streamapp scale {target} {granted}`"
        )
    if going.hold_id is not None and going.forced is None and is_overridable(reason):
        yield (
            "To let the pods of this one scale-down go without caught-up copies, behind every other check; tasks that "
            "have no copy are restored from their changelogs, and their users wait: "
            f"`kubectl streamapp release {target} --hold-id {shlex.quote(going.hold_id)} --reason '<why>'`"
        )
