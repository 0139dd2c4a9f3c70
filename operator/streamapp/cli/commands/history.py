"""`history`: what happened to a StreamApp, from the operator's flight record or, if there is no answer, from Events."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import click
from rich.console import Group
from rich.text import Text

from streamapp.api.http.messages import History, history_path
from streamapp.cli.cluster import operator_pods, streamapps
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.model.app_view import AppView, view_of
from streamapp.cli.model.history.entries import HistoryEntry, HistorySource, entries_of_events, in_order
from streamapp.cli.model.history.from_record import entries_of_record
from streamapp.cli.model.history.of_estimates import EstimateErrors, estimate_errors
from streamapp.cli.screens import watch
from streamapp.cli.screens.history import history_screen
from streamapp.cli.text import console
from streamapp.cli.text.console import Output
from streamapp.cli.text.sanitize import plain
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import KubeError, UnauthenticatedError, UnavailableError
from streamapp.kube.client.kinds import EVENTS, Key

Json = dict[str, Any]

_FOLDED = ("entry", "entries")
_SOURCES = {HistorySource.RECORD: "the flight record", HistorySource.EVENTS: "Events"}
_AT_ONCE = timedelta(seconds=30)
"""A record that begins so soon after the creation of the StreamApp is complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRequest:
    """The options of the command line."""

    name: str
    operator_namespace: str
    span: timedelta | None
    """Only entries of this time."""
    all: bool
    """Also the entries that are folded otherwise."""
    output: Output


@dataclass(frozen=True, slots=True, kw_only=True)
class _SourcedHistory:
    """Entries from one source."""

    source: HistorySource
    entries: tuple[HistoryEntry, ...]
    notes: tuple[str, ...]
    """What the source lacks, in sentences."""
    estimates: EstimateErrors | None = None
    """How far the estimates of holds were off."""


def history(target: Target, request: HistoryRequest) -> int:
    """Show what happened; give the exit code."""
    return run(_history(target, request))


async def _history(target: Target, request: HistoryRequest) -> int:
    connection = await streamapps.resolve(target)
    key = Key(streamapps.namespace_of(target, connection), request.name)
    async with streamapps.open_client(connection, streamapps.title_of(key.namespace, request.name)) as client:
        view = view_of(await streamapps.read(client, connection, key), watch.now())
        since = None if request.span is None else view.now - request.span
        sourced = await _read(client, request.operator_namespace, key, since, view)
    if request.output is Output.TABLE:
        _show(view, sourced, request)
        for note in sourced.notes:
            click.echo(note, err=True)
    else:
        document = {
            "namespace": key.namespace,
            "name": key.name,
            "source": sourced.source.value,
            "entries": [entry.document for entry in sourced.entries],
        }
        estimates = {} if sourced.estimates is None else {"estimates": sourced.estimates.document}
        notes = {"notes": list(sourced.notes)} if sourced.notes else {}
        console.write(document | estimates | notes, request.output)
    return Exit.FINE


async def _read(
    client: KubeClient, operator_namespace: str, key: Key, since: datetime | None, view: AppView
) -> _SourcedHistory:
    """The history from the flight record; if the operator does not answer with it, from Events."""
    try:
        leader = await operator_pods.find_leader(client, operator_namespace)
        answer = await operator_pods.ask(client, leader, history_path(key.namespace, key.name, since), History)
    except CliError as error:
        return await _from_events(client, key, since, view, f"{error.why}; {error.next_step}")
    except KubeError as error:
        return await _from_events(client, key, since, view, f"{plain(error.why)}; run the command again")
    if answer.begins_at is None and not answer.lines:
        return await _from_events(client, key, since, view, "the flight record is empty")
    uid = view.streamapp.metadata.uid
    return _SourcedHistory(
        source=HistorySource.RECORD,
        entries=in_order(entries_of_record(answer.lines, uid, view.now), since),
        notes=_missing(answer, since, view),
        estimates=estimate_errors(answer.lines, uid),
    )


def _missing(answer: History, since: datetime | None, view: AppView) -> tuple[str, ...]:
    if not answer.is_whole:
        return ("The flight record has more entries than the answer: shorten the time with --since.",)
    asked = view.streamapp.metadata.creation_timestamp if since is None else since
    if answer.begins_at is None or answer.begins_at <= asked + _AT_ONCE:
        return ()
    return (f"The record of the leading pod begins at {answer.begins_at:%Y-%m-%d %H:%M:%S} UTC.",)


async def _from_events(
    client: KubeClient, key: Key, since: datetime | None, view: AppView, why: str
) -> _SourcedHistory:
    note = f"No flight record: {why}. Events go back an hour by default."
    notes: tuple[str, ...] = (note,)
    events: list[Json] = []
    try:
        events = (await client.listing(EVENTS, key.namespace, fields=f"regarding.name={key.name}")).objects
    except (UnauthenticatedError, UnavailableError):
        raise
    except KubeError as error:
        right = "ask for a Role with list on events of events.k8s.io"
        notes = (note, f"The Events are not readable: {plain(error.why)}; {right}.")
    entries = in_order(entries_of_events(events, view), since)
    return _SourcedHistory(source=HistorySource.EVENTS, entries=entries, notes=notes)


def _show(view: AppView, sourced: _SourcedHistory, request: HistoryRequest) -> None:
    entries, source = sourced.entries, _SOURCES[sourced.source]
    title = Text.assemble((view.name, "bold"), (f"  from {source}", "dim"))
    shown = tuple(entry for entry in entries if request.all or not entry.is_folded)
    folded = len(entries) - len(shown)
    more = [Text(f"{folded} more {_FOLDED[folded > 1]} with --all.", style="dim")] if folded else []
    more += [] if sourced.estimates is None else [Text(sourced.estimates.sentence)]
    if shown:
        console.show(Group(title, history_screen(shown, view.now), *more))
        return
    span = "" if request.span is None else " in this time; use a longer --since"
    console.show(Group(title, Text(f"No entries{span}."), *more))
