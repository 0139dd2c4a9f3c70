"""The benchmark of the operator: every held scale-in beside plain ones, as tables, JSON and Markdown."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

import click

from lab.commands.measure import require_kept
from lab.commands.node_namespace import in_node_namespace
from lab.scenarios.benchmark import PROBING_SECONDS, Benchmark, Benchmarker
from lab.scenarios.plain_scale_in import ScaleIn
from lab.terminal import results, show_table

Row = tuple[str, ...]
_STEP_TITLES = (
    *("step", "gap of partitions that moved (s)", "of those that stayed (s)", "in quiet time before (s)"),
    *("held (s)", "covered to PATCH (s)", "PATCH to closed (s)", "restores of actives", "from zero"),
)
_PLAIN_TITLES = ("scale-in", *_STEP_TITLES[1:4])
_GROWTH_TITLES = ("scale-up", "to the StatefulSet (s)", "to converged (s)")


@click.command()
@click.option("--records", default=100_000, show_default=True, help="Keys to preload, for each application.")
@click.option("--rate", default=200, show_default=True, help="Records a second of each steady load.")
@click.option("--held", default=10, show_default=True, help="Held scale-ins in each case.")
@click.option("--plain", default=6, show_default=True, help="Plain scale-ins beside them.")
@click.option("--unaided", default=2, show_default=True, help="Scale-ups without triggered rebalances.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Write the tables of all runs here.")
def bench(
    *, records: int, rate: int, held: int, plain: int, unaided: int, json_file: Path | None, markdown: Path | None
) -> None:
    """Measure held and plain scale-ins of three applications at the same time."""
    with in_node_namespace() as session:
        benchmark = Benchmarker(session, records, rate).run(held, plain, unaided)
    for title, titles, rows in _tables(benchmark):
        results.print(f"\n{title}", style="bold")
        show_table(titles, rows)
    results.print(_memory(benchmark))
    if json_file:
        json_file.write_text(json.dumps(benchmark.to_json(), indent=2) + "\n")
    if markdown:
        markdown.write_text(_markdown(benchmark))
    for case in benchmark.cases:
        require_kept(case.counts, f"the {case.name} application")


def _tables(benchmark: Benchmark) -> Iterable[tuple[str, Sequence[str], list[Row]]]:
    for case in benchmark.cases:
        steps = [
            (
                *_gaps(each.scale_in),
                *(f"{figure:.2f}" for figure in (each.held_for, each.covered_to_patch, each.closed_after)),
                *(str(len(each.restores)), str(each.restored_from_zero(benchmark.whole))),
            )
            for each in case.steps
        ]
        yield f"held by the operator, {case.name}", _STEP_TITLES, _numbered(steps)
        grown = [(f"{each.granted_after:.3f}", f"{each.grown_after:.1f}") for each in case.steps[1:]]
        yield f"scale-up, {case.name}", _GROWTH_TITLES, _numbered(grown)
        if case.unaided:
            title = f"scale-up, no rebalance triggered, {case.name}, probing every {PROBING_SECONDS} s (default: 600 s)"
            yield title, (_GROWTH_TITLES[0], _GROWTH_TITLES[2]), _numbered([(f"{each:.1f}",) for each in case.unaided])
    yield "plain StatefulSet, at-least-once", _PLAIN_TITLES, _numbered([_gaps(each) for each in benchmark.plain])


def _gaps(scale_in: ScaleIn) -> Row:
    quiet = scale_in.before.worst()
    before = None if quiet is None else quiet.seconds
    figures = (scale_in.worst_moved, scale_in.worst_untouched, before)
    return tuple("unknown" if figure is None else f"{figure:.2f}" for figure in figures)


def _numbered(rows: Sequence[Row]) -> list[Row]:
    """Number the rows, and add the median and the most of each column."""
    numbered = [(str(number), *row) for number, row in enumerate(rows, start=1)]
    columns = [[float(cell) for cell in column if cell != "unknown"] for column in zip(*rows, strict=True)]
    if len(rows) < 3 or not all(columns):
        return numbered
    return [
        *numbered,
        ("median", *(f"{median(column):.2f}" for column in columns)),
        ("most", *(f"{max(column):.2f}" for column in columns)),
    ]


def _memory(benchmark: Benchmark) -> str:
    memory = benchmark.operator_mebibytes
    return f"\nMemory of the operator: {min(memory):.0f} to {max(memory):.0f} MiB in {len(memory)} looks"


def _markdown(benchmark: Benchmark) -> str:
    lines = [
        f"### Run of {benchmark.began_at:%Y-%m-%d %H:%M} UTC",
        "",
        f"{benchmark.records:,} keys and {benchmark.rate} records a second in each of three applications, all at once.",
    ]
    for title, titles, rows in _tables(benchmark):
        lines += ["", f"**{title[0].upper()}{title[1:]}**", "", _line(titles), _line("---" for _ in titles)]
        lines += [_line(row) for row in rows]
    verdicts = "; ".join(
        f"{each.name}: {each.counts.inputs:,} inputs, {each.counts.lost} lost, {each.counts.doubled} doubled"
        for each in benchmark.cases
    )
    return "\n".join([*lines, "", f"Counts: {verdicts}.", _memory(benchmark).strip() + ".", ""])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
