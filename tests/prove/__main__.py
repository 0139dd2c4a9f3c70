"""What `python -m tests.prove` does: it plays ten thousand stories, and the exit code is 1 if a guarantee broke."""

import sys
import time
from collections.abc import Sequence

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from tests.prove import figures
from tests.prove.coverage import Coverage
from tests.prove.judge_raises import WITHIN
from tests.prove.play import Outcome, shrunk, told
from tests.prove.quick_values import make_values_quickly
from tests.prove.scenes import SCENES
from tests.prove.story import Story
from tests.prove.sweep import Report, chosen, cores, sweep


@click.command()
@click.option("--runs", default=10_500, show_default=True, help="How many stories.")
@click.option("--all", "everything", is_flag=True, help="Every fault at every call of every scene, and mixtures.")
@click.option("--seed", default=1, show_default=True, help="Which stories, where not all of them are played.")
@click.option("--scene", "scenes", multiple=True, type=click.Choice(sorted(SCENES)), help="Only of this scene.")
@click.option("--workers", default=None, type=int, help="Processes; by default one for each core.")
@click.option("--record", default=None, help="Write what comes of it under this name, for the page of figures.")
@click.option("--replay", default=None, help="Play one story, as a failure names it, and tell what happens.")
def main(
    runs: int,
    *,
    everything: bool,
    seed: int,
    scenes: tuple[str, ...],
    workers: int | None,
    record: str | None,
    replay: str | None,
) -> None:
    """Sweep faults over the operator's whole shell, in virtual time, under a judge that knows the truth."""
    console = Console(soft_wrap=True, highlight=False)
    if not console.is_terminal:
        console.width = 160
    if replay is not None:
        sys.exit(_replay(Story.parse(replay), console))
    began = time.monotonic()
    make_values_quickly()
    with console.status("choosing stories"):
        stories = chosen(None if everything else runs, seed, scenes, workers or cores())
    report = _swept(stories, workers, console)
    seconds = time.monotonic() - began
    console.print(_table(report))
    console.print("\n".join(Coverage(report.visited).lines()), markup=False)
    console.print(_raises(report))
    console.print(f"{seconds:.0f} s for {report.seconds / 3600:.0f} hours of the worlds' time, seed {seed}")
    if report.shortest is not None:
        for failed in report.failed[:20]:
            console.print(f"{failed.story}: {failed.wrongs[0]}", markup=False)
        _tell_failure(report.shortest, console)
    if record is not None:
        figures.write(record, figures.sweep_of(report, seed, seconds))
    console.print(f"runs: {report.runs}, violations: {len(report.failed)}")
    sys.exit(1 if report.failed else 0)


def _swept(stories: Sequence[Story], workers: int | None, console: Console) -> Report:
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[failed]} violations"))
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("", total=len(stories), failed=0)
        failed, done, began = 0, 0, time.monotonic()

        def tell(outcome: Outcome) -> None:
            nonlocal failed, done
            failed, done = failed + bool(outcome.wrongs), done + 1
            progress.update(task, advance=1, failed=failed)
            if outcome.wrongs:  # At once: a run of hours must not end before its reader can begin.
                console.print(f"{outcome.story}: {outcome.wrongs[0]}", markup=False)
            if not console.is_terminal and done % max(1, len(stories) // 10) == 0:
                left = (time.monotonic() - began) / done * (len(stories) - done)
                console.print(f"{done:,} of {len(stories):,}, {failed} violations, {left:.0f} s left")

        return sweep(stories, workers, tell)


def _table(report: Report) -> Table:
    table = Table("fault", *(header for header, _ in _COLUMNS), title="what was swept, and what came of it")
    for column in table.columns[1:]:
        column.justify = "right"
    for kind, row in sorted(report.rows.items()):
        notes = (f"{row.notes[note]:,}" for _, note in _COLUMNS[2:-1])
        table.add_row(kind, f"{row.runs:,}", f"{row.hits:,}", *notes, f"{row.violations:,}")
    return table


def _raises(report: Report) -> Table:
    """How long raises took: from the write of `spec.replicas` to the write of the StatefulSet."""
    table = Table("a raise while", "raises", "median", "99 %", "worst", "limit", title="seconds until a raise was made")
    for column in table.columns[1:]:
        column.justify = "right"
    for befell, limit in WITHIN.items():
        delays = sorted(report.raises.get(befell, ()))
        at = [delays[round(share * (len(delays) - 1))] for share in (0.5, 0.99, 1.0)] if delays else []
        figures = [f"{seconds:.2f}" for seconds in at] or ["", "", ""]
        table.add_row(befell, f"{len(delays):,}", *figures, f"{limit:g}")
    return table


_COLUMNS = (
    ("runs", ""),
    ("faults hit", ""),
    ("steps granted", "removals"),
    ("raises", "grants"),
    ("evictions", "evictions"),
    ("cancels", "cancels"),
    ("restarts", "restarts"),
    ("overtaken", "overtaken"),
    ("violations", ""),
)


def _tell_failure(outcome: Outcome, console: Console) -> None:
    """The shortest failure, with its history and the command that plays it again."""
    story = shrunk(outcome.story)
    again, history = told(story)
    console.print("\n".join(history[-120:]), markup=False)
    for wrong in again.wrongs or outcome.wrongs:
        console.print(wrong, style="red", markup=False)
    console.print(f"story: {story}", markup=False)
    console.print(f"replay: uv run --frozen python -m tests.prove --replay '{story}'", markup=False)


def _replay(story: Story, console: Console) -> int:
    outcome, history = told(story)
    console.print("\n".join(history), markup=False)
    for wrong in outcome.wrongs:
        console.print(wrong, style="red", markup=False)
    console.print(f"runs: 1, violations: {int(bool(outcome.wrongs))}")
    return 1 if outcome.wrongs else 0


if __name__ == "__main__":
    main()
