"""The benchmark of holds: how long pods are held for reasons of the operator's own, and for which."""

import json
from pathlib import Path
from statistics import mean, median

import click

from lab.commands.measure import require_kept
from lab.commands.node_namespace import in_node_namespace
from lab.meter.table import markdown_table
from lab.scenarios.holds.hold_times import AFTER, AIMS, BEFORE, KINDS, Holder, Holds
from lab.terminal import show_table

TITLES = ("application", "pods", "held, median (s)", "worst (s)", "aim (s)", "each (s)")
REASONS = ("application", "shown as waited for", "mean (s)", "most (s)", "holds")


@click.command("bench-holds")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(KINDS)), help="One of them; default: all.")
@click.option("--turns", default=6, show_default=True, help="Holds of each.")
@click.option("--rate", default=300, show_default=True, help="Records a second of the steady load.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Write the tables here.")
def bench_holds(
    *, kinds: tuple[str, ...], turns: int, rate: int, json_file: Path | None, markdown: Path | None
) -> None:
    """Scale one application after the other from four pods to two, and show how long that took, and what for."""
    found: list[Holds] = []
    with in_node_namespace() as session:
        for one in Holder(session, rate, turns).run(kinds or tuple(KINDS)):
            found.append(one)
            if json_file:
                json_file.write_text(json.dumps([each.to_json() for each in found], indent=2) + "\n")
    tables = ((TITLES, [hold_row(one) for one in found]), (REASONS, [row for one in found for row in reason_rows(one)]))
    for titles, rows in tables:
        show_table(titles, rows)
    if markdown:
        markdown.write_text("\n".join(markdown_table(titles, rows) for titles, rows in tables))
    for one in found:
        require_kept(one.counts, f"the application {one.kind}")


def hold_row(found: Holds) -> tuple[str, ...]:
    """Give the cells of one kind."""
    times = [one.seconds for one in found.held]
    figures = (f"{median(times):.1f}", f"{max(times):.1f}", f"{AIMS[found.kind]:.0f}")
    return (found.kind, f"{BEFORE} → {AFTER}", *figures, " ".join(f"{one:.1f}" for one in times))


def reason_rows(found: Holds) -> list[tuple[str, ...]]:
    """Give a row for each reason, the longest first; a hold without a reason counts with zero seconds."""
    names = {name for one in found.held for name in one.waits}
    waits = {name: [one.waits.get(name, 0.0) for one in found.held] for name in names}
    return [
        (found.kind, name, f"{mean(each):.1f}", f"{max(each):.1f}", str(sum(seconds > 0 for seconds in each)))
        for name, each in sorted(waits.items(), key=lambda pair: -mean(pair[1]))
    ]
