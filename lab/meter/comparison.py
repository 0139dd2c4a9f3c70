"""Two measurements of the same thing as one table, for a person: the operator's beside a plain StatefulSet's.

Called by the lab's commands. Prints nothing itself; 80 columns are enough, and colours only repeat what words say.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lab.meter.counts import CountReport, CountVerdict
from lab.meter.gaps import GapReport, PartitionGap
from lab.meter.table import MeasuredMove

_BAR_WIDTH = 20
_NO_BAR = ""


def gap_bars(columns: Sequence[tuple[str, GapReport, Mapping[int, MeasuredMove]]]) -> RenderableType:
    """Show the gap of each partition in each measurement, then the worst of moved, untouched and quiet ones.

    Args:
        columns: title, what `measure_gaps` found, and the partitions that changed their owner, for each measurement.
    """
    longest = max((row.seconds or 0.0 for _, report, _ in columns for row in report.partitions), default=0.0) or 1.0
    table = _table(("partition", "right"))
    for title, _, _ in columns:
        table.add_column(title, justify="right", no_wrap=True)
        table.add_column("", width=_BAR_WIDTH // len(columns), no_wrap=True)
    numbers = sorted({row.partition for _, report, _ in columns for row in report.partitions})
    for number in numbers:
        cells: list[RenderableType] = [str(number)]
        for _, report, moved in columns:
            row = next((each for each in report.partitions if each.partition == number), None)
            cells += _cells(row, number in moved, longest, _BAR_WIDTH // len(columns))
        table.add_row(*cells)
    return Group(table, Text("* moved to another pod", style="dim"))


def _cells(row: PartitionGap | None, is_moved: bool, longest: float, width: int) -> list[RenderableType]:
    if row is None or row.seconds is None:
        return ["unknown", _NO_BAR]
    style = "yellow" if is_moved else ""
    figure = f"{'>= ' if row.at_least else ''}{row.seconds:.2f} s{'*' if is_moved else ' '}"
    bar = ProgressBar(longest, row.seconds, width, complete_style=style or "dim", finished_style=style or "dim")
    return [Text(figure, style=style), bar]


def worst_table(columns: Sequence[tuple[str, Mapping[str, float | None]]]) -> Table:
    """Show named worst gaps in seconds, one row a name, one column a measurement; None is unknown."""
    table = _table(("worst gap", "left"), *((title, "right") for title, _ in columns))
    for name in columns[0][1]:
        table.add_row(name, *(_seconds(figures[name]) for _, figures in columns))
    return table


def count_table(columns: Sequence[tuple[str, CountReport]]) -> Table:
    """Show what the count check found, one column a measurement."""
    table = _table(("", "left"), *((title, "right") for title, _ in columns))
    rows: tuple[tuple[str, Callable[[CountReport], int]], ...] = (
        ("inputs", lambda report: report.inputs),
        ("outputs", lambda report: report.outputs),
        ("lost", lambda report: report.lost),
        ("counted too low", lambda report: report.undercounted),
        ("repeated", lambda report: report.doubled),
        ("counted too high", lambda report: report.overcounted),
    )
    for name, figure in rows:
        table.add_row(name, *(f"{figure(report):,}" for _, report in columns))
    verdicts = (
        "kept" if report.verdict is CountVerdict.KEPT else report.verdict.value.upper() for _, report in columns
    )
    table.add_row("promise", *verdicts, style="bold")
    return table


def step_table(steps: Sequence[Mapping[str, Any]]) -> Table:
    """Show the steps of a scale-down as `status.lastSteps` has them, oldest first."""
    titles = ("step", "held for", "until all ran again", "gap as the operator saw it")
    table = _table(*((title, "left") for title in titles))
    for one in steps:
        gap = f"{one['downtimeMax']} at most" if "downtimeMax" in one else "not seen"
        table.add_row(f"{one['from']} -> {one['to']}", str(one.get("heldDuration", "-")), str(one["duration"]), gap)
    return table


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title, justify in columns:
        table.add_column(title, justify="right" if justify == "right" else "left", no_wrap=True)
    return table


def _seconds(figure: float | None) -> str:
    return "unknown" if figure is None else f"{figure:.2f} s"
