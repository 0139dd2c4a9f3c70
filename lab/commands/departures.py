"""The benchmark of departures: how long users wait when a pod goes, in every way in which a pod goes."""

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median

import click

from lab.commands.measure import require_kept
from lab.commands.node_namespace import in_node_namespace
from lab.scenarios.departures import KINDS, WAYS, Departer, Departures
from lab.terminal import show_table

_UNKNOWN = "unknown"
TITLES = ("way", "application", "median (s)", "worst (s)", "each (s)", "quiet, worst (s)", "to settled, median (s)")


@click.command("bench-departures")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(KINDS)), help="One of them; default: all.")
@click.option("--way", "ways", multiple=True, type=click.Choice(list(WAYS)), help="One of them; default: all.")
@click.option("--turns", default=3, show_default=True, help="How often each way is played with each application.")
@click.option("--rate", default=300, show_default=True, help="Records a second of the steady load.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Write the table here.")
def bench_departures(
    *,
    kinds: tuple[str, ...],
    ways: tuple[str, ...],
    turns: int,
    rate: int,
    json_file: Path | None,
    markdown: Path | None,
) -> None:
    """Let pods of one application after the other go in every way, and show the longest wait of any partition."""
    chosen, found = [KINDS[name] for name in kinds or KINDS], list[Departures]()
    with in_node_namespace() as session:
        for one in Departer(session, rate, turns).run(chosen, ways or tuple(WAYS)):
            found.append(one)
            # What is measured is on the disk, whatever happens to the rest of two hours.
            if json_file:
                json_file.write_text(json.dumps([one.to_json() for one in found], indent=2) + "\n")
    rows = [row(one, way) for way in ways or WAYS for one in found]
    show_table(TITLES, rows)
    if markdown:
        lines = [TITLES, ("---", "---", *("---:",) * 2, "---", *("---:",) * 2), *rows]
        markdown.write_text("".join(f"| {' | '.join(line)} |\n" for line in lines))
    for one in found:
        require_kept(one.counts, f"the application {one.kind.name}")


def row(found: Departures, way: str) -> tuple[str, ...]:
    """Give the cells of one way and one application; a gap that is unknown is shown as such and never left out."""
    played = found.of(way)
    gaps = [one.gap for one in played]
    quiet = [one.quiet for one in played]
    times = [one.seconds for one in played]
    return (
        *(way, found.kind.name, _two(_of_all(median, gaps)), _two(_of_all(max, gaps)), " ".join(map(_two, gaps))),
        *(_two(_of_all(max, quiet)), f"{median(times):.0f}" if times else _UNKNOWN),
    )


def _of_all(figure: Callable[[list[float]], float], gaps: list[float | None]) -> float | None:
    known = [gap for gap in gaps if gap is not None]
    return figure(known) if known and len(known) == len(gaps) else None


def _two(figure: float | None) -> str:
    return _UNKNOWN if figure is None else f"{figure:.2f}"
