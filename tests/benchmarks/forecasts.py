"""Measures forecasts: 1,000 draws for 200 tasks on 10 pods as `plan` makes them, and 5,000 tasks on 200 processes.

`make bench-forecasts`. Each figure is one run in this process, in seconds of the processor and of the clock.
"""

import time
from collections.abc import Iterator

import click

from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.core.facts.snapshot import NOTHING_SEEN
from streamapp.core.status.processes import ProcessRow
from streamapp.core.status.task_table import CopySeen, Owner, Role, TaskRow, TaskTable
from streamapp.simulator.forecast.basis import Given, Known, basis
from streamapp.simulator.forecast.change import LEARNER, STOCK
from streamapp.simulator.forecast.outcome import Outcome, outcome
from streamapp.simulator.forecast.running import running
from streamapp.simulator.forecast.times import DRAWS
from tests.model.forecast.apps import NOW, UID

RECORDS = 1_000_000
CASES = (
    (200, 10, 11, 0, LEARNER),
    (200, 10, 8, 0, LEARNER),
    (200, 10, 11, 0, STOCK),
    (200, 10, 9, 1, STOCK),
    (200, 10, 8, 1, STOCK),
    (200, 10, 5, 1, STOCK),
    (5_000, 200, 100, 0, LEARNER),
    (5_000, 200, 210, 0, LEARNER),
    (5_000, 200, 199, 1, STOCK),
)
"""Tasks, pods before and after, standbys, assignor."""


def a_large_table(tasks: int, pods: int, standbys: int) -> TaskTable:
    """Tasks dealt in turn, with caught-up standbys on the next pods."""
    return TaskTable(
        as_of=NOW,
        positions_as_of=NOW,
        highest=Ordinal(pods - 1),
        limit=10_000,
        rows=tuple(_row(number, pods, standbys) for number in range(tasks)),
        doubt="",
        processes=tuple(
            ProcessRow(ordinal=Ordinal(pod), process=seeded_process_id(UID, Ordinal(pod)), threads=1, lags={})
            for pod in range(pods)
        ),
        speeds=NOTHING_SEEN,
    )


def _row(number: int, pods: int, standbys: int) -> TaskRow:
    places = [(number + step) % pods for step in range(standbys + 1)]
    roles = [Role.ACTIVE, *[Role.STANDBY] * standbys]
    copies = [CopySeen(Ordinal(place), role, 0, is_caught_up=True) for place, role in zip(places, roles, strict=True)]
    return TaskRow(
        task=TaskId(0, number),
        is_stateful=True,
        owner=Owner(Ordinal(places[0]), f"m{places[0]}"),
        activity=None,
        copies=tuple(copies),
        covered_on=None,
        records=RECORDS,
    )


def measured() -> Iterator[tuple[str, float, float, Outcome]]:
    """Each case with its seconds of the processor and of the clock."""
    for tasks, pods, to, standbys, assignor in CASES:
        table = a_large_table(tasks, pods, standbys)
        began, worked = time.perf_counter(), time.process_time()
        app = running(table, pods, to, UID)
        known = Known(is_on_demand=assignor == LEARNER)
        rests_on = basis(app, table.speeds, known, Given(standbys=standbys, assignor=assignor))
        found = outcome(app, to, rests_on.settings, rests_on.restore, rests_on.pauses, rests_on.gap)
        title = f"{tasks:,} | {pods} to {to} | {assignor}, {standbys} standbys"
        yield title, time.process_time() - worked, time.perf_counter() - began, found


@click.command()
def main() -> None:
    """Print a table."""
    click.echo(f"| Tasks | Pods | Assignor | Processor, {DRAWS:,} draws | Clock | Moves | Rebalances |")
    click.echo("| ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for title, worked, seconds, found in measured():
        rebalances = f"{len(found.steps)}" if found.is_over else f"{len(found.steps)}, cut off"
        click.echo(f"| {title} | {worked:.2f} | {seconds:.2f} | {len(found.moves):,} | {rebalances} |")


if __name__ == "__main__":
    main()
