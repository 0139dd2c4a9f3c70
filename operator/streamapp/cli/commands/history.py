"""What `history` does: reads the StreamApp, its Events and the operator's flight record, and tells all by time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import click
from rich.console import Group
from rich.text import Text

from streamapp.api.http.messages import History, history_path
from streamapp.cli.cluster import operator_pods, streamapps
from streamapp.cli.cluster.target import Where
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.model.app_view import View, view_of
from streamapp.cli.model.history import Entry, entries_of_events, entries_of_status, entries_of_writers, in_order
from streamapp.cli.model.history_from_record import entries_of_record, without_doubles
from streamapp.cli.screens import watch
from streamapp.cli.screens.history import history_screen
from streamapp.cli.text import console
from streamapp.cli.text.console import Output
from streamapp.cli.text.sanitize import plain
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError, UnauthenticatedError, UnavailableError
from streamapp.kube.client.kinds import EVENTS, Key

Json = dict[str, Any]


_MORE = "The flight record has more than is told here: --since asks for less, and gets all of that."


_ENTRIES = ("entry is", "entries are")

_LATER = "The flight record that the leading replica has begins at"
_AT_ONCE = timedelta(seconds=30)
"""A record that begins so soon after the StreamApp was made has all of it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be told."""

    name: str
    operator_namespace: str
    span: timedelta | None
    """Only what is not older."""
    all: bool
    """What is folded otherwise, too."""
    output: Output


def history(where: Where, asked: Asked) -> int:
    """Tell what happened; give the exit code."""
    return run(_history(where, asked))


async def _history(where: Where, asked: Asked) -> int:
    found = await streamapps.find(where)
    key = Key(streamapps.namespace_of(where, found), asked.name)
    async with streamapps.opened(found, streamapps.title_of(key.namespace, asked.name)) as client:
        resource = await streamapps.read(client, found, key)
        view = view_of(resource, watch.now())
        since = None if asked.span is None else view.now - asked.span
        events, no_events = await _events(client, key)
        recorded, no_record = await _recorded(client, asked.operator_namespace, key, since, view)
    told = (*entries_of_status(view), *entries_of_writers(resource, view), *entries_of_events(events, view))
    entries = in_order(without_doubles(recorded, told), since)
    missing = [sentence for sentence in (no_events, no_record) if sentence is not None]
    if asked.output is Output.TABLE:
        _show(view, entries, asked)
        for sentence in missing:
            click.echo(sentence, err=True)
    else:
        document = {"namespace": key.namespace, "name": key.name, "entries": [one.document for one in entries]}
        console.write(document | ({"missing": " ".join(missing)} if missing else {}), asked.output)
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


async def _recorded(
    client: KubeClient, operator_namespace: str, key: Key, since: datetime | None, view: View
) -> tuple[Sequence[Entry], str | None]:
    """What the operator's flight record tells, and what is to be said where that is not all, or nothing."""
    try:
        leader = await operator_pods.leader(client, operator_namespace)
        told = await operator_pods.ask(client, leader, history_path(key.namespace, key.name, since), History)
    except CliError as error:
        return (), f"The flight record is left out: {error.why}; {error.next_step}."
    except KubeError as error:
        return (), f"The flight record is left out: {plain(error.why)}; run the command again."
    entries = tuple(entries_of_record(told.lines, view.found.metadata.uid, view.now))
    if not told.is_whole:
        return entries, _MORE
    asked = view.found.metadata.creation_timestamp if since is None else since
    if told.begins_at is None or told.begins_at <= asked + _AT_ONCE:
        return entries, None
    return entries, f"{_LATER} {told.begins_at:%Y-%m-%d %H:%M:%S} UTC: what was before, status and Events tell."


def _show(view: View, entries: tuple[Entry, ...], asked: Asked) -> None:
    title = Text(view.name, style="bold")
    shown = tuple(one for one in entries if asked.all or not one.is_folded)
    folded = len(entries) - len(shown)
    left = [Text(f"{folded} more {_ENTRIES[folded > 1]} part of these: --all shows them.", style="dim")]
    if shown:
        console.show(Group(title, history_screen(shown, view.now), *(left if folded else [])))
        return
    span = "" if asked.span is None else " in this time; --since asks for a longer one"
    nothing = f"Nothing that is told at a glance is on record{span}; --all shows {folded}." if folded else None
    console.show(Group(title, Text(nothing or f"Nothing is on record{span}.")))
