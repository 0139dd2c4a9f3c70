"""The command that plays all dangers at once, seed after seed, and fails if anything is lost or does not settle."""

import json
from collections.abc import Iterator
from pathlib import Path

import click

from lab.commands.node_namespace import in_node_namespace
from lab.errors import LabError
from lab.meter.table import markdown_table
from lab.scenarios.chaos.outcome import NOTHING, CameTo, Outcome
from lab.scenarios.chaos.run import CHAOS_KINDS, Chaos
from lab.scenarios.chaos.script import Danger
from lab.terminal import results, show_table

COUNTED = ("application", "inputs", "lost", "doubled", "verdict")


@click.command()
@click.option("--seed", "seeds", multiple=True, type=int, default=(1,), show_default=True, help="One or several.")
@click.option("--minutes", default=8.0, show_default=True, help="For how long dangers are played.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(CHAOS_KINDS)), help="One of them; default: all.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Write the tables here.")
def chaos(
    *, seeds: tuple[int, ...], minutes: float, kinds: tuple[str, ...], json_file: Path | None, markdown: Path | None
) -> None:
    """Scale, kill, evict, drain, roll, restart and freeze at once, as SEED says; then count every record."""
    found: list[Outcome] = []
    with in_node_namespace() as session:
        for seed in seeds:
            found.append(Chaos(session, seed, minutes * 60, kinds or CHAOS_KINDS).run())
            _show(found[-1])
            # What is measured is on the disk, whatever happens to the seeds that follow.
            if json_file:
                json_file.write_text(json.dumps([one.to_json() for one in found], indent=2) + "\n")
            if markdown:
                markdown.write_text("\n".join(line for one in found for line in _markdown(one)) + "\n")
    bad = [one for one in found if not one.is_good]
    if bad:
        seeds_again = " ".join(f"--seed {one.seed}" for one in bad)
        raise LabError(
            f"chaos: {len(bad)} of {len(found)} seeds did not end well",
            "; ".join(fault for one in bad for fault in one.faults),
            f"play the same script again: `python -m lab chaos {seeds_again} --minutes {minutes:g}`",
        )


def _show(outcome: Outcome) -> None:
    results.print(f"\nseed {outcome.seed}, {outcome.began_at} UTC", style="bold")
    for titles, rows in ((gap_titles(outcome), gap_rows(outcome)), (COUNTED, count_rows(outcome))):
        show_table(titles, rows)
    results.print(f"settled after {outcome.settled_seconds:.0f} s")
    for fault in outcome.faults:
        results.print(f"[red]✗[/] {fault}", soft_wrap=True)


def gap_titles(outcome: Outcome) -> tuple[str, ...]:
    """Head the table of gaps."""
    return ("danger", "played", "skipped", "failed", *(f"worst gap, {name} (s)" for name in outcome.counts))


def gap_rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    """Give a row for each danger, and one for gaps that nothing is blamed for; no gap over a second is a dash."""
    for danger in Danger:
        acts = (str(outcome.of(danger, came_to)) for came_to in (CameTo.DONE, CameTo.SKIPPED, CameTo.FAILED))
        yield (danger.value, *acts, *_worst(outcome, danger))
    yield (NOTHING, "-", "-", "-", *_worst(outcome, NOTHING))


def count_rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    """Give the counts of each application."""
    for name, one in outcome.counts.items():
        yield (name, f"{one.inputs:,}", f"{one.lost:,}", f"{one.doubled:,}", one.verdict.value)


def _worst(outcome: Outcome, cause: str) -> Iterator[str]:
    for name in outcome.counts:
        worst = outcome.worst(cause, name)
        yield "-" if worst is None else f"{worst:.2f}"


def _markdown(outcome: Outcome) -> Iterator[str]:
    done = sum(one.came_to is CameTo.DONE for one in outcome.played)
    yield f"### Seed {outcome.seed}, run of {outcome.began_at} UTC"
    yield ""
    ended = "Good" if outcome.is_good else "Not good"
    yield f"{ended}: {done} of {len(outcome.played)} acts done, settled after {outcome.settled_seconds:.0f} s."
    for titles, rows in ((gap_titles(outcome), gap_rows(outcome)), (COUNTED, count_rows(outcome))):
        yield ""
        yield markdown_table(titles, rows).rstrip("\n")
    yield ""
    for fault in outcome.faults:
        yield f"- {fault}"
