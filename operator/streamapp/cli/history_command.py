"""What `history` does: reads the StreamApp and its Events, and tells both in the order of time."""

from datetime import timedelta
from typing import Any

import click
from rich.console import Group
from rich.text import Text

from streamapp.cli import printing, reading, watching
from streamapp.cli.failures import Exit
from streamapp.cli.history import Entry, entries_of_events, entries_of_status, entries_of_writers, in_order
from streamapp.cli.history_screen import history_screen
from streamapp.cli.plain import plain
from streamapp.cli.printing import Output
from streamapp.cli.running import run
from streamapp.cli.view import View, view_of
from streamapp.cli.where import Where
from streamapp.kube.client import KubeClient
from streamapp.kube.errors import KubeError, UnauthenticatedError, UnavailableError
from streamapp.kube.places import EVENTS, Key

Json = dict[str, Any]


def history(where: Where, name: str, since: timedelta | None, output: Output) -> int:
    """Tell what happened; give the exit code."""
    return run(_history(where, name, since, output))


async def _history(where: Where, name: str, since: timedelta | None, output: Output) -> int:
    found = await reading.find(where)
    key = Key(reading.namespace_of(where, found), name)
    async with reading.opened(found, reading.title_of(key.namespace, name)) as client:
        resource = await reading.read(client, found, key)
        view = view_of(resource, watching.now())
        events, missing = await _events(client, key)
    told = (*entries_of_status(view), *entries_of_writers(resource, view), *entries_of_events(events, view))
    entries = in_order(told, None if since is None else view.now - since)
    if output is Output.TABLE:
        _show(view, entries, since)
    else:
        document = {"namespace": key.namespace, "name": key.name, "entries": [one.document for one in entries]}
        printing.write(document | ({} if missing is None else {"missing": missing}), output)
    if missing is not None and output is Output.TABLE:
        click.echo(missing, err=True)
    return Exit.FINE


async def _events(client: KubeClient, key: Key) -> tuple[list[Json], str | None]:
    """The Events of this name, and what is to be said where they cannot be read."""
    try:
        return (await client.listing(EVENTS, key.namespace, fields=f"regarding.name={key.name}")).objects, None
    except (UnauthenticatedError, UnavailableError):
        raise
    except KubeError as error:
        return [], (
            f"Events are left out: {plain(error.why)}; ask for a Role with list on events of events.k8s.io to see them."
        )


def _show(view: View, entries: tuple[Entry, ...], since: timedelta | None) -> None:
    title = Text(view.name, style="bold")
    if entries:
        printing.show(Group(title, history_screen(entries, view.now)))
        return
    span = "" if since is None else " in this time; --since asks for a longer one"
    printing.show(Group(title, Text(f"Nothing is on record{span}.")))
