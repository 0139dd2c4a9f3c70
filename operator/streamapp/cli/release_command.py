"""What `release` does: names what would be lost, asks, and lifts exactly the hold that it has shown."""

import sys
from typing import Any

from rich.console import Console, Group
from rich.constrain import Constrain
from rich.text import Text

from streamapp.cli import printing, reading, watching, writing
from streamapp.cli.asking import require_yes
from streamapp.cli.failures import CliError, Exit
from streamapp.cli.printing import Output
from streamapp.cli.releasing import Nothing, OfTheOperator, OfTheUser, Released, what_is_lost, what_to_release
from streamapp.cli.running import run
from streamapp.cli.view import View, view_of
from streamapp.cli.where import Where
from streamapp.kube.places import Key

_LONGEST_LINE = 100

Json = dict[str, Any]


def release(where: Where, name: str, hold_id: str | None, reason: str | None, output: Output, *, yes: bool) -> int:
    """Lift a hold; give the exit code."""
    return run(_release(where, name, hold_id, reason, output, yes=yes))


async def _release(
    where: Where, name: str, hold_id: str | None, reason: str | None, output: Output, *, yes: bool
) -> int:
    found = await reading.find(where)
    key = Key(reading.namespace_of(where, found), name)
    title = reading.title_of(key.namespace, name)
    async with reading.opened(found, title) as client:
        view = view_of(await reading.read(client, found, key), watching.now())
        meant = what_to_release(view, hold_id, reason)
        if isinstance(meant, OfTheOperator):
            _show_loss(view, output)
            if not require_yes(title, f"Release hold {meant.hold_id} of {key}", yes=yes):
                raise CliError(title, "the answer was no; nothing was written", "nothing is to be done")
        if not isinstance(meant, Nothing):

            def patch_for(resource: Json) -> Json:
                _require_same(meant, what_to_release(view_of(resource, view.now), hold_id, reason), title)
                return meant.patch

            await writing.change(client, found, key, patch_for)
    _tell(view, meant, output)
    return Exit.FINE


def _require_same(shown: Released, present: Released, title: str) -> None:
    if present != shown:
        raise CliError(
            title, "its hold has become another meanwhile; nothing was written", "run the command again, and look anew"
        )


def _show_loss(view: View, output: Output) -> None:
    """What a person must have read before the question; not where programs read the answer."""
    console = printing.console() if output is Output.TABLE else Console(file=sys.stderr, highlight=False, markup=False)
    sentences = Constrain(Group(*map(Text, what_is_lost(view))), _LONGEST_LINE)
    printing.show(Group(Text(view.name, style="bold"), sentences), console)


def _tell(view: View, meant: Released, output: Output) -> None:
    if output is not Output.TABLE:
        printing.write(_document(view, meant), output)
        return
    match meant:
        case Nothing():
            said = f"{view.name}: {meant.why}; nothing is written."
        case OfTheUser():
            said = (
                f"{view.name} is no longer held by anybody; it was held ({meant.reason}).\n"
                "Pods go again when their tasks have caught-up copies on pods that stay."
            )
        case OfTheOperator():
            said = f"{view.name}: hold {meant.hold_id} is released ({meant.reason}). It counts for this hold alone."
    printing.show(Text(said))


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
