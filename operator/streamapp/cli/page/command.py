"""`report`: fetches the report, writes it into a file, and opens it at an application and a time."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from webbrowser import open as open_link

import click

from streamapp.api.report_link import fragment, marker, moment
from streamapp.cli.cluster import streamapps
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.page.job import fetched
from streamapp.cli.screens import watch


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """The options of the command line."""

    name: str | None
    operator_namespace: str
    file: Path
    since: str
    """As a user names a time; empty: from the beginning."""
    until: str
    opens: bool
    timeout_seconds: float


def report(target: Target, request: ReportRequest) -> int:
    """Fetch, write and open the report; give the exit code."""
    since, until = (_moment(words, watch.now()) for words in (request.since, request.until))
    namespace, page = run(_read(target, request))
    try:
        request.file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise CliError(str(request.file), f"it cannot be written: {error.strerror}", "name another --file") from error
    link = request.file.absolute().as_uri()
    if request.name is not None:
        title = f"{namespace}/{request.name}"
        if marker(title) not in page:
            why = f"it has no part about StreamApp {title}"
            step = "see its table of applications; the pipeline runs once a day, and `analytics.report.apps` bounds it"
            raise CliError(str(request.file), why, step)
        link += fragment(title, since, until)
    click.echo(link)
    if request.opens and not open_link(link):
        raise CliError(link, "no browser could be started", "open the link yourself")
    return Exit.FINE


async def _read(target: Target, request: ReportRequest) -> tuple[str, str]:
    connection = await streamapps.resolve(target)
    async with streamapps.open_client(connection, "the report") as client:
        page = await fetched(client, request.operator_namespace, request.timeout_seconds)
    return streamapps.namespace_of(target, connection), page


def _moment(words: str, now: datetime) -> datetime | None:
    try:
        return moment(words, now) if words else None
    except ValueError as error:
        why = f"{words!r} is no time; write 02:00 or 2026-11-21T02:00, in UTC"
        raise click.UsageError(why) from error
