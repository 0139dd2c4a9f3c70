"""`unhold` and `override`: show the costs, ask, and end exactly the hold that was shown."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group
from rich.constrain import Constrain
from rich.text import Text

from streamapp.cli.cluster import streamapps
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands.confirm import require_yes
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.model.app_view import AppView, view_of
from streamapp.cli.model.override import (
    NothingHeld,
    OperatorHold,
    UserHold,
    costs_of_override,
    hold_to_lift,
    hold_to_override,
    takes_no_more,
)
from streamapp.cli.screens import watch
from streamapp.cli.text import console as printing
from streamapp.cli.text.console import Output
from streamapp.kube.client.kinds import Key

_LONGEST_LINE = 100

Json = dict[str, Any]
Hold = UserHold | OperatorHold | NothingHeld


@dataclass(frozen=True, slots=True, kw_only=True)
class OverrideRequest:
    """The options of the command line."""

    hold_id: str | None
    reason: str
    yes: bool


def unhold(target: Target, name: str, output: Output, *, yes: bool) -> int:
    """End the hold of a user; give the exit code."""
    view = _read(target, name)
    hold = hold_to_lift(view)
    if isinstance(hold, UserHold):
        if hold.overridden_hold is not None:
            _show_costs(view, output, is_last_hold=True)
            question = f"End the user's hold of {view.name}, whose hold {hold.overridden_hold} is already overridden"
            require_yes(f"StreamApp {view.name}", question, yes=yes)
        run(_write(target, view, hold, hold_to_lift))
    _show(view, hold, output)
    return Exit.FINE


def override(target: Target, name: str, request: OverrideRequest, output: Output) -> int:
    """Override the operator's hold; give the exit code."""

    def choose(present: AppView) -> OperatorHold | NothingHeld:
        return hold_to_override(present, request.hold_id, request.reason)

    view = _read(target, name)
    hold = choose(view)
    if isinstance(hold, OperatorHold):
        _show_costs(view, output)
        require_yes(f"StreamApp {view.name}", f"Override hold {hold.hold_id} of {view.name}", yes=request.yes)
        run(_write(target, view, hold, choose))
    _show(view, hold, output)
    return Exit.FINE


def _read(target: Target, name: str) -> AppView:
    # Outside the event loop of the write: it would swallow Ctrl-C at the prompt between the two.
    return view_of(run(streamapps.read_one(target, name)), watch.now())


async def _write(
    target: Target, view: AppView, hold: UserHold | OperatorHold, choose: Callable[[AppView], Hold]
) -> None:
    connection = await streamapps.resolve(target)
    key = Key(view.streamapp.metadata.namespace, view.streamapp.metadata.name)

    def patch_for(resource: Json) -> Json:
        present = view_of(resource, view.now)
        is_same = hold == choose(present) and view.streamapp.metadata.uid == present.streamapp.metadata.uid
        frees_pods = isinstance(hold, OperatorHold) or hold.overridden_hold is not None
        if not is_same or (frees_pods and not takes_no_more(view, present)):
            raise CliError(
                f"StreamApp {view.name}",
                "the hold changed meanwhile, or keeps more pods now; nothing was written",
                "run the command again and check what it shows",
            )
        return hold.patch

    async with streamapps.open_client(connection, streamapps.title_of(key.namespace, key.name)) as client:
        await streamapps.change(client, connection, key, patch_for)


def _show_costs(view: AppView, output: Output, *, is_last_hold: bool = False) -> None:
    """Show the user what the answer to the question decides; on standard error if a program reads the output."""
    console = printing.console() if output is Output.TABLE else Console(file=sys.stderr, highlight=False, markup=False)
    costs = costs_of_override(view, is_last_hold=is_last_hold)
    sentences = Constrain(Group(*(Text(sentence, style="yellow") for sentence in costs)), _LONGEST_LINE)
    printing.show(Group(Text(view.name, style="bold"), sentences, Text("")), console)


def _show(view: AppView, hold: Hold, output: Output) -> None:
    if output is not Output.TABLE:
        printing.write(_document(view, hold), output)
        return
    match hold:
        case NothingHeld():
            message = f"{view.name}: {hold.why}; nothing was written."
        case UserHold():
            message = f"{view.name} is no longer held by a user. Before, it was held ({hold.reason}).\n{_effect(hold)}"
        case OperatorHold():
            message = f"{view.name}: hold {hold.hold_id} is overridden ({hold.reason}), for this scale-down only."
    printing.show(Text(message))


def _effect(hold: UserHold) -> str:
    if hold.overridden_hold is not None:
        return f"Hold {hold.overridden_hold} is already overridden: its pods leave without caught-up copies."
    return "Pods leave again once their tasks have caught-up copies on the remaining pods."


def _document(view: AppView, hold: Hold) -> Json:
    document: Json = {
        "namespace": view.streamapp.metadata.namespace,
        "name": view.streamapp.metadata.name,
        "written": not isinstance(hold, NothingHeld),
    }
    match hold:
        case NothingHeld():
            return {**document, "why": hold.why}
        case UserHold():
            return {**document, "unhold": hold.reason}
        case OperatorHold():
            costs = list(costs_of_override(view))
            return {**document, "override": hold.hold_id, "reason": hold.reason, "costs": costs}
