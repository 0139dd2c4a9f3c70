"""The benchmark of moves: how long users of a task wait while it moves, in every way there is, side by side."""

import json
from pathlib import Path

import click

from lab.commands.measure import require_kept
from lab.commands.node_namespace import in_node_namespace
from lab.scenarios.moves import AFTER, BEFORE, WAYS, Mover, Moves, Scaling, Spread
from lab.terminal import show_table

TITLES = (
    *("way", "pods", "moved", "p50 (s)", "p99 (s)", "worst (s)", "stayed, worst (s)", "quiet, worst (s)"),
    *("at the stop, worst (s)", "rebalances a scaling", "took, median (s)"),
)


@click.command("bench-moves")
@click.option("--way", "names", multiple=True, type=click.Choice(list(WAYS)), help="One of them; default: all.")
@click.option("--steps", default=12, show_default=True, help="Scale-ins in each way, and scale-ups between them.")
@click.option("--rate", default=300, show_default=True, help="Records a second of the steady load.")
@click.option("--records", type=int, help="Keys to preload, instead of each way's own number.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Write the table here.")
def bench_moves(
    *,
    names: tuple[str, ...],
    steps: int,
    rate: int,
    records: int | None,
    json_file: Path | None,
    markdown: Path | None,
) -> None:
    """Scale one application after the other between three pods and two, and show the gaps of all tasks that moved."""
    chosen = [WAYS[name] if records is None else WAYS[name].of(records) for name in names or WAYS]
    with in_node_namespace() as session:
        found = Mover(session, rate, steps).run(chosen)
    rows = [row for one in found for row in (_row(one, AFTER), _row(one, BEFORE))]
    show_table(TITLES, rows)
    if json_file:
        json_file.write_text(json.dumps([one.to_json() for one in found], indent=2) + "\n")
    if markdown:
        lines = [TITLES, ("---",) * len(TITLES), *rows]
        markdown.write_text("".join(f"| {' | '.join(line)} |\n" for line in lines))
    for one in found:
        require_kept(one.counts, f"the application moved {one.way.name}")


def _row(moves: Moves, replicas: int) -> tuple[str, ...]:
    scalings = [one for one in moves.scalings if one.to_replicas == replicas]
    spread = Spread.of(moves.gaps(replicas))
    figures = ("-",) * 4 if spread is None else (str(spread.count), *map(_two, (spread.p50, spread.p99, spread.worst)))
    way = f"{BEFORE} → {AFTER}" if replicas == AFTER else f"{AFTER} → {BEFORE}"
    return (
        *(moves.way.name, way, *figures),
        *(_worst([getattr(one, name) for one in scalings]) for name in ("untouched", "quiet", "at_stop")),
        f"{sum(one.rebalances for one in scalings) / len(scalings):.1f}",
        f"{_median(scalings):.0f}",
    )


def _worst(figures: list[float | None]) -> str:
    known = [figure for figure in figures if figure is not None]
    return _two(max(known)) if known else "-"


def _median(scalings: list[Scaling]) -> float:
    ordered = sorted(one.seconds for one in scalings)
    return ordered[len(ordered) // 2]


def _two(figure: float) -> str:
    return f"{figure:.2f}"
