"""The options and help of `kubectl streamapp report`; `app` adds the command. Imports what it needs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamapp.cli.options import EXIT_CODES, name_argument, operator_namespace_option, target_options

if TYPE_CHECKING:
    from streamapp.cli.cluster.target import Target


@click.command(epilog=EXIT_CODES, short_help="Fetch the report of the pipeline, and open it.")
@name_argument(required=False)
@target_options
@operator_namespace_option
@click.option("--since", default="", metavar="TIME", help="Begin at this time (UTC): 02:00, or 2026-11-21T02:00.")
@click.option("--until", default="", metavar="TIME", help="End at this time (UTC).")
@click.option("--open", "opens", is_flag=True, help="Open the report in the browser.")
@click.option(
    "-f",
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("streamapp-report.html"),
    show_default=True,
    help="The file to write.",
)
@click.option(
    "--timeout",
    "timeout_seconds",
    metavar="SECONDS",
    type=click.IntRange(1),
    default=120,
    show_default=True,
    help="How long to wait for the job.",
)
def report(  # noqa: PLR0913 (one for each option)
    *,
    target: Target,
    name: str | None,
    operator_namespace: str,
    since: str,
    until: str,
    opens: bool,
    file: Path,
    timeout_seconds: int,
) -> int:
    """Fetch the newest report of `streamapp-analytics` as one file, and print the link to it, or to NAME in it.

    A job in the namespace of the operator reads the report; it removes itself after a minute. A time of day is the
    newest such before now.
    """
    from streamapp.cli.page.command import ReportRequest
    from streamapp.cli.page.command import report as command

    if (since or until) and name is None:
        raise click.UsageError("--since and --until need the NAME of a StreamApp.")
    request = ReportRequest(
        name=name,
        operator_namespace=operator_namespace,
        file=file,
        since=since,
        until=until,
        opens=opens,
        timeout_seconds=timeout_seconds,
    )
    return command(target, request)
