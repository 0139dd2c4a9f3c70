"""The command `streamapp-analytics what-if`: other settings over the facts of the tables. It changes nothing."""

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import click
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.report.tables import read_tables
from streamapp.analytics.report.whatif.listing import HEADINGS, LABEL, calibration, compared
from streamapp.analytics.report.whatif.outcome import WhatIf, what_if
from streamapp.analytics.report.whatif.policy import Policy
from streamapp.analytics.spark.options import ROOT, Command


def _policies(window: int | None, lag: int | None, least: int | None, most: int | None) -> list[Policy] | None:
    """Each setting by itself, then all together; None if none is given."""
    given = [
        *([Policy(window_s=window)] if window is not None else []),
        *([Policy(lag=lag)] if lag is not None else []),
        *([Policy(least=least, most=most)] if least is not None or most is not None else []),
    ]
    every = [Policy(window, lag, least, most)] if len(given) > 1 else []
    return [*given, *every] or None


def _settings(command: Command) -> Command:
    """The options that say which settings are tried; the command is given them as policies, or None."""

    @functools.wraps(command)
    def taken(
        window: int | None, lag: int | None, least: int | None, most: int | None, replicas: int | None, **others: Any
    ) -> Any:
        if replicas is not None:
            if least is not None or most is not None:
                raise click.UsageError("Name --replicas, or --min and --max.")
            least = most = replicas
        if least is not None and most is not None and least > most:
            raise click.UsageError(f"--min {least} is above --max {most}.")
        return command(policies=_policies(window, lag, least, most), **others)

    options: Iterable[Callable[[Any], Any]] = (
        click.option("--replicas", metavar="PODS", type=click.IntRange(1), help="Always so many pods."),
        click.option("--max", "most", metavar="PODS", type=click.IntRange(1), help="Desired replicas, at most."),
        click.option("--min", "least", metavar="PODS", type=click.IntRange(0), help="Desired replicas, at least."),
        click.option("--lag", metavar="SLOTS", type=click.IntRange(0), help="learners.acceptableRecoveryLag."),
        click.option("--window", metavar="SECONDS", type=click.IntRange(0), help="scaleDown.stabilizationWindow."),
    )
    return cast("Command", functools.reduce(lambda done, option: option(done), options, taken))


@click.command("what-if", short_help="Compute what other settings would have given.")
@ROOT
@click.option("--days", default=28, show_default=True, type=click.IntRange(1), help="Last days to look at.")
@click.option("--app", default="", metavar="NAMESPACE/NAME", help="Of this application alone.")
@_settings
@click.option("--json", "is_json", is_flag=True, help="For programs.")
def what_if_command(root: Path, days: int, app: str, policies: Sequence[Policy] | None, is_json: bool) -> None:
    """Compute the pod-hours, seconds held and gaps of other settings over the facts of the tables.

    It is arithmetic over what was seen, and no prediction. What was seen comes first, then the present settings
    computed: their error says how far the arithmetic can be trusted. Without a setting, near ones are tried.
    """
    tables = read_tables(root, days)
    every = {f"{key[1]}/{key[2]}": key for key in sorted(tables.rows["s_seen"].spans)}
    chosen = {title: key for title, key in every.items() if app in {"", title}}
    if not chosen:
        raise AnalyticsError(app or str(root), "no such application is in the tables", "see `report` for their names")
    found = {title: what_if(tables.of(key), policies) for title, key in chosen.items()}
    if is_json:
        click.echo(json.dumps({title: asdict(one) for title, one in found.items()}, indent=1, allow_nan=False))
    else:
        _print(found)


def _print(found: Mapping[str, WhatIf]) -> None:
    console = Console(highlight=False)
    console.print(LABEL)
    for title, one in found.items():
        days = "1 day" if one.days == 1 else f"{one.days} days"
        console.print(f"\n[bold]{title}[/bold]: {days}, {one.watched_h:,.1f} h watched. {calibration(one)}")
        table = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
        for nth, heading in enumerate(HEADINGS):
            table.add_column(heading, no_wrap=not nth, min_width=max(map(len, heading.split())))
        for row in compared(one):
            table.add_row(*row)
        console.print(table)
        if one.refusal:
            console.print(f"No other settings are computed: {one.refusal}.")
        for outcome in one.others:
            for note in outcome.notes:
                console.print(f"{outcome.title}: {note}.")
