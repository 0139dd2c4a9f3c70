"""Play thousands of steps, and print what was at stake: `python -m tests.prove.second_judge`.

`make test PART=judges` does it, too.

The exit code is 1 if a guarantee was broken; the example is printed as the calls that play it again, with its history.
"""

import sys
import time
import traceback

import click
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.prove.figures import examined, write
from tests.prove.second_judge.ledger import Figures
from tests.prove.second_judge.machine import machine_of
from tests.prove.second_judge.stage import GROUNDS


@click.command(help=__doc__)
@click.option("--examples", default=150, show_default=True, help="Examples to play.")
@click.option("--steps", default=40, show_default=True, help="Rules of an example, at most.")
@click.option("--seed", "number", type=int, default=None, help="Draw the same examples again.")
@click.option("--ground", multiple=True, type=click.Choice(list(GROUNDS)), help="Begin there only.")
@click.option("--record", default=None, help="Write what comes of it under this name, for the page of figures.")
@click.option("--shrink/--no-shrink", default=True, help="Look for a shorter example of a failure; takes minutes.")
def main(
    examples: int, steps: int, number: int | None, ground: tuple[str, ...], *, record: str | None, shrink: bool
) -> None:
    """Play, print, and exit."""
    figures, began = Figures(), time.monotonic()
    number = int(time.time()) if number is None else number
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    many = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        phases=phases,
    )
    play = seed(number)(machine_of(figures, (), ground))
    wrong: BaseException | None = None
    try:
        run_state_machine_as_test(play, settings=many)
    except AssertionError as error:
        wrong = error
        traceback.print_exception(error, limit=0, file=sys.stdout)
    _report(figures)
    violations, seconds = 0 if wrong is None else 1, time.monotonic() - began
    if record is not None:
        told = examined(number, figures.examples, violations, seconds, figures.steps, figures.seconds)
        write(record, told)
    click.echo(
        f"seed {number}, examples: {figures.examples}, steps: {figures.steps}, virtual seconds: {figures.seconds:.0f}, "
        f"seconds: {seconds:.0f}, violations: {violations}"
    )
    sys.exit(violations)


def _report(figures: Figures) -> None:
    for what, count in sorted(figures.stakes.items()):
        click.echo(f"{count:8}  {what}")
    for circumstances, delays in sorted(figures.delays.items()):
        ordered = sorted(delays)
        middle, late, worst = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)], ordered[-1]
        click.echo(
            f"raises, {circumstances}: {len(ordered)}, median {middle:.2f} s, 95 % {late:.2f} s, worst {worst:.2f} s"
        )


if __name__ == "__main__":
    main()
