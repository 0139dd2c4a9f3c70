"""What `release` does: names what would be lost, asks, and lifts exactly the hold that it has shown."""

import sys
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group
from rich.constrain import Constrain
from rich.text import Text

from streamapp.cli.cluster import streamapps, writing
from streamapp.cli.cluster.target import Where
from streamapp.cli.commands.confirm import require_yes
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.model.app_view import View, view_of
from streamapp.cli.model.release import (
    Nothing,
    OfTheOperator,
    OfTheUser,
    Released,
    takes_no_more,
    what_is_lost,
    what_to_release,
)
from streamapp.cli.screens import watch
from streamapp.cli.text import console as printing
from streamapp.cli.text.console import Output
from streamapp.kube.client.kinds import Key

_LONGEST_LINE = 100

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line says."""

    hold_id: str | None
    reason: str | None
    yes: bool


def release(where: Where, name: str, asked: Asked, output: Output) -> int:
    """Lift a hold; give the exit code."""
    view = view_of(run(streamapps.one(where, name)), watch.now())
    meant, title = what_to_release(view, asked.hold_id, asked.reason), f"StreamApp {view.name}"
    # Asked not within the event loop, which would keep Ctrl-C from whoever is asked.
    if isinstance(meant, OfTheOperator):
        _show_loss(view, output)
        require_yes(title, f"Release hold {meant.hold_id} of {view.name}", yes=asked.yes)
    elif isinstance(meant, OfTheUser) and meant.lets_go is not None:
        _show_loss(view, output, lifts_all=True)
        require_yes(
            title, f"Lift what holds {view.name}, whose hold {meant.lets_go} is released already", yes=asked.yes
        )
    if not isinstance(meant, Nothing):
        run(_write(where, view, meant, asked))
    _tell(view, meant, output)
    return Exit.FINE


async def _write(where: Where, view: View, meant: OfTheUser | OfTheOperator, asked: Asked) -> None:
    found = await streamapps.find(where)
    key = Key(view.found.metadata.namespace, view.found.metadata.name)

    def patch_for(resource: Json) -> Json:
        present = view_of(resource, view.now)
        is_same = meant == what_to_release(present, asked.hold_id, asked.reason)
        takes_pods = isinstance(meant, OfTheOperator) or meant.lets_go is not None
        _require_same(view, present, is_same and (not takes_pods or takes_no_more(view, present)))
        return meant.patch

    async with streamapps.opened(found, streamapps.title_of(key.namespace, key.name)) as client:
        await writing.change(client, found, key, patch_for)


def _require_same(shown: View, present: View, is_same_hold: bool) -> None:
    if not is_same_hold or shown.found.metadata.uid != present.found.metadata.uid:
        raise CliError(
            f"StreamApp {shown.name}",
            "its hold has become another meanwhile, or reaches further; nothing was written",
            "run the command again, and look anew",
        )


def _show_loss(view: View, output: Output, *, lifts_all: bool = False) -> None:
    """What a person must have read before the question; not where programs read the answer."""
    console = printing.console() if output is Output.TABLE else Console(file=sys.stderr, highlight=False, markup=False)
    sentences = Constrain(
        Group(*(Text(one, style="yellow") for one in what_is_lost(view, lifts_all=lifts_all))), _LONGEST_LINE
    )
    printing.show(Group(Text(view.name, style="bold"), sentences, Text("")), console)


def _tell(view: View, meant: Released, output: Output) -> None:
    if output is not Output.TABLE:
        printing.write(_document(view, meant), output)
        return
    match meant:
        case Nothing():
            said = f"{view.name}: {meant.why}; nothing is written."
        case OfTheUser():
            said = f"{view.name} is no longer held by anybody; it was held ({meant.reason}).\n{_what_follows(meant)}"
        case OfTheOperator():
            said = f"{view.name}: hold {meant.hold_id} is released ({meant.reason}). It counts for this hold alone."
    printing.show(Text(said))


def _what_follows(meant: OfTheUser) -> str:
    if meant.lets_go is not None:
        return f"Hold {meant.lets_go} was released before: its pods go without caught-up copies."
    return "Pods go again when their tasks have caught-up copies on pods that stay."


def _document(view: View, meant: Released) -> Json:
    document: Json = {
        "namespace": view.found.metadata.namespace,
        "name": view.found.metadata.name,
        "written": not isinstance(meant, Nothing),
    }
    match meant:
        case Nothing():
            return {**document, "why": meant.why}
        case OfTheUser():
            return {**document, "lifted": "hold of a user", "was": meant.reason}
        case OfTheOperator():
            return {**document, "lifted": meant.hold_id, "reason": meant.reason, "lost": list(what_is_lost(view))}
